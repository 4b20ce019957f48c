"""The audit of probabilities: read through their link, with noise, with few digits."""

from __future__ import annotations

import numpy as np
import pytest
from audit_kit import fields, limits, reason, reasons, step, why
from audit_targets import NETWORK, confident, softmax
from scipy.special import expit

from reluctant.audit.steps import recovery_steps
from reluctant.testing import planted
from reluctant.testing.faults import noisy


def test_probabilities_are_read_through_their_softmax(record):
    found = record(softmax, 6)
    assert found.verdict.level == "exact"
    assert found.target.link == "softmax"
    assert found.target.link_found is True
    assert (found.recovered.widths, found.recovered.link) == ((6, 8, 3), "softmax")
    assert found.recovered.parameters == NETWORK.parameters
    assert limits(found)["read-through-link"] == {"link": "softmax", "all": True, "noisy": False}


def test_a_link_that_is_given_is_not_found(record):
    found = record(softmax, 6, link="softmax")
    assert (found.target.link, found.target.link_found) == ("softmax", False)
    assert found.verdict.level == "exact"


def test_errors_of_a_confident_softmax_are_measured_where_it_tells(record):
    """Where a class is certain to the last digit its log-ratio is infinite: such rows are left out, and counted."""
    found = record(confident(60.0), 6, link="softmax")
    assert found.verdict.level == "exact"
    points = sum(each.points for each in found.pictures.errors)
    assert 0 < points < 300
    assert limits(found)["rows-left-out"] == {"picture": "errors", "rows": 300 - points}


def test_a_confident_softmax_has_pictures(record):
    found = record(confident(400.0), 6, link="softmax", steps=["health", "line", "plane"])
    points = len(found.pictures.line.positions)
    assert 0 < points < 201
    assert np.shape(found.pictures.plane.values) == (31, 31)
    assert [limit.slug for limit in found.limits].count("rows-left-out") == 2


@pytest.mark.parametrize("given", ["identity", "softmax"])
@pytest.mark.parametrize(("noise", "ends"), [(1e-5, {"low-precision"}), (1e-2, {"too-noisy", "out-of-reach"})])
def test_noisy_probabilities_are_not_called_a_wrong_link(given, noise, ends, record):
    """Noise leaves numbers below 0 and rows that do not add up to 1: that is no other link, and no failed target."""
    rng = np.random.default_rng(0)

    def target(x):
        answers = softmax(x)
        return answers + noise * rng.standard_normal(answers.shape)

    found = record(target, 6, steps=["health", "span", "extraction", "learning"], link=given)
    assert step(found, "health").state == "done"
    assert found.extraction.outcome in ends
    read = found.target.link == "softmax"
    assert limits(found).get("read-through-link", {}).get("noisy", False) == read
    assert "wrong-link" not in reasons(found.verdict)
    ends = [each.diagnosis for each in found.verdict.reasons if each.diagnosis.slug == "non-finite"]
    assert all(each.fields == {"saturates": True} for each in ends)  # values end, and not the answers


def test_noisy_values_are_no_probabilities(record):
    found = record(noisy(NETWORK, 1e-2), 6, steps=["health", "extraction"], link="softmax")
    assert (why(found, "health"), fields(found, "health")["error"]) == ("step-failed", "link-mismatch")
    assert found.extraction.outcome == "wrong-link"


def test_few_decimals_of_probabilities_are_told_as_the_reason(record):
    found = record(lambda x: np.round(softmax(x), 2), 6, steps=["health", "extraction", "learning"])
    for tried in ("extraction", "learning"):
        expected = {"missing": "creases", "gives": "rounded-link", "noun": "probabilities", "decimals": 2}
        assert (why(found, tried), fields(found, tried)) == ("nothing-to-find", expected)
    assert reason(found.verdict, "values-unreadable")["decimals"] == 2


def test_certain_answers_near_the_origin_settle_nothing(record):
    """A classifier of raw columns: its inputs are elsewhere, where values behind its softmax can be read."""
    steps = ["health", "extraction", "learning"]
    assert record(lambda x: softmax(1e3 * x), 6, steps=steps).verdict.level == "exact"  # in a box around the origin
    found = record(lambda x: softmax(300 * (x - 3)), 6, steps=steps)
    assert {"extractable", "approximable"} <= set(found.verdict.unsettled)
    assert reason(found.verdict, "certain-near-origin")["try"] == [("rows-of-use", {"inputs": None})]


def test_four_decimals_give_a_copy_behind_their_softmax(record):
    found = record(lambda x: np.round(softmax(x), 4), 6, steps=["health", "extraction", "learning"])
    assert found.verdict.level == "exact"
    assert found.recovered.link == "softmax"
    assert found.recovered.error.largest < 1e-2
    assert why(found, "learning") == "recovered-exactly"


def test_far_out_it_is_probabilities_that_end_and_not_the_answers(record):
    found = record(lambda x: np.round(softmax(x), 7), 6, steps=["health", "extraction", "learning"])
    assert found.learning.outcome == "out-of-reach"
    assert (why(found, "learning"), fields(found, "learning")) == ("out-of-reach", {"saturates": True})
    assert (found.served.decimals, found.interface.raw.decimals) == (7, 7)
    assert found.served.largest_scale != found.interface.largest_scale


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_sigmoid_is_looked_behind_or_not_settled(record, outputs, monkeypatch):
    network = planted((6, 8, outputs))
    behind = record(lambda x: expit(network(x)), 6, steps=["health", "extraction"])
    assert (behind.target.link, behind.target.link_found) == ("sigmoid", True)
    assert "extractable" in behind.verdict.leaks
    monkeypatch.setattr(recovery_steps, "likely_link", lambda oracle, served, rng: None)
    found = record(lambda x: expit(network(x)), 6, steps=["health", "extraction", "learning"])
    assert {"extractable", "approximable"} <= set(found.verdict.unsettled)
    assert found.verdict.level == "unknown"
    assert reason(found.verdict, "unread-link")["try"] == [("read-link", {"link": "sigmoid"})]
