"""The kind of answers: values, labels, probabilities, integer scores; piecewise linear, smooth or a step function.

Shape: on a smooth function second differences shrink with the square of the step; on a linear piece they are noise,
whatever the step. A step as long as the input itself tells a function with creases from an affine one.

Integers: between two inputs a rounded continuous function takes every integer between its values there. Classes have no
such order: between class 3 and class 1 there need be no 2. Each path between two inputs is halved, keeping the half
whose ends differ more, until its ends are neighbours or so close that only a jump is left. Far out values grow with the
inputs, and classes do not. An answer may hold a class number beside its score: it is an integer, takes few values, and
jumps between them. Trees answer in steps, on levels that no rounding explains, or steps that depend on one input each.

Sigmoids: answers that bend as they are, and are straight as log-odds, have no other explanation. Few digits hide such
curves, and a line that bends may have met a crease. Answers t of a tanh show by the halves (1 + t) / 2, which are those
of a sigmoid of twice the value.

Top k: the probabilities given leave a part of 1 to the others, and none of these is larger than the smallest that is
given. Percentages are classified by their hundredths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from reluctant.errors import BudgetExhausted, TargetError
from reluctant.interface.noise import (
    FEWEST_VALUES,
    SECOND_DIFFERENCE_GAIN,
    STEP_RATIO,
    Paths,
    ShortLines,
    add_up_to_one,
    answer_kind,
    ask,
    find_decimals,
    finite_ends,
    in_unit,
    is_one_hot,
    narrowest_format,
    on_decimals,
)
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import Ask, Kind
from reluctant.oracles.ledger import Counting
from reluctant.oracles.links import PERCENT

# ---- integers, class columns and steps

Indices = NDArray[np.intp]

PATHS_HALVED = 8
NEIGHBOURS, NO_NEIGHBOURS = 1.0, 2.0  # differences of whole numbers, at least
FEWEST_JUMPS = 2  # ways that end in a jump, rays that grow: one may be chance
FEWEST_LEVELS = 5  # fewer classes may be neighbours by chance, on every way
FAR_APART = 0.7  # of the mean difference of two levels: smaller jumps may be those of a score that changes in steps
NO_SLOPE = 1e-3  # a change of the mean slope over the rest of a way: a rounded value does not jump by 2 there
MOST_HALVINGS = 30
GROWTH_SHARE = 0.5  # of the factor by which inputs grow, at least


class IntegerKind(StrEnum):
    """What integer answers are, by how they change from input to input."""

    LABELS = "labels"
    SCORES = "scores"
    UNDECIDED = "undecided"


def are_integers(answers: FloatArray) -> bool:
    """True if every answer (n, m) is one integer."""
    return bool(answers.shape[1] == 1 and np.isfinite(answers).all() and all_integers(answers))


def all_integers(answers: FloatArray) -> bool:
    """True if every finite number among them is an integer."""
    finite = answers[np.isfinite(answers)]
    return bool((finite == np.round(finite)).all())


def grow(near: FloatArray, far: FloatArray, times: float) -> bool:
    """True if answers (n, 1) grow along rays on which inputs grow so many times."""
    grown = np.abs(far) > GROWTH_SHARE * times * np.maximum(np.abs(near), 1.0)
    return bool(grown.sum() >= FEWEST_JUMPS)


def classify_integers(ask: Ask, rows: FloatArray, answers: FloatArray, rng: np.random.Generator) -> IntegerKind | None:
    """The kind of the integers (n, 1) that answer these rows (n, d); None for two levels, which are labels.

    Cost: at most 240 rows; none for two.
    """
    levels = np.unique(answers)
    if levels.size <= 2:
        return None
    try:
        left, _ = _halve_paths(ask, rows, answers[:, 0], rng)
    except (BudgetExhausted, TargetError):
        return IntegerKind.UNDECIDED
    return _classify_jumps(left, levels)


def classify_column(ask: Ask, rows: FloatArray, answers: FloatArray, rng: np.random.Generator) -> IntegerKind | None:
    """The kind of one integer output (n, 1) beside others; it may have two levels. None if it takes other values too.

    Paths are halved to the end: a steep value clipped on both sides is an integer at nearly all inputs. Cost: at most
    240 rows.
    """
    levels = np.unique(answers)
    apart = NO_NEIGHBOURS if np.ptp(levels) >= NO_NEIGHBOURS else NEIGHBOURS
    try:
        left, between = _halve_paths(ask, rows, answers[:, 0], rng, apart=apart, halvings=MOST_HALVINGS)
    except (BudgetExhausted, TargetError):
        return IntegerKind.UNDECIDED
    return _classify_jumps(left, levels) if all_integers(between) else None


def _classify_jumps(left: FloatArray, levels: FloatArray) -> IntegerKind:
    """By how far apart answers are at the ends of the halved paths between these levels."""
    jumps = left[left >= NO_NEIGHBOURS]
    if len(jumps) >= FEWEST_JUMPS and np.median(jumps) >= FAR_APART * _mean_difference(levels):
        return IntegerKind.LABELS
    in_order = not len(jumps) and np.isfinite(left).all()
    return IntegerKind.SCORES if in_order and levels.size >= FEWEST_LEVELS else IntegerKind.UNDECIDED


def _mean_difference(levels: FloatArray) -> float:
    """Mean difference of two levels, sorted: each gap lies between all levels below and all above."""
    below = np.arange(1, levels.size)
    return float((np.diff(levels) * below * (levels.size - below)).sum() * 2 / (levels.size * (levels.size - 1)))


def _halve_paths(
    ask: Ask, rows: FloatArray, values: FloatArray, rng: np.random.Generator, *, apart: float = NO_NEIGHBOURS,
    halvings: int | None = None,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Halve ways between rows whose answers are so far apart: how far they are in the end, and all answers between."""
    levels = np.unique(values)
    with_others = levels[(levels - levels[0] >= apart) | (levels[-1] - levels >= apart)]
    starts = rng.choice(with_others, PATHS_HALVED)
    ends = [rng.choice(levels[np.abs(levels - start) >= apart]) for start in starts]
    picked = [[rng.choice(np.flatnonzero(values == level)) for level in side] for side in (starts, ends)]
    start, end = np.array(picked[0]), np.array(picked[1])
    farthest = np.abs(values[start] - values[end]).max()
    enough = int(np.ceil(np.log2(farthest / NO_SLOPE))) if halvings is None else halvings
    between = [np.empty((0, 1))]

    def asked(middle: FloatArray) -> FloatArray:
        between.append(ask(middle))
        return between[-1]

    ways = Paths(rows[start], values[start, None], rows[end], values[end, None])
    for _ in range(min(enough, MOST_HALVINGS)):
        ways.halve(asked, apart)
    return ways.apart, np.concatenate(between)[:, 0]


