"""Mirrored pairs of depth three: two first-layer neurons on one hyperplane, one to each side of it.

One of them is always on, so their hidden values (y, y') have y = 0 or y' = 0, and the layers above are a network of
one hidden layer on either orthant. A neuron of the second layer bends both: its outputs and its weights of the other
neurons are the same, and only the weight of the pair differs. So the second orthant adds one column. A neuron that does
not bend one of them is linear there, with all others that are: that part is fitted to the answers, without queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reluctant.extraction.depth_three.first_layer import FirstLayer
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray


@dataclass(frozen=True)
class SecondLayer:
    """Neurons of the second layer: weights (h, n) of hidden values, biases (h,) and outputs (m, h)."""

    weights: FloatArray
    biases: FloatArray
    outputs: FloatArray

    @classmethod
    def of(cls, top: ReLUNetwork) -> SecondLayer:
        """The neurons of a network of one hidden layer, none of one without."""
        if top.depth == 1:
            return cls(np.empty((0, top.dim)), np.empty(0), np.empty((top.outputs, 0)))
        return cls(top.weights[0], top.biases[0], top.weights[1])

    def shared(self, width: int, column: int) -> FloatArray:
        """What (h, width) is the same on both sides of a pair: other weights and the bias."""
        return np.column_stack([np.delete(self.weights[:, :width], column, axis=1), self.biases])

    def jumps(self, width: int, column: int) -> FloatArray:
        """The same with the outputs (h, m · width): only the sign of a neuron that is turned round may differ."""
        shared = self.shared(width, column)
        return np.einsum("mh,hk->hmk", self.outputs, shared).reshape(len(shared), -1)

    def with_side(self, column: int, other: SecondLayer) -> SecondLayer:
        """With one column more, the weights of the other neuron of a pair; and with neurons that are seen there alone.

        A neuron that is not seen on a side does not switch there: 0 is a weight that keeps it as it is.
        """
        same = 1e-5  # of the size: how far neurons may differ that are the same
        width, most = other.weights.shape[1], self.weights.shape[1]
        ours, theirs = self.jumps(width, column), other.jumps(width, column)
        new, found = np.zeros(len(self.biases)), np.zeros(len(other.biases), dtype=bool)
        for k, neuron in enumerate(theirs):
            off = np.minimum(np.linalg.norm(ours - neuron, axis=1), np.linalg.norm(ours + neuron, axis=1))
            best = int(np.argmin(off)) if len(off) else 0
            found[k] = len(off) > 0 and off[best] < same * np.linalg.norm(neuron)
            if found[k]:
                one, same_one = self.shared(width, column)[best], other.shared(width, column)[k]
                new[best] = other.weights[k, column] * (one @ same_one) / (same_one @ same_one)
        alone = np.zeros((int((~found).sum()), most + 1))
        alone[:, :width] = other.weights[~found]
        alone[:, most], alone[:, column] = other.weights[~found, column], 0.0
        return SecondLayer(
            np.concatenate([np.column_stack([self.weights, new]), alone]),
            np.concatenate([self.biases, other.biases[~found]]),
            np.column_stack([self.outputs, other.outputs[:, ~found]]),
        )


def joined_sides(
    layer: FirstLayer, top: ReLUNetwork, others: Sequence[ReLUNetwork], rows: FloatArray, answers: FloatArray
) -> ReLUNetwork:
    """The layers above `layer.with_pairs()`: `top` above the first neurons of all pairs, `others` with one turned.

    The linear part is fitted to answers (n, m) at input rows (n, d).
    """
    whole = SecondLayer.of(top)
    for neuron, other in zip(layer.mirrored, others, strict=True):
        whole = whole.with_side(int(neuron), SecondLayer.of(other))
    pairs = layer.with_pairs()
    hidden = np.maximum(rows @ pairs.weights.T + pairs.biases, 0)
    rest = answers - np.maximum(hidden @ whole.weights.T + whole.biases, 0) @ whole.outputs.T
    near = 1 / np.hypot(np.sqrt(rows.shape[1]), np.linalg.norm(rows, axis=1))[:, None]
    linear = np.linalg.lstsq(np.column_stack([hidden, np.ones(len(hidden))]) * near, rest * near, rcond=None)[0]
    return ReLUNetwork([whole.weights, whole.outputs], [whole.biases, linear[-1]], linear[:-1].T)
