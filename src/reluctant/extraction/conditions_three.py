"""What the extraction paper assumes of a three-layer network, as a diagnosis of a given or a found one.

Theorem 3 needs a first layer that can be inverted and a top layer whose partial derivatives are nowhere zero on
the positive orthant; Lemma 4 promises the latter if the second layer is 3.5 times as wide as the first. The
method `depth_three` needs the first condition alone, and says by which number it fails.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.extraction.regularity import Regularity, regularity
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator

__all__ = ["WIDE_ENOUGH", "ThreeLayerConditions", "three_layer_conditions"]

WIDE_ENOUGH = 3.5  # Lemma 4: second-layer neurons for each of the first layer
POINTS = 2000
DEAD_SHARE = 0.5  # of the hidden values of a point that are zero, at most


@dataclass(frozen=True)
class ThreeLayerConditions:
    """How far a three-layer network is from violating each condition of Theorem 3.

    spare_inputs: d - d₁; negative ones rule a right inverse out.
    surjective: smallest singular value of the first layer's unit rows over the largest.
    width_ratio: d₂ / d₁; Lemma 4 asks for 3.5.
    zero_derivatives: share of hidden points at which some partial derivative of the top layer is zero.
    regularity: of the first layer's hyperplanes (Appendix A).
    """

    spare_inputs: int
    surjective: float
    width_ratio: float
    zero_derivatives: float
    regularity: Regularity

    @property
    def invertible(self) -> bool:
        """True if the first layer has a right inverse."""
        return self.spare_inputs >= 0 and self.surjective > 0

    @property
    def holds(self) -> bool:
        """True if nothing that was looked at contradicts the conditions of Theorem 3."""
        return self.invertible and self.zero_derivatives == 0 and self.regularity.delta > 0


def three_layer_conditions(network: ReLUNetwork, rng: Rng = 0) -> ThreeLayerConditions:
    """Diagnose a network with two hidden layers. No queries."""
    if len(network.weights) != 3:
        raise InvalidInput.about("network", got=f"widths {network.widths}", expected="two hidden layers")
    d, d1, d2, _ = network.widths
    w = network.weights[0]
    norms = np.linalg.norm(w, axis=1, keepdims=True)
    singular = np.linalg.svd(w / np.where(norms > 0, norms, 1.0), compute_uv=False)
    zero = _zero_derivatives(network, as_generator(rng).spawn(1)[0])
    full = float(singular[-1] / singular[0]) if d1 <= d else 0.0
    return ThreeLayerConditions(d - d1, full, d2 / d1, zero, regularity(network))


def _zero_derivatives(network: ReLUNetwork, rng: np.random.Generator) -> float:
    """Share of random points of the orthant, some of their values zero, with a zero partial derivative."""
    (_, v, a), (_, c, _) = network.weights, network.biases
    y: FloatArray = np.abs(rng.standard_normal((POINTS, v.shape[1])))
    y[rng.random(y.shape) < DEAD_SHARE * rng.random((POINTS, 1))] = 0
    active = y @ v.T + c > 0
    derivatives = np.einsum("ok,nk,kj->noj", a, active, v, optimize=True)
    return float((np.abs(derivatives).max(axis=1) == 0).any(axis=1).mean())
