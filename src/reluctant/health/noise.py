"""How far answers are from the function they sample: second differences over short steps.

On a linear piece f(c-s) - 2 f(c) + f(c+s) is noise alone, √6 times that of one answer. A step of 3e-4 of
the input is long enough that rounding errors of float32 are independent, and short enough that few
steps meet a crease; lines whose difference still falls at the last step are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.health.lines import FINER_STEPS, NOISE_FALL, ShortLines
from reluctant.numerics import Noise, unit_roundoff
from reluctant.oracles.base import Oracle

__all__ = ["SECOND_DIFFERENCE_GAIN", "NoiseReading", "measure_noise", "noise_model", "read_noise"]

NOISE_STEPS = (3e-4, 3e-5)
MEDIAN_OF_ABS_NORMAL = 0.6745  # median |z| of a standard normal
OUTLIER = 1e4  # times the median second difference of all lines
SECOND_DIFFERENCE_GAIN = float(np.sqrt(6.0))  # sd of f₋ - 2 f₀ + f₊ over that of one f


@dataclass(frozen=True)
class NoiseReading:
    """Noise found at one input scale: standard deviation, and size of the answers there."""

    scale: float
    sd: float
    magnitude: float


def read_noise(lines: ShortLines, scale: float) -> NoiseReading:
    """Noise of the largest output, from the lines that have reached it."""
    longer, shorter = lines.second_differences[-2:]
    reached = longer <= NOISE_FALL * shorter
    # Two creases on one line can bend both steps alike; noise is not so different from line to line.
    typical = float(np.median(longer))
    reached &= (longer <= OUTLIER * typical) | (typical == 0)
    if 2 * reached.sum() >= len(reached):
        # The longer of the two steps is read: rounding errors are less alike there.
        size = float(np.sqrt(np.mean(longer[reached] ** 2)))
    else:
        size = float(np.median(shorter)) / MEDIAN_OF_ABS_NORMAL  # most lines just left a crease behind
    magnitude = float(np.median(np.abs(lines.at_centres[lines.sound]).max(axis=1)))
    # Differences of exact zero are common on coarse grids: no noise is below one rounding of the answer.
    floor = unit_roundoff(np.float64) * magnitude
    return NoiseReading(scale, max(size / SECOND_DIFFERENCE_GAIN, floor), magnitude)


def noise_model(near: NoiseReading, far: NoiseReading | None) -> Noise:
    """Absolute part as read at the scale of use, relative part as read far out."""
    return Noise(near.sd, 0.0 if far is None or far.magnitude == 0 else far.sd / far.magnitude)


def measure_noise(oracle: Oracle, rng: np.random.Generator, scale: float = 1.0, lines: int = 6) -> NoiseReading | None:
    """Noise at one scale, None if no line is answered with finite numbers.

    Cost: 5 rows a line, a few more where creases are close to each other.
    """
    centres = oracle.facts.domain.interior(rng, lines, oracle.dim, scale)
    asked = ShortLines.ask(oracle, rng, centres, NOISE_STEPS, FINER_STEPS[1:])
    return read_noise(asked, scale) if asked.sound.any() else None
