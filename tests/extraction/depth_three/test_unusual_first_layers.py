"""First layers with mirrored pairs, and second layers with neurons that read one of the first alone."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted


def largest_error(found: ReLUNetwork, true: ReLUNetwork) -> float:
    rows = np.random.default_rng(9).standard_normal((2000, true.dim))
    return float(np.abs(found(rows) - true(rows)).max() / true(rows).std())


def mirrored(widths: tuple[int, ...], seed: int, pairs: int) -> ReLUNetwork:
    """A network whose first neurons are pairs, one to each side of one hyperplane."""
    true = planted(widths, seed, bias=0.3)
    w, b = true.weights[0].copy(), true.biases[0].copy()
    w[1 : 2 * pairs : 2], b[1 : 2 * pairs : 2] = -w[0 : 2 * pairs : 2], -b[0 : 2 * pairs : 2]
    return ReLUNetwork([w, *true.weights[1:]], [b, *true.biases[1:]])


@pytest.mark.parametrize(("widths", "pairs"), [((10, 5, 6, 1), 1), ((12, 8, 5, 2), 2)], ids=str)
def test_mirrored_pairs(widths: tuple[int, ...], pairs: int, seed: int) -> None:
    true = mirrored(widths, seed, pairs)
    result = rl.extract(true, rl.DepthThree(), rng=seed, attempts=1)
    assert result.ok
    assert result.network is not None
    assert result.network.widths[1] == widths[1]
    assert largest_error(result.network, true) < 1e-9
    assert result.queries < 7000


@pytest.mark.parametrize("seed", sweep(range(6), fast=range(2)))
def test_neurons_that_read_one_alone(seed: int) -> None:
    """Their creases are parallel to those of the first layer, and go on everywhere as well."""
    true = planted((12, 3, 8, 2), seed, bias=0.3)
    v, c = true.weights[1].copy(), true.biases[1].copy()
    v[:3], c[:3] = -np.eye(3), 0.4
    true = ReLUNetwork([true.weights[0], v, true.weights[2]], [true.biases[0], c, true.biases[2]])
    result = rl.extract(true, rl.DepthThree(), rng=seed, attempts=1)
    assert result.ok
    assert result.network is not None
    assert largest_error(result.network, true) < 1e-9


@pytest.mark.parametrize("seed", sweep(range(8), fast=(6, 7)))
def test_neurons_that_few_read(seed: int) -> None:
    """Each neuron of the second layer reads three of the first, whose creases show where one of their readers is on."""
    true = planted((24, 12, 10, 1), seed, bias=0.3)
    reads = (np.arange(12) - np.arange(10)[:, None]) % 10 < 3
    weights = [true.weights[0], np.where(reads, true.weights[1], 0.0), true.weights[2]]
    true = ReLUNetwork(weights, [true.biases[0], true.biases[1] - 0.5, true.biases[2]])
    result = rl.extract(true, rl.DepthThree(), rng=seed, attempts=1)
    assert result.ok
    assert result.network is not None
    assert largest_error(result.network, true) < 1e-9
