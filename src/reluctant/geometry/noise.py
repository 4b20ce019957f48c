"""Noise of an answer as it grows with the distance from the origin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from reluctant.health import Health
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["SAFETY", "DistanceNoise", "Lost", "roundings"]

Lost: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]  # rows and answers (n, m) to more noise (n,) of these

# A reading comes from a few lines, and rounding is larger where sums inside the network are.
SAFETY = 3.0
ANSWER_ROUNDINGS = 4.0  # no answer is better than so many of its own, however flat the function where noise was read
SHARED_GROWTH = 0.5  # of what noise read at the scale of use would be, if it grew like the inputs
LEAST = unit_roundoff(np.float64) / 1000  # of the spread: a target that computes exactly is not taken for noiseless


@dataclass(frozen=True)
class DistanceNoise:
    """Standard deviation hypot(near, growth · distance): what sums inside a network leave of its digits."""

    near: float
    growth: float

    @classmethod
    def of(cls, health: Health, dim: int) -> DistanceNoise:
        """From the readings of a health check: one at the scale of use, one far out if there is one."""
        near, far = health.readings[0], health.readings[-1]
        at_origin = max(SAFETY * near.sd, LEAST * health.spread)
        growth = SAFETY * far.sd / (far.scale * np.sqrt(dim))
        # Far out all of a few lines may meet a flat place, but sums inside the network round as inputs grow.
        return cls(at_origin, max(float(growth), SHARED_GROWTH * at_origin / float(np.sqrt(dim))))

    def times(self, factor: float) -> DistanceNoise:
        """So many times the noise."""
        return DistanceNoise(factor * self.near, factor * self.growth)

    def at(self, distance: FloatArray) -> FloatArray:
        """Standard deviation of an answer at this distance."""
        return np.hypot(self.near, self.growth * np.abs(distance))


def roundings(size: FloatArray) -> FloatArray:
    """A few roundings of an answer of this size."""
    return np.asarray(ANSWER_ROUNDINGS * unit_roundoff(np.float64) * size)
