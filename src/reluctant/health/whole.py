"""Whole numbers: numbers of classes, or values that were rounded?

Between two inputs a continuous function takes every value between its own, so that a rounded one takes every whole
number between. Classes have no such order: on the way from the third to the first there need be no second. The way is
halved, and of the halves the one is kept whose ends are farther apart, until they are neighbours, or so close to each
other that only a jump is left. Levels of a score are rounded values too, of a function that bends at their bounds.
Far out values grow with the inputs, and classes do not.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from reluctant.errors import BudgetExhausted, TargetError
from reluctant.health.halving import Ask, Ways
from reluctant.numerics import FloatArray

__all__ = ["FEWEST_LEVELS", "Whole", "all_whole", "are_whole", "grow", "tell_beside", "tell_whole"]

Indices = NDArray[np.intp]

WAYS = 8
NEIGHBOURS, NO_NEIGHBOURS = 1.0, 2.0  # differences of whole numbers, at least
FEWEST = 2  # ways that end in a jump, rays that grow: one may be chance
FEWEST_LEVELS = 5  # fewer classes may be neighbours by chance, on every way
FAR_APART = 0.7  # of the mean difference of two levels: smaller jumps may be those of a score that changes in steps
NO_SLOPE = 1e-3  # a change of the mean slope over what is left of a way: a rounded value does not jump by 2 there
MOST_HALVINGS = 30
GROWN = 0.5  # of the factor by which inputs grow, at least


class Whole(StrEnum):
    """What whole numbers are, by how they change from input to input."""

    LABELS = "labels"
    SCORES = "scores"
    UNTOLD = "untold"


def are_whole(answers: FloatArray) -> bool:
    """True if every answer (n, m) is one whole number."""
    return bool(answers.shape[1] == 1 and np.isfinite(answers).all() and all_whole(answers))


def all_whole(answers: FloatArray) -> bool:
    """True if no finite number among them lies between whole ones."""
    finite = answers[np.isfinite(answers)]
    return bool((finite == np.round(finite)).all())


def grow(near: FloatArray, far: FloatArray, times: float) -> bool:
    """True if answers (n, 1) grow along rays on which inputs grow so many times."""
    grown = np.abs(far) > GROWN * times * np.maximum(np.abs(near), 1.0)
    return bool(grown.sum() >= FEWEST)


def tell_whole(ask: Ask, rows: FloatArray, answers: FloatArray, rng: np.random.Generator) -> Whole | None:
    """What the whole numbers (n, 1) are that these rows (n, d) were answered with; None of two: they are a label.

    Cost: at most 240 rows; none for two.
    """
    levels = np.unique(answers)
    if levels.size <= 2:
        return None
    try:
        left, _ = _looked_between(ask, rows, answers[:, 0], rng)
    except (BudgetExhausted, TargetError):
        return Whole.UNTOLD
    return _told(left, levels)


def tell_beside(ask: Ask, rows: FloatArray, answers: FloatArray, rng: np.random.Generator) -> Whole | None:
    """The same of one output (n, 1) beside others, which may be 0 and 1 alone; None where it is not whole between.

    Ways are halved to the end: a steep value that is cut off at both sides is whole at nearly all inputs. Cost: at most
    240 rows.
    """
    levels = np.unique(answers)
    apart = NO_NEIGHBOURS if np.ptp(levels) >= NO_NEIGHBOURS else NEIGHBOURS
    try:
        left, between = _looked_between(ask, rows, answers[:, 0], rng, apart=apart, halvings=MOST_HALVINGS)
    except (BudgetExhausted, TargetError):
        return Whole.UNTOLD
    return _told(left, levels) if all_whole(between) else None


def _told(left: FloatArray, levels: FloatArray) -> Whole:
    """By how far apart answers are at the ends of what is left of ways between these levels."""
    jumps = left[left >= NO_NEIGHBOURS]
    if len(jumps) >= FEWEST and np.median(jumps) >= FAR_APART * _mean_difference(levels):
        return Whole.LABELS
    in_order = not len(jumps) and np.isfinite(left).all()
    return Whole.SCORES if in_order and levels.size >= FEWEST_LEVELS else Whole.UNTOLD


def _mean_difference(levels: FloatArray) -> float:
    """Of two different ones, of levels in order: each gap lies between all below it and all above."""
    below = np.arange(1, levels.size)
    return float((np.diff(levels) * below * (levels.size - below)).sum() * 2 / (levels.size * (levels.size - 1)))


def _looked_between(
    ask: Ask, rows: FloatArray, values: FloatArray, rng: np.random.Generator, *, apart: float = NO_NEIGHBOURS,
    halvings: int | None = None,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Halve ways between rows whose answers are so far apart: how far they are in the end, and all answers between."""
    start, end = _ways(values, apart, rng)
    farthest = np.abs(values[start] - values[end]).max()
    enough = int(np.ceil(np.log2(farthest / NO_SLOPE))) if halvings is None else halvings
    between = [np.empty((0, 1))]

    def asked(middle: FloatArray) -> FloatArray:
        between.append(ask(middle))
        return between[-1]

    ways = Ways(rows[start], values[start, None], rows[end], values[end, None])
    for _ in range(min(enough, MOST_HALVINGS)):
        ways.halve(asked, apart)
    return ways.apart, np.concatenate(between)[:, 0]


def _ways(values: FloatArray, apart: float, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Pairs of rows whose answers are so far apart; rare answers as often as others."""
    levels = np.unique(values)
    with_others = levels[(levels - levels[0] >= apart) | (levels[-1] - levels >= apart)]
    starts = rng.choice(with_others, WAYS)
    ends = [rng.choice(levels[np.abs(levels - start) >= apart]) for start in starts]
    picked = [[rng.choice(np.flatnonzero(values == level)) for level in side] for side in (starts, ends)]
    return np.array(picked[0]), np.array(picked[1])
