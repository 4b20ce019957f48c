"""Known layers as a feature map: its values, its slopes, and the creases of its neurons.

While it is open on which side of its crease each neuron of the last layer is active, max(z, 0) may stand for
max(-z, 0) = max(z, 0) - z. The difference is linear in the layer before, so that layer stays among the features. A
neuron k that is never switched where neuron j of the layer before is active is linear in it there, and by how much
cannot be seen: such features of the layer before are carried on beside the layer. A mirrored neuron replaces two on
one crease, max(z, 0) and max(-z, 0): the layer above sees any combination of max(z, 0) and z.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from reluctant.domains import Domain
from reluctant.geometry.gradients import EVERYWHERE
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.numerics import FloatArray


@dataclass(frozen=True)
class OpenWeights:
    """The directions (F, u) in which weights of a neuron are open; its crease passes `point` (d,), whatever they are.

    off, on: points (n, d) at which lines show its state.
    """

    neuron: int
    basis: FloatArray
    point: FloatArray
    off: FloatArray
    on: FloatArray


@dataclass(frozen=True)
class Layer:
    """Weights (h, k) and biases (h,) of a hidden layer; of which neurons the side is open, and what goes on beside it.

    carried: features of the layer before that the next one needs directly. mirrored: neurons that are active on both
    sides. open: weights of its neurons that creases leave open and answers may tell.
    """

    weights: FloatArray
    biases: FloatArray
    undecided: BoolArray
    carried: IntArray
    mirrored: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    open: tuple[OpenWeights, ...] = ()

    @classmethod
    def of(cls, weights: FloatArray, biases: FloatArray) -> Layer:
        """A layer of which everything is known."""
        return cls(weights, biases, np.zeros(len(biases), dtype=bool), np.empty(0, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.biases)

    @cached_property
    def beside(self) -> FloatArray:
        """Rows (r, k): combinations of the layer before that go on beside this one."""
        whole = np.eye(self.weights.shape[1])
        if self.undecided.all():
            return whole
        rows = np.concatenate([self.weights[self.undecided], self.weights[self.mirrored], whole[self.carried]])
        return rows if len(rows) < len(whole) else whole

    def turned(self, wrong: BoolArray, mirrored: BoolArray | None = None) -> Layer:
        """These neurons turned round, and all sides decided: those that are mirrored are active on both."""
        sign = np.where(wrong, -1.0, 1.0)
        both = self.mirrored if mirrored is None else np.union1d(self.mirrored, np.flatnonzero(mirrored))
        decided = np.zeros(len(self), dtype=bool)
        return Layer(sign[:, None] * self.weights, sign * self.biases, decided, self.carried, both, self.open)

    def with_all_carried(self) -> Layer:
        """Sides as they are, and the whole layer before carried on: what turns a neuron round is linear in it."""
        decided, every = np.zeros(len(self), dtype=bool), np.arange(self.weights.shape[1])
        return replace(self, undecided=decided, carried=every)


@dataclass(frozen=True)
class LocalMap:
    """Around n points: features (n, F) with slopes (n, F, d), values before each known ReLU (n, H) with theirs."""

    features: FloatArray
    jacobian: FloatArray
    values: FloatArray
    gradients: FloatArray


@dataclass(frozen=True)
class FeatureSlopes:
    """At n points on lines: features and values before ReLUs, and their derivatives along the lines."""

    features: FloatArray
    feature_slopes: FloatArray
    values: FloatArray
    value_slopes: FloatArray


@dataclass(frozen=True)
class FeaturesAround:
    """Around n points, as `LocalMap`, with slopes computed where they are asked for: far cheaper than all of them."""

    layers: tuple[Layer, ...]
    features: FloatArray
    values: FloatArray
    active: tuple[BoolArray, ...]  # (n, h) for each layer

    def hinge_slopes(self, directions: FloatArray) -> FloatArray:
        """Derivatives (n, H) of the values before each ReLU along directions (n, d)."""
        dh, slopes = directions, [np.empty((len(directions), 0))]
        for layer, on in zip(self.layers, self.active, strict=True):
            dz = dh @ layer.weights.T
            slopes.append(dz)
            dh = np.hstack([np.where(on, dz, 0.0), dh @ layer.beside.T])
        return np.hstack(slopes)

    def feature_gradients(self, rows: FloatArray) -> FloatArray:
        """Gradients (..., n, d) of combinations (..., n, F) of the features."""
        return self._pulled(rows, np.zeros_like(self.values))

    def hinge_gradients(self, hinges: IntArray) -> FloatArray:
        """Gradients (n, d) of the value before one ReLU at each point."""
        return self._pulled(np.zeros_like(self.features), np.eye(self.values.shape[1])[hinges])

    def _pulled(self, rows: FloatArray, by_value: FloatArray) -> FloatArray:
        stop = by_value.shape[1]
        for layer, on in zip(self.layers[::-1], self.active[::-1], strict=True):
            start = stop - len(layer)
            by_z = np.where(on, rows[..., : len(layer)], 0.0) + by_value[:, start:stop]
            rows, stop = by_z @ layer.weights + rows[..., len(layer) :] @ layer.beside, start
        return rows


@dataclass(frozen=True)
class KnownLayers:
    """Hidden layers in order; in all but the last one sides are decided. domain: where they are looked for."""

    dim: int
    layers: tuple[Layer, ...] = ()
    domain: Domain = EVERYWHERE

    def lowest(self, count: int) -> KnownLayers:
        """The lowest layers alone."""
        return replace(self, layers=self.layers[:count])

    def extended(self, layer: Layer) -> KnownLayers:
        """One layer more."""
        return replace(self, layers=(*self.layers, layer))

    def with_sides(self, wrong: BoolArray, mirrored: BoolArray | None = None) -> KnownLayers:
        """The neurons of the last layer that are the wrong way round turned, those active on both sides marked."""
        return replace(self, layers=(*self.layers[:-1], self.layers[-1].turned(wrong, mirrored)))

    def with_open_sides(self) -> KnownLayers:
        """The last layer with all sides open, and so everything below beside it."""
        last = replace(self.layers[-1], undecided=np.ones(len(self.layers[-1]), dtype=bool))
        return replace(self, layers=(*self.layers[:-1], last))

    def carried_on(self) -> KnownLayers:
        """The last layer with what goes on beside it in place of sides."""
        return replace(self, layers=(*self.layers[:-1], self.layers[-1].with_all_carried()))

    def with_both_halves(self) -> KnownLayers:
        """The same function of neurons alone: mirrored neurons, and inputs that are carried, as two of them each.

        t z = t max(z, 0) - t max(-z, 0) for the layer above.
        """
        layers: list[Layer] = []
        mix, shift = np.eye(self.dim), np.zeros(self.dim)  # features here are mix times those of the new layers + shift
        for layer in self.layers:
            moved = replace(layer, weights=layer.weights @ mix, biases=layer.biases + layer.weights @ shift)
            new, mix, shift = _in_neurons(layer, moved, mix, shift, above_inputs=not layers)
            layers.append(new)
        return replace(self, layers=tuple(layers))

    @property
    def sided(self) -> bool:
        """True if the sides of the last layer are decided."""
        return not self.layers or not self.layers[-1].undecided.any()

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
            last = np.hstack([np.maximum(last @ layer.weights.T + layer.biases, 0), last @ layer.beside.T])
        return last

    def patterns(self, points: FloatArray) -> BoolArray:
        """Which known neurons (n, H) are active."""
        return self.around(points).values > 0

    def along(self, points: FloatArray, directions: FloatArray) -> FeatureSlopes:
        """Values and derivatives at points on lines."""
        h, dh = points, directions
        values, slopes = [np.empty((len(points), 0))], [np.empty((len(points), 0))]
        for layer in self.layers:
            z, dz = h @ layer.weights.T + layer.biases, dh @ layer.weights.T
            values.append(z)
            slopes.append(dz)
            h = np.hstack([np.maximum(z, 0), h @ layer.beside.T])
            dh = np.hstack([np.where(z > 0, dz, 0.0), dh @ layer.beside.T])
        return FeatureSlopes(h, dh, np.hstack(values), np.hstack(slopes))

    def directions(self, point: FloatArray) -> FloatArray:
        """Orthonormal rows (r, d): the directions around a point in which any feature changes."""
        of_the_largest = 1e-9  # of a direction that rounding leaves
        _, sizes, rows = np.linalg.svd(self.local(point[None]).jacobian[0], full_matrices=False)
        return rows[sizes > of_the_largest * sizes.max(initial=0)]

    def around(self, points: FloatArray) -> FeaturesAround:
        """What slopes around each point are computed from."""
        h, values, active = points, [np.empty((len(points), 0))], []
        for layer in self.layers:
            z = h @ layer.weights.T + layer.biases
            values.append(z)
            active.append(z > 0)
            h = np.hstack([np.maximum(z, 0), h @ layer.beside.T])
        return FeaturesAround(self.layers, h, np.hstack(values), tuple(active))

    def local(self, points: FloatArray) -> LocalMap:
        """Everything around each point."""
        n, d = points.shape
        h, jacobian = points, np.broadcast_to(np.eye(d), (n, d, d))
        values, gradients = [np.empty((n, 0))], [np.empty((n, 0, d))]
        for layer in self.layers:
            z, g = h @ layer.weights.T + layer.biases, layer.weights @ jacobian
            values.append(z)
            gradients.append(g)
            h = np.hstack([np.maximum(z, 0), h @ layer.beside.T])
            jacobian = np.concatenate([np.where((z > 0)[:, :, None], g, 0.0), layer.beside @ jacobian], axis=1)
        return LocalMap(h, jacobian, np.hstack(values), np.concatenate(gradients, axis=1))


def _in_neurons(
    layer: Layer, moved: Layer, mix: FloatArray, shift: FloatArray, *, above_inputs: bool
) -> tuple[Layer, FloatArray, FloatArray]:
    """A layer whose features are neurons and carried values that are not negative, and the old features by these.

    moved: the layer on the new features below it, which give the old ones by `mix` and `shift`.
    """
    h = len(layer)
    if layer.undecided.any():  # outputs are fitted to what goes on beside the last one, whatever that is
        carried = np.flatnonzero(np.abs(mix[layer.carried]).max(axis=0, initial=0) > 0)
        by_new = np.zeros((h + len(mix), h + mix.shape[1]))
        by_new[:h, :h], by_new[h:, h:] = np.eye(h), mix
        return replace(moved, carried=carried), by_new, np.concatenate([np.zeros(h), shift])
    halves = layer.mirrored if len(layer.beside) == len(layer.mirrored) + len(layer.carried) else layer.mirrored[:0]
    single = layer.beside[len(halves) :]  # unit rows: old features that go on as they are
    parts, rest = single @ mix, single @ shift
    pairs = parts if above_inputs else parts[:0]
    carried = np.flatnonzero(np.abs(parts).max(axis=0, initial=0) > 0) if not above_inputs else np.empty(0, np.intp)
    weights = np.concatenate([moved.weights, -moved.weights[halves], pairs, -pairs])
    biases = np.concatenate([moved.biases, -moved.biases[halves], np.zeros(2 * len(pairs))])
    n, p = len(halves), len(pairs)
    by_new = np.zeros((h + n + len(single), len(biases) + len(carried)))
    by_new[:h, :h] = np.eye(h)
    by_new[h + np.arange(n), halves] = 1.0
    by_new[h : h + n, h : h + n] = -np.eye(n)
    by_new[h + n :, h + n : h + n + p] = np.eye(len(single), p)
    by_new[h + n :, h + n + p : h + n + 2 * p] = -np.eye(len(single), p)
    by_new[h + n :, len(biases) :] = parts[:, carried]
    offsets = np.concatenate([np.zeros(h), -layer.biases[halves], np.zeros(len(single)) if above_inputs else rest])
    return Layer(weights, biases, np.zeros(len(biases), dtype=bool), carried), by_new, offsets
