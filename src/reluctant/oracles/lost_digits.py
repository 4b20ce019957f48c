"""Digits that probabilities lose: what is left unknown of the values that are read from them.

Next to 1 a probability is known to a rounding of 1, and its log-odds to that over its distance from 1. Next to 0 it has
all its digits, as ratios of classes have, until it falls below the smallest normal number. One that was made of numbers
next to 1 has not: it lies on their grid, wherever it is. A tanh loses them next to both its ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import Oracle
from reluctant.oracles.link import link_of

__all__ = ["lost_digits", "on_a_grid"]

FINER = 0.25  # below it the numbers of a format lie closer together than half a rounding of 1


def _of_log_odds(values: FloatArray, normal: float) -> FloatArray:
    return np.exp(np.maximum(np.maximum(values, -values - normal), 0.0))


def _of_ratios(values: FloatArray, normal: float) -> FloatArray:
    """The same for all ratios of a row, by its smallest probability: one of them is that of the first class."""
    with_first = np.column_stack([np.zeros(len(values)), values])
    size = with_first.max(axis=1, keepdims=True) - with_first.min(axis=1, keepdims=True)
    return np.broadcast_to(np.exp(size - normal), values.shape)


def _of_tanh(values: FloatArray, normal: float) -> FloatArray:
    return np.cosh(values) ** 2


# How many roundings of 1 a value is known to, by the link that it is read through and the logarithm of one over the
# smallest probability with all its digits.
ROUNDINGS: Mapping[str, Callable[[FloatArray, float], FloatArray]] = {
    "sigmoid": _of_log_odds,
    "softmax": _of_ratios,
    "top-k": _of_ratios,
    "tanh": _of_tanh,
}


def lost_digits(
    values: FloatArray, oracle: Oracle, number_format: str = "float64", *, grid: bool = False
) -> FloatArray:
    """Noise (n, m) that values of this target have for that; 0 of those that lose no digits.

    grid: no probability has more digits than a rounding of 1 leaves, as where one is what others leave of 1.
    """
    roundings = ROUNDINGS.get(link_of(oracle) or "")
    if roundings is None:
        return np.zeros_like(values)
    normal = 0.0 if grid else -float(np.log(np.finfo(number_format).tiny))
    with np.errstate(over="ignore", invalid="ignore"):  # of infinite values, which are not read
        return np.asarray(unit_roundoff(number_format) * roundings(values, normal))


def on_a_grid(p: FloatArray, number_format: str) -> bool:
    """True if probabilities next to 0 are known to a rounding of 1 alone, as where they are made of one next to 1.

    Few of them may lie there by chance: hardly those so small that it matters.
    """
    small = p[(p > 0) & (p < FINER)]
    return bool(small.size and np.all(small % (unit_roundoff(number_format) / 2) == 0))
