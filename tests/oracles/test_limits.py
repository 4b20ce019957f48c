"""Limits on one part of a run: rows and processor time, checked between questions, without a signal."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

from reluctant import open_oracle
from reluctant.errors import BudgetExhausted, TimeExhausted
from reluctant.oracles.ledger import Clock, Limit, ShareExhausted, add_time_apart, check_time, processor_time, time_left
from reluctant.testing import planted

NETWORK = planted((12, 4, 2))
ONE = np.zeros((1, 12))


def rows(n: int):
    return np.zeros((n, 12))


def compute(seconds: float, check=lambda: None) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        check()
        sum(range(1000))


def test_rows_refused_are_not_counted_as_spent():
    limit = Limit(rows=10)
    oracle = limit.of(open_oracle(NETWORK))
    oracle.query(rows(4))
    with pytest.raises(BudgetExhausted):
        oracle.query(rows(7))
    oracle.query(rows(6))
    assert (limit.passed, limit.answered) == (10, 10)


def test_a_share_is_not_the_budget():
    oracle = Limit(24, part="span").of(open_oracle(NETWORK))
    with pytest.raises(ShareExhausted) as refused:
        oracle.query(rows(201))
    assert (refused.value.budget, refused.value.spent, refused.value.asked) == (24, 0, 201)
    assert "span" in str(refused.value)


def test_a_limit_may_grow():
    most = 2
    oracle = Limit(lambda: most).of(open_oracle(NETWORK))
    with pytest.raises(ShareExhausted):
        oracle.query(rows(3))
    most = 3
    assert oracle.query(rows(3)).shape == (3, 2)


def test_a_limit_raises_what_its_owner_wants():
    oracle = Limit(2, refusal=lambda wanted, most: KeyError((wanted, most))).of(open_oracle(NETWORK))
    with pytest.raises(KeyError) as refused:
        oracle.query(rows(3))
    assert refused.value.args == ((3, 2),)


def test_a_limit_on_one_stage_counts_that_stage_alone_and_refuses_for_good():
    oracle = Limit(4, stage="line").of(open_oracle(NETWORK))
    oracle.query(rows(9))
    with oracle.stage("line"):
        oracle.query(rows(3))
        with pytest.raises(ShareExhausted):
            oracle.query(rows(2))
        with pytest.raises(ShareExhausted):
            oracle.query(rows(1))
    assert len(oracle.query(rows(9))) == 9


def test_questions_that_came_to_no_answer_are_in_vain():
    def broken(x):
        if len(x) > 1:
            raise RuntimeError("broken")
        return NETWORK(x)

    limit = Limit(10)
    oracle = limit.of(open_oracle(broken, dim=12, retries=0))
    assert not limit.in_vain
    with pytest.raises(Exception, match="broken"):
        oracle.query(rows(2))
    assert limit.in_vain
    oracle.query(ONE)
    assert not limit.in_vain


def test_a_computation_that_asks_nothing_checks_the_time():
    limit = Limit(seconds=0.05)
    with pytest.raises(TimeExhausted, match=r"after 0\.05 seconds"), limit.running():
        compute(60.0, check_time)
    assert limit.time_up


def test_a_question_under_way_is_not_cut():
    """The time ends inside the target; its answer arrives, and the next question is refused."""

    def slow(x):
        compute(0.2)
        return NETWORK(x)

    limit = Limit(seconds=0.05)
    oracle = limit.of(open_oracle(slow, dim=12))
    with limit.running():
        assert oracle.query(ONE).shape == (1, 2)
        with pytest.raises(TimeExhausted):
            oracle.query(ONE)
    assert limit.passed == 1


def test_the_time_limit_ends_with_its_block():
    limit = Limit(seconds=0.02)
    with limit.running():
        assert time_left() == pytest.approx(0.02, abs=0.01)
    compute(0.06, check_time)
    assert time_left() is None
    assert not limit.time_up


def test_the_nearest_of_nested_limits_counts():
    outer, inner = Limit(seconds=0.02), Limit(seconds=60.0)
    with pytest.raises(TimeExhausted), outer.running(), inner.running():
        compute(30.0, check_time)
    assert (outer.time_up, inner.time_up) == (True, False)


def test_no_signal_is_used_and_any_thread_may():
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGALRM, signal.SIGVTALRM)}
    ended = []

    def work() -> None:
        limit = Limit(seconds=0.02)
        with pytest.raises(TimeExhausted), limit.running():
            compute(30.0, check_time)
        ended.append(limit.time_up)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended == [True]
    assert {name: signal.getsignal(name) for name in before} == before


def test_time_of_a_child_process_counts():
    limit, clock, start = Limit(seconds=5.0), Clock(5.0), processor_time()
    with limit.running():
        add_time_apart(6.0)
        assert processor_time() - start >= 6.0
        assert time_left() == 0
        assert clock.left == 0
        with pytest.raises(TimeExhausted):
            check_time()


def test_parts_share_a_clock():
    clock = Clock(8.0, 4)
    assert clock.share() == pytest.approx(2.0, abs=0.1)
    assert clock.share(2.0) == pytest.approx(8 * 2 / 3, abs=0.1)
    assert clock.fraction(0.5) == pytest.approx(4.0, abs=0.1)
    assert [Clock(None).left, Clock(None).share(), Clock(None).fraction(0.5)] == [None] * 3
