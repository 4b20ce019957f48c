"""How many of the probabilities of its classes an answer tells: the largest few, where the others are 0 or NaN.

Those that are told leave a part of 1 to the others, and none of these can be larger than the smallest that is told: it
is at least the mean of them. Values that are cut off at 0 do not keep to that, nor to one number of them in every row;
where only one of them is ever above 0 they may, in a small place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reluctant.health.answers import FEWEST_VALUES, find_decimals, in_unit, narrowest_format
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["Told", "largest_told"]

ROUNDINGS = 4.0  # of a probability on its way here


class Told(NamedTuple):
    """The largest few probabilities, of so many classes."""

    largest: int
    classes: int

    @property
    def all_but_one(self) -> bool:
        """True if the one that is missing follows from the others."""
        return self.largest == self.classes - 1


def largest_told(values: FloatArray, noise: float = 0.0, *, no_values: bool = False) -> Told | None:
    """How many probabilities of classes each answer (n, m) tells, fewer than all; None of any other answers.

    noise: the most that one is off by. no_values: it is known that they are not values; else they have to be those of
    different classes in different rows. A row that tells fewer than others has no more to tell: it adds up to 1.
    """
    answered = values[~np.isnan(values).all(axis=1)]
    p = np.where(np.isnan(answered), 0.0, answered)
    if p.shape[1] < 2 or not in_unit(p, noise):
        return None
    count, left = (p != 0).sum(axis=1), 1 - p.sum(axis=1)
    told = Told(int(count.max()), p.shape[1])
    off = told.largest * max(_rounding(p), noise)
    mean_untold = left / max(told.classes - told.largest, 1)
    largest_few = (count == told.largest) & (left >= -off) & (np.where(p != 0, p, 1.0).min(axis=1) >= mean_untold - off)
    same_classes = len(np.unique(p[count == told.largest] != 0, axis=0)) == 1
    if told.largest == told.classes or (same_classes and not no_values):
        return None
    if not np.all(largest_few | (np.abs(left) <= off)):
        return None
    return told if np.unique(left[left > off]).size >= FEWEST_VALUES else None


def _rounding(p: FloatArray) -> float:
    """The most that each may be off by, rounded or cut off."""
    decimals = find_decimals(p)
    digits = 0.0 if decimals is None else 10.0**-decimals
    return max(digits, ROUNDINGS * float(unit_roundoff(narrowest_format(p))))
