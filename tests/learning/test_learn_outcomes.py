"""How `learn` ends where it does not succeed: a named outcome, the best network, never ok."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput, NotRecovered
from reluctant.testing import WORST_CASE, planted, relative_square_error
from reluctant.testing.faults import Dying, noisy, rounded

GENERIC = WORST_CASE["generic 30"]


def test_an_accuracy_out_of_reach_is_named_with_the_best_network():
    true = WORST_CASE["clusters 1e-09"](0)
    result = rl.learn(rl.open_oracle(true), eps=1e-20, rng=0)
    assert result.outcome is rl.Outcome.NOT_ACCURATE
    assert not result.ok
    assert result.evidence["accuracy"].high > result.evidence["eps"] == 1e-20
    assert "noise of the answers" in result.evidence["limits"]
    assert relative_square_error(result.network, true) < 1e-8
    with pytest.raises(NotRecovered, match="as accurate as asked for"):
        result.raise_for_status()


@pytest.mark.parametrize(
    ("target", "outcome"),
    [
        (lambda x: (x[:, 0] > 0).astype(float), rl.Outcome.PIECEWISE_CONSTANT),
        (lambda x: np.tanh(x[:, 0]), rl.Outcome.NOT_PIECEWISE_LINEAR),
        (lambda x: np.random.default_rng(len(x)).standard_normal(len(x)), rl.Outcome.TOO_NOISY),
    ],
    ids=["labels", "smooth", "noise"],
)
def test_what_cannot_be_learned_is_refused(target, outcome):
    result = rl.learn(rl.open_oracle(target, dim=5), rng=0, narrowest=0.1)
    assert result.outcome is outcome
    assert not result.ok


def test_a_deeper_network_is_never_ok():
    result = rl.learn(rl.open_oracle(planted((6, 8, 8, 1), 0)), rng=0, narrowest=0.1)
    assert result.outcome is rl.Outcome.NOT_ACCURATE
    assert result.evidence["accuracy"].error > 1e-3


@pytest.mark.parametrize("target", [rounded(GENERIC(0), 2), noisy(GENERIC(0), 1e-2)], ids=["2 decimals", "noise"])
def test_too_few_digits_are_never_ok(target):
    result = rl.learn(rl.open_oracle(target, dim=12), rng=0, narrowest=0.1)
    assert not result.ok
    assert result.outcome in {rl.Outcome.NOT_ACCURATE, rl.Outcome.TOO_NOISY}


def test_fresh_noise_is_lived_with():
    true = GENERIC(1)
    result = rl.learn(rl.open_oracle(noisy(true, 1e-8), dim=12), eps=1e-9, rng=0)
    assert result.outcome is rl.Outcome.LEARNED
    assert relative_square_error(result.network, true) < 1e-9


@pytest.mark.parametrize("budget", [50, 500, 3200, 6000])
def test_a_budget_ends_with_what_is_known(budget):
    result = rl.learn(rl.open_oracle(WORST_CASE["clusters 1e-07"](0), budget=budget), rng=0, eps=1e-8)
    assert result.outcome is rl.Outcome.OUT_OF_BUDGET
    assert result.queries <= budget
    assert "budget" in result.evidence["error"]
    assert (result.network is not None) == (budget > 4000)


def test_a_target_that_dies_is_named():
    result = rl.learn(rl.open_oracle(Dying(GENERIC(0), 3000), dim=12), rng=0)
    assert result.outcome is rl.Outcome.TARGET_FAILED


def test_a_bounded_domain_is_refused_before_anything_is_asked():
    oracle = rl.open_oracle(GENERIC(0), domain=(-1, 1))
    asked = oracle.queries
    with pytest.raises(InvalidInput, match="all of space"):
        rl.learn(oracle)
    assert oracle.queries == asked


@pytest.mark.parametrize("arguments", [{"eps": 0}, {"eps": 1.0}, {"eps": -1}, {"narrowest": 0}, {"narrowest": 2}])
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(InvalidInput, match=next(iter(arguments))):
        rl.learn(rl.open_oracle(GENERIC(0)), **arguments)


def test_an_affine_target_is_recovered():
    true = rl.ReLUNetwork([[[1.0, -2.0, 0.5]]], [[0.25]])
    result = rl.learn(rl.open_oracle(true), rng=0)
    assert result.outcome is rl.Outcome.RECOVERED
    assert result.network.depth == 1


def test_a_transcript_resumes_without_paying(tmp_path):
    true = WORST_CASE["bump 0.1"](0)
    with rl.open_oracle(true, transcript=tmp_path / "answers") as oracle:
        first = rl.learn(oracle, rng=0)
    with rl.open_oracle(true, transcript=tmp_path / "answers") as oracle:
        second = rl.learn(oracle, rng=0)
    assert sum(rows.sent for rows in second.rows.values()) == 0
    assert first.queries == second.queries
