"""Several requests in flight: order, sizes, what is handed on after a failure, and what is in flight at most."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from oracle_models import gaussian_rows

from reluctant.errors import BatchRefused, TargetUnavailable
from reluctant.numerics import FloatArray
from reluctant.oracles import Facts, Oracle
from reluctant.oracles.parallel import Parallel

ROWS = gaussian_rows(200, 3)


class Slow(Oracle):
    """Answers the sum of each row after a while; refuses large batches, fails at a given call."""

    def __init__(self, most: int = 10**9, fails_at: int | None = None) -> None:
        self.most, self.fails_at = most, fails_at
        self.sizes: list[int] = []
        self.lock, self.inside, self.most_inside = threading.Lock(), 0, 0

    @property
    def facts(self) -> Facts:
        return Facts(3, 1)

    def answer(self, rows: FloatArray) -> FloatArray:
        if len(rows) > self.most:
            raise BatchRefused("too many")
        with self.lock:
            self.sizes.append(len(rows))
            call = len(self.sizes)
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
        time.sleep(0.002 * (call % 3))
        with self.lock:
            self.inside -= 1
        if call == self.fails_at:
            raise TargetUnavailable("gone")
        return rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("connections", "batch"), [(1, 7), (4, 7), (8, 64), (3, 1000)])
def test_order_is_kept(connections: int, batch: int) -> None:
    target = Slow()
    answers = Parallel(target, connections, batch).answer(ROWS)
    np.testing.assert_array_equal(answers, ROWS.sum(axis=1, keepdims=True))
    assert max(target.sizes) <= batch
    assert target.most_inside <= connections
    assert sum(target.sizes) == len(ROWS)


def test_what_is_refused_is_halved_and_remembered() -> None:
    target = Slow(most=13)
    oracle = Parallel(target, 1, 100)
    oracle.answer(ROWS)
    assert oracle.batch <= 13
    before = len(target.sizes)
    np.testing.assert_array_equal(oracle.answer(ROWS), ROWS.sum(axis=1, keepdims=True))
    assert len(target.sizes) - before == -(-len(ROWS) // oracle.batch)


def test_a_single_row_that_is_refused_ends_it() -> None:
    oracle = Parallel(Slow(most=0), 2, 100)
    with pytest.raises(BatchRefused):
        oracle.answer(ROWS)
    assert oracle.batch == 100  # nothing smaller was taken: nothing is learned


def test_what_was_under_way_is_handed_on_before_the_failure() -> None:
    target = Slow(fails_at=6)
    taken: list[object] = []
    with pytest.raises(TargetUnavailable):
        taken.extend(Parallel(target, 4, 10).answer_parts(ROWS, 1000))
    assert len(taken) == len(target.sizes) - 1  # all that was answered
    assert len(target.sizes) < len(ROWS) // 10


class Choosy(Slow):
    """Refuses large batches; every row from a given one on is more than it can take."""

    def __init__(self, most: int, last: int) -> None:
        super().__init__(most)
        self.last = last

    def answer(self, rows: FloatArray) -> FloatArray:
        if len(rows) <= self.most and (rows[:, 0] >= self.last).any():
            raise TargetUnavailable("gone")
        return super().answer(rows)


@pytest.mark.parametrize("connections", [1, 3])
def test_halves_that_were_answered_are_handed_on_before_the_other_half_fails(connections: int) -> None:
    """They were paid for: nothing that the target answered may be missing from a transcript."""
    numbered = np.column_stack([np.arange(200.0), *np.zeros((2, 200))])
    target = Choosy(most=10, last=75)
    taken: list[tuple[slice, FloatArray]] = []
    with pytest.raises(TargetUnavailable):
        taken.extend(Parallel(target, connections, 200, spread=2).answer_parts(numbered, 1000))
    assert sum(len(answers) for _, answers in taken) == sum(target.sizes) > 0
    for part, answers in taken:
        np.testing.assert_array_equal(answers[:, 0], numbered[part, 0])


def test_a_row_that_is_refused_for_itself_teaches_nothing() -> None:
    """Rows around it are taken in small batches, but that it was refused says nothing about their size."""

    class Refusing(Slow):
        def answer(self, rows: FloatArray) -> FloatArray:
            if (rows[:, 0] == 170).any():
                raise BatchRefused("not this one")
            return super().answer(rows)

    numbered = np.column_stack([np.arange(200.0), *np.zeros((2, 200))])
    oracle = Parallel(Refusing(), 1, 100)
    with pytest.raises(BatchRefused):
        oracle.answer(numbered)
    assert oracle.batch == 100


def test_no_more_is_sent_than_is_taken() -> None:
    target = Slow()
    parts = Parallel(target, 3, 10).answer_parts(ROWS, 1000)
    next(parts)
    while len(target.sizes) < 3:
        time.sleep(0.001)
    time.sleep(0.05)  # nobody takes the next part: nothing beyond the three in flight is sent
    assert len(target.sizes) == 3
    parts.close()
    time.sleep(0.05)
    assert len(target.sizes) == 3
