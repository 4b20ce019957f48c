"""A neuron of the first layer that the next one hardly reads is found all the same."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.extraction.overlooked_neurons import with_weak_neuron
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.oracles.open import as_opened
from reluctant.testing import planted

WEAK = 1e-6


def weakened(seed: int) -> ReLUNetwork:
    true = planted((8, 5, 6, 2), seed, bias=0.3)
    v = true.weights[1].copy()
    v[:, 0] *= WEAK
    return ReLUNetwork([true.weights[0], v, true.weights[2]], true.biases)


@pytest.mark.parametrize("seed", sweep(range(6), fast=range(2)))
def test_a_network_without_it_is_completed(seed: int) -> None:
    true = weakened(seed)
    w, v, a = true.weights
    lacking = ReLUNetwork([w[1:], v[:, 1:], a], [true.biases[0][1:], *true.biases[1:]])
    noise = DistanceNoise(1e-16, 1e-16)
    found = with_weak_neuron(as_opened(rl.open_oracle(true)), lacking, noise, np.random.default_rng(seed))
    assert found is not None
    assert found.widths == true.widths
    rows = np.random.default_rng(9).standard_normal((2000, 8))
    assert np.abs(found(rows) - true(rows)).max() < 1e-10 * true(rows).std()


def test_nothing_is_added_where_nothing_is_missing() -> None:
    true = planted((8, 5, 6, 2), 0, bias=0.3)
    oracle = as_opened(rl.open_oracle(true))
    assert with_weak_neuron(oracle, true, DistanceNoise(1e-15, 1e-15), np.random.default_rng(0)) is None
