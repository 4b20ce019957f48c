"""Confirmation of a flip on the target itself, beyond its rounding and noise.

A flip that was found by questions is asked again. One that was found on a network is tried on the target, and
farther along the same step where the target asks for it; labels have no margin, and have to stay where they are
asked alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reluctant.adversarial.decision import DECIDED, LEAST_EXACT, NetworkCopy, SameLabel, SideLimit, Sides
from reluctant.adversarial.flip_search import FlipSearch, unflipped
from reluctant.adversarial.gradient_source import QueriedTarget
from reluctant.adversarial.ray import ASKED_AGAIN, RayPoint, answer_noise, walk
from reluctant.interface.noise import is_one_hot, narrowest_format
from reluctant.messages import Diagnosis
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.links import raw_answers
from reluctant.results import Outcome
from reluctant.verification.comparison import EXACT_TOLERANCE

BEYOND_THE_STEP = np.append(
    10.0 ** np.arange(-7.0, 0.0), [0.3, 1.0]
)  # of the step: how much further the target may ask to go
ON_THE_WAY = np.arange(0.1, 1.0, 0.1)  # of the step
NO_ROUNDING = SideLimit(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class TargetAnswers:
    """Answers (m,) at an input, and those (n, m) at points (n, d) where a network flips.

    sides, limit: those of the target. beyond (k, d): points ever farther along the step, which may be asked as well.
    """

    oracle: Counting
    before: FloatArray
    points: FloatArray
    answers: FloatArray
    sides: Sides
    limit: SideLimit
    beyond: FloatArray

    @classmethod
    def at(cls, oracle: Counting, copy: NetworkCopy, search: FlipSearch, found: FloatArray) -> Self:
        """Ask where the search started, and where it found a flip.

        Cost: 2 rows, and one more where 0 and 1 may be rounded values or labels, at a point where these differ.
        """
        on_the_way, beyond = (
            walk(search.start, found - search.start, lengths, oracle.facts.domain)
            for lengths in (ON_THE_WAY, 1 + BEYOND_THE_STEP)
        )
        with raw_answers(oracle) as told:
            given = oracle.query(np.array([search.start, found]))
            if copy.may_round(search.values, given):
                given = np.concatenate([given, oracle.query(_unlike_label(copy, on_the_way, beyond))])
        sides, slopes = copy.sides(given), copy.network.gradients(found[None])[0]
        digits = narrowest_format(np.concatenate(told) if told else given)
        limit = SideLimit.of(digits, slopes, DECIDED * answer_noise(given))  # no link is steeper than what it is of
        asked = cls(oracle, given[0], found[None], given[1:2], sides, limit, beyond)
        return (
            asked if not asked.labels else replace(asked, limit=NO_ROUNDING, beyond=_clear_points(copy, search, beyond))
        )

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

    def farther(self, count: int = len(BEYOND_THE_STEP)) -> Self:
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

    def confirmed(self, search: FlipSearch, x: FloatArray, answer: FloatArray) -> FlipSearch:
        """The flip in the units of the target."""
        return replace(search, values=self.before, margins=self.sides, best=RayPoint(x, answer, True))


def _unlike_label(copy: NetworkCopy, *several: FloatArray) -> FloatArray:
    """The point (1, d) among several (n, d) at which the network is farthest from 0 and 1."""
    points = np.concatenate(several)
    values = copy.network(points)[:, 0]
    return points[[np.minimum(np.abs(values), np.abs(values - 1)).argmax()]]


def _clear_points(copy: NetworkCopy, search: FlipSearch, points: FloatArray) -> FloatArray:
    """Those points at which the network is beyond the rounding of a target that adds up in few digits, if any is.

    Labels do not tell in how many.
    """
    values, slopes = copy.network(points), copy.network.gradients(points[:1])[0]
    limits = SideLimit.of(LEAST_EXACT, slopes, 0.0).at(points, values)
    clear = search.margins.smallest(values) < -limits
    return points[clear] if clear.any() else points


CLEAR_ERRORS = 3.0  # standard errors of the mean of several answers, beyond the boundary
SURE_ERRORS = 5.0  # the same for the first of several inputs
TOO_NOISY_REASON = Diagnosis("flip-within-noise")


def asked_again(source: QueriedTarget, search: FlipSearch) -> FlipSearch:
    """Ask the flipped input again, alone and several times together.

    With fresh noise the first answer beyond a limit may be a lucky one; rounding may be another in another batch.
    """
    if search.best is None:
        return search
    rows = np.repeat(search.best.x[None], ASKED_AGAIN, axis=0)
    margins = search.margins.smallest(np.concatenate([source.ask(rows[:1]), source.ask(rows[1:])]))
    fresh = margins.std(ddof=1)
    sd = max(fresh, source.sd) if fresh > 0 else 0.0  # so few answers may agree by chance
    if margins.mean() + CLEAR_ERRORS * sd / np.sqrt(ASKED_AGAIN) < 0:
        return search
    return search.because(TOO_NOISY_REASON, Outcome.TOO_NOISY)


def on_target(oracle: Counting, copy: NetworkCopy, search: FlipSearch, steps: int) -> FlipSearch:
    """Try a network's flip on the target, further along where the target asks for it.

    Cost: 2 or 11 rows; where the network does not explain the first answer one more, which tells noise: then 39. Of
    labels 3, 4 or 12, and 48 at most if they are noisy. One more where 0 and 1 may be rounded values.
    """
    if search.best is None:
        return _network_unflipped(copy, search, steps)
    with oracle.stage("confirm"):
        asked = TargetAnswers.at(oracle, copy, search, search.best.x)
        if not asked.decided(search.start):
            return replace(search, outcome=Outcome.ON_BOUNDARY, best=None)
        if asked.labels:
            return _confirmed_label(asked, copy, search)
        if not _explains(search.values, asked.before) and not asked.stays(0):
            return _among_noise(asked, search)
        asked = asked if asked.flipped[0] else asked.farther()
    return _first_flip(asked, copy, search)


def _confirmed_label(asked: TargetAnswers, copy: NetworkCopy, search: FlipSearch) -> FlipSearch:
    """A label tells nothing of how near the boundary is: it has to stay beyond the rounding, and where asked alone."""
    asked = asked.farther(1)
    first, second = asked.flipped
    if second and (first or asked.stays(1)):
        return asked.confirmed(search, asked.points[1], asked.answers[1])
    if not (first or second):
        asked = asked.farther()
        if asked.flipped.any() and asked.stays(int(asked.flipped.argmax())):
            return _first_flip(asked, copy, search)
    return _among_noise(asked, search) if asked.flipped.any() else _unconfirmed(copy, search, asked)


def _first_flip(asked: TargetAnswers, copy: NetworkCopy, search: FlipSearch) -> FlipSearch:
    if not asked.flipped.any():
        return _unconfirmed(copy, search, asked)
    first = int(asked.flipped.argmax())
    return asked.confirmed(search, asked.points[first], asked.answers[first])


def _explains(values: FloatArray, answer: FloatArray) -> bool:
    """True if a network gives half the digits of an answer, or more: no noise that matters is on it."""
    return values.shape == answer.shape and bool(
        np.abs(values - answer).max() <= EXACT_TOLERANCE * np.abs(answer).max()
    )


def _among_noise(asked: TargetAnswers, search: FlipSearch) -> FlipSearch:
    """The first input that is beyond by more than its noise, as several answers tell it, together and one by one."""
    points, ask = asked.beyond_found, asked.oracle.query
    answers = np.array([*(ask(points) for _ in range(ASKED_AGAIN - 1)), np.concatenate([ask(x[None]) for x in points])])
    margins = np.array([asked.sides.smallest(each) for each in answers])
    sd = float(np.sqrt(margins.var(axis=0, ddof=1).mean()))
    limits = asked.limit.at(points, answers.mean(axis=0))
    clear = np.flatnonzero(margins.mean(axis=0) < -np.maximum(SURE_ERRORS * sd / np.sqrt(ASKED_AGAIN), limits))
    if not len(clear):
        return search.because(TOO_NOISY_REASON, Outcome.TOO_NOISY)
    first = int(clear[0])
    of_it = answers[:, first]
    return asked.confirmed(search, points[first], of_it[-1] if asked.labels else of_it.mean(axis=0))


def _network_unflipped(copy: NetworkCopy, search: FlipSearch, steps: int) -> FlipSearch:
    """The search ended on the network itself, before the target was asked."""
    ended = Diagnosis("copy-not-flipped", {"outcome": search.outcome.slug, "steps": steps})
    remedies = copy.own_units(search.values[None]) or unflipped(search.outcome, steps).remedies
    return search.because(replace(ended, remedies=remedies))


def _unconfirmed(copy: NetworkCopy, search: FlipSearch, asked: TargetAnswers) -> FlipSearch:
    units = copy.own_units(search.values[None]) if copy.facts.saturates else copy.other_units(asked.answers)
    slug = "copy-unconfirmed" if copy.agrees(search.margins, asked.sides) else "copy-opposed"
    return search.because(Diagnosis(slug, remedies=units), Outcome.NOT_FLIPPED)
