"""Percentages become fractions, what is not told becomes 0, and a link names percentages that it is given."""

from __future__ import annotations

import numpy as np
import pytest
from oracle_models import gaussian_rows, sigmoid, softmax

from reluctant.errors import LinkMismatch, NonFiniteAnswer
from reluctant.oracles import CallableOracle, Kind, NetworkOracle, open_oracle
from reluctant.oracles.links import PlainProbabilities, ProbabilityFormat
from reluctant.testing import planted

NETWORK = planted((4, 6, 3), 1)
ROWS = gaussian_rows(40, 4)


def percent(x):
    return 100 * softmax(NETWORK(x))


def test_percentages_are_divided():
    oracle = open_oracle(percent, dim=4, percent=True)
    np.testing.assert_allclose(oracle.query(ROWS), softmax(NETWORK(ROWS)), rtol=1e-15)
    assert oracle.facts.kind is Kind.PROBABILITIES


@pytest.mark.parametrize(("link", "make"), [("softmax", softmax), ("sigmoid", sigmoid)])
def test_a_link_reads_what_is_divided(link, make):
    read = open_oracle(lambda x: 100 * make(NETWORK(x)), dim=4, percent=True, link=link).query(ROWS)
    np.testing.assert_allclose(read, open_oracle(lambda x: make(NETWORK(x)), dim=4, link=link).query(ROWS), atol=1e-10)


@pytest.mark.parametrize(("link", "make"), [("softmax", softmax), ("sigmoid", sigmoid), ("top-k", softmax)])
def test_a_link_that_is_given_percentages_says_how(link, make):
    with pytest.raises(LinkMismatch, match=r"If they are percentages, say so: percent=True"):
        open_oracle(lambda x: 100 * make(NETWORK(x)), dim=4, link=link).query(ROWS)


@pytest.mark.parametrize("values", [NETWORK, lambda x: 100 + np.abs(NETWORK(x)), lambda x: np.abs(NETWORK(x))])
def test_values_are_not_called_percentages(values):
    with pytest.raises(LinkMismatch) as refused:
        open_oracle(values, dim=4, link="softmax").query(ROWS)
    assert "percent" not in str(refused.value)


def test_quotients_have_the_digits_of_the_answers():
    """Of float32 percentages in float64 they would seem to have more."""
    oracle = CallableOracle(lambda x: percent(x).astype(np.float32), 4)
    quotients = PlainProbabilities(oracle, ProbabilityFormat(percent=True, number_format="float32")).answer(ROWS)
    assert np.array_equal(quotients, quotients.astype(np.float32))
    np.testing.assert_allclose(quotients, softmax(NETWORK(ROWS)), rtol=1e-6)


def test_what_is_not_told_is_0_and_no_answer_stays_none():
    told = np.array([[np.nan, 80.0, np.nan], [np.nan, np.nan, np.nan]])
    oracle = open_oracle(lambda x: told[: len(x)], dim=4, percent=True)
    assert oracle.query(ROWS[:1]).tolist() == [[0.0, 0.8, 0.0]]
    with pytest.raises(NonFiniteAnswer):
        oracle.query(ROWS[:2])


def test_fractions_are_another_target_to_a_transcript():
    inner = NetworkOracle(NETWORK)
    assert PlainProbabilities(inner, ProbabilityFormat()).facts.identity == f"{inner.facts.identity} made plain"


def test_a_transcript_keeps_the_answers_as_they_were_given(tmp_path):
    with open_oracle(percent, dim=4, transcript=tmp_path) as first:
        first.query(ROWS)
    with open_oracle(percent, dim=4, transcript=tmp_path, percent=True) as again:
        again.query(ROWS)
        assert again.ledger.total.sent == 3  # the opening question