FEW_LEVELS = 0.5  # of the answers, different ones at most
MORE_ROWS = 100  # rows that are asked where such an output had few levels: a class may be rare, and a score have others
PAIR = 2  # a class and its score


def class_columns(
    oracle: Counting, nearby: Sequence[ShortLines], lines: Sequence[ShortLines], rng: np.random.Generator, *,
    total: float | None = None,
) -> tuple[int, ...]:  # fmt: skip
    """Outputs that hold class numbers beside others that do not; integer scores do not count.

    All lines show which outputs are integers; paths between the lines nearby classify them. total: the sum of all
    outputs where they look like probabilities: 1, or 100.
    Cost: none where no output is an integer on all lines, or every one of more than two; else at most 240 rows for each
    that is, and 100 where one has few levels.
    """
    every = np.concatenate([each.finite_answers for each in lines])
    whole = np.flatnonzero((every == np.round(every)).all(axis=0)).tolist()
    found = _ColumnProbe(oracle, rng, *finite_ends(nearby))
    if oracle.outputs < PAIR or not whole or not len(found.answers):
        return ()
    if len(whole) == oracle.outputs:
        return _labels_beside_scores(found) if oracle.outputs == PAIR and total is None else ()
    if total is not None:
        near = lines[0].finite_answers / total
        zero = [k for k in whole if not near[:, k].any()]
        found = found.with_more() if len(zero) == 1 else found
        added = found.classes([k for k in whole if _is_added(found.answers / total, k)])
        unused = len(zero) == 1 and not found.answers[:, zero].any() and _are_complete(near, zero[0])
        return added or (tuple(zero) if unused else ())
    few = any(np.unique(found.answers[:, k]).size < FEWEST_LEVELS for k in whole)
    return (found.with_more() if few else found).classes(whole)


