"""Symmetries of a network: order and scale of its neurons, a canonical form, and matching.

Multiplying a neuron's incoming weights by s > 0 and its outgoing ones by 1/s changes nothing, nor does reordering. With
an affine term and one hidden layer its side is open too: max(z, 0) = max(-z, 0) + z, and z goes into the affine term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluctant.networks.network import ReLUNetwork, Skips
from reluctant.numerics import FloatArray, unit_roundoff

# Rounding of a canonical form: a norm over the row, one division, one product. Generous for any width.
EQUALITY_ROUNDINGS = 2**10


@dataclass
class _Layers:
    """Mutable working copy of a network's arrays."""

    weights: list[FloatArray]
    biases: list[FloatArray]
    skips: Skips

    @classmethod
    def of(cls, network: ReLUNetwork) -> _Layers:
        return cls(network.weights, network.biases, network.skips)

    def map_incoming(self, k: int, change: Callable[[FloatArray], FloatArray]) -> None:
        """Change the rows of weights and biases of the neurons of hidden layer k."""
        self.weights[k], self.biases[k] = change(self.weights[k]), change(self.biases[k])
        self.skips |= {key: change(w) for key, w in self.skips.items() if key[1] == k + 1}

    def map_outgoing(self, k: int, change: Callable[[FloatArray], FloatArray]) -> None:
        """Change the columns of weights that see the neurons of hidden layer k."""
        self.weights[k + 1] = change(self.weights[k + 1])
        self.skips |= {key: change(w) for key, w in self.skips.items() if key[0] == k + 1}

    def rows(self, k: int) -> FloatArray:
        """All incoming weights of hidden layer k, side by side."""
        return np.hstack([self.weights[k], *(w for key, w in self.skips.items() if key[1] == k + 1)])

    def columns(self, k: int) -> FloatArray:
        """All outgoing weights of hidden layer k, below each other."""
        return np.concatenate([self.weights[k + 1], *(w for key, w in self.skips.items() if key[0] == k + 1)])

    def keep(self, k: int, neurons: NDArray[np.intp]) -> None:
        """Keep these neurons of hidden layer k, in this order."""
        self.map_incoming(k, lambda rows: rows[neurons])
        self.map_outgoing(k, lambda columns: columns[:, neurons])


def canonical(network: ReLUNetwork) -> ReLUNetwork:
    """The same function with unit incoming weights, sorted neurons and none that do nothing."""
    layers = _Layers.of(network)
    hidden = range(network.depth - 1)
    for k in reversed(hidden):
        layers.keep(k, np.flatnonzero(np.any(layers.columns(k) != 0, axis=0)))
    for k in hidden:
        _fold_constant_neurons(layers, k)
        _scale_to_unit_rows(layers, k)
        if network.skip is not None and network.depth == 2:
            _orient(layers)
        layers.keep(k, _row_order(layers.rows(k), layers.biases[k]))
    return ReLUNetwork(layers.weights, layers.biases, None, network.link, layers.skips)


def _fold_constant_neurons(layers: _Layers, k: int) -> None:
    constant = ~np.any(layers.rows(k) != 0, axis=1)
    values = np.maximum(layers.biases[k][constant], 0)
    layers.biases[k + 1] = layers.biases[k + 1] + layers.weights[k + 1][:, constant] @ values
    for (source, target), w in layers.skips.items():
        if source == k + 1:
            layers.biases[target - 1] = layers.biases[target - 1] + w[:, constant] @ values
    layers.keep(k, np.flatnonzero(~constant))


def _scale_to_unit_rows(layers: _Layers, k: int) -> None:
    # Dividing by the largest entry first keeps norms of very small and very large rows exact.
    rows = layers.rows(k)
    peaks = np.max(np.abs(rows), axis=1, initial=0)
    scales = peaks * np.linalg.norm(rows / peaks[:, None], axis=1)
    layers.map_incoming(k, lambda rows: (rows.T / scales).T)
    layers.map_outgoing(k, lambda columns: columns * scales)


def _orient(layers: _Layers) -> None:
    """Make the largest weight of every neuron positive; the difference goes into the skip.

    The largest, since the sign of a small one may be that of a rounding error.
    """
    w, b = layers.weights[0], layers.biases[0]
    flipped = w[np.arange(len(w)), np.argmax(np.abs(w), axis=1)] < 0
    out = layers.weights[1][:, flipped]
    layers.skips[0, 2] = layers.skips[0, 2] + out @ w[flipped]
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
    if a.widths != b.widths or set(a.skips) != set(b.skips):
        return None
    pairs, errors = [], []
    orders = [np.arange(a.dim)]
    for k in range(a.depth - 1):
        own, incoming = _side_by_side(a, k + 1), _side_by_side(b, k + 1, orders)
        orders.append(_assign(own, a.biases[k], incoming, b.biases[k]))
        pairs.append(orders[-1])
        errors.append(_neuron_errors(a, b, k, own, incoming[orders[-1]], orders[-1]))
    skip_errors = [_relative(w, b.skips[s, t][:, orders[s]]) for (s, t), w in a.skips.items() if t == a.depth]
    output_error = max(_relative(a.biases[-1], b.biases[-1]), *skip_errors, 0.0)
    if a.depth == 1:
        output_error = max(output_error, _relative(a.weights[0], b.weights[0]))
    return Matching(a, b, tuple(pairs), tuple(errors), output_error)


def _side_by_side(network: ReLUNetwork, target: int, orders: Sequence[NDArray[np.intp]] = ()) -> FloatArray:
    """All weights into a layer, their columns in these orders of the layers below."""
    incoming = network.incoming(target).items()
    return np.hstack([w[:, orders[source]] if orders else w for source, w in incoming])


def _assign(w: FloatArray, b: FloatArray, v: FloatArray, c: FloatArray) -> NDArray[np.intp]:
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    # Biases are unbounded; an angle-like squeeze keeps a far crease from drowning the weights.
    left, right = np.column_stack([w, np.arctan(b)]), np.column_stack([v, np.arctan(c)])
    return np.asarray(linear_sum_assignment(cdist(left, right))[1])


def _neuron_errors(
    a: ReLUNetwork, b: ReLUNetwork, k: int, own: FloatArray, incoming: FloatArray, order: NDArray[np.intp]
) -> FloatArray:
    weight = np.abs(own - incoming).max(axis=1, initial=0)
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
