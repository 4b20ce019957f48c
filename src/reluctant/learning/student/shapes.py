"""Which shape to train: each for a short while, then the one that does best on rows that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reluctant.learning.student.fitting import Pace, fit
from reluctant.learning.student.measured import misfit
from reluctant.learning.student.reading import Reading
from reluctant.numerics import FloatArray

__all__ = ["SHAPES", "best_shape"]

SHAPES: tuple[tuple[int, ...], ...] = ((64,), (64, 64), (256,))  # one hidden layer, two, and a wide one
TRIAL_STEPS = 2_000  # of 1,000 the best ones are not the best of 8,000
ON_TRIAL = 0.1  # of the rows, at most so many
MOST_ON_TRIAL = 2_000


def best_shape(
    rows: FloatArray, targets: FloatArray, reading: Reading, seconds: float | None, rng: np.random.Generator,
    shapes: Sequence[tuple[int, ...]] = SHAPES,
) -> tuple[int, ...]:  # fmt: skip
    """Hidden widths of the best after a short training, each within its part of the time."""
    if len(shapes) == 1:
        return shapes[0]
    kept = max(1, min(MOST_ON_TRIAL, int(ON_TRIAL * len(rows))))
    each = None if seconds is None else seconds / len(shapes)

    def off(hidden: tuple[int, ...]) -> float:
        own = rng.spawn(1)[0]
        trial = fit(rows[kept:], targets[kept:], reading.slope, hidden, reading.outputs, Pace(TRIAL_STEPS, each), own)
        return float(misfit(trial, reading, rows[:kept], targets[:kept]).mean())

    return min(shapes, key=off)
