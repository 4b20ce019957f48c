"""Budgets, time and Ctrl-C: no more is asked than allowed, and there is always a record."""

from __future__ import annotations

from types import FunctionType

import pytest
from audit_kit import QUICK, Rows, reasons, step

from reluctant import open_oracle
from reluctant.adversarial.flip import MOST_FLIP_ROWS, MOST_FLIP_ROWS_EXPLAINED
from reluctant.audit import STEPS, audit, auditor
from reluctant.audit.budget import FIRST, FLIP_INPUTS, LOOKS, SHARES, reserve, share
from reluctant.audit.record import Stop
from reluctant.audit.steps import recovery_steps
from reluctant.errors import InvalidInput
from reluctant.oracles.ledger import add_time_apart
from reluctant.testing import planted

NETWORK = planted((12, 4, 2))


@pytest.mark.parametrize("budget", [1, 50, 150, 400, 1000, 3000])
@pytest.mark.usefixtures("short_training")
def test_no_more_is_asked_than_the_budget(budget, record):
    target = Rows(NETWORK)
    found = record(target, 12, budget=budget)
    assert target.seen <= budget + 1  # one row to open a callable
    assert found.ok
    assert found.budget == budget
    assert sum(each.queries for each in found.steps) == target.seen - 1
    assert all(each.queries <= each.allowed for each in found.steps if each.allowed is not None)


@pytest.mark.usefixtures("short_training")
def test_a_budget_that_is_too_small_leaves_it_unsettled(record):
    found = record(NETWORK, budget=200)
    assert found.verdict.level == "unknown"
    assert "rows-ran-out" in reasons(found.verdict)


@pytest.mark.usefixtures("short_training")
def test_the_looks_at_the_end_keep_their_rows(record):
    """A span that needs all there is must not take what flips and pictures are kept."""
    found = record(planted((40, 40, 1)), budget=6000)
    assert step(found, "flip").state == "done"
    assert found.pictures.line is not None


def test_shares():
    kept = reserve(100_000, 64)
    assert 0 < kept <= 30_000
    assert reserve(1000, 784) == 300
    explained = reserve(100_000, 64, explained=True)
    assert explained - kept == FLIP_INPUTS * (MOST_FLIP_ROWS_EXPLAINED - MOST_FLIP_ROWS) > 0
    for name in SHARES:
        free = 50_000 if name in (FIRST, *LOOKS) else 50_000 - kept
        assert share(name, 50_000, kept) == int(SHARES[name] * free)
    assert share("span", kept - 1, kept) == 0


def test_a_result_is_not_lost_on_its_way(monkeypatch):
    """The time ends after the method has returned, before its result is handed over."""

    def slowly_handed_over(oracle, known, seed):
        found = recovery_steps.extract_network(oracle, known, seed)
        add_time_apart(2.2)
        return found

    handing = FunctionType(
        slowly_handed_over.__code__,
        vars(recovery_steps) | {"add_time_apart": add_time_apart, "recovery_steps": recovery_steps},
    )
    monkeypatch.setattr(auditor, "STEPS", {**STEPS, "extraction": handing})
    with open_oracle(NETWORK) as oracle:
        found = audit(oracle, steps=["health", "extraction"], seconds=5)
    assert found.known.extraction is not None
    assert found.known.extraction.ok
    assert found.verdict.level == "exact"


@pytest.mark.parametrize("seconds", [-5.0, 0.0, float("nan"), float("inf")])
def test_time_must_be_a_positive_number(seconds):
    with open_oracle(NETWORK) as oracle, pytest.raises(InvalidInput, match="seconds"):
        audit(oracle, seconds=seconds)


@pytest.mark.parametrize("why", ["raises", "left out", "no time"])
def test_an_extraction_that_did_not_end_is_no_absence(why, record, monkeypatch):
    def broken(*_):
        raise RuntimeError("broken")

    if why == "raises":
        monkeypatch.setattr(auditor, "STEPS", {**STEPS, "extraction": broken})
    left = [name for name in ("health", "span", "extraction") if why != "left out" or name != "extraction"]
    found = record(planted((4, 6, 1)), steps=left, seconds=1e-9 if why == "no time" else 60.0).verdict
    assert (found.level, found.leaks) == ("unknown", ())
    span = ["span"] if why == "no time" else []
    assert list(found.unsettled) == ["extractable", "approximable", *span, "flippable"]


def test_ctrl_c_leaves_a_record(valid):
    calls = 0

    def stopped(x):
        nonlocal calls
        calls += 1
        if calls == 12:
            raise KeyboardInterrupt
        return NETWORK(x)

    with open_oracle(stopped, dim=12) as oracle:
        found = valid(audit(oracle).record)
    assert found.ok is False
    assert found.interface is not None
    states = [each.state for each in found.steps]
    assert states.count("stopped") == 1
    assert set(states[states.index("stopped") + 1 :]) == {"not begun"}
    at = states.index("stopped")
    assert found.stopped == Stop(found.steps[at].step, at + 1, 13, recorded=False)


def test_a_stopped_audit_goes_on_from_its_transcript(tmp_path):
    """Killed in the middle and run again: the same record, and no row is paid twice."""

    def run(target, folder):
        with open_oracle(target, dim=12, transcript=folder) as oracle:
            found = audit(oracle, steps=QUICK)
            return found, sum(rows.sent for rows in oracle.ledger.stages.values())

    whole, paid = run(NETWORK.__call__, tmp_path / "whole")
    stopping = Rows(NETWORK)

    def stopped(x):
        if stopping.seen > paid // 2:
            raise KeyboardInterrupt
        return stopping(x)

    first, _ = run(stopped, tmp_path / "stopped")
    again, after = run(NETWORK.__call__, tmp_path / "stopped")
    assert not first.ok
    assert first.record.stopped.recorded
    assert again.ok
    assert again.record.stopped is None
    assert stopping.seen + after <= paid + 9  # three opening questions, asked again
    same = [found.to_dict() for found in (whole, again)]
    for found in same:
        for each in found["steps"]:
            for counted in ("seconds", "sent", "replayed", "queries"):
                each.pop(counted, None)
        found.pop("queries"), found.pop("limits"), found.pop("target"), found.pop("began")
    assert same[0] == same[1]


@pytest.mark.parametrize("price", [-1, float("inf"), float("nan"), "2", None])
def test_a_price_is_looked_at_before_anything_is_asked(price):
    target = Rows(NETWORK)
    with open_oracle(target, dim=12) as oracle, pytest.raises(InvalidInput, match="price"):
        audit(oracle, price={"per thousand": price, "currency": "EUR"})
    assert target.seen <= 1  # one row to open a callable
