"""Targets of few digits around planted networks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import reluctant as rl
from reluctant.numerics import FloatArray
from reluctant.testing import in_float32 as computed_in_float32
from reluctant.testing import single_precision

Target = Callable[[FloatArray], FloatArray]


def in_float32(true: rl.ReLUNetwork) -> tuple[Target, rl.ReLUNetwork]:
    """The network computed in float32, and the exact one of the same, rounded weights."""
    return computed_in_float32(true), single_precision(true)


def in_float32_probabilities(true: rl.ReLUNetwork) -> tuple[Target, rl.ReLUNetwork]:
    """A classifier that is float32 from its inputs to its probabilities, and the exact one of the same weights."""
    values, rounded = in_float32(true)

    def answer(x: FloatArray) -> FloatArray:
        given = values(x)
        sizes = np.exp(given - given.max(axis=1, keepdims=True))
        return np.asarray(sizes / sizes.sum(axis=1, keepdims=True))

    return answer, rl.ReLUNetwork(rounded.weights, rounded.biases, link="softmax")


def own_error(target: Target, true: rl.ReLUNetwork) -> float:
    """Largest error of the target itself at random inputs, of the output's deviation."""
    rows = np.random.default_rng(5).standard_normal((4000, true.dim)).astype(np.float32).astype(np.float64)
    return float((np.abs(target(rows) - true(rows)) / true(rows).std(axis=0)).max())


def error(network: rl.ReLUNetwork, true: rl.ReLUNetwork) -> float:
    """Largest error of a network at the same inputs."""
    return own_error(network, true)
