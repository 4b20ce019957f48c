"""One run: rows from its beginning, what it keeps, and what becomes of that which ends it from outside."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import (
    BudgetExhausted,
    InvalidInput,
    LinkMismatch,
    NonFiniteAnswer,
    TargetTimeout,
    TimeExhausted,
)
from reluctant.oracles import Rows
from reluctant.oracles.ledger import Limit
from reluctant.results import Outcome, Run, outcome_of
from reluctant.testing import planted

NETWORK = planted((6, 4, 1), 0)
NOT_FINITE = NonFiniteAnswer("NaN", rows=np.zeros((1, 2)), answers=np.full((1, 1), np.nan))


def begun(**settings) -> Run[int]:
    return Run.begin(rl.open_oracle(NETWORK), "extract", 0, 0, **settings)


@pytest.mark.parametrize(
    ("error", "saturates", "outcome"),
    [
        (BudgetExhausted(budget=1, spent=1, asked=1), False, Outcome.OUT_OF_BUDGET),
        (TimeExhausted(seconds=1.0, spent=1, asked=1), False, Outcome.OUT_OF_BUDGET),
        (LinkMismatch("no probabilities"), False, Outcome.WRONG_LINK),
        (NOT_FINITE, False, Outcome.TARGET_FAILED),
        (NOT_FINITE, True, Outcome.OUT_OF_REACH),
        (TargetTimeout("late"), True, Outcome.TARGET_FAILED),
    ],
)
def test_what_ends_a_run_is_an_outcome(error, saturates, outcome):
    facts = replace(rl.open_oracle(NETWORK).facts, link="softmax" if saturates else None)
    assert outcome_of(error, facts) is outcome


def test_answers_that_are_no_numbers_end_a_run_as_its_verb_says():
    facts = rl.open_oracle(NETWORK).facts
    never = {"non_finite": Outcome.NON_FINITE, "saturated": Outcome.ONE_LABEL}
    assert outcome_of(NOT_FINITE, facts, **never) is Outcome.NON_FINITE
    assert outcome_of(NOT_FINITE, replace(facts, link="softmax"), **never) is Outcome.ONE_LABEL


def test_work_that_ends_by_itself_is_not_touched():
    run = begun()
    assert run.finish(lambda: "found", str) == "found"
    assert run.evidence == {}


def test_work_that_is_ended_gives_what_was_kept():
    run = begun()

    def work():
        run.keep(7)
        raise TargetTimeout("late")

    assert run.finish(work, lambda outcome: (outcome, run.partial)) == (Outcome.TARGET_FAILED, 7)
    assert run.evidence == {"error": "late"}


def test_other_errors_pass():
    def work():
        raise InvalidInput("mine")

    with pytest.raises(InvalidInput, match="mine"):
        begun().finish(work, str)


def test_rows_count_from_the_beginning():
    oracle = rl.open_oracle(NETWORK)
    with oracle.stage("before"):
        oracle.query(np.zeros((3, 6)))
    run = Run.begin(oracle, "extract", 0, None)
    with oracle.stage("line"):
        oracle.query(np.zeros((2, 6)))
    assert run.spent() == {"line": Rows(asked=2, sent=2)}
    assert (run.rows.queries, run.stage) == (2, "line")
    found = run.result(Outcome.PARTIAL, None, {"more": 1})
    assert (found.rows, found.stage, found.evidence) == (run.spent(), "line", {"more": 1})


def test_a_run_checks_the_time_of_the_limit_around_it():
    run, limit = begun(), Limit(seconds=0.0)
    run.check_time()
    with limit.running():
        assert run.finish(lambda: [run.check_time() for _ in range(10**6)], lambda outcome: outcome) is (
            Outcome.OUT_OF_BUDGET
        )
    assert limit.time_up


@dataclass(frozen=True)
class Stuck(rl.Method):
    """One that always fails, at once."""

    def run(self, oracle, noise, rng, keep):
        raise rl.StageFailed("line", "no luck", number=1, limit=0, partial=NETWORK)


class Far(Stuck):
    """One that asks far out."""

    needs_space = True


class Coarse(Stuck):
    """One that reads few digits."""

    few_digits = True


def test_a_method_declares_that_it_needs_space():
    with pytest.raises(InvalidInput, match="all of space for Far"):
        rl.extract(NETWORK, Far(), domain=(-1, 1))
    found = rl.extract(NETWORK, Stuck(), domain=(-1, 1), attempts=2)
    assert found.outcome is Outcome.PARTIAL
    assert found.network is NETWORK
    assert len(found.evidence["failures"]) == 2


def test_a_method_declares_that_it_reads_few_digits():
    def rounded(x):
        return np.round(NETWORK(x), 5)

    assert "failures" not in rl.extract(rounded, Stuck(), dim=6).evidence
    found = rl.extract(rounded, Coarse(), dim=6, attempts=3)
    assert found.outcome is Outcome.LOW_PRECISION
    assert len(found.evidence["failures"]) == 3


@pytest.mark.parametrize("method", [rl.DepthTwo, object(), "DepthTwo"])
def test_what_is_no_method_is_refused(method):
    with pytest.raises(InvalidInput, match="method"):
        rl.extract(NETWORK, method)


@pytest.mark.parametrize(
    "verb", [rl.extract, rl.learn, rl.recover_span, lambda oracle: rl.flip_sign(oracle, np.ones(4))]
)
def test_every_verb_names_a_wrong_link(verb):
    asked = []

    def odd(x):
        asked.append(len(x))
        return (1 + np.tanh(x[:, :1])) / 2 + (0 if len(asked) < 3 else 5)

    assert verb(rl.open_oracle(odd, dim=4, link="sigmoid")).outcome is Outcome.WRONG_LINK
