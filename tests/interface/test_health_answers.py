"""What answers tell by themselves: decimals, number format, kind."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.interface.noise import answer_kind, find_decimals, narrowest_format
from reluctant.oracles import Kind


def values(seed: int, n: int = 40) -> np.ndarray:
    return 3 * np.random.default_rng(seed).standard_normal((n, 1))


@pytest.mark.parametrize("decimals", [0, 1, 3, 6, 9])
def test_decimals_are_found(decimals, seed):
    assert find_decimals(np.round(values(seed), decimals)) == decimals


@pytest.mark.parametrize("decimals", [1, 2, 3])
def test_decimals_are_found_in_float32(decimals, seed):
    assert find_decimals(np.round(values(seed), decimals).astype(np.float32).astype(np.float64)) == decimals


def test_values_as_they_are_have_no_decimals(seed):
    assert find_decimals(values(seed)) is None
    assert find_decimals(values(seed).astype(np.float32).astype(np.float64)) is None


def test_decimals_of_large_and_small_values(seed):
    assert find_decimals(np.round(1e6 * values(seed), 2)) == 2
    assert find_decimals(np.round(1e-4 * values(seed), 6)) == 6


def test_few_different_values_tell_nothing():
    assert find_decimals(np.array([[0.1], [0.2], [0.3], [0.4]] * 10)) is None


def test_nan_inf_and_zero_tell_nothing(seed):
    odd = np.array([[np.nan], [np.inf], [-np.inf], [0.0]])
    assert find_decimals(odd) is None
    assert find_decimals(np.concatenate([odd, np.round(values(seed), 3)])) == 3


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ([0.5, 1.0, -3.25], "float16"),
        ([0.5, np.float32(0.1)], "float32"),
        ([1e6, 1.0], "float32"),  # beyond float16
        ([0.1], "float64"),
        ([1e300, 1.0], "float64"),
        ([np.nan, 0.5], "float16"),
    ],
)
def test_the_narrowest_format_holds_every_value(numbers, name):
    assert narrowest_format(np.array(numbers, dtype=np.float64)[:, None]) == name


KINDS = {
    "values": ([[0.3], [1.7], [-2.2]], Kind.VALUES),
    "labels": ([[0.0], [1.0], [1.0], [0.0], [2.0], [1.0], [2.0]], Kind.LABELS),
    "whole numbers that differ": ([[1.0], [5.0], [-3.0], [8.0]], Kind.VALUES),
    "probabilities": ([[0.2, 0.8], [0.5, 0.5]], Kind.PROBABILITIES),
    "rounded probabilities": ([[0.33, 0.33, 0.33], [0.1, 0.1, 0.8]], Kind.VALUES),
    "probabilities to three decimals": ([[0.333, 0.333, 0.333], [0.1, 0.1, 0.8]], Kind.PROBABILITIES),
    "values that add up to one": ([[-0.5, 1.5], [0.2, 0.8]], Kind.VALUES),
    "one number in [0, 1]": ([[0.2], [0.9], [0.4]], Kind.VALUES),
    "probabilities and NaN": ([[0.2, 0.8], [np.nan, 0.5]], Kind.PROBABILITIES),
    "NaN alone": ([[np.nan], [np.nan]], Kind.VALUES),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_kind_of_answers(name):
    answers, kind = KINDS[name]
    assert answer_kind(np.array(answers)) is kind