@dataclass(frozen=True)
class _ColumnProbe:
    """Rows (n, d) of a target and finite answers (n, m), between which more is asked."""

    oracle: Counting
    rng: np.random.Generator
    rows: FloatArray
    answers: FloatArray

    def with_more(self) -> Self:
        """With rows as they are typical."""
        more = self.oracle.facts.domain.sample(self.rng, MORE_ROWS, self.oracle.dim)
        answers = ask(self.oracle, more)
        finite = np.isfinite(answers).all(axis=1)
        return replace(
            self,
            rows=np.concatenate([self.rows, more[finite]]),
            answers=np.concatenate([self.answers, answers[finite]]),
        )

    def classes(self, columns: Sequence[int]) -> tuple[int, ...]:
        """Columns that may be class numbers: they jump, or are undecided and have few levels."""
        kinds = {k: self.kind(k) for k in columns}
        return tuple(
            k
            for k, kind in kinds.items()
            if kind is IntegerKind.LABELS or (kind is IntegerKind.UNDECIDED and self._few(k))
        )

    def kind(self, k: int) -> IntegerKind | None:
        """The kind of integers in one column; None if it has others, or is constant."""
        column = self.answers[:, [k]]
        if not all_integers(column) or np.ptp(column) == 0:
            return None
        return classify_column(lambda rows: ask(self.oracle, rows)[:, [k]], self.rows, column, self.rng)

    def _few(self, k: int) -> bool:
        return np.unique(self.answers[:, k]).size <= FEW_LEVELS * len(self.answers)


def _labels_beside_scores(found: _ColumnProbe) -> tuple[int, ...]:
    """The one of two integer outputs that jumps, if the other goes in order."""
    kinds = [found.kind(k) for k in range(PAIR)]
    return (kinds.index(IntegerKind.LABELS),) if {*kinds} == {IntegerKind.LABELS, IntegerKind.SCORES} else ()


def _is_added(p: FloatArray, k: int) -> bool:
    """True if the other outputs add up to one better without this one, wherever it is not 0: it is no probability."""
    others, rest = p[p[:, k] != 0], np.delete(p[p[:, k] != 0], k, axis=1)
    return bool(len(others) and (np.abs(rest.sum(axis=1) - 1) < np.abs(others.sum(axis=1) - 1)).all())


def _are_complete(p: FloatArray, k: int) -> bool:
    """True if the other outputs are complete probabilities, none of them 0 for want of digits."""
    rest = np.delete(p, k, axis=1)
    return bool(rest.all() and find_decimals(rest) is None and add_up_to_one(rest))


FEWEST_STEPS = 3  # two may be the ends of something that is clipped
MOST_LINES = 0.5  # of the lines: others may meet a step
SAME_SLOPE = 1e-3  # of a change: on a slope both sides differ by nothing else than their rounding
STEP_WAYS = 4
TO_ONE_STEP, FARTHER = 20, 10  # halvings: until no more than one step is likely to be left, and to see that it stays
STAYS = 0.5  # of a change, at least; one that is not sudden falls a thousandfold
COARSEST_GRID = 6  # decimals: levels that need more are no rounded numbers, as few as they may be


class StepKind(StrEnum):
    """The kind of model behind answers that stay on levels."""

    SPLITS = "splits"  # of trees: each depends on one input, and far out there are none
    OTHERS = "others"


