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
RTOL = 1e-6  # of the residual; the ratio is better than that, being stationary at the solution
MOST_ITERATIONS = 300
LEAST_PIVOT = 1e-6  # of the largest in a Cholesky factor: below it rows depend on each other


def minimal_perturbation(weights: AnyFloats, x: AnyFloats, *, independent: bool = False) -> float:
    """‖W⁺ W x‖ for weights (k, d) of any float format: the norm of x's part in their row space.

    Few neurons: Cholesky of W Wᵀ. Many: conjugate gradients on it, without forming it. Where neither settles
    (rows that depend on each other, or nearly as many as inputs): least squares, slow and safe.

    Arguments:
        weights: of the layer.
        x: the input.
        independent: says that W has full rank, so that as many neurons as inputs see all of x.
    """
    if weights.ndim != 2 or x.shape != weights.shape[1:]:
        raise InvalidInput.about("x", got=f"shape {x.shape}", expected=f"({weights.shape[-1]},), one number an input")
    k, d = weights.shape
    if k >= d:
        return float(np.linalg.norm(x)) if independent else _by_least_squares(weights, x)
    norm = _by_factor(weights, x) if k <= LARGEST_FACTOR else _by_iteration(weights, x)
    return _by_least_squares(weights, x) if norm is None else norm


def _by_factor(weights: AnyFloats, x: AnyFloats) -> float | None:
    """√(s·(W Wᵀ)⁻¹ s) with s = W x, from L⁻¹ s; None where the factor breaks down."""
    gram = (weights @ weights.T).astype(np.float64)
    try:
        factor = cholesky(gram, lower=True, overwrite_a=True)
    except np.linalg.LinAlgError:
        return None
    pivots = np.diag(factor)
    if pivots.min() < LEAST_PIVOT * pivots.max():
        return None
    return float(np.linalg.norm(solve_triangular(factor, (weights @ x).astype(np.float64), lower=True)))


def _by_iteration(weights: AnyFloats, x: AnyFloats) -> float | None:
    """The same by conjugate gradients; None where they do not settle."""
    seen = (weights @ x).astype(np.float64)

    def gram(v: FloatArray) -> FloatArray:
        return np.asarray(weights @ (weights.T @ v.astype(weights.dtype)), dtype=np.float64)

    shape = (len(weights), len(weights))
    solution, left = cg(LinearOperator(shape, matvec=gram, dtype=np.float64), seen, rtol=RTOL, maxiter=MOST_ITERATIONS)
    return None if left else float(np.sqrt(seen @ solution))


def _by_least_squares(weights: AnyFloats, x: AnyFloats) -> float:
    """Norm of the shortest z with W z = W x."""
    wide = weights.astype(np.float64)
    cut = max(wide.shape) * float(np.finfo(weights.dtype).eps)
    return float(np.linalg.norm(lstsq(wide, wide @ x, cond=cut)[0]))


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
