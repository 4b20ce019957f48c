"""A neuron of the last hidden layer that few inputs switch is found where a network without it errs."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.extraction.candidate_check import hold_against
from reluctant.extraction.method import Candidate
from reluctant.extraction.overlooked_neurons import with_rare_neuron
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Noise
from reluctant.oracles.open import as_opened
from reluctant.testing import planted

NOISE = Noise(1e-15, 1e-15)


def with_one_rarely_on(seed: int, size: float, *, widths: tuple[int, ...] = (6, 5, 4, 2)) -> ReLUNetwork:
    """A network whose first unit of the last hidden layer is on at one input in some hundred, and adds so much."""
    true = planted(widths, seed, bias=0.3)
    rows = np.random.default_rng(seed).standard_normal((20_000, widths[0]))
    c = true.biases[-2].copy()
    c[0] -= np.quantile(true.preactivations(rows)[-2][:, 0], 0.995)
    a = true.weights[-1].copy()
    a[:, 0] *= size
    return ReLUNetwork([*true.weights[:-1], a], [*true.biases[:-2], c, true.biases[-1]])


def without_the_first(true: ReLUNetwork) -> ReLUNetwork:
    *below, v, a = true.weights
    *biases, c, e = true.biases
    return ReLUNetwork([*below, v[1:], a[:, 1:]], [*biases, c[1:], e])


@pytest.mark.parametrize("size", [1.0, 1e-5])
@pytest.mark.parametrize("seed", sweep(range(10), fast=range(2)))
def test_a_network_without_it_is_completed(seed: int, size: float) -> None:
    true = with_one_rarely_on(seed, size)
    lacking, rows = without_the_first(true), np.random.default_rng(9).standard_normal((4000, 6))
    off = np.abs(lacking(rows) - true(rows)).max(axis=1)
    against = rows[np.argsort(-off)[:2]]
    found = with_rare_neuron(as_opened(rl.open_oracle(true)), lacking, against, NOISE, np.random.default_rng(seed))
    assert found is not None
    assert found.widths == true.widths
    assert np.abs(found(rows) - true(rows)).max() < 1e-9 * true(rows).std()


def test_nothing_is_added_where_a_lower_layer_is_wrong() -> None:
    true = planted((6, 5, 4, 2), 0, bias=0.3)
    w, v, a = true.weights
    wrong = ReLUNetwork([w[1:], v[:, 1:], a], [true.biases[0][1:], *true.biases[1:]])
    rows = np.random.default_rng(0).standard_normal((8, 6))
    oracle = as_opened(rl.open_oracle(true))
    assert with_rare_neuron(oracle, wrong, rows, NOISE, np.random.default_rng(0)) is None
    assert with_rare_neuron(oracle, true, rows, NOISE, np.random.default_rng(0)) is None


@pytest.mark.parametrize("seed", sweep(range(10), fast=range(1)))
def test_a_candidate_that_lacks_it_is_verified_with_it(seed: int) -> None:
    true = with_one_rarely_on(seed, 1.0)
    oracle, rng = as_opened(rl.open_oracle(true)), np.random.default_rng(seed)
    candidate = Candidate(without_the_first(true))
    found = hold_against(oracle, candidate, NOISE, DistanceNoise(1e-15, 1e-15), lambda: oracle.ledger.total, rng)
    assert found.doubt is None
    assert found.network.widths == true.widths
