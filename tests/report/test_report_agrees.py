"""Pages whose parts must agree with each other: small budgets, one output, probabilities with few digits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from page_kit import words

from reluctant.audit import audit
from reluctant.audit.trained import gives_labels
from reluctant.oracles import open_oracle
from reluctant.report import audit_page, check_audit, three_figures
from reluctant.report.findings import interface_facts
from reluctant.report.student import student_of
from reluctant.report.summary import leaks
from reluctant.testing import planted

SEVERAL, ONE = planted((6, 5, 3)), planted((6, 5, 1))
TRAINED = ("health", "training")


def chance(x: Any) -> Any:
    """One probability of a sigmoid, which a plain function does not say."""
    return (1 + np.tanh(ONE(x) / 2)) / 2


def audited(target: Callable[..., Any], **settings: Any) -> dict[str, Any]:
    with open_oracle(target, dim=6) as oracle:
        return check_audit(json.loads(audit(oracle, **settings).to_json()))


def page(record: dict[str, Any]) -> str:
    return words(audit_page(record))


def states(record: dict[str, Any]) -> dict[str, str]:
    return {leak.what: leak.state for leak in leaks(record)}


@pytest.mark.parametrize("seed", range(4))
def test_a_handful_of_labels_is_no_finding(seed):
    """Of two or three inputs that were held out, all may have the label of the network, and the same one."""
    record = audited(SEVERAL, budget=300, rng=seed, steps=TRAINED)
    measured = record["training"]["evidence"]["accuracy"]
    assert measured["points"] < 10
    assert not student_of(record).telling
    assert "trained" not in states(record)["Close copy"]
    assert all("same label" not in figure.name for figure in three_figures(record))
    assert all("of labels" not in entry["finding"] for entry in record["names"])
    assert f"at {measured['points']} inputs that it was not trained on" in page(record) or (
        f"of {measured['points']} inputs that it was not trained on" in record["verdict"]["sentence"]
    )


def test_chance_and_one_label_are_taken_off():
    told = {"agreement": 1.0, "differing": 0.02, "commonest": 0.6, "labelled": True}
    assert gives_labels(told)
    assert not gives_labels(told | {"differing": 0.9})  # a handful of inputs
    assert not gives_labels(told | {"commonest": 1.0})
    assert not gives_labels(told | {"labelled": False})
    assert gives_labels({"agreement": 0.98, "commonest": 0.6})  # of records that do not tell what chance may hide


def test_one_number_has_no_label():
    """A probability is positive everywhere; its sign says nothing, and is not told as a label."""
    record = audited(chance, budget=10_000, steps=("health", "span", "training"))
    said = page(record)
    assert "One output has no label to look at" in said
    assert "of labels" not in said
    assert "same label" not in said
    assert "its error may be as large as" in said
    assert dict(interface_facts(record))["Answers"] == "values between 0 and 1, which may be probabilities"


def test_answers_are_called_what_they_are_read_as():
    linked, plain = audited(chance, link="sigmoid", steps=["health"]), audited(ONE, steps=["health"])
    assert dict(interface_facts(linked))["Answers"] == "probabilities, as the audit was told"
    assert dict(interface_facts(plain))["Answers"] == "values"


def test_rounded_probabilities_are_no_values():
    def rounded(x):
        powers = np.exp(SEVERAL(x) - SEVERAL(x).max(axis=1, keepdims=True))
        return (powers / powers.sum(axis=1, keepdims=True)).round(4)

    record = audited(rounded, steps=["health"])
    assert dict(interface_facts(record))["Answers"] == "probabilities, as the audit saw"
