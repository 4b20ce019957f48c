"""The layers known so far, and what they make of a point: features, their slopes, and where the known creases are.

While it is open on which side of its crease each neuron of the last layer is active, max(z, 0) may stand for
max(-z, 0) = max(z, 0) - z. The difference is linear in the layer before, so that layer stays among the features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["Known", "Layer", "Local", "Slopes"]


@dataclass(frozen=True)
class Layer:
    """Weights (h, k) and biases (h,) of a hidden layer."""

    weights: FloatArray
    biases: FloatArray

    def __len__(self) -> int:
        return len(self.biases)

    def turned(self, wrong: BoolArray) -> Layer:
        """These neurons turned round."""
        sign = np.where(wrong, -1.0, 1.0)
        return Layer(sign[:, None] * self.weights, sign * self.biases)


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
    def feature_count(self) -> int:
        """Number of features."""
        widths = [self.dim, *(len(layer) for layer in self.layers)]
        return widths[-1] + (widths[-2] if self.keeps_previous else 0)

    @property
    def hinge_count(self) -> int:
        """Number of known neurons."""
        return sum(len(layer) for layer in self.layers)

    def features(self, points: FloatArray) -> FloatArray:
        """Features (n, F)."""
        before = last = points
        for layer in self.layers:
            before, last = last, np.maximum(last @ layer.weights.T + layer.biases, 0)
        return np.hstack([last, before]) if self.keeps_previous else last

    def along(self, points: FloatArray, directions: FloatArray) -> Slopes:
        """Values and derivatives at points on lines."""
        state = previous = (points, directions)
        values, slopes = [np.empty((len(points), 0))], [np.empty((len(points), 0))]
        for layer in self.layers:
            z, dz = state[0] @ layer.weights.T + layer.biases, state[1] @ layer.weights.T
            values.append(z)
            slopes.append(dz)
            previous, state = state, (np.maximum(z, 0), np.where(z > 0, dz, 0.0))
        parts = [state, previous] if self.keeps_previous else [state]
        features, changes = (np.hstack([part[k] for part in parts]) for k in (0, 1))
        return Slopes(features, changes, np.hstack(values), np.hstack(slopes))

    def local(self, points: FloatArray) -> Local:
        """Everything around each point."""
        n, d = points.shape
        state = previous = (points, np.broadcast_to(np.eye(d), (n, d, d)))
        values, gradients = [np.empty((n, 0))], [np.empty((n, 0, d))]
        for layer in self.layers:
            z, g = state[0] @ layer.weights.T + layer.biases, layer.weights @ state[1]
            values.append(z)
            gradients.append(g)
            previous, state = state, (np.maximum(z, 0), np.where((z > 0)[:, :, None], g, 0.0))
        parts = [state, previous] if self.keeps_previous else [state]
        features, jacobian = (np.concatenate([part[k] for part in parts], axis=1) for k in (0, 1))
        return Local(features, jacobian, np.hstack(values), np.concatenate(gradients, axis=1))
