"""The layers above a known first layer, and the whole network put together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluctant.extraction.always_active import always_active
from reluctant.extraction.bounded import recover_inside
from reluctant.extraction.candidate import Candidate
from reluctant.extraction.depth_three.first_layer import FirstLayer
from reluctant.extraction.depth_three.peel import peel
from reluctant.extraction.orientation import orient
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting

__all__ = ["compose", "recover_top"]

VANISHED = 1e-12  # of the largest weight: a skip term that is rounding


def recover_top(
    oracle: Counting,
    layer: FirstLayer,
    noise: DistanceNoise,
    rng: np.random.Generator,
    keep: Callable[[ReLUNetwork], None],
) -> Candidate:
    """The layers above as a network of hidden values, by depth two on the positive orthant."""
    peeled = peel(oracle, layer)

    def keep_whole(top: ReLUNetwork) -> None:
        keep(compose(layer, top))

    return recover_inside(peeled, hidden_noise(noise, layer), rng, keep_whole)


def hidden_noise(noise: DistanceNoise, layer: FirstLayer) -> DistanceNoise:
    """Noise of answers by the size of hidden values: inputs grow with them by the inverse of the weights."""
    inverse = np.linalg.pinv(layer.weights)
    stretch = float(np.linalg.norm(inverse) / np.sqrt(len(layer)))
    origin = np.linalg.norm(inverse @ layer.biases)
    return DistanceNoise(float(noise.at(np.array([origin]))[0]), noise.growth * stretch)


def compose(layer: FirstLayer, top: ReLUNetwork) -> ReLUNetwork:
    """First layer and top as one network without skip term."""
    top = with_always_active(orient(top))
    return ReLUNetwork([layer.weights, *top.weights], [layer.biases, *top.biases])


def with_always_active(top: ReLUNetwork) -> ReLUNetwork:
    """A network of values that are never negative, its skip term carried by neurons that are always on."""
    if top.skip is None or top.depth != 2:
        return top
    (v, a), (c, e) = top.weights, top.biases
    largest = max(float(np.abs(v).max(initial=0)), float(np.abs(top.skip).max(initial=0)))
    rows, outputs = always_active(top.skip, VANISHED * largest)
    weights = [np.vstack([v, rows]), np.column_stack([a, outputs])]
    return ReLUNetwork(weights, [np.concatenate([c, np.zeros(len(rows))]), e])
