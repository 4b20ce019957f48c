"""Pages of audits that learned little: sections without data say why, and the page is whole all the same."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from reluctant.audit import STEPS, audit
from reluctant.oracles import open_oracle
from reluctant.report import audit_page, check_audit, three_figures
from reluctant.testing import planted

PARTS = ("health", "span", "extraction", "learning", "flip", "linearity", "recovered", "truth", "defenses", "price")
QUICK = [step for step in STEPS if step != "defenses"]


def section(html: str, name: str) -> str:
    start = html.index(f'<section id="{name}"')
    return html[start : html.index("</section>", start)]


def test_an_unreachable_target(unreachable):
    html = audit_page(check_audit(unreachable))
    assert "could not be opened" in html
    assert "<h1>http://localhost:9/v2/models/digits</h1>" in html
    assert re.findall('<section id="(.*?)"', html) == ["steps", "repeat"]  # one short page,
    assert re.sub("<[^>]*>", "", html).count("Connection refused") == 2  # why: at its head and by the step
    assert unreachable["verdict"]["sentence"] == "The target could not be opened: nothing is known of it."
    assert re.sub("<[^>]*>", "", html).count("The target is not open.") == 1
    assert "<svg" not in html
    assert 'class="figures"' not in html


@pytest.mark.parametrize("missing", [PARTS[::3], PARTS[1::3], PARTS[2::3]])
def test_some_parts_may_be_missing(record, missing):
    record |= dict.fromkeys(missing)
    assert "How to repeat it" in audit_page(record)


@pytest.mark.parametrize("picture", ["line", "slice", "first layer", "errors", "search"])
def test_any_picture_may_be_missing(record, picture):
    record["pictures"] = dict.fromkeys(record["pictures"]) | {picture: record["pictures"][picture]}
    html = audit_page(record)
    assert ("<svg" in section(html, "function")) == (picture != "search")
    assert ("<svg" in section(html, "search")) == (picture == "search")


def test_nothing_but_the_verdict(record):
    record |= dict.fromkeys(PARTS)
    record["pictures"] = dict.fromkeys(record["pictures"])
    record |= {"steps": [], "limits": [], "names": [], "queries": {"total": 0, "by stage": {}}}
    record["target"] |= dict.fromkeys(("inputs", "outputs", "kind", "domain", "identity", "number format"))
    html = audit_page(record)
    assert "<svg" not in html
    assert html.count('class="absent"') == 11
    assert len(three_figures(record)) == 3


TARGETS = {  # what it computes, why it is refused, and what its steps say of that
    "smooth": (lambda x: np.tanh(x).sum(axis=1), "curved at small scale", "Curved answers have no creases"),
    "labels": (
        lambda x: np.argmax(planted((4, 6, 3))(x), axis=1),
        "The answers are labels",
        "Labels have no creases to find",
    ),
    "constant": (lambda x: np.ones(len(x)), "same answer everywhere", "all the same have no creases"),
    "without numbers": (lambda x: np.full(len(x), np.nan), "NaN or inf", "NaN or inf"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_refused_target(name):
    target, reason, short = TARGETS[name]
    untrained = [step for step in STEPS if step != "training"]  # which may well give a copy of a smooth one
    record = json.loads(audit(open_oracle(target, dim=4), budget=6000, steps=untrained).to_json())
    html = audit_page(check_audit(record))
    assert "Exact copy possible" not in html
    assert reason in record["verdict"]["sentence"]
    assert short in section(html, "recovered")
    words = re.sub("<[^>]*>", "", html)
    assert words.count(reason) == (1 if name != "without numbers" else words.count("NaN or inf"))  # told once
    assert "Ask for" not in words  # the model is the reader's own
    assert 'class="absent"' in section(html, "defenses")
    assert len(three_figures(record)) == 3
    if name in {"labels", "smooth"}:
        assert ("Where it jumps, the label changes." in html) == (name == "labels")


@pytest.mark.parametrize("widths", [(1, 3, 1), (3, 4, 1), (4, 0, 2), (2, 3, 3, 1)])
def test_small_targets_of_any_shape(widths):
    target = planted(widths) if 0 not in widths else (lambda x: x @ np.ones((4, 2)) + 1.0)
    oracle = open_oracle(target, dim=widths[0])
    record = json.loads(audit(oracle, budget=6000, steps=QUICK).to_json())
    record["target"]["classes"] = ["only one name"]
    html = audit_page(check_audit(record))
    assert "<svg" in section(html, "function")


def test_a_target_whose_budget_ran_out():
    record = audit(open_oracle(planted((20, 30, 2))), budget=120, steps=QUICK).to_dict()
    html = audit_page(record)
    assert "Not decided" in html
    assert "budget" in section(html, "recovered")


def test_a_copy_without_a_search_to_draw_is_no_contradiction(record):
    record["pictures"]["search"] = None
    said = section(audit_page(record), "search")
    assert "there is no search along one line to draw" in said
    assert "There is no search for creases to show" not in said
