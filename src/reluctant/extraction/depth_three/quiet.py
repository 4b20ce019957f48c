"""Points at which every first-layer neuron has a given state, with room, near the origin. No queries."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from reluctant.extraction.failures import StageFailed
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray

__all__ = ["points_in_states", "quiet_points"]

STEPS = 10  # of the search for a point, for each neuron


def quiet_points(
    normals: FloatArray, offsets: FloatArray, which: IntArray, active: BoolArray, room: FloatArray
) -> FloatArray:
    """For each neuron of `which` the point of its hyperplane nearest to the origin of that kind.

    All others stay `room` (len(which),) inside the active side where `active` (len(which), n), else inside the other.
    """
    each = zip(which, active, room, strict=True)
    return np.array([_on_hyperplane(normals, offsets, int(j), states, float(least)) for j, states, least in each])


def points_in_states(normals: FloatArray, offsets: FloatArray, active: BoolArray, room: FloatArray) -> FloatArray:
    """The nearest points (p, k) with every neuron `room` (p, n) inside its state (p, n)."""
    sides = np.where(active, 1.0, -1.0)
    each = zip(sides, room, strict=True)
    return np.array([_nearest(side[:, None] * normals, least - side * offsets) for side, least in each])


def _on_hyperplane(normals: FloatArray, offsets: FloatArray, j: int, active: BoolArray, room: float) -> FloatArray:
    sides = np.where(active, 1.0, -1.0)
    others = np.arange(len(offsets)) != j
    rows = np.concatenate([(sides[:, None] * normals)[others], normals[[j]], -normals[[j]]])
    least = np.concatenate([(room - sides * offsets)[others], [-offsets[j]], [offsets[j]]])
    point = _nearest(rows, least)
    return np.asarray(point - (normals[j] @ point + offsets[j]) * normals[j])


def _nearest(rows: FloatArray, least: FloatArray) -> FloatArray:
    """The shortest y with rows @ y ≥ least (Lawson and Hanson's least distance programming)."""
    size = max(float(np.abs(least).max()), np.finfo(float).tiny)
    columns = np.vstack([rows.T, least[None] / size])
    target = np.append(np.zeros(rows.shape[1]), 1.0)
    most = int(STEPS * columns.shape[1])
    try:
        multipliers, _ = scipy.optimize.nnls(columns, target, maxiter=most)
    except RuntimeError as error:  # so it says that it was too many
        raise StageFailed("refine", "no point with these states was found", number=most, limit=most) from error
    residual = columns @ multipliers - target
    return np.asarray(-size * residual[:-1] / residual[-1])
