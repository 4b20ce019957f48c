"""A budget that is too small: how much would do, who gets it first, and rows of the sweep that can be compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audit_kit import reason, reasons, step

from reluctant import ReLUNetwork, defend, open_oracle, recover_span
from reluctant.audit import audit
from reluctant.audit.budget import ENOUGH, reserve, share, with_extraction
from reluctant.audit.defense_sweep import _undefended
from reluctant.audit.findings import Findings, Settings
from reluctant.audit.verdict import judge
from reluctant.estimation import Range, estimate
from reluctant.results import Outcome, Result
from reluctant.testing import in_float32, planted

SHAPE = (20, 16, 3)
REBUILDING = ["health", "span", "extraction"]


@pytest.fixture
def file(tmp_path):
    network = planted(SHAPE)
    single = [[part.astype(np.float32).astype(float) for part in parts] for parts in (network.weights, network.biases)]
    path = tmp_path / "model.onnx"
    ReLUNetwork(*single).save(path, "float32")
    return path


@pytest.mark.parametrize(
    ("name", "left", "rows"),
    [
        ("extraction", 8000, 8000),  # what it may need, and not the share of 3,000
        ("extraction", 5000, 3000),  # it would not be enough: others keep theirs
        ("extraction", 90_000, 20_000),
        ("span", 8000, 1000),  # all but what extraction needs
        ("span", 90_000, 3000),
        ("flip", 8000, 3000),
    ],
)
def test_extraction_gets_what_it_needs_before_others(name, left, rows):
    assert with_extraction(name, 3000, left, Range(7000.0, 6000.0, 20_000.0)) == rows
    assert with_extraction(name, 3000, left, None) == 3000


@pytest.mark.parametrize("rows", [300, 3000, 300_000])
def test_the_budget_that_is_told_gives_extraction_its_rows(rows):
    """Also where the steps before it take all that they may."""
    budget, checked = ENOUGH * rows, 204
    kept = reserve(budget, 20)
    left = budget - checked - share("span", budget - checked, kept)
    assert share("extraction", left, kept) >= rows


def test_the_first_look_may_take_all():
    assert share("health", 300, reserve(300, 20)) == 300


@pytest.mark.parametrize("budget", [50, 300])
@pytest.mark.usefixtures("short_training")
def test_no_step_counts_its_share_as_the_budget(budget, record):
    found = record(planted(SHAPE), 20, budget=budget)
    assert "out-of-budget" not in reasons(found.verdict)
    if budget == 300:
        short = reason(found.verdict, "rows-ran-out")
        assert short["steps"] == ("span", "extraction", "learning", "training")
        assert short["try"] == [("more-budget", {"budget": None})]


def test_a_budget_that_covers_extraction_is_used_for_it(file, valid):
    """Its share alone, three quarters of what the looks leave, would not do."""
    expected = estimate(SHAPE, precision="float32").queries.expected
    budget = int(1.3 * expected)
    with open_oracle(file) as oracle:
        found = valid(audit(oracle, file=file, budget=budget, steps=REBUILDING).record)
    assert found.verdict.level == "exact"
    assert step(found, "extraction").allowed > 0.75 * budget
    assert found.queries.total <= budget


@pytest.mark.parametrize("local", [True, False])
def test_a_budget_that_is_too_small_tells_what_would_do(local, file, valid):
    target = file if local else in_float32(planted(SHAPE))
    with open_oracle(target, **({} if local else {"dim": 20})) as oracle:
        settings = {"file": file} if local else {}
        found = valid(audit(oracle, budget=2000, steps=REBUILDING, **settings).record)
    needed = found.rows_needed
    assert (needed.of_file, needed.precision, needed.times) == (local, "float32", ENOUGH)
    assert needed.shapes[0].queries.expected == estimate(SHAPE, precision="float32").queries.expected
    shapes = [SHAPE] if local else [SHAPE, (20, 64, 3), (20, 256, 3)]
    assert [shape.widths for shape in needed.shapes] == shapes


@pytest.mark.usefixtures("short_training")
def test_a_close_copy_does_not_hide_that_rows_ran_out():
    """Training gave a copy with the rest: what an exact one takes is told all the same."""
    network = planted((4, 12, 1))
    with open_oracle(in_float32(network), dim=4) as oracle:
        found = audit(oracle, budget=3000, steps=["health", "extraction", "training"])
    known = replace(found.known, training=replace(found.known.training, outcome=Outcome.LEARNED))
    assert known.extraction.outcome is Outcome.OUT_OF_BUDGET
    verdict = judge(known)
    assert verdict.level == "approximate"
    assert "rows-ran-out" in reasons(verdict)
    assert known.needed_rows is not None


def test_no_number_where_there_is_no_estimate(valid):
    """Behind a softmax nobody has measured it."""
    network = planted((6, 8, 3))

    def probabilities(x):
        values = np.exp(network(x))
        return values / values.sum(axis=1, keepdims=True)

    with open_oracle(probabilities, dim=6) as oracle:
        found = valid(audit(oracle, budget=1000, steps=REBUILDING).record)
    assert found.extraction.outcome == "out-of-budget"
    assert found.rows_needed is None


def test_rows_of_the_sweep_have_the_same_budget():
    """The audit's own run ended with its small budget: the first row is not that run, but one like the others."""
    extraction = Result(Outcome.LOW_PRECISION, None, {})
    known = Findings(Settings(np.zeros((5, 20))), extraction=extraction)
    assert _undefended(known).extracted.result is extraction
    span = recover_span(open_oracle(planted(SHAPE), budget=10))
    assert span.outcome is Outcome.OUT_OF_BUDGET
    assert _undefended(replace(known, span=span)) is None
    for part in ("extraction", "learning"):
        assert _undefended(replace(known, **{part: Result(Outcome.OUT_OF_BUDGET, None, {})})) is None


@pytest.mark.usefixtures("short_training")
def test_no_budget_is_told_for_labels_computed_in_float32(file):
    """They take several times the labels of float64, which alone were measured: a budget by these would be too low."""
    for target, told in ((planted(SHAPE), True), (file, False)):
        labels = defend(open_oracle(target), "labels")
        found = audit(labels, budget=4_000, steps=REBUILDING)
        assert found.record.extraction.outcome == "out-of-budget"
        assert (found.record.rows_needed is not None) == told
