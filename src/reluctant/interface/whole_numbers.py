"""Whole-number answers: class labels, rounded values, or the steps of a tree.

Between two inputs a continuous function takes every value between its own, so a rounded one takes every whole number
between. Classes have no such order: on the way from the third to the first there need be no second. Each way is halved,
keeping the half whose ends are farther apart, until its ends are neighbours or so close that only a jump is left.
Levels of a score are rounded values too, of a function that bends at their bounds. Far out values grow with the inputs,
and classes do not.

An answer may hold the number of a class beside its score: it is whole, takes few values, and jumps between them. Trees
answer in steps, on levels that no rounding explains: a ramp of a network goes up bit by bit, a tree jumps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reluctant.errors import BudgetExhausted, TargetError
from reluctant.interface.digits import add_up_to_one, find_decimals, narrowest_format, on_decimals
from reluctant.interface.probe import Ask, ShortLines, Ways, ask, finite_ends
from reluctant.numerics import FloatArray
from reluctant.oracles.ledger import Counting

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


FEW = 0.5  # of the answers, different ones at most
MORE = 100  # rows that are asked where such an output had few levels: a class may be rare, and a score have others
PAIR = 2  # a class and its score


def class_columns(
    oracle: Counting, nearby: Sequence[ShortLines], lines: Sequence[ShortLines], rng: np.random.Generator, *,
    total: float | None = None,
) -> tuple[int, ...]:  # fmt: skip
    """Outputs that are whole as numbers of classes are, beside others that are not; scores are none of them.

    Between answers of the lines nearby it is looked what they are; all lines tell which are whole. total: what all
    outputs add up to on the first of them, where they look like probabilities: 1, or 100.
    Cost: none where no output is whole on all lines, or every one of more than two; else 240 rows at most for each that
    is, and 100 where one has few levels.
    """
    every = np.concatenate([each.finite_answers for each in lines])
    whole = np.flatnonzero((every == np.round(every)).all(axis=0)).tolist()
    found = _Look(oracle, rng, *finite_ends(nearby))
    if oracle.outputs < PAIR or not whole or not len(found.answers):
        return ()
    if len(whole) == oracle.outputs:
        return _labels_beside_scores(found) if oracle.outputs == PAIR and total is None else ()
    if total is not None:
        return _beside_probabilities(found, whole, lines[0].finite_answers / total, total)
    few = any(np.unique(found.answers[:, k]).size < FEWEST_LEVELS for k in whole)
    return (found.with_more() if few else found).classes(whole)


@dataclass(frozen=True)
class _Look:
    """Rows (n, d) of a target and finite answers (n, m), between which more is asked."""

    oracle: Counting
    rng: np.random.Generator
    rows: FloatArray
    answers: FloatArray

    def with_more(self) -> Self:
        """With rows as they are typical."""
        more = self.oracle.facts.domain.sample(self.rng, MORE, self.oracle.dim)
        told = ask(self.oracle, more)
        finite = np.isfinite(told).all(axis=1)
        return replace(
            self,
            rows=np.concatenate([self.rows, more[finite]]),
            answers=np.concatenate([self.answers, told[finite]]),
        )

    def classes(self, columns: Sequence[int]) -> tuple[int, ...]:
        """Those that may be numbers of classes: they jump, or it cannot be told of them, and they come back."""
        told = {k: self.what(k) for k in columns}
        return tuple(k for k, what in told.items() if what is Whole.LABELS or (what is Whole.UNTOLD and self._few(k)))

    def what(self, k: int) -> Whole | None:
        """What the whole numbers of one output are; None of one that is not whole, or always the same."""
        column = self.answers[:, [k]]
        if not all_whole(column) or np.ptp(column) == 0:
            return None
        return tell_beside(lambda rows: ask(self.oracle, rows)[:, [k]], self.rows, column, self.rng)

    def _few(self, k: int) -> bool:
        return np.unique(self.answers[:, k]).size <= FEW * len(self.answers)


def _labels_beside_scores(found: _Look) -> tuple[int, ...]:
    """Of two outputs that are both whole: the one that jumps, if the other goes in order."""
    told = [found.what(k) for k in range(PAIR)]
    return (told.index(Whole.LABELS),) if {*told} == {Whole.LABELS, Whole.SCORES} else ()


def _beside_probabilities(
    found: _Look, whole: Sequence[int], near: FloatArray, total: float
) -> tuple[int, ...]:  # fmt: skip
    """Of answers that look like probabilities (n, m): class 0 adds nothing to them, and others are rare.

    One output that is always 0 may be the number of a class; several are probabilities for which digits are wanting.
    """
    zero = [k for k in whole if not near[:, k].any()]
    found = found.with_more() if len(zero) == 1 else found
    added = found.classes([k for k in whole if _is_added(found.answers / total, k)])
    unused = len(zero) == 1 and not found.answers[:, zero].any() and _all_told(near, zero[0])
    return added or (tuple(zero) if unused else ())


def _is_added(p: FloatArray, k: int) -> bool:
    """True if the others come closer to one without this output, wherever it is not 0: it is no probability of them."""
    others, rest = p[p[:, k] != 0], np.delete(p[p[:, k] != 0], k, axis=1)
    return bool(len(others) and (np.abs(rest.sum(axis=1) - 1) < np.abs(others.sum(axis=1) - 1)).all())


def _all_told(p: FloatArray, k: int) -> bool:
    """True if the others are all that probabilities are, and none of them is 0 for want of digits."""
    rest = np.delete(p, k, axis=1)
    return bool(rest.all() and find_decimals(rest) is None and add_up_to_one(rest))


FEWEST_STEPS = 3  # two may be the ends of something that is clipped
MOSTLY = 0.5  # of the lines: others may meet a step
SAME = 1e-3  # of a change: on a slope both sides differ by nothing else than their rounding
STEP_WAYS = 4
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
    return len(levels) >= FEWEST_STEPS and off_grid(levels)


def _jump(ask: Ask, lines: ShortLines) -> bool:
    """True if between centres the whole of a change is left, however short the way has become."""
    rows, answers = lines.centres[lines.sound], lines.at_centres[lines.sound]
    pairs = [(i, j) for i, j in combinations(range(len(rows)), 2) if (answers[i] != answers[j]).any()][:STEP_WAYS]
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
