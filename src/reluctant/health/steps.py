"""Steps: answers that stay exactly the same under small changes of the input, on levels that are no rounded numbers.

Trees answer like that, alone or many of them. Rounded values lie on a grid, of decimals or of a number format. Ramps of
a network have flat places on many levels too, but between two of them it goes up or down by and by: a tree jumps.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from reluctant.errors import BudgetExhausted, TargetError
from reluctant.health.answers import narrowest_format, on_decimals
from reluctant.health.halving import Ask, Ways
from reluctant.health.lines import ShortLines
from reluctant.numerics import FloatArray

__all__ = ["change_in_steps", "off_grid"]

FEWEST_LEVELS = 3  # two may be the ends of something that is clipped
MOSTLY = 0.5  # of the lines: others may meet a step
SAME = 1e-3  # of a change: on a slope both sides differ by nothing else than their rounding
WAYS = 4
TO_ONE_STEP, FARTHER = 20, 10  # halvings: until no more than one step is likely to be left, and to see that it stays
STAYS = 0.5  # of a change, at least; one that is not sudden falls a thousandfold
COARSEST_GRID = 6  # decimals: levels that need more are no rounded numbers, as few as they may be


def change_in_steps(ask: Ask, lines: ShortLines) -> bool:
    """True if answers are flat around the centres, come back to levels that no rounding makes, and jump between them.

    Cost: none where a slope is seen; else at most 120 rows.
    """
    return _are_flat(lines) and _come_back(lines) and _jump(ask, lines)


def _are_flat(lines: ShortLines) -> bool:
    """True if most centres lie on a level, and none on a slope: there both sides differ, by the same."""
    sound = lines.sound
    up, down = lines.ahead[-1][sound] - lines.at_centres[sound], lines.at_centres[sound] - lines.behind[-1][sound]
    flat = ((up == 0) & (down == 0)).all(axis=1)
    sloping = (np.abs(up - down) < SAME * np.minimum(np.abs(up), np.abs(down))).any()
    return bool(len(flat) and flat.mean() >= MOSTLY and not sloping)


def _come_back(lines: ShortLines) -> bool:
    answers, times = np.unique(lines.finite_answers, axis=0, return_counts=True)
    levels = answers[times > 1]  # what changes all the time does not come back
    return len(levels) >= FEWEST_LEVELS and off_grid(levels)


def _jump(ask: Ask, lines: ShortLines) -> bool:
    """True if between centres the whole of a change is left, however short the way has become."""
    rows, answers = lines.centres[lines.sound], lines.at_centres[lines.sound]
    pairs = [(i, j) for i, j in combinations(range(len(rows)), 2) if (answers[i] != answers[j]).any()][:WAYS]
    start, end = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    ways = Ways(rows[start], answers[start], rows[end], answers[end])
    try:
        for _ in range(TO_ONE_STEP):
            ways.halve(ask)
        change = ways.apart
        for _ in range(FARTHER):
            ways.halve(ask)
    except (BudgetExhausted, TargetError):
        return False
    return bool(len(pairs) and (ways.apart >= STAYS * change).all())


def off_grid(levels: FloatArray) -> bool:
    """True if levels are no numbers of few decimals, nor of few bits."""
    rounded = any(on_decimals(levels, decimals) for decimals in range(COARSEST_GRID + 1))
    return not rounded and narrowest_format(levels) != "float16"
