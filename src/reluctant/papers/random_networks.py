"""Quantities of the adversarial-examples paper, for known networks (Bartlett, Bubeck and Cherapanamjeri, 2021).

The paper is "Adversarial Examples in Multi-Layer Random ReLU Networks".

- NN-DEF: random networks without biases, in which every layer halves the square of its input.
- GD-DECOMP: ∇f(x) - ∇f(y) is a sum with one term a hidden layer, in which only that layer's pattern differs;
  layers above it are switched as at x, those below as at y. NN-DECOMP: the narrowest layer below a layer bounds
  the dimension of what reaches it.
- Appendix D: the smallest change that hides an input from a layer is ‖W⁺ W x‖. It makes every neuron of the layer
  zero, so that from there any pattern is a small step away. For Gaussian weights the squared ratio to ‖x‖ has
  exactly the law Beta(k/2, (d - k)/2).
- Lemma 3.2: a wide random layer takes an angle θ to the one whose cosine is sin θ / π + (1 - θ/π) cos θ. Theorem
  3.1: at depth d³ and more the values on the whole sphere differ by √(log d / d) of themselves at most, for widths
  that no machine holds, (ℓ d)^20; real widths set a floor of about 3/√width instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, lstsq, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg
from scipy.spatial.distance import pdist
from scipy.special import gammaln

from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator

__all__ = [
    "LayerScales",
    "PerturbationLaw",
    "bottlenecks",
    "gradient_terms",
    "layer_scales",
    "mean_angle",
    "minimal_perturbation",
    "next_angle",
    "perturbation_law",
    "random_network",
    "sphere_points",
]


def random_network(widths: Sequence[int], rng: Rng = 0) -> ReLUNetwork:
    """NN-DEF: weights N(0, 1/width of the layer below), biases zero; any widths, narrow ones are bottlenecks.

    Arguments:
        widths: inputs, hidden layers, outputs: (1000, 1000, 20, 1000, 1).
    """
    if len(widths) < 2 or min(widths) < 1:
        raise InvalidInput.about("widths", got=tuple(widths), expected="two or more numbers above 0")
    generator, pairs = as_generator(rng), list(pairwise(widths))
    weights = [generator.standard_normal((out, into)) / np.sqrt(into) for into, out in pairs]
    return ReLUNetwork(weights, [np.zeros(out) for _, out in pairs])


def gradient_terms(network: ReLUNetwork, x: FloatArray, y: FloatArray) -> FloatArray:
    """GD-DECOMP: terms (layers, m, d) whose sum is the gradient at x minus that at y."""
    at_x, at_y = (network.patterns(point[None]) for point in (x, y))
    weights, terms = network.weights, []
    above = weights[-1]
    for j in range(network.depth - 2, -1, -1):
        changed = at_x[j][0].astype(float) - at_y[j][0]
        term = (above * changed) @ weights[j]
        for i in range(j - 1, -1, -1):
            term = (term * at_y[i][0]) @ weights[i]
        terms.append(term)
        above = (above * at_x[j][0]) @ weights[j]
    return np.array(terms[::-1])


def bottlenecks(widths: Sequence[int]) -> list[int]:
    """NN-DECOMP: layers i_1 > i_2 > … > i_m = 0, each the narrowest below the one before it (0 is the input).

    Arguments:
        widths: inputs, hidden layers and outputs; the outputs are not used.
    """
    if len(widths) < 2:
        raise InvalidInput.about("widths", got=tuple(widths), expected="inputs, hidden layers, outputs")
    found, below = [], len(widths) - 1
    while below > 0:
        below = int(np.argmin(widths[:below]))
        found.append(below)
    return found


@dataclass(frozen=True)
class LayerScales:
    """Lemma 2.3, one entry a hidden layer.

    norms: ‖f_i(x)‖ / √d_i for an input of norm √d; the lemma says at least 2^-i (`floors`).
    spreads: largest ‖f_i(x) - f_i(y)‖ over the points y asked, in units of ‖x - y‖; up to logarithms the lemma says
    at most 1 + √(d_i / narrowest layer below) (`ceilings`).
    """

    norms: FloatArray
    floors: FloatArray
    spreads: FloatArray
    ceilings: FloatArray


def layer_scales(network: ReLUNetwork, x: FloatArray, radius: float, *, points: int = 32, rng: Rng = 0) -> LayerScales:
    """How a ball of this radius (in units of ‖x‖) around x is carried through the layers."""
    start = np.asarray(x, float) * np.sqrt(len(x)) / np.linalg.norm(x)
    moves = as_generator(rng).standard_normal((points, len(start)))
    moves *= radius * np.linalg.norm(start) / np.linalg.norm(moves, axis=1, keepdims=True)
    hidden = [np.maximum(values, 0) for values in network.preactivations(np.concatenate([start[None], start + moves]))]
    lengths = np.linalg.norm(moves, axis=1)
    widths = network.widths[1:-1]
    narrowest = np.minimum.accumulate(network.widths[:-2])
    return LayerScales(
        norms=np.array([np.linalg.norm(h[0]) / np.sqrt(len(h[0])) for h in hidden]),
        floors=np.power(0.5, np.arange(1, len(widths) + 1)),
        spreads=np.array([(np.linalg.norm(h[1:] - h[0], axis=1) / lengths).max() for h in hidden]),
        ceilings=1 + np.sqrt(np.array(widths) / narrowest),
    )


AnyFloats: TypeAlias = NDArray[np.floating[Any]]

LARGEST_FACTOR = 2000  # neurons up to which a Cholesky factor of the Gram matrix is cheaper than iterating
RESIDUAL_RTOL = 1e-6  # of the residual
MOST_ITERATIONS = 300
LEAST_PIVOT = 1e-4  # of rows of norm one: below it half the digits of the Gram matrix are gone


def minimal_perturbation(weights: AnyFloats, x: AnyFloats) -> float:
    """‖W⁺ W x‖ for weights (k, d) of any float format: the norm of x's part in their row space.

    Few neurons: Cholesky of W Wᵀ. Many: conjugate gradients on it, without forming it. Where neither settles
    (rows that depend on each other, or nearly as many as inputs): least squares, slow and safe.

    Arguments:
        weights: of the layer.
        x: the input.
    """
    weights, x = np.asarray(weights), np.asarray(x)
    if weights.ndim != 2 or not len(weights) or x.shape != weights.shape[1:]:
        raise InvalidInput.about("x", got=f"shape {x.shape}", expected="weights (k, d), k above 0, and an input (d,)")
    if weights.dtype.kind != "f":
        weights = weights.astype(np.float64)
    if not (np.isfinite(weights).all() and np.isfinite(x).all()):
        raise InvalidInput.about("weights, x", got="NaN or inf", expected="finite numbers")
    k, d = weights.shape
    norm = None
    if k < d:
        norm = _norm_by_factor(weights, x) if k <= LARGEST_FACTOR else _norm_by_iteration(weights, x)
    return _norm_by_least_squares(weights, x) if norm is None else norm


def _norm_by_factor(weights: AnyFloats, x: AnyFloats) -> float | None:
    """√(s·(W Wᵀ)⁻¹ s) with s = W x, from L⁻¹ s; None where rows are nearly dependent. Rows of norm one."""
    rows = weights.astype(np.float64) / _row_norms(weights)
    try:
        factor = cholesky(rows @ rows.T, lower=True, overwrite_a=True)
    except np.linalg.LinAlgError:
        return None
    if np.diag(factor).min() < LEAST_PIVOT:
        return None
    return float(np.linalg.norm(solve_triangular(factor, rows @ x.astype(np.float64), lower=True)))


def _norm_by_iteration(weights: AnyFloats, x: AnyFloats) -> float | None:
    """The norm by conjugate gradients, in the weights' own format; None if they do not converge."""
    norms = _row_norms(weights)[:, 0]
    seen = (weights @ x).astype(np.float64) / norms

    def gram(v: FloatArray) -> FloatArray:
        inner = weights.T @ (v / norms).astype(weights.dtype)
        return np.asarray(weights @ inner, dtype=np.float64) / norms

    shape = (len(weights), len(weights))
    solution, left = cg(
        LinearOperator(shape, matvec=gram, dtype=np.float64), seen, rtol=RESIDUAL_RTOL, maxiter=MOST_ITERATIONS
    )
    return None if left else float(np.sqrt(seen @ solution))


