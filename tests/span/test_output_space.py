"""The space of answers: its rank with a margin, from values, float32, probabilities and log-probabilities."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.results import Outcome
from reluctant.testing import planted


def behind(network, link):
    return ReLUNetwork(network.weights, network.biases, None, link)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("number_format", [np.float64, np.float32])
def test_the_rank_is_the_width_of_the_last_layer(seed, number_format):
    network = planted((64, 32, 16, 100), seed)
    found = rl.output_space(lambda x: network(x).astype(number_format), dim=64, rng=seed, quiet=16)
    assert found.ok
    assert found.rank == 16
    assert found.queries <= 16 + 20
    assert found.margin < 1e-3
    last = np.linalg.qr(network.weights[-1])[0]  # (m, h)
    outside = found.basis - (found.basis @ last) @ last.T
    assert np.linalg.norm(outside, 2) < 1e4 * np.finfo(number_format).eps
    answers = network(np.random.default_rng(9).standard_normal((20, 64)))
    left = answers - found.offset - ((answers - found.offset) @ found.basis.T) @ found.basis
    assert np.abs(left).max() < 1e5 * np.finfo(number_format).eps


@pytest.mark.parametrize("link", ["softmax", "log-softmax"])
def test_probabilities_are_read_as_log_ratios(link):
    network = planted((40, 12, 60), 2)
    found = rl.output_space(behind(network, link), rng=0, quiet=16)
    given = rl.output_space(behind(network, link), link=link, rng=0, quiet=16)
    for each in (found, given):
        assert each.ok
        assert each.rank == 12
        assert each.basis.shape == (12, 59)
    assert found.link == link
    assert found.queries <= 12 + 20


def test_full_rank_is_said_as_such():
    found = rl.output_space(planted((20, 10, 5), 1), rng=0)
    assert found.outcome is Outcome.OUTPUTS_FULL
    assert found.ok
    assert found.rank == 5
    assert "fill all" in str(found.diagnosis)


def test_noise_and_rounding_do_not_make_directions():
    network = planted((30, 8, 50), 1)
    rng = np.random.default_rng(0)
    for target in (lambda x: network(x) + 1e-4 * rng.standard_normal((len(x), 50)), lambda x: np.round(network(x), 4)):
        found = rl.output_space(target, dim=30, rng=0)
        assert found.rank == 8 or not found.ok


def test_a_constant_has_rank_zero_and_a_budget_ends_it():
    constant = rl.output_space(lambda x: np.ones((len(x), 7)), dim=3, rng=0)
    assert (constant.outcome, constant.rank) == (Outcome.CONSTANT, 0)
    ended = rl.output_space(planted((30, 20, 50), 1), budget=15, rng=0)
    assert ended.outcome is Outcome.OUT_OF_BUDGET
    assert not ended.ok


def test_several_layers_are_asked_until_rare_neurons_show():
    network = planted((64, 32, 16, 100), 980006)  # one neuron of its last layer is on at few percent of inputs
    few, many = rl.output_space(network, rng=6, quiet=16), rl.output_space(network, rng=6)
    assert (few.rank, many.rank) == (15, 16)
    assert few.missed_share > 0.05
    assert many.missed_share <= 0.005
    with pytest.raises(InvalidInput, match="quiet"):
        rl.output_space(network, quiet=0)


@pytest.mark.parametrize("number_format", [np.float64, np.float32])
def test_one_hidden_layer_shows_itself_and_needs_few_rows(number_format):
    network = planted((50, 30, 80), 3)
    found = rl.output_space(lambda x: network(x).astype(number_format), dim=50, rng=0)
    assert (found.ok, found.rank) == (True, 30)
    assert found.queries <= 30 + 20


def test_a_wide_head_takes_seconds():
    found = rl.output_space(planted((20, 40, 4096), 1), rng=0)
    assert found.ok
    assert (found.rank, found.basis.shape) == (40, (40, 4096))
    assert found.to_dict()["rank"] == 40


def test_the_rounding_of_a_decomposition_is_no_direction(monkeypatch):
    """Libraries differ in it by a factor of ten and more."""
    network, exact = planted((50, 32, 400), 1), np.linalg.svd

    def rounded(*given, **settings):
        left, sizes, right = exact(*given, **settings)
        return left, np.hypot(sizes, 64 * np.finfo(float).eps * sizes.max()), right

    monkeypatch.setattr(np.linalg, "svd", rounded)
    found = rl.output_space(network, rng=0)
    assert found.ok
    assert found.rank == 32
    assert found.queries <= 32 + 20
