"""Leaky units and residual connections: layers that see more than the one before, recovered as equal functions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.testing import planted

ROWS = np.random.default_rng(9).standard_normal((5000, 6))


def leaky(network: rl.ReLUNetwork, slopes: tuple[float, float]) -> Callable[[np.ndarray], np.ndarray]:
    """The network with leaky units: half of a layer's with either slope."""

    def target(x: np.ndarray) -> np.ndarray:
        for w, b in zip(network.weights[:-1], network.biases[:-1], strict=True):
            z = x @ w.T + b
            x = np.where(z > 0, z, np.where(np.arange(len(b)) % 2, *slopes) * z)
        return x @ network.weights[-1].T + network.biases[-1]

    return target


def residual(x: np.ndarray) -> np.ndarray:
    """Two blocks that come back to the inputs' width, and an output."""
    rng = np.random.default_rng(4)
    for width in (7, 5):
        into, back = rng.standard_normal((width, 6)) / 2, rng.standard_normal((6, width)) / 2
        x = x + np.maximum(x @ into.T + 0.3 * rng.standard_normal(width), 0) @ back.T
    return x @ rng.standard_normal((6, 1))


TARGETS = {
    "LeakyReLU": leaky(planted((6, 7, 5, 1), 3, bias=0.3), (0.1, 0.1)),
    "PReLU": leaky(planted((6, 7, 5, 1), 5, bias=0.3), (0.4, 0.05)),
    "residual": residual,
}


@pytest.mark.parametrize("name", sweep(TARGETS, fast=["LeakyReLU", "residual"]))
def test_two_hidden_layers_are_recovered_as_an_equal_function(name):
    target = TARGETS[name]
    result = rl.extract(rl.open_oracle(target, dim=6), rl.AnyDepth(), rng=1)
    assert result.ok, result.evidence["failures"]
    assert not result.network.is_chain
    assert result.network.widths == (6, 7, 5, 1)
    answers = target(ROWS)
    assert np.abs(result.network(ROWS) - answers).max() < 1e-9 * answers.std()


@pytest.mark.slow
def test_clipped_inputs_are_recovered_as_an_equal_function(seed):
    network = planted((4, 3, 1), seed)

    def target(x):
        return network(np.clip(x, -1, 1))

    result = rl.extract(target, dim=4, rng=0)
    assert result.ok
    x = 3 * np.random.default_rng(1).standard_normal((5000, 4))
    assert np.abs(result.network(x) - target(x)).max() < 1e-10
