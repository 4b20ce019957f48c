"""Pages of audits that learned little: sections without data say why, and the page is whole all the same."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from page_kit import audited, slugs, typed, words
from sweeps import sweep

from reluctant.audit import STEPS
from reluctant.audit.record import Level
from reluctant.report import audit_page, three_figures
from reluctant.report.text import said
from reluctant.testing import planted

PARTS = ("interface", "span", "extraction", "learning", "flip", "linearity", "recovered", "truth", "defenses", "price")
QUICK = [step for step in STEPS if step != "defenses"]


def section(html: str, name: str) -> str:
    start = html.index(f'<section id="{name}"')
    return html[start : html.index("</section>", start)]


def test_an_unreachable_target(unreachable):
    html = audit_page(typed(unreachable))
    assert "<h1>http://localhost:9/v2/models/digits</h1>" in html
    assert re.findall('<section id="(.*?)"', html) == ["steps", "repeat"]  # one short page,
    assert words(html).count("Connection refused") == 2  # why: at its head and by the step
    assert "<svg" not in html
    assert 'class="figures"' not in html


@pytest.mark.parametrize("missing", [PARTS[::3], PARTS[1::3], PARTS[2::3]])
def test_some_parts_may_be_missing(record, missing):
    record |= dict.fromkeys(missing)
    assert '<section id="repeat"' in audit_page(typed(record))


@pytest.mark.parametrize("picture", ["line", "plane", "first_layer", "errors", "search"])
def test_any_picture_may_be_missing(record, picture):
    kept = record["pictures"][picture]
    record["pictures"] = dict.fromkeys(record["pictures"]) | {"errors": []} | {picture: kept}
    html = audit_page(typed(record))
    assert ("<svg" in section(html, "function")) == (picture != "search")
    assert ("<svg" in section(html, "search")) == (picture == "search")


def test_nothing_but_the_verdict(record):
    record |= dict.fromkeys(PARTS)
    record["pictures"] = dict.fromkeys(record["pictures"]) | {"errors": []}
    record |= {"steps": [], "limits": [], "names": [], "queries": {"total": 0, "by_stage": {}}}
    record["target"] |= dict.fromkeys(("inputs", "outputs", "kind", "domain", "identity", "number_format"))
    html = audit_page(typed(record))
    assert "<svg" not in html
    assert html.count('class="absent"') == 11
    assert len(three_figures(typed(record))) == 3


TARGETS = {  # what it computes, and why it is refused
    "smooth": (lambda x: np.tanh(x).sum(axis=1), "not-piecewise-linear"),
    "labels": (lambda x: np.argmax(planted((4, 6, 3))(x), axis=1), "answers-are-labels"),
    "constant": (lambda x: np.ones(len(x)), "all-the-same"),
    "without numbers": (lambda x: np.full(len(x), np.nan), "non-finite"),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_refused_target(name):
    target, slug = TARGETS[name]
    untrained = [step for step in STEPS if step != "training"]  # which may well give a copy of a smooth one
    record = audited(target, dim=4, budget=6000, steps=untrained)
    html = audit_page(record)
    assert record.verdict.level is not Level.EXACT
    reason = next(each.diagnosis for each in record.verdict.reasons if each.diagnosis.slug == slug)
    assert said(reason) in words(html)
    assert "nothing-to-find" in slugs(record)
    assert 'class="absent"' in section(html, "recovered")
    assert 'class="absent"' in section(html, "defenses")
    assert len(three_figures(record)) == 3


@pytest.mark.parametrize("widths", sweep([(1, 3, 1), (3, 4, 1), (4, 0, 2), (2, 3, 3, 1)], fast=[(1, 3, 1), (4, 0, 2)]))
@pytest.mark.usefixtures("short_training")
def test_small_targets_of_any_shape(widths):
    target = planted(widths) if 0 not in widths else (lambda x: x @ np.ones((4, 2)) + 1.0)
    record = audited(target, dim=widths[0], budget=6000, steps=QUICK)
    record = replace(record, target=replace(record.target, classes=("only one name",)))
    assert "<svg" in section(audit_page(record), "function")


@pytest.mark.usefixtures("short_training")
def test_a_target_whose_budget_ran_out():
    record = audited(planted((20, 30, 2)), dim=20, budget=120, steps=QUICK)
    assert record.verdict.level is Level.UNKNOWN
    assert "rows-ran-out" in slugs(record)
    assert "budget" in section(audit_page(record), "recovered")


def test_a_copy_without_a_search_to_draw_is_no_contradiction(record):
    record["pictures"]["search"] = None
    assert "asks all over input space" in section(audit_page(typed(record)), "search")
