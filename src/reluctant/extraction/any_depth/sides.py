"""The active sides of the neurons of a layer, and the coefficients that no crease shows.

With features [max(z, 0), h] a neuron of the next layer has coefficients a of max(z, 0) and t of h. A neuron j that
is the wrong way round enters as a_j max(-z_j, 0) = a_j max(z_j, 0) - a_j z_j, so t = -Σ_j f_j a_j w_j with f_j = 1
for those and 0 for the others, the same f for every neuron of the next layer: one least squares over all creases.
Where a_j is open, because z_j was negative wherever the crease was seen, -f_j a_j is an unknown of its own: if it
is not zero, j is the wrong way round. Coefficients that stay open must only keep their neuron on one side where it
was never seen to switch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from reluctant.extraction.any_depth.crease_equations import OPEN_SHARE, IncomingWeights
from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray

SIDES_RANK = 1e-6  # relative


@dataclass(frozen=True)
class _SideEquations:
    """One neuron of the next layer: t = -(w a) f - w g with g zero except for open coefficients.

    products: (k', u) columns w_j a_j of the undecided neurons. rows: (k', u) columns w_j. Both in the directions of t
    that are determined.
    """

    products: FloatArray
    rows: FloatArray
    right: FloatArray
    open: BoolArray

    @classmethod
    def of(cls, known: KnownLayers, incoming: IncomingWeights) -> _SideEquations:
        layer = known.layers[-1]
        h = len(layer)
        size = np.linalg.norm(incoming.weights)
        a, t = incoming.weights[:h] / size, layer.beside.T @ incoming.weights[h:] / size
        open_ = (np.linalg.norm(incoming.open[:h], axis=1) > OPEN_SHARE)[layer.undecided]
        undetermined = np.hstack([layer.beside.T @ incoming.open[h:], np.eye(len(t))[:, layer.carried]])
        u, sizes, _ = np.linalg.svd(undetermined)
        sure = u[:, int((sizes > SIDES_RANK).sum()) :].T
        w, a = layer.weights[layer.undecided].T, a[layer.undecided]
        return cls(sure @ np.where(open_, 0.0, w * a), sure @ w, sure @ t, open_)

    def without_open(self) -> tuple[FloatArray, FloatArray]:
        """Equations in f alone."""
        u, sizes, _ = np.linalg.svd(self.rows[:, self.open])
        rest = u[:, int((sizes > SIDES_RANK).sum()) :].T
        return -rest @ self.products, rest @ self.right

    def open_parts(self, sides: FloatArray) -> FloatArray:
        """The unknowns g (u,) that the open coefficients leave, given f."""
        parts = np.zeros(len(self.open))
        left = -(self.right + self.products @ sides)
        parts[self.open] = np.linalg.lstsq(self.rows[:, self.open], left, rcond=SIDES_RANK)[0]
        return parts


def find_sides(known: KnownLayers, incomings: Sequence[IncomingWeights], *, final: bool = False) -> BoolArray | None:
    """Which neurons of the last layer must be turned round, None while that is not clear.

    If this is final, neurons whose coefficients are open everywhere are looked at by what they leave in t.
    """
    clear_side = 1e-2  # largest distance from 0 or 1 of a choice that is clear
    sides_agree = 1e-5  # residual of the equations, relative to their size
    present_weight = 1e-5  # a coefficient of a neuron's weights larger than this is one
    equations = [_SideEquations.of(known, incoming) for incoming in incomings]
    if not equations:
        return None
    parts = [e.without_open() for e in equations]
    matrix, right = np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])
    seen = np.abs(matrix).max(axis=0, initial=0) > present_weight
    if not (seen.all() or final) or len(matrix) < seen.sum():
        return None
    sides = np.zeros(len(seen))
    sides[seen], _, rank, _ = np.linalg.lstsq(matrix[:, seen], right, rcond=SIDES_RANK)
    rounded = np.round(sides)
    clear = np.abs(sides - rounded).max(initial=0) < clear_side and set(np.unique(rounded)) <= {0.0, 1.0}
    off = np.linalg.norm(matrix @ rounded - right)
    if rank < seen.sum() or not clear or off > sides_agree * np.sqrt(len(equations)):
        return None
    left = np.max([np.abs(e.open_parts(rounded)) for e in equations], axis=0) > present_weight
    wrong = np.zeros(len(known.layers[-1]), dtype=bool)
    wrong[known.layers[-1].undecided] = (rounded > 0) | (~seen & left)
    return wrong


@dataclass(frozen=True)
class SettledWeights:
    """Weights with the open coefficients chosen; `on` if the neuron is on where they play a part.

    margin: by how much it stays on its side, relative; not positive if no choice keeps it there.
    """

    weights: FloatArray
    on: bool
    margin: float


def settle_open(incoming: IncomingWeights, features: FloatArray) -> SettledWeights:
    """Choose the open coefficients so that the neuron does not switch at features (n, F) where they matter."""
    enough_features = 2000
    away = features[~incoming.determined(features)][:enough_features] - incoming.start
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    choices = [_keep_on(side * (away @ incoming.weights), side * (away @ incoming.open)) for side in (1.0, -1.0)]
    best = int(choices[1][1] > choices[0][1])
    step, margin = choices[best]
    return SettledWeights(incoming.weights + incoming.open @ step, best == 0, margin)


def _keep_on(fixed: FloatArray, free: FloatArray) -> tuple[FloatArray, float]:
    """ν with fixed + free @ ν at least the margin everywhere, and the largest such margin, at most one."""
    largest_open = 10.0  # coefficient, in units of the known weights' norm
    n, u = free.shape
    if not n:
        return np.zeros(u), 0.0
    objective = np.append(np.zeros(u), -1.0)
    bounds = [(-largest_open, largest_open)] * u + [(None, 1.0)]
    found = linprog(objective, A_ub=np.hstack([-free, np.ones((n, 1))]), b_ub=fixed, bounds=bounds, method="highs")
    return (found.x[:-1], float(found.x[-1])) if found.status == 0 else (np.zeros(u), -np.inf)
