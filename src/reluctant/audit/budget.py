"""The budget of an audit: the share of rows and of processor time for each step."""

from __future__ import annotations

from reluctant.adversarial.flip import MOST_FLIP_ROWS as FLIP_ROWS
from reluctant.estimation import Range

BUDGET = 300_000
FLIP_INPUTS = 5  # that one gradient step is tried at
LINE_POINTS = 201
GRID = 31  # points a side
SCALES = (0.1, 1.0, 10.0)  # at which errors of a copy are measured
ERROR_POINTS = 100  # at each scale
SECONDS = 180.0  # of processor time
MOST_RESERVED = 0.3  # of the budget
LINEARITY_ROWS = 1730  # besides one for each input, as its method says

# Of the rows left when a step begins. Steps before "flip" leave the reserve alone, but for the first.
SHARES = {
    "health": 1.0,
    "span": 0.35,
    "extraction": 0.75,
    "part": 0.5,
    "learning": 0.6,
    "training": 1.0,
    "flip": 0.6,
    "linearity": 0.6,
    "line": 1.0,
    "plane": 1.0,
    "errors": 1.0,
}
ENOUGH = 4  # times what extraction takes is a budget that gives it so much: its share is a third, after the first look
# Of the processor time.
TIMES = {"extraction": 0.4, "learning": 0.2, "defenses": 0.4}
# Steps that are quick, and are stopped where they are not: as a part of the same time, besides it.
AT_MOST = {"span": 0.4, "flip": 0.1, "linearity": 0.1}
TRAINING = 0.15  # of the same time, besides it: training keeps to it by itself, and takes fewer steps
STUDENTS = 0.4  # of the same time, besides it: networks trained in the sweep, all of them
LOOKS = ("flip", "linearity", "line", "plane", "errors")
FIRST = "health"  # without it no other step can work


def reserve(budget: int, dim: int) -> int:
    """Rows kept for the looks at the end."""
    flips, pictures = FLIP_INPUTS * (dim + FLIP_ROWS), LINE_POINTS + GRID**2 + len(SCALES) * ERROR_POINTS
    return int(min(MOST_RESERVED * budget, flips + LINEARITY_ROWS + dim + pictures))


def share(step: str, left: int, kept: int) -> int:
    """Rows that a step may ask when so many are left, `kept` of them in reserve."""
    free = left if step in (FIRST, *LOOKS) else left - kept
    return max(0, int(SHARES.get(step, 0.0) * free))


def with_extraction(step: str, rows: int, left: int, needed: Range | None) -> int:
    """The same, so that extraction gets the rows that it is known to need, where so many are left: before all else."""
    if needed is None or left < needed.expected:
        return rows
    if step == "extraction":
        return max(rows, min(left, int(needed.high)))
    return min(rows, int(left - needed.expected)) if step == "span" else rows


def seconds_for(step: str, seconds: float) -> float | None:
    """Processor time of a step, None for those that need no limit. The sweep divides its own among defenses."""
    part = (TIMES | AT_MOST).get(step)
    return None if part is None or step == "defenses" else part * seconds
