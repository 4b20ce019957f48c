"""Steps: answers that stay exactly the same under small changes of the input, on levels that are no rounded numbers.

Trees answer like that, alone or many of them. Rounded values lie on a grid, of decimals or of a number format; where a
network has no neuron left that is active its answer is flat too, and the same in all such places.
"""

from __future__ import annotations

import numpy as np

from reluctant.health.answers import narrowest_format, on_decimals
from reluctant.health.lines import ShortLines
from reluctant.numerics import FloatArray

__all__ = ["change_in_steps", "off_grid"]

FEWEST_LEVELS = 3  # two may be the ends of something that is clipped
MOSTLY = 0.5  # of the lines: others may meet a step
COARSEST_GRID = 6  # decimals: levels that need more are no rounded numbers, as few as they may be


def change_in_steps(lines: ShortLines) -> bool:
    """True if answers are flat around most centres, and come back to levels that no rounding makes."""
    sound = lines.sound
    at, ahead, behind = lines.at_centres[sound], lines.ahead[-1][sound], lines.behind[-1][sound]
    flat = ((ahead == at) & (behind == at)).all(axis=1)
    if not len(flat) or flat.mean() < MOSTLY:
        return False
    answers, times = np.unique(lines.finite_answers, axis=0, return_counts=True)
    levels = answers[times > 1]  # what changes all the time does not come back
    return len(levels) >= FEWEST_LEVELS and off_grid(levels)


def off_grid(levels: FloatArray) -> bool:
    """True if levels are no numbers of few decimals, nor of few bits."""
    rounded = any(on_decimals(levels, decimals) for decimals in range(COARSEST_GRID + 1))
    return not rounded and narrowest_format(levels) != "float16"
