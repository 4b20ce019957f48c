"""Faulty targets do what they are named for, and opening or asking them ends in a typed error."""

from __future__ import annotations

import time

import numpy as np
import pytest

from reluctant import open_oracle
from reluctant.errors import TargetError
from reluctant.testing import FAULTS, planted
from reluctant.testing.faults import Dying, hanging, noisy, rounded

NETWORK = planted((5, 6, 2))
ROWS = np.random.default_rng(0).standard_normal((8, 5))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_a_target_error_by_the_second_call(name):
    with pytest.raises(TargetError):  # noqa: PT012 (some fail when they are opened, some when they are asked)
        oracle = open_oracle(FAULTS[name](NETWORK), dim=5)
        oracle.query(ROWS)
        oracle.query(ROWS)


def test_a_dying_target_answers_its_rows_and_no_more():
    target = Dying(NETWORK, rows=10)
    np.testing.assert_array_equal(target(ROWS), NETWORK(ROWS))
    for _ in range(3):
        with pytest.raises(ConnectionError, match="has died"):
            target(ROWS)
    assert target.seen == 8


def test_a_dying_target_may_come_back():
    target = Dying(NETWORK, rows=0, failures=2)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            target(ROWS)
    np.testing.assert_array_equal(target(ROWS), NETWORK(ROWS))


def test_a_hanging_target_waits():
    start = time.monotonic()
    hanging(NETWORK, seconds=0.05)(ROWS)
    assert time.monotonic() - start >= 0.05


def test_rounded_answers_have_their_decimals():
    answers = rounded(NETWORK, 2)(ROWS)
    np.testing.assert_allclose(100 * answers, np.round(100 * answers), atol=1e-9)


def test_noise_is_fresh_and_of_its_size(seed):
    target = noisy(NETWORK, 0.1, seed)
    rows = np.zeros((2000, 5))
    first, second = target(rows), target(rows)
    assert not np.array_equal(first, second)
    assert (first - NETWORK(rows)).std() == pytest.approx(0.1, rel=0.1)
    np.testing.assert_array_equal(noisy(NETWORK, 0.1, seed)(rows), first)
