"""The kind of answers: values or labels, probabilities (also in percent), sigmoid or tanh, piecewise linear or smooth.

Shape: on a smooth function second differences shrink with the square of the step; on a linear piece they are noise,
whatever the step. A step as long as the input itself tells a function with creases from an affine one.

Sigmoids: answers that bend as they are, and are straight as log-odds, have no other explanation. Few digits hide such
curves, and a line that bends may have met a crease. Answers t of a tanh show by the halves (1 + t) / 2, which are those
of a sigmoid of twice the value.

Largest few: the probabilities given leave a part of 1 to the others, and none of these is larger than the smallest that
is given. Percentages are classified by their hundredths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from reluctant.interface.digits import FEWEST_VALUES, answer_kind, find_decimals, in_unit, is_one_hot, narrowest_format
from reluctant.interface.probe import SECOND_DIFFERENCE_GAIN, STEP_RATIO, ShortLines
from reluctant.interface.whole_numbers import all_whole
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles.base import Kind
from reluctant.oracles.links import PERCENT


class Shape(StrEnum):
    """What the answers look like along short lines."""

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


FEWEST = 3  # stretches: fewer may be chance
CLEARLY = 3  # times as many on one side
MOSTLY = 0.8  # of the answers
SMALL_PART = 1 / 16  # of a sigmoid's curve: the log-odds of similar curves bend by a fifth of it or more
DEVIATIONS = 3.0  # of noise, which nearly all answers are within
CERTAIN = 1e-9  # a probability that far from 0 or 1 is one of a class that is certain


def are_sigmoids(near: ShortLines, far: Mapping[float, ShortLines], sd: float) -> bool:
    """True of answers with this noise, near and at far scales, if sigmoids explain them and nothing else does as well.

    That they are 0 or 1 far out does not tell: values that are clipped there are so too.
    """
    return _between_0_and_1(near, far, sd) and _straightness(near, sd).of_sigmoids


def are_surely_sigmoids(near: ShortLines, far: Mapping[float, ShortLines], sd: float) -> bool:
    """True if digits tell sigmoids from other curves of that form too, such as that of the error function."""
    return _between_0_and_1(near, far, sd) and _straightness(near, sd).surely_of_sigmoids


def may_be_sigmoids(near: ShortLines, far: Mapping[float, ShortLines], sd: float) -> bool:
    """True of answers that are 0 or 1 far out and not nearby, if digits do not show how they get there."""
    there = _between_0_and_1(near, far, sd) and saturated(far, sd) and _decided(near.finite_answers, sd) < 1 - MOSTLY
    found = _straightness(near, sd)
    return there and found.as_answered < FEWEST and not found.curved_odds


def curved_as_odds(near: ShortLines, sd: float) -> bool:
    """True of answers between 0 and 1 with this noise if no sigmoid explains how they bend."""
    return bool(near.sound.any()) and _straightness(near, sd).curved_odds


def _between_0_and_1(near: ShortLines, far: Mapping[float, ShortLines], sd: float) -> bool:
    everywhere = [lines.finite_answers for lines in (near, *far.values())]
    return bool(near.sound.any()) and all(in_unit(answers, NOISE_FACTOR * sd) for answers in everywhere)


def saturated(far: Mapping[float, ShortLines], sd: float) -> bool:
    """True if answers with this noise are 0 or 1 at the farthest of these scales, nearly all of them."""
    if not far or not in_unit(far[max(far)].finite_answers, NOISE_FACTOR * sd):
        return False
    size = max(np.abs(lines.finite_answers).max(initial=0.0) for lines in far.values())
    return _decided(far[max(far)].at_centres, sd, size) >= MOSTLY


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
        """True if only sigmoids explain it."""
        as_odds = self.as_log_odds >= FEWEST and self.as_log_odds > CLEARLY * self.as_answered
        return as_odds and not self.curved_odds

    @property
    def surely_of_sigmoids(self) -> bool:
        """True if no similar curve does."""
        return self.of_sigmoids and self.clearly >= FEWEST and self.clearly > CLEARLY * self.not_so

    @property
    def curved_odds(self) -> bool:
        """True if sigmoids do not explain it, nor creases."""
        return self.curved >= FEWEST and self.curved >= self.as_log_odds


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


class Told(NamedTuple):
    """The largest few probabilities, of so many classes."""

    largest: int
    classes: int

    @property
    def all_but_one(self) -> bool:
        """True if the one that is missing follows from the others."""
        return self.largest == self.classes - 1


def largest_told(values: FloatArray, noise: float = 0.0, *, no_values: bool = False) -> Told | None:
    """How many probabilities of classes each answer (n, m) tells, fewer than all; None of any other answers.

    noise: the most that one is off by. no_values: it is known that they are not values; else they have to be those of
    different classes in different rows. A row that tells fewer than others has no more to tell: it adds up to 1.
    """
    answered = values[~np.isnan(values).all(axis=1)]
    p = np.where(np.isnan(answered), 0.0, answered)
    if p.shape[1] < 2 or not in_unit(p, noise):
        return None
    count, left = (p != 0).sum(axis=1), 1 - p.sum(axis=1)
    told = Told(int(count.max()), p.shape[1])
    off = told.largest * max(_rounding(p), noise)
    mean_untold = left / max(told.classes - told.largest, 1)
    largest_few = (count == told.largest) & (left >= -off) & (np.where(p != 0, p, 1.0).min(axis=1) >= mean_untold - off)
    same_classes = len(np.unique(p[count == told.largest] != 0, axis=0)) == 1
    if told.largest == told.classes or (same_classes and not no_values):
        return None
    if not np.all(largest_few | (np.abs(left) <= off)):
        return None
    return told if np.unique(left[left > off]).size >= FEWEST_VALUES else None


def _rounding(p: FloatArray) -> float:
    """The most that each may be off by, rounded or cut off."""
    decimals = find_decimals(p)
    digits = 0.0 if decimals is None else 10.0**-decimals
    return max(digits, ROUNDINGS * float(unit_roundoff(narrowest_format(p))))


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
    told: Told | None
    percent: bool = False
    tanh: bool = False

    @classmethod
    def of(
        cls, near: ShortLines, far: Far, sd: float | None, off: float, *, linked: bool, curved: bool,
        scores: bool = False,
    ) -> Self:  # fmt: skip
        """Of answers near and far out with this noise, which are off by no more than so much.

        linked: they are values that were read from probabilities; curved: they are no values of a ReLU network; scores:
        they are whole numbers, and no labels.
        """
        no_labels = scores or not all(all_whole(lines.answers) for lines in far.values())
        plain = cls._as_they_are(near, far, sd, off, linked, curved)._unless(no_labels)
        if linked or plain.explained:
            return plain
        if sd is not None and _about_zero(near, far, off):
            halves = {scale: lines.divided(*TO_HALVES) for scale, lines in far.items()}
            tanh = are_surely_sigmoids(near.divided(*TO_HALVES), halves, sd / 2)
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
        told = None if linked else largest_told(_everywhere(near, far), off, no_values=no_values)
        known = None if told is None else Kind.PROBABILITIES
        one_hot = is_one_hot(near.answers)
        return cls(
            answers=Kind.LABELS if one_hot else known or answer_kind(near.answers, off),
            unit=in_unit(near.finite_answers, off),
            sigmoids=sd is not None and not linked and are_sigmoids(near, far, sd),
            like_sigmoids=sd is not None and not linked and may_be_sigmoids(near, far, sd),
            curved_odds=sd is not None and curved_as_odds(near, sd),
            saturated=sd is not None and saturated(far, sd),
            told=None if one_hot else told,
        )

    def _unless(self, no_labels: bool) -> Self:
        """The same, or values where it is known that they are no labels."""
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
    told = answers[~np.isnan(answers)]
    return in_unit(told / PERCENT, off / PERCENT) and not in_unit(told, off)
