"""The layers known so far, and what they make of a point: features, their slopes, and where the known creases are.

While it is open on which side of its crease each neuron of the last layer is active, max(z, 0) may stand for
max(-z, 0) = max(z, 0) - z. The difference is linear in the layer before, so that layer stays among the features.

A neuron k that is never switched where neuron j of the layer before is active is linear in it there, and by how much
cannot be seen: such features of the layer before are carried on beside the layer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray

__all__ = ["Known", "Layer", "Local", "Slopes"]


@dataclass(frozen=True)
class Layer:
    """Weights (h, k) and biases (h,) of a hidden layer; `carried` features of the one before go on beside it."""

    weights: FloatArray
    biases: FloatArray
    carried: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.biases)

    def turned(self, wrong: BoolArray) -> Layer:
        """These neurons turned round."""
        sign = np.where(wrong, -1.0, 1.0)
        return Layer(sign[:, None] * self.weights, sign * self.biases, self.carried)


@dataclass(frozen=True)
class Local:
    """Around n points: features (n, F) with slopes (n, F, d), values before each known ReLU (n, H) with theirs."""

    features: FloatArray
    jacobian: FloatArray
    values: FloatArray
    gradients: FloatArray


@dataclass(frozen=True)
class Slopes:
    """At n points on lines: features and values before ReLUs, and their derivatives along the lines."""

    features: FloatArray
    feature_slopes: FloatArray
    values: FloatArray
    value_slopes: FloatArray


@dataclass(frozen=True)
class Known:
    """Hidden layers in order; `sided` is False while the sides of the last one are open."""

    dim: int
    layers: tuple[Layer, ...] = ()
    sided: bool = True

    def extended(self, layer: Layer) -> Known:
        """One layer more, its sides still open."""
        return Known(self.dim, (*self.layers, layer), sided=False)

    def with_sides(self, wrong: BoolArray) -> Known:
        """The neurons of the last layer that are the wrong way round turned."""
        return replace(self, layers=(*self.layers[:-1], self.layers[-1].turned(wrong)), sided=True)

    @property
    def keeps_previous(self) -> bool:
        """True if the layer before the last is among the features."""
        return bool(self.layers) and not self.sided

    @property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return sum(layer.weights.size + len(layer) for layer in self.layers)

    @property
    def hinge_count(self) -> int:
        """Number of known neurons."""
        return sum(len(layer) for layer in self.layers)

    def features(self, points: FloatArray) -> FloatArray:
        """Features (n, F)."""
        last = points
        for layer in self.layers:
            parts = [np.maximum(last @ layer.weights.T + layer.biases, 0), self._kept(last, layer)]
            last = np.hstack(parts)
        return last

    def along(self, points: FloatArray, directions: FloatArray) -> Slopes:
        """Values and derivatives at points on lines."""
        h, dh = points, directions
        values, slopes = [np.empty((len(points), 0))], [np.empty((len(points), 0))]
        for layer in self.layers:
            z, dz = h @ layer.weights.T + layer.biases, dh @ layer.weights.T
            values.append(z)
            slopes.append(dz)
            h = np.hstack([np.maximum(z, 0), self._kept(h, layer)])
            dh = np.hstack([np.where(z > 0, dz, 0.0), self._kept(dh, layer)])
        return Slopes(h, dh, np.hstack(values), np.hstack(slopes))

    def local(self, points: FloatArray) -> Local:
        """Everything around each point."""
        n, d = points.shape
        h, jacobian = points, np.broadcast_to(np.eye(d), (n, d, d))
        values, gradients = [np.empty((n, 0))], [np.empty((n, 0, d))]
        for layer in self.layers:
            z, g = h @ layer.weights.T + layer.biases, layer.weights @ jacobian
            values.append(z)
            gradients.append(g)
            h = np.hstack([np.maximum(z, 0), self._kept(h, layer)])
            jacobian = np.concatenate([np.where((z > 0)[:, :, None], g, 0.0), self._kept(jacobian, layer)], axis=1)
        return Local(h, jacobian, np.hstack(values), np.concatenate(gradients, axis=1))

    def _kept(self, before: FloatArray, layer: Layer) -> FloatArray:
        """What goes on beside a layer of the one before: all of it while its sides are open, else what is carried."""
        return before if self.keeps_previous and layer is self.layers[-1] else before[:, layer.carried]
