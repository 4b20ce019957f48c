"""Rows are counted exactly: by stage, every attempt, and never past the budget."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle_models import Asked, gaussian_rows

from reluctant.defenses import defend
from reluctant.errors import BudgetExhausted, InvalidRows, TargetUnavailable
from reluctant.oracles import Counting, Ledger, Metered, NetworkOracle, Retrying, Rows, open_oracle
from reluctant.oracles.transcript import CHUNK_ROWS
from reluctant.testing import planted
from reluctant.testing.faults import Dying

NETWORK = planted((4, 5, 2), 1)

COUNTS = st.builds(Rows, *[st.integers(0, 10**9)] * 3)


def rows(n: int, seed: int = 3) -> np.ndarray:
    return gaussian_rows(n, 4, seed)


# ---- rows and ledger


@given(COUNTS, COUNTS)
def test_rows_add_and_subtract(a: Rows, b: Rows) -> None:
    assert a + b == b + a
    assert a + b - b == a
    assert (a + b).queries == a.queries + b.queries


def test_queries_are_rows_sent_and_replayed() -> None:
    assert Rows(asked=7, sent=3, replayed=4).queries == 7


def test_ledger_enters_rows_under_the_current_stage() -> None:
    ledger = Ledger()
    ledger.enter(Rows(sent=1))
    with ledger.during("search"):
        ledger.enter(Rows(asked=5))
        ledger.enter(Rows(sent=4, replayed=1))
    assert ledger.stages == {"open": Rows(sent=1), "search": Rows(asked=5, sent=4, replayed=1)}
    assert ledger.total == Rows(asked=5, sent=5, replayed=1)


def test_listener_hears_of_every_entry() -> None:
    heard: list[tuple[str, int, int | None]] = []
    oracle = open_oracle(NETWORK)
    oracle.ledger.listener = lambda ledger: heard.append((ledger.stage, ledger.total.queries, ledger.expected))
    with oracle.stage("search", expected=8):
        oracle.query(rows(5))
        oracle.query(rows(3))
    assert heard == [("search", 0, 8), ("search", 5, 8), ("search", 5, 8), ("search", 8, 8)]


# ---- stages


def test_stages_are_counted_apart() -> None:
    oracle = open_oracle(NETWORK)
    with oracle.stage("first"):
        oracle.query(rows(5))
    with oracle.stage("second"):
        oracle.query(rows(2))
        oracle.query(rows(2))
    with oracle.stage("first"):
        oracle.query(rows(1))
    assert oracle.ledger.stages == {"first": Rows(asked=6, sent=6), "second": Rows(asked=4, sent=4)}
    assert oracle.queries == 10


def test_inner_stage_gives_back_to_the_outer_one() -> None:
    oracle = open_oracle(NETWORK)
    with oracle.stage("outer", expected=9):
        oracle.query(rows(1))
        with oracle.stage("inner", expected=2):
            oracle.query(rows(2))
        assert (oracle.ledger.stage, oracle.ledger.expected) == ("outer", 9)
        oracle.query(rows(4))
    assert oracle.ledger.stages == {"outer": Rows(asked=5, sent=5), "inner": Rows(asked=2, sent=2)}


def test_stage_ends_with_an_error() -> None:
    oracle = open_oracle(NETWORK)
    with pytest.raises(RuntimeError), oracle.stage("failing", expected=1):
        raise RuntimeError
    assert (oracle.ledger.stage, oracle.ledger.expected) == ("open", None)


def test_refused_rows_are_not_counted() -> None:
    oracle = open_oracle(NETWORK)
    with pytest.raises(InvalidRows):
        oracle.query(np.full((3, 4), np.nan))
    assert oracle.ledger.total == Rows()


@given(st.lists(st.integers(1, 20), max_size=10))
def test_count_is_what_the_target_saw(batches: list[int]) -> None:
    target = Asked(NETWORK)
    oracle = open_oracle(target, dim=4)
    for n in batches:
        oracle.query(rows(n))
    assert target.calls == [1, *batches]
    assert oracle.ledger.total == Rows(asked=sum(batches), sent=1 + sum(batches))


# ---- budget


def test_budget_is_spent_to_the_last_row() -> None:
    oracle = open_oracle(NETWORK, budget=10)
    oracle.query(rows(7))
    oracle.query(rows(3))
    assert oracle.queries == 10


def test_budget_refuses_before_sending() -> None:
    target = Asked(NETWORK)
    oracle = open_oracle(target, dim=4, budget=10)
    oracle.query(rows(6))
    with pytest.raises(
        BudgetExhausted, match=r"^budget: got 4 more rows with 7 of 10 spent, expected at most 3.*by at least 1"
    ) as caught:
        oracle.query(rows(4))
    assert (caught.value.budget, caught.value.spent, caught.value.asked) == (10, 7, 4)
    assert target.calls == [1, 6]
    assert oracle.ledger.total == Rows(asked=10, sent=7)


def test_smaller_question_may_follow_a_refused_one() -> None:
    oracle = open_oracle(NETWORK, budget=10)
    with pytest.raises(BudgetExhausted):
        oracle.query(rows(11))
    oracle.query(rows(10))
    assert oracle.queries == 10


def test_budget_is_refused_without_retries() -> None:
    oracle = open_oracle(NETWORK, budget=1, retries=5)
    with pytest.raises(BudgetExhausted):
        oracle.query(rows(2))
    assert oracle.queries == 0


def test_budget_keeps_the_chunks_it_covers(tmp_path: Path) -> None:
    target = Asked(NETWORK)
    opened = open_oracle(target, dim=4, budget=CHUNK_ROWS + 100, transcript=tmp_path)
    with opened as oracle, pytest.raises(BudgetExhausted):
        oracle.query(rows(CHUNK_ROWS + 100))
    with open_oracle(target, dim=4, transcript=tmp_path) as oracle:
        oracle.query(rows(CHUNK_ROWS + 100))
    assert target.calls == [3, 3, CHUNK_ROWS, 3, 100]  # the opening question: twice, then once


def test_budget_covers_replayed_rows(tmp_path: Path) -> None:
    with open_oracle(NETWORK, transcript=tmp_path) as oracle:
        oracle.query(rows(8))
    with open_oracle(NETWORK, transcript=tmp_path, budget=10) as oracle:
        oracle.query(rows(8))
        with pytest.raises(BudgetExhausted) as caught:
            oracle.query(rows(3, seed=4))
        oracle.query(rows(2, seed=4))
    assert (caught.value.spent, caught.value.asked) == (8, 3)
    assert oracle.ledger.total == Rows(asked=13, sent=2, replayed=8)


# ---- retries


def retrying(target: Callable[[np.ndarray], object], retries: int) -> Counting:
    """A stack like that of `open_oracle`, without the pauses."""
    ledger = Ledger()
    adapter = open_oracle(target, dim=4).inner.inner
    return Counting(Retrying(Metered(adapter, ledger, budget=20), retries, sleep=lambda _: None), ledger)


@pytest.mark.parametrize("failures", [0, 1, 3])
def test_every_attempt_is_counted(failures: int) -> None:
    oracle = retrying(Dying(NETWORK, rows=1, failures=failures), retries=3)
    oracle.query(rows(5))
    assert oracle.ledger.total == Rows(asked=5, sent=5 * (failures + 1))


def test_failed_attempts_are_counted() -> None:
    oracle = retrying(Dying(NETWORK, rows=1), retries=2)
    with pytest.raises(TargetUnavailable):
        oracle.query(rows(5))
    assert oracle.ledger.total == Rows(asked=5, sent=15)


def test_budget_ends_the_retries() -> None:
    oracle = retrying(Dying(NETWORK, rows=1), retries=9)
    with pytest.raises(BudgetExhausted):
        oracle.query(rows(6))
    assert oracle.ledger.total == Rows(asked=6, sent=18)


# ---- with a transcript


def test_queries_are_the_same_after_resuming(tmp_path: Path) -> None:
    counts = []
    for _ in range(3):
        with open_oracle(NETWORK, transcript=tmp_path) as oracle:
            with oracle.stage("search"):
                oracle.query(rows(6))
            counts.append((oracle.queries, oracle.ledger.stages["search"]))
    assert counts == [
        (6, Rows(asked=6, sent=6)),
        (6, Rows(asked=6, replayed=6)),
        (6, Rows(asked=6, replayed=6)),
    ]


def test_metered_counts_on_its_own() -> None:
    ledger = Ledger()
    Metered(NetworkOracle(NETWORK), ledger).query(rows(5))
    assert ledger.total == Rows(sent=5)


@pytest.mark.parametrize(("batch", "reached"), [(None, 60), (30, 60 + 30)])
def test_of_a_question_over_a_budget_below_the_rows_that_were_sent_count(batch: int | None, reached: int) -> None:
    seen = []

    def target(rows: np.ndarray) -> np.ndarray:
        seen.append(len(rows))
        return rows[:, :1]

    oracle = open_oracle(defend(open_oracle(target, dim=3, budget=110, batch=batch), "float16"))
    opened = sum(seen)  # one row to open a callable
    oracle.query(np.ones((60, 3)))
    with pytest.raises(BudgetExhausted):
        oracle.query(np.ones((60, 3)))
    assert oracle.queries == reached == sum(seen) - opened
