"""What a target answers where a network that stands for it flips, and farther along the same step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reluctant.adversarial.line import RayPoint, walk
from reluctant.adversarial.margins import SameLabel, Sides
from reluctant.adversarial.probe import answer_noise
from reluctant.adversarial.rounding import DECIDED, LEAST_EXACT, Limit
from reluctant.adversarial.search import Search
from reluctant.adversarial.units import Copy
from reluctant.health.answers import is_one_hot, narrowest_format
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.link import all_told

__all__ = ["BEYOND", "Asked"]

BEYOND = np.append(10.0 ** np.arange(-7.0, 0.0), [0.3, 1.0])  # of the step: how much further the target may ask to go
ON_THE_WAY = np.arange(0.1, 1.0, 0.1)  # of the step
NO_ROUNDING = Limit(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Asked:
    """Answers (m,) at an input, and those (n, m) at points (n, d) where a network flips.

    sides, limit: those of the target. beyond (k, d): points ever farther along the step, which may be asked as well.
    """

    oracle: Counting
    before: FloatArray
    points: FloatArray
    answers: FloatArray
    sides: Sides
    limit: Limit
    beyond: FloatArray

    @classmethod
    def at(cls, oracle: Counting, copy: Copy, search: Search, found: FloatArray) -> Self:
        """Ask where the search started, and where it found a flip.

        Cost: 2 rows, and one more where 0 and 1 may be rounded values or labels, at a point where these differ.
        """
        on_the_way, beyond = (
            walk(search.start, found - search.start, lengths, oracle.facts.domain)
            for lengths in (ON_THE_WAY, 1 + BEYOND)
        )
        with all_told(oracle) as told:
            given = oracle.query(np.array([search.start, found]))
            if copy.may_round(search.values, given):
                given = np.concatenate([given, oracle.query(_unlike_labels(copy, on_the_way, beyond))])
        sides, slopes = copy.sides(given), copy.network.gradients(found[None])[0]
        digits = narrowest_format(np.concatenate(told) if told else given)
        limit = Limit.of(digits, slopes, DECIDED * answer_noise(given))  # no link is steeper than what it is of
        asked = cls(oracle, given[0], found[None], given[1:2], sides, limit, beyond)
        return asked if not asked.labels else replace(asked, limit=NO_ROUNDING, beyond=_clear(copy, search, beyond))

    @property
    def labels(self) -> bool:
        """True of answers that have no margin: whole numbers, however few bits hold them, or a 1 among 0s."""
        return isinstance(self.sides, SameLabel) or is_one_hot(np.concatenate([self.before[None], self.answers]))

    def decided(self, start: FloatArray) -> bool:
        """True if the input itself is clearly on one side."""
        return bool(self.sides.smallest(self.before[None])[0] > self.limit.at(start[None], self.before[None])[0])

    @property
    def beyond_found(self) -> FloatArray:
        """All points but the first, those that were asked and those that were not."""
        return np.concatenate([self.points[1:], self.beyond])

    def farther(self, count: int = len(BEYOND)) -> Self:
        """With so many of the points beyond, or all that are left. Cost: a row each."""
        points, left = self.beyond[:count], self.beyond[count:]
        if not len(points):
            return self
        answers = np.concatenate([self.answers, self.oracle.query(points)])
        return replace(self, points=np.concatenate([self.points, points]), answers=answers, beyond=left)

    def stays(self, index: int) -> bool:
        """True if a point is answered alone as it was among others, up to rounding. Cost: 1 row."""
        one = slice(index, index + 1)
        off = np.abs(self.oracle.query(self.points[one]) - self.answers[one]).max()
        return bool(off <= self.limit.at(self.points[one], self.answers[one])[0])

    @property
    def flipped(self) -> NDArray[np.bool_]:
        """Which of the points (n,) are clearly on another side than the input."""
        return np.asarray(self.sides.smallest(self.answers) < -self.limit.at(self.points, self.answers))

    def confirmed(self, search: Search, x: FloatArray, answer: FloatArray) -> Search:
        """The flip in the units of the target."""
        return replace(search, values=self.before, margins=self.sides, best=RayPoint(x, answer, True))


def _unlike_labels(copy: Copy, *several: FloatArray) -> FloatArray:
    """The point (1, d) among several (n, d) at which the network is farthest from 0 and 1."""
    points = np.concatenate(several)
    values = copy.network(points)[:, 0]
    return points[[np.minimum(np.abs(values), np.abs(values - 1)).argmax()]]


def _clear(copy: Copy, search: Search, points: FloatArray) -> FloatArray:
    """Those points at which the network is beyond the rounding of a target that adds up in few digits, if any is.

    Labels do not tell in how many.
    """
    values, slopes = copy.network(points), copy.network.gradients(points[:1])[0]
    limits = Limit.of(LEAST_EXACT, slopes, 0.0).at(points, values)
    clear = search.margins.smallest(values) < -limits
    return points[clear] if clear.any() else points
