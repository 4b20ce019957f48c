"""What an attack would cost: in the record, and on the page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audit_kit import QUICK
from scipy.special import log_softmax, softmax

from reluctant import estimate, open_oracle
from reluctant._files import as_plain
from reluctant.audit import audit
from reluctant.audit.budget import expected_cost
from reluctant.results import Outcome
from reluctant.testing import in_float32, planted
from reluctant.testing.faults import rounded

NETWORK = planted((40, 12, 1), 3)
PRICE = {"per thousand": 2.0, "currency": "EUR"}


def test_beside_what_was_spent(record):
    found = record(NETWORK, price=PRICE)
    expected, spent = found.expected, found.recovered.queries
    assert expected.shape == (40, 12, 1)
    assert expected.queries.low <= spent <= expected.queries.high
    assert expected.cost.expected == pytest.approx(expected.queries.expected * 2 / 1000)
    assert expected.seconds is None
    assert found.price.currency == "EUR"


def test_at_the_rate_given(valid):
    found = replace(audit(open_oracle(NETWORK), steps=QUICK), rate=10.0)
    record = valid(found.record)
    assert record.expected.seconds.expected == pytest.approx(record.expected.queries.expected / 10)


def test_rounded_answers(record):
    found = record(lambda x: np.round(NETWORK(x), 5), dim=40)
    assert found.expected.precision == "decimals=5"
    assert found.expected.queries.expected > 1.2 * record(NETWORK).expected.queries.expected


@pytest.mark.slow
def test_rounded_answers_of_float32(record):
    """As a served model gives them: neither float32 alone nor float64 that is rounded."""
    found = record(rounded(in_float32(NETWORK), 3), dim=40)
    assert found.expected.precision == "float32,decimals=3"
    assert found.expected.queries.low <= found.recovered.queries <= found.expected.queries.high


def test_answers_that_are_rounded_and_still_read_as_exact(record):
    found = record(lambda x: np.round(NETWORK(x), 11), dim=40)
    assert found.recovered is not None
    assert found.expected.precision == "decimals=11"
    assert found.expected.queries is None
    assert found.expected.reason.slug == "decimals-not-measured"


def test_a_classifier_by_its_classes(record):
    """Two classes are read as one ratio: the rows are those of one output, the shape has both."""
    logits = planted((40, 12, 2), 5)
    found = record(lambda x: log_softmax(logits(x), axis=1), dim=40, link="log-softmax")
    expected, copy = found.expected, found.recovered
    assert expected.shape == (40, 12, 2) == copy.widths
    assert as_plain(expected.queries) == estimate("40-12-1").to_dict()["queries"]
    assert expected.queries.low <= copy.queries <= expected.queries.high
    each = expected.answers_per_parameter.expected
    assert each == pytest.approx(2 * expected.queries.expected / copy.parameters)
    assert expected.read_as == (40, 12, 1)


def test_a_softmax_by_its_classes(record):
    """Probabilities saturate far out, so that there is no number: the shape is that of the record all the same."""
    logits = planted((6, 8, 3), 1)
    found = record(lambda x: softmax(logits(x), axis=1), dim=6)
    assert found.recovered.widths == (6, 8, 3)
    assert found.expected.shape == (6, 8, 3)
    assert found.expected.reason.slug == "range-behind-link-not-measured"  # nobody gave a box


def test_a_learned_copy_has_a_shape_of_its_own():
    """The same network: with an estimate where it was recovered, without one where it was learned."""
    done = audit(open_oracle(NETWORK), steps=QUICK)
    learned = replace(done.known.extraction, outcome=Outcome.LEARNED)
    facts = open_oracle(NETWORK).facts
    assert expected_cost(done.known, facts, None, None) is not None
    assert expected_cost(replace(done.known, extraction=learned), facts, None, None) is None


def test_no_number_inside_a_box(valid):
    with open_oracle(NETWORK, domain=(-1.0, 1.0)) as oracle:
        record = valid(audit(oracle, steps=QUICK).record)
    assert record.recovered is not None
    assert record.expected.queries is None
    assert record.expected.reason.slug == "range-not-measured"


def test_nothing_without_a_copy(record):
    found = record(lambda x: np.tanh(x.sum(axis=1)), dim=5, seconds=10.0)
    assert found.expected is None
