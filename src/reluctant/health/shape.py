"""Piecewise linear, smooth, or neither: how second differences shrink with the step.

On a smooth function they shrink with the square of the step; on a linear piece they are noise, whatever
the step. A step as long as the input itself tells a function with creases from an affine one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reluctant.health.lines import STEP_RATIO
from reluctant.health.summary import Shape
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["STEPS", "classify_shape", "falls_with_the_square"]

# Relative to the size of the input.
STEPS = (0.9, 3e-2, 3e-3, 3e-4)

# A smooth function's second differences fall by 100 from step to step; lines near an inflection differ.
SMOOTH_FALL = STEP_RATIO**2
SMOOTH_FALL_SLACK = 1.8
SMOOTH_SHARE = 0.8  # of the lines

NOISE_FACTOR = 8.0  # a difference above this many standard deviations is no noise
USABLE_NOISE = 1e-2  # of the spread of the answers; beyond, nothing can be told
CONSTANT_ROUNDINGS = 64.0  # answers that differ by less than this many roundings are the same


def classify_shape(second: FloatArray, change: FloatArray, sd: float, answers: FloatArray) -> Shape:
    """Shape from second differences (steps, n), the change over the second step (n,) and all answers.

    Differences are sizes over the outputs; `sd` is the noise of a second difference.
    """
    spread, size = np.ptp(answers, axis=0).max(), np.abs(answers).max()
    if spread <= CONSTANT_ROUNDINGS * unit_roundoff(np.float64) * size:
        return Shape.CONSTANT
    if np.all(change == 0) and np.unique(answers, axis=0, return_counts=True)[1].min() > 1:
        return Shape.PIECEWISE_CONSTANT  # an answer seen only once is no level: most lines are just flat
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
    follows = falls_with_the_square(second) & (second[1:] > floor)
    return bool(np.any(follows.mean(axis=1) >= SMOOTH_SHARE))


def falls_with_the_square(second: FloatArray) -> NDArray[np.bool_]:
    """Where second differences (steps, n) fall from each step to the next as those of curves do; (steps - 1, n)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fall = second[:-1] / second[1:] / SMOOTH_FALL
    return np.asarray((fall > 1 / SMOOTH_FALL_SLACK) & (fall < SMOOTH_FALL_SLACK))
