"""The contract suite itself: a good oracle passes every check, and each flaw is caught by the check for it."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant import Facts, GaussianNoise, Oracle, open_oracle
from reluctant.defenses import Decimals
from reluctant.errors import InvalidAnswer
from reluctant.oracles import NetworkOracle
from reluctant.testing import planted
from reluctant.testing.contract import OracleContract

NETWORK = planted((4, 5, 2))


class TestGoodOracle(OracleContract):
    """An oracle of ours, opened as a user opens it."""

    def make_oracle(self) -> Oracle:
        return open_oracle(NETWORK)


class TestGoodOracleInABox(OracleContract):
    """The same in a bounded domain."""

    def make_oracle(self) -> Oracle:
        return open_oracle(NETWORK, domain=(0, 1))


class Flawed(Oracle):
    """An oracle written by hand whose answers are spoilt by one function."""

    def __init__(self, spoil) -> None:
        self.spoil, self.inner = spoil, NetworkOracle(NETWORK)

    @property
    def facts(self) -> Facts:
        return self.inner.facts

    def answer(self, rows):
        return self.spoil(rows, self.inner.answer(rows))


def change_rows(rows, answers):
    rows += 1
    return answers


def keep_answers():
    kept = {}
    return lambda rows, answers: kept.setdefault(rows.tobytes(), answers)


FLAWS = {
    "test_answers_are_float64_rows": lambda rows, answers: answers[:, :1],
    "test_order_is_kept": lambda rows, answers: np.sort(answers, axis=0),
    "test_batches_do_not_matter": lambda rows, answers: answers / len(rows),
    "test_question_and_answer_share_no_memory": change_rows,
}


@pytest.mark.parametrize("check", FLAWS)
def test_a_flaw_is_caught(check):
    # Answers of the wrong shape do not even reach the check: `query` refuses them.
    expected = InvalidAnswer if check == "test_answers_are_float64_rows" else AssertionError
    with pytest.raises(expected):
        getattr(OracleContract(), check)(Flawed(FLAWS[check]))


def test_answers_that_are_handed_out_twice_are_caught():
    with pytest.raises(AssertionError):
        OracleContract().test_question_and_answer_share_no_memory(Flawed(keep_answers()))


TWICE = [name for name in FLAWS if name != "test_answers_are_float64_rows"] + ["test_other_layouts_and_types"]


@pytest.mark.parametrize("check", TWICE)
def test_answers_that_may_differ_are_not_compared(check):
    noise = Decimals(GaussianNoise(NetworkOracle(NETWORK), 1e-3), 12)
    with pytest.raises(pytest.skip.Exception, match="another answer"):
        getattr(OracleContract(), check)(noise)
    fixed = Decimals(NetworkOracle(NETWORK), 12)
    getattr(OracleContract(), check)(fixed)
    fixed.repeatable = False
    with pytest.raises(pytest.skip.Exception):
        getattr(OracleContract(), check)(fixed)


def test_a_tolerance_of_ones_own_compares_them_after_all():
    class Coarse(OracleContract):
        def tolerance(self, oracle, answers):
            return 1e-6

    with pytest.raises(AssertionError):
        Coarse().test_order_is_kept(GaussianNoise(NetworkOracle(NETWORK), 1e-3))


def test_a_subclass_must_make_an_oracle():
    with pytest.raises(NotImplementedError, match="make_oracle"):
        OracleContract().make_oracle()
