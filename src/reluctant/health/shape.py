"""Piecewise linear, smooth, or neither: how second differences shrink with the step.

On a smooth function they shrink with the square of the step; on a linear piece they are noise, whatever
the step. A step as long as the input itself tells a function with creases from an affine one.
"""

from __future__ import annotations

import numpy as np

from reluctant.health.summary import Shape
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["FINER_STEPS", "STEPS", "STEP_RATIO", "classify_shape", "still_falling"]

# Relative to the size of the input. The last of the first set is where noise is read, unless second
# differences are still falling there: then creases or curvature are in the way, and finer steps are asked.
STEPS = (0.9, 3e-2, 3e-3, 3e-4)
FINER_STEPS = (3e-5, 3e-6, 3e-7)
STEP_RATIO = 10.0

# Rounding errors of neighbouring inputs are alike, so noise falls a little with the step too: not by this.
NOISE_FALL = 5.0

# A smooth function's second differences fall by 100 from step to step; lines near an inflection differ.
SMOOTH_FALL = STEP_RATIO**2
SMOOTH_FALL_SLACK = 1.8
SMOOTH_SHARE = 0.8  # of the lines

NOISE_FACTOR = 8.0  # a difference above this many standard deviations is no noise
USABLE_NOISE = 1e-2  # of the spread of the answers; beyond, nothing can be told
CONSTANT_ROUNDINGS = 64.0  # answers that differ by less than this many roundings are the same


def still_falling(second: FloatArray) -> bool:
    """True if the last step (of steps, n) has not reached the noise yet."""
    longer, shorter = np.median(second[-2:], axis=1)
    return bool(longer > NOISE_FALL * shorter > 0)


def classify_shape(second: FloatArray, change: FloatArray, sd: float, answers: FloatArray) -> Shape:
    """Shape from second differences (steps, n), the change over the second step (n,) and all answers.

    Differences are sizes over the outputs; `sd` is the noise of a second difference.
    """
    spread, size = np.ptp(answers, axis=0).max(), np.abs(answers).max()
    if spread <= CONSTANT_ROUNDINGS * unit_roundoff(np.float64) * size:
        return Shape.CONSTANT
    if np.all(change == 0):
        return Shape.PIECEWISE_CONSTANT
    if sd > USABLE_NOISE * spread:
        return Shape.UNCLEAR
    if np.all(second <= NOISE_FACTOR * sd):
        return Shape.AFFINE
    return Shape.SMOOTH if _is_smooth(second[1:], NOISE_FACTOR * sd) else Shape.PIECEWISE_LINEAR


def _is_smooth(second: FloatArray, floor: float) -> bool:
    """True if between some two steps nearly every line follows the square law, above the noise.

    Long steps meet creases even where the pieces are curved, so one pair of steps is enough. A piecewise
    linear function does not do this: short of a crease its differences are noise.
    """
    longer, shorter = second[:-1], second[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        fall = longer / shorter / SMOOTH_FALL
    follows = (fall > 1 / SMOOTH_FALL_SLACK) & (fall < SMOOTH_FALL_SLACK) & (shorter > floor)
    return bool(np.any(follows.mean(axis=1) >= SMOOTH_SHARE))
