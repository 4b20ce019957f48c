"""Digits that probabilities lose: what is left unknown of the values that are read from them.

Next to 1 a probability is known to a rounding of 1, and its log-odds to that over its distance from 1. Next to 0 it has
all its digits, as ratios of classes have, until it falls below the smallest normal number. A tanh loses them next to
both its ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import Oracle
from reluctant.oracles.link import link_of

__all__ = ["lost_digits"]

NORMAL_RANGE = -float(np.log(np.finfo(np.float64).tiny))  # of logarithms of probabilities with all their digits


def _of_log_odds(values: FloatArray) -> FloatArray:
    return np.exp(np.maximum(values, 0.0))


def _of_ratios(values: FloatArray) -> FloatArray:
    """The same for all ratios of a row, by its smallest probability: one of them is that of the first class."""
    with_first = np.column_stack([np.zeros(len(values)), values])
    size = with_first.max(axis=1, keepdims=True) - with_first.min(axis=1, keepdims=True)
    return np.broadcast_to(np.exp(size - NORMAL_RANGE), values.shape)


def _of_tanh(values: FloatArray) -> FloatArray:
    return np.cosh(values) ** 2


# How many roundings of 1 a value is known to, by the link that it is read through.
ROUNDINGS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "sigmoid": _of_log_odds,
    "softmax": _of_ratios,
    "tanh": _of_tanh,
}


def lost_digits(values: FloatArray, oracle: Oracle, number_format: str = "float64") -> FloatArray:
    """Noise (n, m) that values of this target have for that; 0 of those that lose no digits."""
    roundings = ROUNDINGS.get(link_of(oracle) or "")
    if roundings is None:
        return np.zeros_like(values)
    with np.errstate(over="ignore", invalid="ignore"):  # of infinite values, which are not read
        return np.asarray(unit_roundoff(number_format) * roundings(values))
