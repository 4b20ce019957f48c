"""Coefficients that no crease shows: they must only keep the neuron on one side where it was never seen to switch.

Where the open features are active the neuron does not switch, so it is on everywhere there, or off. If it is off the
coefficients do not matter. If it is on they add to what the next layer gets from these features directly, so they
can have any value that keeps it on, provided the features are carried on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from reluctant.extraction.any_depth.crease import Incoming
from reluctant.numerics import FloatArray

__all__ = ["Settled", "settle"]

LARGEST = 10.0  # coefficient, in units of the known weights' norm
ENOUGH_ROWS = 2000


@dataclass(frozen=True)
class Settled:
    """Weights with the open coefficients chosen; `on` if the neuron is on where they play a part.

    margin: by how much it stays on its side, relative; not positive if no choice keeps it there.
    """

    weights: FloatArray
    on: bool
    margin: float


def settle(incoming: Incoming, features: FloatArray) -> Settled:
    """Choose the open coefficients so that the neuron does not switch at features (n, F) where they matter."""
    away = features[~incoming.determined(features)][:ENOUGH_ROWS] - incoming.start
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    choices = [_keep_on(side * (away @ incoming.weights), side * (away @ incoming.open)) for side in (1.0, -1.0)]
    best = int(choices[1][1] > choices[0][1])
    step, margin = choices[best]
    return Settled(incoming.weights + incoming.open @ step, best == 0, margin)


def _keep_on(fixed: FloatArray, free: FloatArray) -> tuple[FloatArray, float]:
    """ν with fixed + free @ ν at least the margin everywhere, and the largest such margin, at most one."""
    n, u = free.shape
    if not n:
        return np.zeros(u), 0.0
    objective = np.append(np.zeros(u), -1.0)
    bounds = [(-LARGEST, LARGEST)] * u + [(None, 1.0)]
    found = linprog(objective, A_ub=np.hstack([-free, np.ones((n, 1))]), b_ub=fixed, bounds=bounds, method="highs")
    return (found.x[:-1], float(found.x[-1])) if found.status == 0 else (np.zeros(u), -np.inf)
