"""The linear algebra all stages share: gradients at points of known activation pattern are linear in the neurons.

At a point where the neurons in `active` are on, the gradient of output k is Σ_j active_j a_kj w_j + s_k. With
enough points the neurons' weights w_j and the skip rows s_k follow from one least-squares solution, the same
for every direction of input space.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["design_matrix", "solve_weighted"]


def design_matrix(active: BoolArray, outputs: FloatArray) -> FloatArray:
    """Rows (n·m) by unknowns (h + m): neurons, then the skip rows."""
    n, h = active.shape
    m = len(outputs)
    design = np.zeros((n, m, h + m))
    design[:, :, :h] = active[:, None, :] * outputs[None]
    design[:, np.arange(m), h + np.arange(m)] = 1
    return design.reshape(n * m, h + m)


def solve_weighted(design: FloatArray, weights: FloatArray) -> FloatArray:
    """The matrix P for which P @ rows is the weighted least-squares solution."""
    weights = weights / np.median(weights)
    q, r = scipy.linalg.qr(design * weights[:, None], mode="economic", check_finite=False)
    return np.asarray(scipy.linalg.solve_triangular(r, q.T * weights, check_finite=False))
