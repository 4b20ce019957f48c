"""What a trained network is off by itself, where answers are noisy or rounded.

Held-out answers differ from the network by its own error and by their noise. Two answers to a row have different
noise, so that the product of what the network is off by each of them is, in the mean, its own error alone. What
rounding to decimals adds is known without a second answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.learning.accuracy import DEVIATIONS, UNMET
from reluctant.numerics import FloatArray

__all__ = ["Own", "apart_from_noise", "apart_from_rounding", "spread_of", "upper_end"]

SEEN = 0.5  # of the upper end: a smaller error may be chance
AS_ROUNDED = 0.8  # of the rounding that steps would make: rounded answers are off by at least that
LEAST_SIGNAL = 0.5  # of the answers' variance: with less, noise is most of what there is to learn


@dataclass(frozen=True)
class Own:
    """Mean square over the variance of the answers: the network's own part, its upper end, and that of the answers."""

    error: float
    high: float
    noise: float

    @property
    def is_seen(self) -> bool:
        """True if the error stands out from what chance makes of none; else only its upper end can be told."""
        return self.error > SEEN * self.high


def apart_from_noise(off: FloatArray, again: FloatArray, targets: FloatArray, others: FloatArray) -> Own | None:
    """By what the network is off (n, m) each of two answers to the same rows; None where most of them is noise."""
    mean = targets.mean(axis=0)
    signal, total = float(((targets - mean) * (others - mean)).sum(axis=1).mean()), spread_of(targets)
    if not signal > LEAST_SIGNAL * total:
        return None
    terms, noise = (off * again).sum(axis=1), ((off - again) ** 2).sum(axis=1).mean() / 2
    return _own(terms / signal, float(noise / total))


def apart_from_rounding(terms: FloatArray, rounding: float) -> Own | None:
    """By square errors (n,) of which so much is rounding; None if they are less: then nothing was rounded."""
    if float(terms.mean()) < AS_ROUNDED * rounding:
        return None
    found = _own(terms - rounding, rounding)
    # Where a target is flat its rounding is the same everywhere, and a network learns it: errors are smaller by that
    # much than rounding alone would be, and the network is off by as much.
    return replace(found, high=found.high + max(rounding - float(terms.mean()), 0.0))


def _own(terms: FloatArray, noise: float) -> Own:
    error = max(float(terms.mean()), 0.0)
    return Own(error, error + upper_end(terms) - float(terms.mean()), noise)


def spread_of(targets: FloatArray) -> float:
    """Mean square deviation of the targets, over all outputs."""
    return float(((targets - targets.mean(axis=0)) ** 2).sum(axis=1).mean())


def upper_end(terms: FloatArray, largest: float | None = None) -> float:
    """Upper end of their mean, if no term that was not met is larger than this one, or than the largest that was.

    A mean of terms is never above one that is known to be the largest.
    """
    n, most = len(terms), max(float(terms.max()), 0.0) if largest is None else largest
    end = float(terms.mean() + DEVIATIONS * terms.std() / np.sqrt(n) + UNMET * most / n)
    return end if largest is None else min(end, largest)
