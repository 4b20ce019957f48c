"""Digits that probabilities lose next to 1: what is left unknown of the values that are read from them.

A probability is known to a rounding of 1 there, and its log-odds to that over its distance from 1. Next to 0 it has all
its digits, and ratios of classes lose none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import Oracle
from reluctant.oracles.link import link_of

__all__ = ["lost_digits"]

# How many roundings of 1 a value is known to, by the link that it is read through.
ROUNDINGS: Mapping[str, Callable[[FloatArray], FloatArray]] = {"sigmoid": lambda z: np.exp(np.maximum(z, 0.0))}


def lost_digits(values: FloatArray, oracle: Oracle, number_format: str = "float64") -> FloatArray:
    """Noise (n, m) that values of this target have for that; 0 of those that lose no digits."""
    roundings = ROUNDINGS.get(link_of(oracle) or "")
    if roundings is None:
        return np.zeros_like(values)
    with np.errstate(over="ignore"):
        return np.asarray(unit_roundoff(number_format) * roundings(values))
