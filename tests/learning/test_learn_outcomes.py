"""How `learn` ends where it does not succeed: a named outcome, the best network, never ok."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput, NotRecovered
from reluctant.extraction.any_position.accuracy import points_to_see
from reluctant.learning.learner import most_rows
from reluctant.testing import WORST_CASE, planted, relative_square_error
from reluctant.testing.faults import Dying, in_float32, noisy, rounded

GENERIC = WORST_CASE["generic 30"]
CLUSTERS = WORST_CASE["clusters 1e-09"](0)  # where no exact network is verified


@pytest.mark.parametrize(
    ("true", "target"),
    [(GENERIC(0), in_float32(GENERIC(0))), pytest.param(CLUSTERS, CLUSTERS, marks=pytest.mark.slow)],
    ids=["float32", "clusters"],
)
def test_an_accuracy_out_of_reach_is_named_with_the_best_network(true, target):
    result = rl.learn(rl.open_oracle(target, dim=true.dim), eps=1e-20, rng=0)
    assert result.outcome is rl.Outcome.NOT_ACCURATE
    assert not result.ok
    assert result.evidence["accuracy"].high > result.evidence["eps"] == 1e-20
    assert "error-of-noise" in result.evidence["limits"]
    assert relative_square_error(result.network, true, points=20_000) < 1e-8
    with pytest.raises(NotRecovered) as raised:
        result.raise_for_status()
    assert raised.value.result is result


@pytest.mark.parametrize(
    ("target", "outcome"),
    [
        (lambda x: (x[:, 0] > 0).astype(float), rl.Outcome.PIECEWISE_CONSTANT),
        (lambda x: np.sin(x[:, 0]), rl.Outcome.NOT_PIECEWISE_LINEAR),
        (lambda x: np.random.default_rng(len(x)).standard_normal(len(x)), rl.Outcome.TOO_NOISY),
    ],
    ids=["labels", "smooth", "noise"],
)
def test_what_cannot_be_learned_is_refused(target, outcome):
    result = rl.learn(rl.open_oracle(target, dim=5), rng=0, narrowest=0.1)
    assert result.outcome is outcome
    assert not result.ok


def test_a_deeper_network_is_not_ok_and_points_to_extract():
    result = rl.learn(rl.open_oracle(planted((6, 8, 8, 1), 0)), rng=0, narrowest=0.1)
    assert result.outcome is rl.Outcome.NOT_ACCURATE
    assert result.evidence["accuracy"].error > 1e-3
    assert "maybe-several-layers" in result.evidence["limits"]


@pytest.mark.parametrize("target", [rounded(GENERIC(0), 2), noisy(GENERIC(0), 1e-2)], ids=["2 decimals", "noise"])
def test_too_few_digits_are_never_ok(target):
    result = rl.learn(rl.open_oracle(target, dim=12), rng=0, narrowest=0.1)
    assert not result.ok
    assert result.outcome in {rl.Outcome.NOT_ACCURATE, rl.Outcome.TOO_NOISY}


def test_fresh_noise_is_lived_with():
    true = GENERIC(1)
    result = rl.learn(rl.open_oracle(noisy(true, 1e-8), dim=12), eps=1e-9, rng=0)
    assert result.outcome is rl.Outcome.LEARNED
    assert relative_square_error(result.network, true, points=20_000) < 1e-9


@pytest.mark.parametrize("budget", [50, 500, 3200, 6000])
def test_a_budget_ends_with_what_is_known(budget):
    result = rl.learn(rl.open_oracle(WORST_CASE["clusters 1e-05"](0), budget=budget), rng=0, eps=1e-8)
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
    with pytest.raises(InvalidInput) as refused:
        rl.learn(oracle)
    assert refused.value.argument == "domain"
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


AFFINE = rl.ReLUNetwork([[[1.0, -2.0, 0.5], [1.0, 0.0, 0.0]]], [[0.25, 1.0]])


@pytest.mark.parametrize("target", [in_float32(AFFINE), rounded(AFFINE, 5)], ids=["float32", "5 decimals"])
def test_an_affine_target_with_few_digits_is_learned(target):
    result = rl.learn(rl.open_oracle(target, dim=3), eps=1e-8, rng=0)
    assert result.outcome is rl.Outcome.LEARNED
    assert result.network.depth == 1
    assert "error-of-noise" in result.evidence["limits"]
    assert result.evidence["risk"].added is None  # there is no neuron to compare a bump to


def test_a_small_output_is_learned_too_or_not_ok():
    true = planted((6, 10, 2), 4)
    small = rl.ReLUNetwork([true.weights[0], true.weights[1] * np.array([[1.0], [1e-5]])], true.biases)
    result = rl.learn(rl.open_oracle(in_float32(small), dim=6), rng=0, narrowest=0.1)
    rows = np.random.default_rng(0).standard_normal((5000, 6))
    errors = ((result.network(rows) - small(rows)) ** 2).mean(axis=0) / small(rows).var(axis=0)
    assert errors.max() <= 1e-6 or not result.ok
    assert errors.max() <= 2 * result.evidence["accuracy"].high


def test_what_has_creases_without_end_is_given_up():
    oracle = rl.open_oracle(lambda x: np.logaddexp(0, 30 * x.sum(axis=1)) / 30, dim=4)
    result = rl.learn(oracle, rng=0, narrowest=0.1)
    assert result.outcome is rl.Outcome.NOT_ACCURATE
    assert "more-rows-than-neurons" in result.evidence["limits"]
    assert result.queries <= most_rows(points_to_see(0.1), 4, 100) + 20_000


@pytest.mark.parametrize("target", [lambda x: np.abs(x).max(axis=1)])  # curves in float32 are refused at once
def test_the_best_network_is_no_worse_than_the_mean(target):
    result = rl.learn(rl.open_oracle(target, dim=12), rng=0, narrowest=0.1)
    assert not result.ok
    rows = np.random.default_rng(5).standard_normal((5000, 12))
    answers = target(rows)[:, None]
    assert ((result.network(rows) - answers) ** 2).mean() <= 1.1 * answers.var()


def test_positions_that_rounding_makes_one_are_no_bend():
    """The largest output alone, in float32, jumps: the search halves an interval until its ends are one number."""
    network = planted((8, 12, 3), 2)

    def largest(x):
        z = network(x)
        return np.where(z == z.max(axis=1, keepdims=True), z, 0).astype(np.float32)

    assert not rl.learn(rl.open_oracle(largest, dim=8, budget=4000), rng=3).ok


def test_a_width_that_no_memory_holds_is_refused_before_anything_is_asked():
    oracle = rl.open_oracle(GENERIC(0))
    asked = oracle.queries
    with pytest.raises(InvalidInput, match="narrowest"):
        rl.learn(oracle, narrowest=1e-9)
    assert oracle.queries == asked


def test_a_network_that_was_not_verified_is_not_trusted():
    true = WORST_CASE["clusters 1e-05"](0)
    result = rl.learn(rl.open_oracle(true), eps=1e-4, rng=0)
    assert result.evidence["exact"] != "verified"
    assert result.rows["lines"].queries > 0
    assert relative_square_error(result.network, true, points=20_000) < 1e-12
