"""On which side of its crease each neuron of the last known layer is active: one least squares over all creases.

With features [max(z, 0), h] a neuron of the next layer has coefficients a of max(z, 0) and t of h. A neuron j that
is the wrong way round enters as a_j max(-z_j, 0) = a_j max(z_j, 0) - a_j z_j, so t = -Σ_j f_j a_j w_j with f_j = 1 for
those and 0 for the others, the same f for every neuron of the next layer. Where a_j is open, because z_j was negative
wherever the crease was seen, -f_j a_j is an unknown of its own: if it is not zero, j is the wrong way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.crease import OPEN, Incoming
from reluctant.extraction.any_depth.known import Known
from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["find_sides"]

CLEAR = 1e-2  # largest distance from 0 or 1 of a choice that is clear
RANK = 1e-6  # relative
AGREE = 1e-5  # residual of the equations, relative to their size
PRESENT = 1e-5  # a coefficient of a neuron's weights larger than this is one


@dataclass(frozen=True)
class _Equations:
    """One neuron of the next layer: t = -(w a) f - w g with g zero except for open coefficients.

    products: (k', u) columns w_j a_j of the undecided neurons. rows: (k', u) columns w_j. Both in the directions of t
    that are determined.
    """

    products: FloatArray
    rows: FloatArray
    right: FloatArray
    open: BoolArray

    @classmethod
    def of(cls, known: Known, incoming: Incoming) -> _Equations:
        layer = known.layers[-1]
        h = len(layer)
        size = np.linalg.norm(incoming.weights)
        a, t = incoming.weights[:h] / size, layer.beside.T @ incoming.weights[h:] / size
        open_ = (np.linalg.norm(incoming.open[:h], axis=1) > OPEN)[layer.undecided]
        undetermined = np.hstack([layer.beside.T @ incoming.open[h:], np.eye(len(t))[:, layer.carried]])
        u, sizes, _ = np.linalg.svd(undetermined)
        sure = u[:, int((sizes > RANK).sum()) :].T
        w, a = layer.weights[layer.undecided].T, a[layer.undecided]
        return cls(sure @ np.where(open_, 0.0, w * a), sure @ w, sure @ t, open_)

    def without_open(self) -> tuple[FloatArray, FloatArray]:
        """Equations in f alone."""
        u, sizes, _ = np.linalg.svd(self.rows[:, self.open])
        rest = u[:, int((sizes > RANK).sum()) :].T
        return -rest @ self.products, rest @ self.right

    def open_parts(self, sides: FloatArray) -> FloatArray:
        """The unknowns g (u,) that the open coefficients leave, given f."""
        parts = np.zeros(len(self.open))
        left = -(self.right + self.products @ sides)
        parts[self.open] = np.linalg.lstsq(self.rows[:, self.open], left, rcond=RANK)[0]
        return parts


def find_sides(known: Known, incomings: Sequence[Incoming], *, final: bool = False) -> BoolArray | None:
    """Which neurons of the last layer must be turned round, None while that is not clear.

    If this is final, neurons whose coefficients are open everywhere are looked at by what they leave in t.
    """
    equations = [_Equations.of(known, incoming) for incoming in incomings]
    if not equations:
        return None
    parts = [e.without_open() for e in equations]
    matrix, right = np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])
    seen = np.abs(matrix).max(axis=0, initial=0) > PRESENT
    if not (seen.all() or final) or len(matrix) < seen.sum():
        return None
    sides = np.zeros(len(seen))
    sides[seen], _, rank, _ = np.linalg.lstsq(matrix[:, seen], right, rcond=RANK)
    rounded = np.round(sides)
    clear = np.abs(sides - rounded).max(initial=0) < CLEAR and set(np.unique(rounded)) <= {0.0, 1.0}
    off = np.linalg.norm(matrix @ rounded - right)
    if rank < seen.sum() or not clear or off > AGREE * np.sqrt(len(equations)):
        return None
    left = np.max([np.abs(e.open_parts(rounded)) for e in equations], axis=0) > PRESENT
    wrong = np.zeros(len(known.layers[-1]), dtype=bool)
    wrong[known.layers[-1].undecided] = (rounded > 0) | (~seen & left)
    return wrong
