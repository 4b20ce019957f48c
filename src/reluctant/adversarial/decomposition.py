"""A change of gradient, layer by layer, and the bottlenecks that decide how large it can be (networks that are known).

GD-DECOMP: ∇f(x) - ∇f(y) is a sum with one term a hidden layer, in which only that layer's pattern differs; layers
above it are switched as at x, those below as at y. NN-DECOMP: the narrowest layer below a layer bounds the dimension
of what reaches it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator

__all__ = ["LayerScales", "bottlenecks", "gradient_terms", "layer_scales"]


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
        widths: inputs, hidden layers and outputs; the outputs are not looked at.
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
