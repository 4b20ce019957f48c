"""The first flip on a ray from an input, as far as some multiples of the distance a linear function would need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.adversarial.margins import Margins
from reluctant.adversarial.rounding import Limit
from reluctant.domains import Domain
from reluctant.numerics import FloatArray

__all__ = ["RAY_ROWS", "RayPoint", "search_ray", "walk"]

# Looked at together, in units of the distance of a linear function: dense around it first, further out if need be.
NEAR = np.array([0.25, 0.5, 0.7, 0.85, 0.95, 1.01, 1.1, 1.25, 1.5, 1.75, 2.0])
FAR = np.array([2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 16.0])
ROUNDS = 4  # in which the flip is closed in on
APART = 0.02 * np.array([-1.0, 0.0, 1.0])  # of the bracket: rows of a round, around where the flip is expected
LEAST_SHARE = APART[-1] / 4  # of the bracket, from its ends
RAY_ROWS = len(NEAR) + len(FAR) + ROUNDS * len(APART)  # at most


@dataclass(frozen=True)
class RayPoint:
    """A point of a ray and the answers (m,) there: the first that is flipped, or the one that came closest."""

    x: FloatArray
    values: FloatArray
    flipped: bool


def walk(x: FloatArray, direction: FloatArray, lengths: FloatArray, domain: Domain) -> FloatArray:
    """Points at these lengths along a ray, pushed back into the domain coordinate by coordinate."""
    return np.clip(x + lengths[:, None] * direction, domain.low, domain.high)


def search_ray(
    ask: Callable[[FloatArray], FloatArray],
    margins: Margins,
    x: FloatArray,
    values: FloatArray,
    change: FloatArray,
    domain: Domain,
    limit: Limit,
) -> RayPoint:
    """Where the smallest margin is first beyond its limit on the ray from x, with these values, through x + change.

    Answers that are no numbers count as not flipped. Cost: 23 rows, 30 if the flip is beyond twice the change, 18 if
    there is none within sixteen times.
    """
    expected = float(np.linalg.norm(change))
    ray = _Ray(ask, margins, x, change / expected, domain, limit, np.zeros(1), values[None])
    ray.look(expected * NEAR)
    if ray.first_flipped() is None:
        ray.look(expected * FAR)
    for _ in range(ROUNDS):
        last = ray.first_flipped()
        if last is None:
            return ray.point(int(np.nanargmin(ray.margins)), flipped=False)
        ray.look(_guesses(ray.lengths[last - 1 : last + 1], ray.margins[last - 1 : last + 1]))
    last = ray.first_flipped()
    assert last is not None  # it was there before more was looked at
    return ray.point(last, flipped=True)


@dataclass
class _Ray:
    """What was asked on a ray so far, in order."""

    ask: Callable[[FloatArray], FloatArray]
    forms: Margins
    x: FloatArray
    direction: FloatArray
    domain: Domain
    limit: Limit
    lengths: FloatArray
    answers: FloatArray

    @property
    def margins(self) -> FloatArray:
        return self.forms.smallest(self.answers)

    def look(self, lengths: FloatArray) -> None:
        answers = np.concatenate([self.answers, self.ask(walk(self.x, self.direction, lengths, self.domain))])
        every = np.concatenate([self.lengths, lengths])
        order = np.argsort(every, kind="stable")
        self.lengths, self.answers = every[order], answers[order]

    @property
    def points(self) -> FloatArray:
        return walk(self.x, self.direction, self.lengths, self.domain)

    def first_flipped(self) -> int | None:
        beyond = np.flatnonzero(self.margins < -self.limit.at(self.points, self.answers))
        return int(beyond[0]) if len(beyond) else None

    def point(self, index: int, *, flipped: bool) -> RayPoint:
        return RayPoint(self.points[index], self.answers[index], flipped)


def _guesses(lengths: FloatArray, margins: FloatArray) -> FloatArray:
    """Three lengths inside a bracket, around where a straight line between its ends crosses zero."""
    (a, b), (at_a, at_b) = lengths, margins
    crossing = at_a / (at_a - at_b) if at_a > 0 else 0.0
    share = np.clip(crossing + APART, LEAST_SHARE, 1 - LEAST_SHARE)
    return np.asarray(a + share * (b - a))