def find_steps(
    ask: Ask, lines: ShortLines, *, ends: bool, likely: bool, apart: FloatArray | None = None
) -> StepKind | None:
    """Steps between levels around the centres; None where a slope, rounding or labels explain the answers.

    Levels that no rounding makes are steps if answers jump between them. A forest of a hundred trees answers in
    hundredths, as rounded values do: these are steps if each jump depends on one input alone. ends: answers stay the
    same far out; likely: and are not 0 or 1 there, as rounded probabilities are, or nothing is known of that. apart:
    a row (1, d) that has another answer. Cost: none where a slope is seen or answers are whole numbers; else at most
    120 rows, and log₂ d + 2 for each of 4 jumps.
    """
    if not _are_flat(lines):
        return None
    every, often = np.unique(lines.finite_answers, axis=0, return_counts=True)
    levels = every[often > 1]  # what changes all the time does not come back
    try:
        rows, answers = _with_others(ask, lines, apart)
        every = np.unique(np.concatenate([every, answers]), axis=0)
        of_few_bits = narrowest_format(every) == "float16" and not on_grid(every)
        on_levels = len(levels) >= FEWEST_STEPS and off_grid(levels)
        splits_likely = likely and len(every) > 1 and not all_integers(every) and not of_few_bits
        if not (on_levels or splits_likely):
            return None
        ways = _jumps(ask, rows, answers)
        of_splits = ways is not None and _depend_on_one_input(ask, ways)
    except (BudgetExhausted, TargetError):
        return None
    if ways is None or not (on_levels or of_splits):
        return None
    return StepKind.SPLITS if of_splits and ends else StepKind.OTHERS


def _are_flat(lines: ShortLines) -> bool:
    """True if most centres lie on a level, and none on a slope: there both sides differ, by the same."""
    sound = lines.sound
    up, down = lines.ahead[-1][sound] - lines.at_centres[sound], lines.at_centres[sound] - lines.behind[-1][sound]
    flat = ((up == 0) & (down == 0)).all(axis=1)
    sloping = (np.abs(up - down) < SAME_SLOPE * np.minimum(np.abs(up), np.abs(down))).any()
    return bool(len(flat) and flat.mean() >= MOST_LINES and not sloping)


