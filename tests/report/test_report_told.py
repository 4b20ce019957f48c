"""Pages of targets that are no plain network in all of space: labels, boxes, audits that were stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from page_kit import words

from reluctant.audit import STEPS, audit
from reluctant.oracles import open_oracle
from reluctant.report import audit_page, check_audit, three_figures
from reluctant.report.tables import interface_facts
from reluctant.report.text import UNTOLD, leaks, level_of
from reluctant.testing import planted

NETWORK = planted((8, 4, 3))
UNTRAINED = [step for step in STEPS if step not in ("training", "defenses")]


def audited(target: Callable[..., Any], **settings: Any) -> dict[str, Any]:
    with open_oracle(target, dim=8) as oracle:
        return check_audit(json.loads(audit(oracle, **{"steps": UNTRAINED} | settings).to_json()))


def test_a_shape_that_digits_do_not_tell_is_not_told():
    """Three decimals hide the curves of a sigmoid: straight pieces are what is seen, and not what it is."""
    network = planted((8, 4, 1), 0)
    record = audited(lambda x: ((1 + np.tanh(network(x) / 2)) / 2).round(3), steps=["health"])
    assert record["health"]["shape"] == "piecewise linear"
    assert record["target"]["may be sigmoids"]
    assert dict(interface_facts(record))["Shape at small scale"] == UNTOLD
    assert any(UNTOLD in figure.note for figure in three_figures(record))
    assert "piecewise linear" not in words(audit_page(record))


@pytest.fixture(scope="module")
def one_hot() -> dict[str, Any]:
    return audited(lambda x: np.eye(3)[NETWORK(x).argmax(axis=1)])


def with_student(record: dict[str, Any], labels: float, alone: float = 0.5) -> dict[str, Any]:
    """As if a network had been trained on its labels."""
    accuracy = {"error": None, "high": None, "agreement": labels, "commonest": alone, "points": 4000}
    accuracy |= {"differing": 1 - labels + 0.01}
    network = {"widths": [8, 16, 3], "parameters": 195, "skip": False}
    how = {"hidden": [16], "rows": 36_000, "steps": 9, "short": "", "hurried": False}
    training = {"outcome": "not-accurate-enough", "text": "", "ok": False, "stage": "training", "queries": 40_000}
    return check_audit(
        record | {"training": training | {"evidence": {"accuracy": accuracy, "training": how}, "network": network}}
    )


def test_what_is_not_true_of_labels_is_not_said(one_hot):
    said = words(audit_page(one_hot))
    for wrong in ("Where a curve bends", "Digits seen", "not rounded", "No change beyond", "Ask for", "largest answer"):
        assert wrong not in said
    assert "There is no copy to compare with true weights." in said
    assert "The target's label on a plane" in said.replace("&#39;", "'")
    assert said.count("The answers are labels") == 1
    assert ("Answers", "labels, as the audit saw") in interface_facts(one_hot)


def test_a_trained_network_is_no_good_news(one_hot):
    bare = {leak.what: (leak.state, leak.tone) for leak in leaks(one_hot)}
    assert bare["Exact copy"] == bare["Flip by one small step"] == ("no method here", "calm")
    record = with_student(one_hot, 0.972)
    told = {leak.what: (leak.state, leak.tone) for leak in leaks(record)}
    assert told["Close copy"] == ("trained: 97.2% of labels", "warn")
    first, queries, _ = three_figures(record)
    assert (first.name, first.value) == ("The same label from a trained network", "97.2%")
    assert queries.note == "without a closer copy of the network"
    assert level_of(record).words.endswith("and most labels can be copied")
    said = words(audit_page(record))
    assert "trained on 40,000 answers, gives 97.2% of labels (one label alone: 50.0%)" in said
    assert "--eps" not in said


def test_what_is_asked_of_a_copy_is_told(one_hot):
    """Fewer labels may differ where one is right for most inputs; what chance alone decides is not denied."""
    rare = words(audit_page(with_student(one_hot, 0.998, alone=0.943)))
    asked = "as many as 1.2% of labels may differ, and 0.1% is asked, for one label alone is right for 94.3%"
    assert f"That is not close enough to be called a copy here: {asked}" in rare
    near = words(audit_page(with_student(one_hot, 0.991)))
    asked = "as many as 1.9% of labels may differ, and 1% is asked"
    assert f"That may or may not be close enough to be called a copy here: {asked}" in near


def test_what_one_label_alone_gives_is_no_leak(one_hot):
    """88 % right is little where one label is right for 80 %."""
    record = with_student(one_hot, 0.88, alone=0.8)
    assert all("trained" not in leak.state for leak in leaks(record))
    assert three_figures(record)[0].name == "Queries spent"


def test_no_level_is_good_beside_a_telling_student(one_hot):
    nothing = one_hot | {"verdict": one_hot["verdict"] | {"level": "nothing", "leaks": [], "unsettled": []}}
    assert level_of(nothing).tone == "good"
    assert level_of(with_student(nothing, 0.97)).tone == "warn"


def test_a_range_is_told_as_what_was_found():
    def boxed(x):
        if np.abs(x).max() > 3:
            raise ValueError("too large")
        return NETWORK(x)

    record = audited(boxed, steps=["health", "extraction"])
    facts = dict(interface_facts(record))
    assert "Domain" not in facts
    assert facts["Answers only in"] == "[-2, 2] in every coordinate, found by the audit; it may be somewhat wider"
    assert "asked in [-2, 2] in every coordinate, and what is said holds there" in record["verdict"]["sentence"]
    html = audit_page(record)
    assert '<span class="nowrap">[-2, 2]</span>' in html
    assert "all of space" not in words(html)


def test_the_box_of_probabilities_is_told_first():
    def softmax(x):
        powers = np.exp(NETWORK(x) - NETWORK(x).max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    record = audited(softmax, steps=["health", "extraction"])
    place = re.search(r"extraction kept to (\[.*?\])", record["limits"][0])
    assert place is not None
    assert f"looked for in {place[1]}" in record["verdict"]["sentence"]
    assert sum(place[1] in limit for limit in record["limits"]) == 1
    assert ("Answers", "probabilities, as the audit saw") in interface_facts(record)


def stopped_in(step: str) -> dict[str, Any]:
    """An audit that a signal ends in this step."""
    begun = []

    def watch(what: str, done: int, of: int, doing: str) -> None:
        begun.append(doing)

    def target(x):
        if begun and begun[-1] == step:
            raise KeyboardInterrupt
        return NETWORK(x)

    return audited(target, steps=STEPS, watch=watch)


def test_a_stopped_audit_says_so_at_its_head():
    record = stopped_in("span")
    html = audit_page(record)
    head = words(html[: html.index('<section id="recovered"')])
    assert "The audit was cut short: it was stopped from outside in step 2 of 13, span" in head
    assert "No transcript was kept" in head
    assert words(html).count("from outside") == 2  # at the head and by the step
    assert [leak.state for leak in leaks(record)] == ["not begun", "not begun", "broken off", "not begun"]
    assert "raise the budget" not in head


def test_records_from_before_a_stop_had_words_tell_the_same():
    new = stopped_in("span")
    before = {"stopped": "failed", "not begun": "skipped"}
    old = new | {"steps": [step | {"state": before.get(step["state"], step["state"])} for step in new["steps"]]}
    assert {step["state"] for step in old["steps"]} == {"done", "failed", "skipped"}
    assert audit_page(check_audit(old)) == audit_page(new)


def test_what_was_under_way_is_not_called_untried():
    record = stopped_in("line")
    html = audit_page(record)
    function = html[html.index('<section id="function"') : html.index('<section id="search"')]
    assert "The audit was stopped while this was under way." in function
    assert record["verdict"]["level"] == "exact"
    defenses = html[html.index('<section id="defenses"') : html.index('<section id="function"')]
    assert "Not begun." in defenses
