"""The noise a learner works with: measured on more lines than a health check, and never below the number format.

A target that is flat nearly everywhere rounds to exact zeros there; what it does inside a bump is another matter.
"""

from __future__ import annotations

import numpy as np

from reluctant.geometry import DistanceNoise
from reluctant.geometry.noise import SAFETY
from reluctant.health import Health
from reluctant.health.answers import narrowest_format
from reluctant.health.noise import measure_noise
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting

__all__ = ["working_noise"]

LINES = 12
ROUNDINGS = 2.0  # of the largest answer in its number format


def working_noise(oracle: Counting, health: Health, answers: FloatArray, rng: np.random.Generator) -> DistanceNoise:
    """Noise by distance from the origin, of a target that gave these answers to random points. Cost: 60 rows."""
    known = DistanceNoise.of(health, oracle.dim)
    with oracle.stage("noise"):
        reading = measure_noise(oracle, rng, lines=LINES)
    rounding = ROUNDINGS * unit_roundoff(narrowest_format(answers)) * float(np.abs(answers).max())
    near = max(known.near, SAFETY * reading.sd if reading else 0.0, rounding)
    # Far out all of a few lines may meet neurons that are off: roundings of sums grow like the inputs do.
    return DistanceNoise(near, max(known.growth, near / float(np.sqrt(oracle.dim))))