def _with_others(ask: Ask, lines: ShortLines, apart: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """The centres with their answers; where these are all the same, the ends of all lines, and the row apart."""
    rows, answers = lines.centres[lines.sound], lines.at_centres[lines.sound]
    if np.ptp(answers, axis=0).any():
        return rows, answers
    rows, answers = finite_ends([lines])
    if apart is None or np.ptp(answers, axis=0).any():
        return rows, answers
    return np.concatenate([rows, apart]), np.concatenate([answers, ask(apart)])


def _jumps(ask: Ask, rows: FloatArray, answers: FloatArray) -> Paths | None:
    """Ways between these rows, halved until one jump is left of each; None where the change becomes less on the way."""
    pairs = [(i, j) for i, j in combinations(range(len(rows)), 2) if (answers[i] != answers[j]).any()][:STEP_WAYS]
    start, end = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    ways = Paths(rows[start], answers[start], rows[end], answers[end])
    for _ in range(TO_ONE_STEP):
        ways.halve(ask)
    change = ways.apart
    for _ in range(FARTHER):
        ways.halve(ask)
    return ways if pairs and (ways.apart >= STAYS * change).all() else None


def _depend_on_one_input(ask: Ask, ways: Paths) -> bool:
    """True if one input alone makes each jump: it changes the answer by itself, and all others together do not.

    Inputs go over from one end to the other, and halving finds the one at which the answer changes. A jump across an
    oblique hyperplane passes only where one input has most of its normal.
    """
    n, dim = ways.start.shape
    before, after = np.zeros(n, dtype=np.intp), np.full(n, dim)
    if dim == 1:
        return False
    for _ in range(int(np.ceil(np.log2(dim)))):
        middle = (before + after) // 2
        at = ask(np.where(np.arange(dim) < middle[:, None], ways.end, ways.start))
        over = np.abs(at - ways.at_end).max(axis=1) < np.abs(at - ways.at_start).max(axis=1)
        before, after = np.where(over, before, middle), np.where(over, middle, after)
    one = np.arange(dim) == after[:, None] - 1
    alone = ask(np.where(one, ways.end, ways.start)) == ways.at_end
    others = ask(np.where(one, ways.start, ways.end)) == ways.at_start
    return bool(alone.all() and others.all())


def off_grid(levels: FloatArray) -> bool:
    """True if no rounding to decimals or bits explains the levels."""
    return not on_grid(levels) and narrowest_format(levels) != "float16"


def on_grid(levels: FloatArray) -> bool:
    """True if levels are numbers of few decimals."""
    return any(on_decimals(levels, decimals) for decimals in range(COARSEST_GRID + 1))


# ---- shape, sigmoids and top k


class Shape(StrEnum):
    """The shape of the answers along short lines."""

    PIECEWISE_LINEAR = "piecewise linear"
    AFFINE = "affine"
    CONSTANT = "constant"
    PIECEWISE_CONSTANT = "piecewise constant"
    SMOOTH = "smooth"
    UNCLEAR = "unclear"


# Relative to the size of the input.
STEPS = (0.9, 3e-2, 3e-3, 3e-4)

# A smooth function's second differences fall by 100 from step to step; lines near an inflection differ.
SMOOTH_FALL = STEP_RATIO**2
SMOOTH_FALL_SLACK = 1.8
SMOOTH_SHARE = 0.8  # of the lines

NOISE_FACTOR = 8.0  # a difference above this many standard deviations is no noise
USABLE_NOISE = 1e-2  # of the spread of the answers; more noise hides everything
CONSTANT_ROUNDINGS = 64.0  # answers that differ by less than this many roundings are the same


def classify_shape(
    second: FloatArray, change: FloatArray, sd: float, answers: FloatArray, lost: FloatArray | None = None
) -> Shape:
    """Shape from second differences (steps, n), the change over the second step (n,) and all answers.

    Differences are sizes over the outputs; `sd` is the noise of a second difference, `lost` (steps, n) what
    probabilities behind a link add to it next to 0 and 1.
    """
    spread, size = np.ptp(answers, axis=0).max(), np.abs(answers).max()
    if spread <= CONSTANT_ROUNDINGS * unit_roundoff(np.float64) * size:
        return Shape.CONSTANT
    if np.all(change == 0) and np.unique(answers, axis=0, return_counts=True)[1].min() > 1:
        return Shape.PIECEWISE_CONSTANT  # an answer seen only once is no level: most lines are just flat
    if sd > USABLE_NOISE * spread:
        return Shape.UNCLEAR
    if is_in_noise(second, sd, lost):
        return Shape.AFFINE
    return Shape.SMOOTH if _is_smooth(second[1:], NOISE_FACTOR * sd) else Shape.PIECEWISE_LINEAR


def is_in_noise(second: FloatArray, sd: float, lost: FloatArray | None = None) -> bool:
    """True if no second difference (steps, n) is more than noise, and lost digits behind a link."""
    return bool(np.all(second <= NOISE_FACTOR * (sd if lost is None else np.hypot(sd, lost))))


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


MOST_ABOVE = 0.5  # of the lines, above the noise at a step, at least: else their differences are noise
WELL_ABOVE = 2.0  # times the shortest step at which most rise above the noise, at most
CLEAR = 30.0  # times the floor of the noise: differences of that size show how they change along a line
STENCILS = 6  # steps to each side of a centre
BEND_DEGREE = 2  # of the polynomial in second differences along a line that bends smoothly
SMOOTHLY = 0.1  # of the second differences: what such a polynomial leaves
REST_OF_NOISE = 1.5  # times their noise


def is_curved_all_along(ask: Ask, lines: ShortLines, sd: float) -> bool:
    """True if most lines bend everywhere, by slowly changing amounts: the curves that few digits leave to see.

    Second differences of a piecewise linear function are noise between creases, and next to one they are not alike.
    `sd` is the noise of an answer. The step makes most lines rise clearly above it, and no longer: curves
    change along long steps. Cost: none where most lines are straight at every step but the longest; else 12 rows a
    line.
    """
    sound, floor = lines.sound, NOISE_FACTOR * SECOND_DIFFERENCE_GAIN * sd
    seen = np.flatnonzero((lines.second_differences > floor).mean(axis=1) > MOST_ABOVE)
    if lines.directions is None or not len(seen) or seen[-1] == 0:
        return False
    centres, directions = lines.centres[sound], lines.directions[sound]
    to_be_clear = np.sqrt(CLEAR * floor / np.median(lines.second_differences[seen[-1]]))  # bends grow with its square
    step = min(WELL_ABOVE, to_be_clear) * lines.steps[seen[-1]]
    places = np.arange(-STENCILS, STENCILS + 1)
    rows = centres[None] + step * places[places != 0, None, None] * directions[None]
    try:
        asked = ask(rows.reshape(-1, centres.shape[1])).reshape(2 * STENCILS, len(centres), -1)
    except (BudgetExhausted, TargetError):
        return False
    along = np.insert(asked, STENCILS, lines.at_centres[sound], axis=0)
    second = np.diff(along, n=2, axis=0)
    smooth = np.polynomial.polynomial.polyvander(np.linspace(-1, 1, len(second)), BEND_DEGREE)
    off = second - np.einsum("ij,jkl->ikl", smooth @ np.linalg.pinv(smooth), second)
    size, rest = (np.sqrt((each**2).mean(axis=0)).max(axis=1) for each in (second, off))
    bends = np.median(np.abs(second).max(axis=2), axis=0) > floor
    return bool(np.mean(bends & (rest < SMOOTHLY * size + REST_OF_NOISE * SECOND_DIFFERENCE_GAIN * sd)) > MOST_ABOVE)


FEWEST_STRETCHES = 3  # stretches: fewer may be chance
CLEARLY = 3  # times as many on one side
NEARLY_ALL = 0.8  # of the answers
SMALL_PART = 1 / 16  # of a sigmoid's curve: the log-odds of similar curves bend by a fifth of it or more
DEVIATIONS = 3.0  # of noise, which nearly all answers are within
CERTAIN = 1e-9  # a probability that far from 0 or 1 is one of a class that is certain


def _between_0_and_1(near: ShortLines, far: Mapping[float, ShortLines], sd: float) -> bool:
    return all(in_unit(lines.finite_answers, NOISE_FACTOR * sd) for lines in (near, *far.values()))


def saturated(far: Mapping[float, ShortLines], sd: float) -> bool:
    """True if answers with this noise are 0 or 1 at the farthest of these scales, nearly all of them."""
    if not far or not in_unit(far[max(far)].finite_answers, NOISE_FACTOR * sd):
        return False
    size = max(np.abs(lines.finite_answers).max(initial=0.0) for lines in far.values())
    return _decided(far[max(far)].at_centres, sd, size) >= NEARLY_ALL


def _decided(answers: FloatArray, sd: float, size: float = 1.0) -> float:
    """Share of the answers that are 0 or 1; next to answers of this size, where all are small."""
    to_next = np.minimum(np.abs(answers), np.abs(1 - answers))
    return float(np.mean(to_next <= max(CERTAIN * min(size, 1.0), DEVIATIONS * sd)))


class _Straightness(NamedTuple):
    """Stretches of lines, a step to both sides, that are straight as log-odds alone, and as answered alone.

    curved: those whose log-odds bend, and with the square of the step, which creases do not do. clearly: those on which
    log-odds would be seen to bend if they had a small part of the curve, and are straight; not_so: and bend.
    """

    as_log_odds: int
    as_answered: int
    curved: int
    clearly: int = 0
    not_so: int = 0

    @property
    def of_sigmoids(self) -> bool:
        """True if only sigmoids explain it. That answers are 0 or 1 far out does not tell: clipped values are too."""
        as_odds = self.as_log_odds >= FEWEST_STRETCHES and self.as_log_odds > CLEARLY * self.as_answered
        return as_odds and not self.curved_odds

    @property
    def surely_of_sigmoids(self) -> bool:
        """True if no similar curve does, such as that of the error function."""
        return self.of_sigmoids and self.clearly >= FEWEST_STRETCHES and self.clearly > CLEARLY * self.not_so

    @property
    def curved_odds(self) -> bool:
        """True if sigmoids do not explain it, nor creases."""
        return self.curved >= FEWEST_STRETCHES and self.curved >= self.as_log_odds


def _straightness(lines: ShortLines, sd: float) -> _Straightness:
    """Count stretches of answers with this noise."""
    sound = lines.sound
    behind, centre, ahead = lines.behind[:, sound], lines.at_centres[sound][None], lines.ahead[:, sound]
    undecided = (np.minimum(behind, ahead) > 0) & (np.maximum(behind, ahead) < 1) & (centre > 0) & (centre < 1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        growth = [1 / (p * (1 - p)) for p in (behind, centre, ahead)]  # of noise, from probabilities to log-odds
        bend = np.abs(behind - 2 * centre + ahead)
        bend_of_odds = np.abs(_log_odds(behind) - 2 * _log_odds(centre) + _log_odds(ahead))
        limit = NOISE_FACTOR * sd * SECOND_DIFFERENCE_GAIN
        limit_of_odds = NOISE_FACTOR * sd * np.sqrt(growth[0] ** 2 + 4 * growth[1] ** 2 + growth[2] ** 2)
        shown = undecided & (bend > limit) & (bend * growth[1] > limit_of_odds)  # also as log-odds, were it a crease
        clear = np.asarray((undecided & (SMALL_PART * bend * growth[1] > limit_of_odds)).any(axis=2))
    bends = [(undecided & each).any(axis=2) for each in (bend > limit, bend_of_odds > limit_of_odds)]
    bent, bent_as_odds = (np.asarray(each) for each in bends)
    as_log_odds, as_answered = shown.any(axis=2) & ~bent_as_odds, bent_as_odds & ~bent
    curved = bent_as_odds[2:] & falls_with_the_square(np.where(undecided, bend_of_odds, 0.0).max(axis=2)[1:])
    clear[0] = False  # the longest step meets creases
    counts = (as_log_odds, as_answered, curved, clear & ~bent_as_odds, clear & bent_as_odds)
    return _Straightness(*(int(each.sum()) for each in counts))


def _log_odds(p: FloatArray) -> FloatArray:
    return np.asarray(np.log(p) - np.log1p(-p))


ROUNDINGS = 4.0  # of a probability on its way here


class TopK(NamedTuple):
    """The largest few probabilities, of so many classes."""

    largest: int
    classes: int

    @property
    def all_but_one(self) -> bool:
        """True if the one that is missing follows from the others."""
        return self.largest == self.classes - 1


def find_top_k(values: FloatArray, noise: float = 0.0, *, no_values: bool = False) -> TopK | None:
    """How many class probabilities each answer (n, m) gives, fewer than all; None for any other answers.

    noise: the most that one is off by. no_values: it is known that they are not values; else they have to be those of
    different classes in different rows. A row that tells fewer than others has no more to tell: it adds up to 1.
    """
    answered = values[~np.isnan(values).all(axis=1)]
    p = np.where(np.isnan(answered), 0.0, answered)
    if p.shape[1] < 2 or not in_unit(p, noise):
        return None
    count, left = (p != 0).sum(axis=1), 1 - p.sum(axis=1)
    top_k = TopK(int(count.max()), p.shape[1])
    decimals = find_decimals(p)
    digits = 0.0 if decimals is None else 10.0**-decimals
    off = top_k.largest * max(digits, ROUNDINGS * float(unit_roundoff(narrowest_format(p))), noise)
    mean_missing = left / max(top_k.classes - top_k.largest, 1)
    largest_few = (
        (count == top_k.largest) & (left >= -off) & (np.where(p != 0, p, 1.0).min(axis=1) >= mean_missing - off)
    )
    same_classes = len(np.unique(p[count == top_k.largest] != 0, axis=0)) == 1
    if top_k.largest == top_k.classes or (same_classes and not no_values):
        return None
    if not np.all(largest_few | (np.abs(left) <= off)):
        return None
    return top_k if np.unique(left[left > off]).size >= FEWEST_VALUES else None


Far = Mapping[float, ShortLines]
TO_HALVES = (2.0, -1.0)  # of t: (1 + t) / 2


@dataclass(frozen=True)
class Likeness:
    """Fields of `Interface` that say what the answers look like."""

    answers: Kind
    unit: bool
    sigmoids: bool
    like_sigmoids: bool
    curved_odds: bool
    saturated: bool
    top_k: TopK | None
    percent: bool = False
    tanh: bool = False

    @classmethod
    def of(
        cls, near: ShortLines, far: Far, sd: float | None, off: float, *, linked: bool, curved: bool,
        scores: bool = False,
    ) -> Self:  # fmt: skip
        """The likeness of answers near and far out, with noise `sd`, that err by `off` at most.

        linked: they are values that were read from probabilities; curved: they are no values of a ReLU network; scores:
        they are integers, and no labels.
        """
        no_labels = scores or not all(all_integers(lines.answers) for lines in far.values())
        plain = cls._as_they_are(near, far, sd, off, linked, curved)._unless(no_labels)
        if linked or plain.explained:
            return plain
        if sd is not None and _about_zero(near, far, off):
            halves = {scale: lines.divided(*TO_HALVES) for scale, lines in far.items()}
            close = near.divided(*TO_HALVES)
            unit = bool(near.sound.any()) and _between_0_and_1(close, halves, sd / 2)
            tanh = unit and _straightness(close, sd / 2).surely_of_sigmoids
            return replace(plain, tanh=True, saturated=saturated(halves, sd / 2)) if tanh else plain
        if not _up_to_a_hundred(near, far, off):
            return plain
        scaled = {scale: lines.divided(PERCENT) for scale, lines in far.items()}
        hundredths = cls._as_they_are(
            near.divided(PERCENT), scaled, None if sd is None else sd / PERCENT, off / PERCENT, linked, curved
        )._unless(no_labels)
        return replace(hundredths, percent=True) if hundredths.explained else plain

    @classmethod
    def _as_they_are(cls, near: ShortLines, far: Far, sd: float | None, off: float, linked: bool, curved: bool) -> Self:
        no_values = curved or bool(far)  # far out values would not stay below 1
        top_k = None if linked else find_top_k(_everywhere(near, far), off, no_values=no_values)
        known = None if top_k is None else Kind.PROBABILITIES
        one_hot = is_one_hot(near.answers)
        answers = Kind.LABELS if one_hot else known or answer_kind(near.answers, off)
        shown, unit = None if one_hot else top_k, in_unit(near.finite_answers, off)
        if sd is None or not near.sound.any():
            return cls(answers, unit, False, False, False, sd is not None and saturated(far, sd), shown)
        bends, ends = _straightness(near, sd), saturated(far, sd)
        may_be = not linked and _between_0_and_1(near, far, sd)
        # They are 0 or 1 far out and not nearby, and digits do not show how they get there.
        hidden = ends and _decided(near.finite_answers, sd) < 1 - NEARLY_ALL and bends.as_answered < FEWEST_STRETCHES
        return cls(
            answers, unit, sigmoids=may_be and bends.of_sigmoids,
            like_sigmoids=may_be and hidden and not bends.curved_odds, curved_odds=bends.curved_odds, saturated=ends,
            top_k=shown,
        )  # fmt: skip

    def _unless(self, no_labels: bool) -> Self:
        """The likeness, with values in place of labels where these are excluded."""
        return replace(self, answers=Kind.VALUES) if no_labels and self.answers is Kind.LABELS else self

    @property
    def explained(self) -> bool:
        """True if they look like something else than values."""
        return self.answers is not Kind.VALUES or self.sigmoids or self.like_sigmoids


def _everywhere(near: ShortLines, far: Far) -> FloatArray:
    return np.concatenate([near.answers, *(lines.answers for lines in far.values())])


def _about_zero(near: ShortLines, far: Far, off: float) -> bool:
    """True if all answers lie between -1 and 1, some below 0."""
    answers = _everywhere(near, far)
    return bool(np.all(np.abs(answers) <= 1 + off) and np.any(answers < -off))


def _up_to_a_hundred(near: ShortLines, far: Far, off: float) -> bool:
    """True if all answers lie between 0 and 100, and some beyond 1."""
    answers = _everywhere(near, far)
    given = answers[~np.isnan(answers)]
    return in_unit(given / PERCENT, off / PERCENT) and not in_unit(given, off)
