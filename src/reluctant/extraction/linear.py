"""The linear algebra all stages share: gradients at points of known activation pattern are linear in the neurons.

At a point where the neurons in `active` are on, the gradient of output k is Σ_j active_j a_kj w_j + s_k. With
enough points the neurons' weights w_j and the skip rows s_k follow from one least-squares solution, the same for
every direction of input space. A target without creases is one affine map.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluctant.arrays import HOST, Array, Arrays
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["MANY_NEURONS", "Design", "affine_map", "design_matrix", "normal_solver", "solve_weighted"]

MANY_NEURONS = 600  # from here on a factorisation that looks at every pivot takes a noticeable part of the time


def design_matrix(active: Array, outputs: FloatArray, arrays: Arrays = HOST) -> Array:
    """Rows (n·m) by unknowns (h + m): neurons, then the skip rows. `active` (n, h) is one of `arrays`."""
    n, h = active.shape
    m = len(outputs)
    of_neurons = active[:, None, :] * arrays.put(outputs)[None]
    of_skip = arrays.xp.broadcast_to(arrays.put(np.eye(m)), (n, m, m))
    return arrays.xp.concatenate([of_neurons, of_skip], axis=2).reshape(n * m, h + m)


class Design:
    """A design matrix and its solutions: with as many rows as unknowns there is one for all weights."""

    def __init__(self, rows: Array, arrays: Arrays = HOST) -> None:
        self.rows, self.arrays = rows, arrays
        self._inverse: Array | None = None

    @classmethod
    def of(cls, active: Array, outputs: FloatArray, arrays: Arrays = HOST) -> Design:
        """Of points with these patterns (n, h)."""
        return cls(design_matrix(active, outputs, arrays), arrays)

    @property
    def inverse(self) -> Array:
        """Of a square design; worked out once."""
        if self._inverse is None:
            self._inverse = self.arrays.inverse(self.rows)
        return self._inverse

    def solution(self, weights: FloatArray) -> Array:
        """The matrix P for which P @ rows is the weighted least-squares solution."""
        rows, unknowns = self.rows.shape
        if rows == unknowns >= MANY_NEURONS:
            return self.inverse
        return solve_weighted(self.rows, weights, self.arrays)


def solve_weighted(design: Array, weights: FloatArray, arrays: Arrays = HOST) -> Array:
    """The matrix P for which P @ rows is the weighted least-squares solution."""
    return arrays.least_squares(design, arrays.put(weights / np.median(weights)))


def normal_solver(design: Array, arrays: Arrays = HOST) -> Callable[[Array], Array]:
    """Least squares by the normal equations: quick, and half the digits, so for steps that are taken again."""
    ridge = 1e-12  # of squares of columns of norm one: a column of zeros, a neuron never on, is left alone
    normal = design.T @ design
    scale = arrays.xp.sqrt(normal.diagonal())
    scale = arrays.xp.where(scale > 0, scale, 1.0)
    normal /= scale[:, None] * scale
    each = arrays.put(np.arange(len(normal)))
    normal[each, each] += ridge
    solve = arrays.cholesky_solver(normal)
    return lambda right: solve((design.T @ right) / scale) / scale


def affine_map(oracle: Counting) -> ReLUNetwork:
    """The map as a network without hidden layer. Cost: d + 1 rows."""
    with oracle.stage("affine", expected=oracle.dim + 1):
        answers = oracle.query(np.vstack([np.zeros(oracle.dim), np.eye(oracle.dim)]))
    return ReLUNetwork([(answers[1:] - answers[0]).T], [answers[0]])
