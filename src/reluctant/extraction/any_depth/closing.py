"""Open coefficients from kinks that were seen already: values on which several of them agree. No queries."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from reluctant.extraction.any_depth.crease import Crease, Incoming
from reluctant.extraction.any_depth.known import Known
from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["close_from_kinks"]

MOST_OPEN = 2  # coefficients: more would have too many combinations
MOST_KINKS = 60
AGREE = 1e-8  # relative to the distance in feature space
DEPENDS = 1e-2  # share of that distance along open directions that makes a kink tell


def close_from_kinks(known: Known, crease: Crease, incoming: Incoming, points: FloatArray) -> Crease | None:
    """The crease with those unexplained kinks (n, d) that agree on its open coefficients, None if too few do."""
    u = incoming.open.shape[1]
    if not 0 < u <= MOST_OPEN:
        return None
    away = known.features(points) - incoming.start
    away /= np.linalg.norm(away, axis=1, keepdims=True) + np.finfo(float).tiny
    fixed, free = away @ incoming.weights, away @ incoming.open
    telling = np.flatnonzero(np.linalg.norm(free, axis=1) > DEPENDS)[:MOST_KINKS]
    best = _best_agreement(fixed[telling], free[telling], u)
    if best is None or not _overdetermined(free[telling[best]]):
        return None
    return crease.with_points(points[telling[best]])


def _overdetermined(rows: FloatArray) -> bool:
    """True if the rows still determine all unknowns when any one of them is left out."""
    n, u = rows.shape
    return n > u and all(np.linalg.matrix_rank(np.delete(rows, k, axis=0), DEPENDS**2) == u for k in range(n))


def _best_agreement(fixed: FloatArray, free: FloatArray, u: int) -> BoolArray | None:
    """The largest set of equations fixed + free @ ν = 0 with a common solution, among those u of them give."""
    best: BoolArray | None = None
    for chosen in combinations(range(len(fixed)), u):
        which = list(chosen)
        if np.linalg.cond(free[which]) > 1 / DEPENDS**2:
            continue
        solution = np.linalg.solve(free[which], -fixed[which])
        agree = np.abs(fixed + free @ solution) < AGREE * (1 + np.linalg.norm(solution))
        if best is None or agree.sum() > best.sum():
            best = agree
    return best
