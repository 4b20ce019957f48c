"""Are answers between 0 and 1 the probabilities of sigmoids? Read as log-odds they are straight where they are not.

Few digits hide the curves of a sigmoid at small scale, and a line that bends may have met a crease. Where it bends as
it is answered, and not as log-odds, only a sigmoid explains it; where it is the other way round the answers are values.
Where log-odds are curved themselves, and not by creases, something else stands there: the largest of several
probabilities is like that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from reluctant.health.answers import in_unit
from reluctant.health.lines import ShortLines
from reluctant.health.noise import SECOND_DIFFERENCE_GAIN
from reluctant.health.shape import NOISE_FACTOR, falls_with_the_square
from reluctant.numerics import FloatArray

__all__ = ["are_sigmoids", "are_surely_sigmoids", "curved_as_odds", "may_be_sigmoids", "saturated"]

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
