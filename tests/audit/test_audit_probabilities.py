"""The audit of probabilities: read through their link, with noise, with few digits."""

from __future__ import annotations

import numpy as np
import pytest
from audit_kit import step
from audit_targets import NETWORK, confident, softmax
from scipy.special import expit

from reluctant.audit import looking
from reluctant.testing import planted
from reluctant.testing.faults import noisy


def test_probabilities_are_read_through_their_softmax(record):
    found = record(softmax, 6)
    assert found["verdict"]["level"] == "exact"
    assert found["target"]["link"] == "softmax"
    assert found["target"]["link found"] is True
    assert (found["recovered"]["widths"], found["recovered"]["link"]) == ([6, 8, 3], "softmax")
    assert found["recovered"]["parameters"] == NETWORK.parameters
    assert "6-8-3 with a softmax, 83 parameters" in found["verdict"]["sentence"]
    assert any("probabilities" in sentence for sentence in found["limits"])


def test_a_link_that_is_given_is_not_found(record):
    found = record(softmax, 6, link="softmax")
    assert (found["target"]["link"], found["target"]["link found"]) == ("softmax", False)
    assert found["verdict"]["level"] == "exact"


def test_errors_of_a_confident_softmax_are_measured_where_it_tells(record):
    """Where a class is certain to the last digit its log-ratio is infinite: such rows are left out, and counted."""
    found = record(confident(60.0), 6, link="softmax")
    assert found["verdict"]["level"] == "exact"
    points = sum(each["points"] for each in found["pictures"]["errors"])
    assert 0 < points < 300
    assert f'In the picture "errors" {300 - points} rows are left out: they have no finite answer.' in found["limits"]


def test_a_confident_softmax_has_pictures(record):
    found = record(confident(400.0), 6, link="softmax", steps=["health", "line", "plane"])
    points = len(found["pictures"]["line"]["positions"])
    assert 0 < points < 201
    assert np.shape(found["pictures"]["slice"]["values"]) == (31, 31)
    assert sum("are left out" in sentence for sentence in found["limits"]) == 2


@pytest.mark.parametrize("given", ["identity", "softmax"])
@pytest.mark.parametrize(("noise", "ends"), [(1e-5, {"low-precision"}), (1e-2, {"too-noisy", "out-of-reach"})])
def test_noisy_probabilities_are_not_called_a_wrong_link(given, noise, ends, record):
    """Noise leaves numbers below 0 and rows that do not add up to 1: that is no other link, and no failed target."""
    rng = np.random.default_rng(0)

    def target(x):
        answers = softmax(x)
        return answers + noise * rng.standard_normal(answers.shape)

    found = record(target, 6, steps=["health", "span", "extraction", "learning"], link=given)
    assert step(found, "health")["state"] == "done"
    assert found["extraction"]["outcome"] in ends
    assert "link is not that" not in str(found)
    read = found["target"]["link"] == "softmax"
    assert any("Their noise was put right" in said for said in found["limits"]) == read
    assert "NaN or inf" not in found["verdict"]["sentence"]


def test_noisy_values_are_no_probabilities(record):
    found = record(noisy(NETWORK, 1e-2), 6, steps=["health", "extraction"], link="softmax")
    assert "expected probabilities for link='softmax'" in step(found, "health")["why"]
    assert found["extraction"]["outcome"] == "wrong-link"


def test_few_decimals_of_probabilities_are_told_as_the_reason(record):
    found = record(lambda x: np.round(softmax(x), 3), 6, steps=["health", "extraction", "learning"])
    for tried in ("extraction", "learning"):
        assert step(found, tried)["why"] == "Probabilities rounded to 3 decimals have no creases to find."
    assert "rounded to 3 decimals" in found["verdict"]["sentence"]


def test_far_out_it_is_probabilities_that_end_and_not_the_answers(record):
    found = record(lambda x: np.round(softmax(x), 7), 6, steps=["health", "extraction", "learning"])
    assert found["learning"]["outcome"] == "out-of-reach"
    said = step(found, "learning")["why"]
    assert "its answers are certain, to the last digit" in said
    assert "does not answer" not in said
    served = found["served"]  # the interface, beside the values read from it
    assert (served["number_format"], served["decimals"]) == ("float64", 7)
    assert served["largest_scale"] != found["health"]["largest_scale"]


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_sigmoid_is_looked_behind_or_not_settled(record, outputs, monkeypatch):
    network = planted((6, 8, outputs))
    behind = record(lambda x: expit(network(x)), 6, steps=["health", "extraction"])
    assert (behind["target"]["link"], behind["target"]["link found"]) == ("sigmoid", True)
    assert "extractable" in behind["verdict"]["leaks"]
    monkeypatch.setattr(looking, "_likely_link", lambda oracle, served, seed: None)
    found = record(lambda x: expit(network(x)), 6, steps=["health", "extraction", "learning"])
    assert {"extractable", "approximable"} <= set(found["verdict"]["unsettled"])
    assert found["verdict"]["level"] == "unknown"
    assert "--link sigmoid" in found["verdict"]["sentence"]
