"""Networks of every kind: right or refused, and no exception that is not in our tree."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.testing.assortment import TWISTS, WEIGHTS, specimen, true_error

FIRST_SEED = 3_000_000
BUDGET = 40_000


def extracted(seed: int, hidden_layers: int, **how: bool) -> None:
    drawn = specimen(seed, hidden_layers=hidden_layers, **how)
    with rl.open_oracle(drawn.target(), dim=drawn.network.dim, budget=BUDGET) as oracle:
        result = rl.extract(oracle, rng=seed % 1000)
    if result.ok:
        assert result.network is not None
        assert not true_error(result.network, drawn).wrong


@pytest.mark.parametrize("seed", sweep(range(FIRST_SEED, FIRST_SEED + 6), fast=range(FIRST_SEED + 1, FIRST_SEED + 4)))
def test_small_networks_of_one_hidden_layer(seed: int) -> None:
    extracted(seed, 1, small=True)


@pytest.mark.slow
@pytest.mark.parametrize("hidden_layers", [1, 2, 3])
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 30))
def test_networks_of_every_kind(seed: int, hidden_layers: int) -> None:
    extracted(seed, hidden_layers)


@pytest.mark.parametrize(
    "seed", sweep(range(FIRST_SEED + 700, FIRST_SEED + 712), fast=range(FIRST_SEED + 701, FIRST_SEED + 705))
)
def test_only_outcomes_come_out_of_small_budgets(seed: int) -> None:
    drawn = specimen(seed, hidden_layers=2 + seed % 2, small=True)
    with rl.open_oracle(drawn.target(), dim=drawn.network.dim, budget=3000) as oracle:
        result = rl.extract(oracle, rng=seed % 1000)
    assert isinstance(result.outcome, rl.Outcome)
    assert result.queries <= 3000
    assert not any(each.raised for each in getattr(result.evidence.get("attempts"), "entries", ()))
    if result.ok:
        assert result.network is not None
        assert not true_error(result.network, drawn).wrong


def test_a_seed_draws_the_same_network_again() -> None:
    one, again = specimen(5), specimen(5)
    assert one.twist == again.twist
    np.testing.assert_array_equal(one.network(one.inputs), again.network(again.inputs))


def test_the_assortment_has_every_kind() -> None:
    drawn = [specimen(seed, small=True) for seed in range(300)]
    assert {each.twist for each in drawn} > set(TWISTS)
    assert {each.weights for each in drawn} == set(WEIGHTS)
    assert {each.hidden_layers for each in drawn} == {1, 2, 3}


def test_a_copy_is_measured_by_the_digits_of_the_answers_at_the_same_points() -> None:
    """At a tenth of the scale the output changes by little, and a rounded answer is off by a large part of it."""
    drawn = specimen(4300027)
    assert drawn.digits == "4 decimals"
    true = drawn.truth()
    assert not true_error(lambda x: true(x) + 2e-5, drawn).wrong
    assert true_error(lambda x: true(x) + 1e-3, drawn).wrong
    assert true_error(lambda x: np.where(np.abs(x[:, :1]) > 1, np.nan, true(x)), drawn).wrong


@pytest.mark.parametrize("seed", sweep([4100982, 4101168], fast=[4100982]))
def test_three_hidden_layers_without_a_hyperplane_to_see_end_by_name(seed: int) -> None:
    """No hyperplane on a line, and no neuron that is active alone: reductions over nothing."""
    drawn = specimen(seed)
    with rl.open_oracle(drawn.target(), dim=drawn.network.dim, budget=400_000) as oracle:
        found = rl.extract(oracle, rng=seed % 1000)
    assert found.outcome in (rl.Outcome.RECOVERED, rl.Outcome.UNVERIFIED, rl.Outcome.PARTIAL)


def test_outputs_that_are_each_constant_make_a_constant_network() -> None:
    drawn = specimen(4_700_060)
    answers = drawn.network(drawn.inputs)
    assert answers.std() > 0
    assert (answers == answers[0]).all()
    assert drawn.constant
