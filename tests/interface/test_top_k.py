"""The largest few probabilities are known by what is left to the others; nothing else is taken for them."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.interface.kinds import find_top_k
from reluctant.testing import planted

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((60, 6))


def probabilities(classes: int, times: float = 1.0) -> np.ndarray:
    z = times * planted((6, 8, classes))(ROWS)
    powers = np.exp(z - z.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def largest(p: np.ndarray, k: int, untold: float = 0.0) -> np.ndarray:
    return np.where(p >= np.sort(p, axis=1)[:, [-k]], p, untold)


@pytest.mark.parametrize("untold", [0.0, np.nan])
@pytest.mark.parametrize(("classes", "k"), [(2, 1), (3, 1), (3, 2), (10, 1), (10, 5)])
def test_the_largest_few_are_counted(classes, k, untold):
    told = find_top_k(largest(probabilities(classes), k, untold))
    assert told == (k, classes)
    assert told.all_but_one == (k == classes - 1)


DIGITS = {
    "float32": lambda p: p.astype(np.float32).astype(float),
    "float16": lambda p: p.astype(np.float16).astype(float),
    "3 decimals": lambda p: p.round(3),
    "1 decimal": lambda p: p.round(1),
    "cut off after 2 decimals": lambda p: np.floor(p * 100) / 100,
}


@pytest.mark.parametrize("digits", DIGITS)
def test_few_digits_do_not_hide_it(digits):
    assert find_top_k(DIGITS[digits](largest(probabilities(4), 1))) == (1, 4)


def test_a_row_that_has_no_more_to_tell_may_tell_fewer():
    confident = largest(probabilities(5, times=8.0), 2).round(3)
    assert ((confident != 0).sum(axis=1) < 2).any()
    assert find_top_k(confident) == (2, 5)


OTHERS = {
    "all of them": probabilities(3),
    "all of them, rounded to 1 decimal": probabilities(3, times=5.0).round(1),
    "all of them, many exactly 0": probabilities(3, times=1e4),
    "labels": np.eye(3)[probabilities(3).argmax(axis=1)],
    "labels that are smoothed": 0.9 * np.eye(3)[probabilities(3).argmax(axis=1)],
    "one output": probabilities(2)[:, :1],
    "values": planted((6, 8, 3))(ROWS),
    "values cut off at 0": np.maximum(planted((6, 8, 3))(ROWS), 0),
    "values between 0 and 1": np.clip(planted((6, 8, 3))(ROWS), 0, 1),
    "one small value among 0s": np.where(probabilities(3) == probabilities(3).max(axis=1, keepdims=True), 0.2, 0)
    * RNG.uniform(size=(60, 1)),
    "the smallest": np.where(probabilities(3) == probabilities(3).min(axis=1, keepdims=True), probabilities(3), 0),
    "NaN": np.full((60, 3), np.nan),
    "inf": np.where(np.arange(3) == 1, np.inf, largest(probabilities(3), 1)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_answers_are_not_taken_for_them(name):
    assert find_top_k(OTHERS[name]) is None


def test_one_class_alone_may_be_a_value():
    """A network whose other outputs are cut off at 0 all over a small place; of curves it is no network's."""
    values = np.pad(RNG.uniform(0.4, 0.9, (60, 1)), ((0, 0), (0, 2)))
    assert find_top_k(values) is None
    assert find_top_k(values, no_values=True) == (1, 3)


@pytest.mark.parametrize("outputs", [2, 3, 5])
def test_values_cut_off_at_0_are_none_whatever_their_size(outputs):
    for seed in range(40):
        values = np.maximum(planted((6, 8, outputs), seed)(ROWS), 0)
        assert find_top_k(values / max(values.max(), 1e-12)) is None
