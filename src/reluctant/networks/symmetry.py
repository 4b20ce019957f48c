"""Symmetries of a network: order and scale of its neurons, a canonical form, and matching.

Multiplying a neuron's incoming weights by s > 0 and its outgoing ones by 1/s changes nothing, nor does reordering. With
a skip term and one hidden layer the side of a neuron is open too: max(z, 0) = max(-z, 0) + z, and z goes into the skip.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluctant.networks.network import ReLUNetwork
from reluctant.numerics import FloatArray, unit_roundoff

# Rounding of a canonical form: a norm over the row, one division, one product. Generous for any width.
EQUALITY_ROUNDINGS = 2**10


@dataclass
class _Layers:
    """Mutable working copy of a network's arrays."""

    weights: list[FloatArray]
    biases: list[FloatArray]
    skip: FloatArray | None

    @classmethod
    def of(cls, network: ReLUNetwork) -> _Layers:
        skip = None if network.skip is None else network.skip.copy()
        return cls([w.copy() for w in network.weights], [b.copy() for b in network.biases], skip)

    def keep(self, k: int, neurons: NDArray[np.intp]) -> None:
        """Keep these neurons of hidden layer k, in this order."""
        self.weights[k] = self.weights[k][neurons]
        self.biases[k] = self.biases[k][neurons]
        self.weights[k + 1] = self.weights[k + 1][:, neurons]


def canonical(network: ReLUNetwork) -> ReLUNetwork:
    """The same function with unit incoming weights, sorted neurons and none that do nothing."""
    layers = _Layers.of(network)
    hidden = range(network.depth - 1)
    for k in reversed(hidden):
        layers.keep(k, np.flatnonzero(np.any(layers.weights[k + 1] != 0, axis=0)))
    for k in hidden:
        _fold_constant_neurons(layers, k)
        _scale_to_unit_rows(layers, k)
        if network.skip is not None and network.depth == 2:
            _orient(layers)
        layers.keep(k, _row_order(layers.weights[k], layers.biases[k]))
    return ReLUNetwork(layers.weights, layers.biases, layers.skip, network.link)


def _fold_constant_neurons(layers: _Layers, k: int) -> None:
    constant = ~np.any(layers.weights[k] != 0, axis=1)
    values = np.maximum(layers.biases[k][constant], 0)
    layers.biases[k + 1] = layers.biases[k + 1] + layers.weights[k + 1][:, constant] @ values
    layers.keep(k, np.flatnonzero(~constant))


def _scale_to_unit_rows(layers: _Layers, k: int) -> None:
    # Dividing by the largest entry first keeps norms of very small and very large rows exact.
    peaks = np.max(np.abs(layers.weights[k]), axis=1, initial=0)
    scales = peaks * np.linalg.norm(layers.weights[k] / peaks[:, None], axis=1)
    layers.weights[k] = layers.weights[k] / scales[:, None]
    layers.biases[k] = layers.biases[k] / scales
    layers.weights[k + 1] = layers.weights[k + 1] * scales


def _orient(layers: _Layers) -> None:
    """Make the largest weight of every neuron positive; the difference goes into the skip.

    The largest, since the sign of a small one may be that of a rounding error.
    """
    w, b = layers.weights[0], layers.biases[0]
    flipped = w[np.arange(len(w)), np.argmax(np.abs(w), axis=1)] < 0
    out = layers.weights[1][:, flipped]
    assert layers.skip is not None
    layers.skip = layers.skip + out @ w[flipped]
    layers.biases[1] = layers.biases[1] + out @ b[flipped]
    layers.weights[0] = np.where(flipped[:, None], -w, w)
    layers.biases[0] = np.where(flipped, -b, b)


def _row_order(weights: FloatArray, biases: FloatArray) -> NDArray[np.intp]:
    keys = [(*row, bias) for row, bias in zip(weights.tolist(), biases.tolist(), strict=True)]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


@dataclass(frozen=True)
class Matching:
    """Neurons of one canonical network paired with those of another, layer by layer.

    `pairs[k][j]` is the neuron of the other network that hidden neuron j of layer k goes with;
    `errors[k][j]` is the largest difference in its unit weights, its bias and its outgoing weights,
    biases relative to 1 + |bias|, outgoing weights relative to the layer's largest.
    """

    network: ReLUNetwork
    other: ReLUNetwork
    pairs: tuple[NDArray[np.intp], ...]
    errors: tuple[FloatArray, ...]
    output_error: float

    @property
    def max_error(self) -> float:
        """Largest parameter error over all layers."""
        return max([self.output_error, *(float(e.max(initial=0)) for e in self.errors)])


def match(network: ReLUNetwork, other: ReLUNetwork) -> Matching | None:
    """Pair the neurons of two networks so that their parameters agree best; None if shapes differ."""
    a, b = canonical(network), canonical(other)
    if a.widths != b.widths or (a.skip is None) != (b.skip is None):
        return None
    pairs, errors = [], []
    order = np.arange(a.dim)
    for k in range(a.depth - 1):
        incoming = b.weights[k][:, order]
        order = _assign(a.weights[k], a.biases[k], incoming, b.biases[k])
        pairs.append(order)
        errors.append(_neuron_errors(a, b, k, incoming[order], order))
    skip_error = 0.0 if a.skip is None or b.skip is None else _relative(a.skip, b.skip)
    output_error = max(_relative(a.biases[-1], b.biases[-1]), skip_error)
    if a.depth == 1:
        output_error = max(output_error, _relative(a.weights[0], b.weights[0]))
    return Matching(a, b, tuple(pairs), tuple(errors), output_error)


def _assign(w: FloatArray, b: FloatArray, v: FloatArray, c: FloatArray) -> NDArray[np.intp]:
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    # Biases are unbounded; an angle-like squeeze keeps a far crease from drowning the weights.
    left, right = np.column_stack([w, np.arctan(b)]), np.column_stack([v, np.arctan(c)])
    return np.asarray(linear_sum_assignment(cdist(left, right))[1])


def _neuron_errors(a: ReLUNetwork, b: ReLUNetwork, k: int, incoming: FloatArray, order: NDArray[np.intp]) -> FloatArray:
    weight = np.abs(a.weights[k] - incoming).max(axis=1, initial=0)
    bias = np.abs(a.biases[k] - b.biases[k][order]) / (1 + np.abs(a.biases[k]))
    if k < a.depth - 2:  # outgoing weights are the next hidden layer's incoming ones
        return np.maximum(weight, bias)
    out, outgoing = a.weights[-1], b.weights[-1][:, order]
    largest = np.abs(out).max(initial=0) or 1.0
    return np.maximum.reduce([weight, bias, np.abs(out - outgoing).max(axis=0, initial=0) / largest])


def _relative(x: FloatArray, y: FloatArray) -> float:
    return float(np.abs(x - y).max(initial=0) / (1 + np.abs(x).max(initial=0)))


def equivalent(network: ReLUNetwork, other: ReLUNetwork, tol: float | None = None) -> bool:
    """True if the networks agree up to order and scale of their neurons, to rounding or to `tol`."""
    matching = match(network, other)
    if matching is None:
        return False
    if tol is None:
        tol = EQUALITY_ROUNDINGS * unit_roundoff(np.float64) * np.sqrt(network.dim)
    return bool(matching.max_error <= tol)