def _row_norms(weights: AnyFloats) -> FloatArray:
    """Norms (k, 1) of the rows, 1 for empty ones: the length of a row does not change what it sees."""
    norms = np.linalg.norm(weights, axis=1, keepdims=True).astype(np.float64)
    return np.asarray(np.where(norms > 0, norms, 1.0))


def _norm_by_least_squares(weights: AnyFloats, x: AnyFloats) -> float:
    """Norm of the shortest z with W z = W x."""
    rows = weights.astype(np.float64) / _row_norms(weights)
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


SMALL_ANGLE = 1e-4  # below it the cosine of an angle has fewer digits than the first terms of its series


def next_angle(angle: FloatArray | float) -> FloatArray:
    """Lemma 3.2: the angle between the images of two inputs this angle apart, in an infinitely wide random layer."""
    theta = np.asarray(angle, dtype=np.float64)
    cosine = np.sin(theta) / np.pi + (1 - theta / np.pi) * np.cos(theta)
    # 1 - cos θ' ≈ θ²/2 - θ³/(3π) for small angles, where the cosine itself has no digits left
    small = np.sqrt(np.maximum(theta**2 - 2 * theta**3 / (3 * np.pi), 0.0))
    return np.where(theta < SMALL_ANGLE, small, np.arccos(np.clip(cosine, -1, 1)))


def sphere_points(n: int, dim: int, rng: Rng = 0) -> FloatArray:
    """Points (n, dim), uniform on the unit sphere."""
    points = as_generator(rng).standard_normal((n, dim))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def mean_angle(points: FloatArray) -> float:
    """Mean angle between pairs of points; those at the origin are left out."""
    norms = np.linalg.norm(points, axis=1)
    units = points[norms > 0] / norms[norms > 0, None]
    # from the chord, which keeps its digits for small angles where the cosine does not
    chords = pdist(units) if len(units) > 1 else np.zeros(1)
    return float((2 * np.arcsin(np.minimum(chords / 2, 1.0))).mean())
