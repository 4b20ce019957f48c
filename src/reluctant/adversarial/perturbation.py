"""The smallest change of an input that hides it from a layer: ‖W⁺ W x‖ (Appendix D).

Moving x by it makes every neuron of the layer zero, so that from there any pattern is a small step away. For
Gaussian weights the squared ratio to ‖x‖ has exactly the law Beta(k/2, (d - k)/2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, lstsq, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import gammaln

from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray

__all__ = ["PerturbationLaw", "minimal_perturbation", "perturbation_law"]

AnyFloats: TypeAlias = NDArray[np.floating[Any]]

LARGEST_FACTOR = 2000  # neurons up to which a Cholesky factor of the Gram matrix is cheaper than iterating
RTOL = 1e-6  # of the residual
MOST_ITERATIONS = 300
LEAST_PIVOT = 1e-4  # of rows of norm one: below it half the digits of the Gram matrix are gone


def minimal_perturbation(weights: AnyFloats, x: AnyFloats, *, independent: bool = False) -> float:
    """‖W⁺ W x‖ for weights (k, d) of any float format: the norm of x's part in their row space.

    Few neurons: Cholesky of W Wᵀ. Many: conjugate gradients on it, without forming it. Where neither settles
    (rows that depend on each other, or nearly as many as inputs): least squares, slow and safe.

    Arguments:
        weights: of the layer.
        x: the input.
        independent: says that W has full rank, so that as many neurons as inputs see all of x.
    """
    weights, x = np.asarray(weights), np.asarray(x)
    if weights.ndim != 2 or not len(weights) or x.shape != weights.shape[1:]:
        raise InvalidInput.about("x", got=f"shape {x.shape}", expected="weights (k, d), k above 0, and an input (d,)")
    if weights.dtype.kind != "f":
        weights = weights.astype(np.float64)
    if not (np.isfinite(weights).all() and np.isfinite(x).all()):
        raise InvalidInput.about("weights, x", got="NaN or inf", expected="finite numbers")
    k, d = weights.shape
    if k >= d:
        return float(np.linalg.norm(x)) if independent else _by_least_squares(weights, x)
    norm = _by_factor(weights, x) if k <= LARGEST_FACTOR else _by_iteration(weights, x)
    return _by_least_squares(weights, x) if norm is None else norm


def _by_factor(weights: AnyFloats, x: AnyFloats) -> float | None:
    """√(s·(W Wᵀ)⁻¹ s) with s = W x, from L⁻¹ s; None where rows are nearly dependent. Rows of norm one."""
    rows = weights.astype(np.float64) / _norms(weights)
    try:
        factor = cholesky(rows @ rows.T, lower=True, overwrite_a=True)
    except np.linalg.LinAlgError:
        return None
    if np.diag(factor).min() < LEAST_PIVOT:
        return None
    return float(np.linalg.norm(solve_triangular(factor, rows @ x.astype(np.float64), lower=True)))


def _by_iteration(weights: AnyFloats, x: AnyFloats) -> float | None:
    """The same by conjugate gradients, in the weights' own format; None where they do not settle."""
    norms = _norms(weights)[:, 0]
    seen = (weights @ x).astype(np.float64) / norms

    def gram(v: FloatArray) -> FloatArray:
        inner = weights.T @ (v / norms).astype(weights.dtype)
        return np.asarray(weights @ inner, dtype=np.float64) / norms

    shape = (len(weights), len(weights))
    solution, left = cg(LinearOperator(shape, matvec=gram, dtype=np.float64), seen, rtol=RTOL, maxiter=MOST_ITERATIONS)
    return None if left else float(np.sqrt(seen @ solution))


def _norms(weights: AnyFloats) -> FloatArray:
    """Norms (k, 1) of the rows, 1 for empty ones: the length of a row does not change what it sees."""
    norms = np.linalg.norm(weights, axis=1, keepdims=True).astype(np.float64)
    return np.asarray(np.where(norms > 0, norms, 1.0))


def _by_least_squares(weights: AnyFloats, x: AnyFloats) -> float:
    """Norm of the shortest z with W z = W x."""
    rows = weights.astype(np.float64) / _norms(weights)
    cut = max(rows.shape) * float(np.finfo(weights.dtype).eps)
    return float(np.linalg.norm(lstsq(rows, rows @ x.astype(np.float64), cond=cut)[0]))


@dataclass(frozen=True)
class PerturbationLaw:
    """Mean and standard deviation of ‖W⁺ W x‖ / ‖x‖ for Gaussian weights (k, d)."""

    mean: float
    sd: float


def perturbation_law(k: int, d: int) -> PerturbationLaw:
    """From the law Beta(k/2, (d - k)/2) of its square."""
    if not 0 < k <= d:
        raise InvalidInput.about("k", got=k, expected=f"1 to {d} neurons")
    if k == d:
        return PerturbationLaw(1.0, 0.0)
    a, b = k / 2, (d - k) / 2
    mean = float(np.exp(gammaln(a + 0.5) - gammaln(a) + gammaln(a + b) - gammaln(a + b + 0.5)))
    return PerturbationLaw(mean, float(np.sqrt(max(a / (a + b) - mean**2, 0.0))))
