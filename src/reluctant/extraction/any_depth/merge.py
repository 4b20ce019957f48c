"""Two creases of one neuron, each seen where the other's open coefficients play no part, become one."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.any_depth.crease import Crease, Incoming
from reluctant.numerics import FloatArray

__all__ = ["joined", "same_neuron"]

AGREE = 1e-7  # relative residual
RANK = 1e-7
SPARE = 2  # equations that two different neurons would have to satisfy by chance
SMALLEST_RATIO = 1e-6  # of the sizes of two normals


def same_neuron(one: Incoming, other: Incoming) -> bool:
    """True if weights of both, open coefficients chosen freely, are proportional."""
    matrix = np.hstack([_with_bias(one.open, one), -_with_bias(other.open, other), -_weights(other)])
    target = -_weights(one)[:, 0]
    found, _, rank, _ = np.linalg.lstsq(matrix, target, rcond=RANK)
    off = np.linalg.norm(matrix @ found - target) / np.linalg.norm(target)
    return bool(off < AGREE and abs(found[-1]) > SMALLEST_RATIO and len(target) - rank >= SPARE)


def joined(one: Crease, other: Crease) -> Crease:
    """All points of both."""
    return one.with_points(other.points)


def _weights(incoming: Incoming) -> FloatArray:
    return _with_bias(incoming.weights[:, None], incoming)


def _with_bias(columns: FloatArray, incoming: Incoming) -> FloatArray:
    return np.concatenate([columns, -(incoming.start @ columns)[None]])
