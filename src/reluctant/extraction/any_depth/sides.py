"""On which side of its crease each neuron of the last known layer is active: one least squares over all creases.

With features [max(z, 0), h] a neuron of the next layer has coefficients a of max(z, 0) and t of h. A neuron j that
is the wrong way round enters as a_j max(-z_j, 0) = a_j max(z_j, 0) - a_j z_j, so t = -Σ_j f_j a_j w_j with f_j = 1 for
those and 0 for the others, the same f for every neuron of the next layer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reluctant.extraction.any_depth.crease import OPEN, Incoming
from reluctant.extraction.any_depth.known import Known
from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["find_sides"]

CLEAR = 1e-2  # largest distance from 0 or 1 of a choice that is clear
RANK = 1e-6  # relative
AGREE = 1e-5  # residual of the equations, relative to their size


def find_sides(known: Known, incomings: Sequence[Incoming]) -> BoolArray | None:
    """Which neurons of the last layer must be turned round, None while that is not clear."""
    systems = [_equations(known, incoming) for incoming in incomings]
    if not systems:
        return None
    matrix, right = np.concatenate([a for a, _ in systems]), np.concatenate([b for _, b in systems])
    width = len(known.layers[-1])
    if len(matrix) < width:
        return None
    choice, _, rank, _ = np.linalg.lstsq(matrix, right, rcond=RANK)
    rounded = np.round(choice)
    clear = rank == width and np.abs(choice - rounded).max() < CLEAR and set(np.unique(rounded)) <= {0.0, 1.0}
    off = np.linalg.norm(matrix @ rounded - right)
    return rounded > 0 if clear and off <= AGREE * np.sqrt(len(systems)) else None


def _equations(known: Known, incoming: Incoming) -> tuple[FloatArray, FloatArray]:
    """Equations in f of one neuron; what is open in it, and what is carried, is projected out."""
    w, carried = known.layers[-1].weights, known.layers[-1].carried
    k = len(w)
    size = np.linalg.norm(incoming.weights)
    a, t = incoming.weights[:k] / size, incoming.weights[k:] / size
    if incoming.closed and not len(carried):
        return -(w.T * a), t
    open_ = np.linalg.norm(incoming.open[:k], axis=1) > OPEN
    spanned = np.hstack([incoming.open[k:], w[open_].T, np.eye(w.shape[1])[:, carried]])
    u, sizes, _ = np.linalg.svd(spanned)
    rest = u[:, int((sizes > RANK).sum()) :].T
    return -rest @ np.where(open_, 0.0, w.T * a), rest @ t
