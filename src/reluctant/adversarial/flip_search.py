"""The search for a flip along gradients, its confirmation on the target, and `Flip`, the result.

The search measures a gradient, finds the first flip on the ray along it, and repeats both from there. A flip found by
queries is asked again: noise may have been lucky. One found on a network is tried on the target, and farther along the
same step where the target does not flip yet. Labels have no margin: the same inputs asked alone must give the same
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from reluctant.adversarial.decision import (
    DECIDED,
    LEAST_EXACT,
    Margins,
    NetworkCopy,
    SameLabel,
    SideLimit,
    Sides,
)
from reluctant.adversarial.gradient_source import (
    ASKED_AGAIN,
    GradientSource,
    QueriedTarget,
    answer_noise,
    walk,
)
from reluctant.domains import Domain
from reluctant.interface.noise import (
    is_one_hot,
    narrowest_format,
)
from reluctant.messages import Diagnosis, Remedy
from reluctant.messages.diagnosis import change_of_side
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Rows
from reluctant.oracles.input_units import InputUnits
from reluctant.oracles.links import raw_answers
from reluctant.results import Ended, Outcome
from reluctant.verification.comparison import EXACT_TOLERANCE

# Measured together, in units of the distance of a linear function: dense around it first, further out if need be.
NEAR_LENGTHS = np.array([0.25, 0.5, 0.7, 0.85, 0.95, 1.01, 1.1, 1.25, 1.5, 1.75, 2.0])
FAR_LENGTHS = np.array([2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 16.0])
BRACKET_ROUNDS = 4  # in which the flip is closed in on
ROUND_APART = 0.02 * np.array([-1.0, 0.0, 1.0])  # of the bracket: rows of a round, around where the flip is expected
LEAST_BRACKET_SHARE = ROUND_APART[-1] / 4  # of the bracket, from its ends
RAY_ROWS = len(NEAR_LENGTHS) + len(FAR_LENGTHS) + BRACKET_ROUNDS * len(ROUND_APART)  # at most


@dataclass(frozen=True)
class RayPoint:
    """A point of a ray and the answers (m,) there: the first that is flipped, or the one that came closest."""

    x: FloatArray
    values: FloatArray
    flipped: bool


def search_ray(
    ask: Callable[[FloatArray], FloatArray],
    margins: Margins,
    x: FloatArray,
    values: FloatArray,
    change: FloatArray,
    domain: Domain,
    limit: SideLimit,
) -> RayPoint:
    """Where the smallest margin is first beyond its limit on the ray from x, with these values, through x + change.

    Answers that are no numbers count as not flipped. Cost: 23 rows, 30 if the flip is beyond twice the change, 18 if
    there is none within sixteen times.
    """
    expected = float(np.linalg.norm(change))
    ray = _AskedRay(ask, margins, x, change / expected, domain, limit, np.zeros(1), values[None])
    ray.look(expected * NEAR_LENGTHS)
    if ray.first_flipped() is None:
        ray.look(expected * FAR_LENGTHS)
    for _ in range(BRACKET_ROUNDS):
        last = ray.first_flipped()
        if last is None:
            return ray.point(int(np.nanargmin(ray.margins)), flipped=False)
        (a, b), (at_a, at_b) = ray.lengths[last - 1 : last + 1], ray.margins[last - 1 : last + 1]
        crossing = at_a / (at_a - at_b) if at_a > 0 else 0.0
        share = np.clip(crossing + ROUND_APART, LEAST_BRACKET_SHARE, 1 - LEAST_BRACKET_SHARE)
        ray.look(np.asarray(a + share * (b - a)))
    last = ray.first_flipped()
    assert last is not None  # it was there before the search went on
    return ray.point(last, flipped=True)


@dataclass
class _AskedRay:
    """What was asked on a ray so far, in order."""

    ask: Callable[[FloatArray], FloatArray]
    forms: Margins
    x: FloatArray
    direction: FloatArray
    domain: Domain
    limit: SideLimit
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


TYPICAL = 0.6745  # median of |N(0, 1)|: the step of a random linear function, times √d


@dataclass(frozen=True)
class Flip(Ended):
    """The result of one step.

    x: the flipped input, as close to the boundary as the search came, or None. classes: the winning classes before
    and after, None for the sign of one output. margins: the smallest margin of the first class before and after.
    """

    outcome: Outcome
    start: FloatArray
    x: FloatArray | None = None
    classes: tuple[int, int] | None = None
    margins: tuple[float, float] | None = None
    rows: Mapping[str, Rows] = field(default_factory=lambda: MappingProxyType({}))
    evidence: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    stage: str = ""
    reason: Diagnosis | None = None
    units: InputUnits | None = None

    @property
    def ok(self) -> bool:
        """True only if the flipped input was seen to be flipped."""
        return self.outcome is Outcome.FLIPPED

    def in_inputs_of(self, units: InputUnits, start: FloatArray) -> Flip:
        """The flip from this input of the target itself; sizes stay in units, in which columns can be compared."""
        x = None if self.x is None else units.rows(self.x)
        return replace(self, start=start, x=x, units=units)

    @property
    def size(self) -> float:
        """Norm of the change, in units of the inputs where these are given; NaN if there is none."""
        scale = 1.0 if self.units is None else self.units.scale
        return float("nan") if self.x is None else float(np.linalg.norm((self.x - self.start) / scale))

    @property
    def relative_size(self) -> float:
        """Size over the norm of the input; in units of the inputs, over its distance from their middle."""
        start = self.start if self.units is None else self.units.reduced(self.start)
        norm = float(np.linalg.norm(start))
        return self.size / norm if norm > 0 else float("inf") if self.x is not None else float("nan")

    @property
    def scaled_size(self) -> float:
        """Relative size times √d: of order one in a random network, by Theorem 1.1."""
        return self.relative_size * float(np.sqrt(len(self.start)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            **self.ending(),
            "size": self.size,
            "relative size": self.relative_size,
            "relative size times root of inputs": self.scaled_size,
            "classes": self.classes,
            "margins": self.margins,
        }

    @property
    def change(self) -> Diagnosis:
        """What changes, and by how large a step; evidence["threshold"] says where one output changes side."""
        what = {"classes": self.classes, "threshold": self.evidence.get("threshold"), "size": self.size}
        what |= {} if self.units is None else {"in_units": True}
        if not self.relative_size <= FARTHEST_SHARE:  # from the origin, or next to it
            return Diagnosis("flip-by-step", what)
        sizes = {"relative_size": self.relative_size, "scaled_size": self.scaled_size, "typical": TYPICAL}
        return Diagnosis("flip-by-share", what | sizes)

    def shown_facts(self) -> dict[str, object]:
        """The change, and its size."""
        if self.x is None:
            return {}
        return {
            "change": change_of_side(self.change.fields),
            "relative size": self.relative_size,
            "times √d": self.scaled_size,
        }

    def __str__(self) -> str:
        if not self.ok:
            return str(self.diagnosis)
        return f"{self.outcome.happened} {self.change}"


FARTHEST_SHARE = 10.0  # of an input's norm: a longer step has nothing to do with the size of the input
LEAST_SLOPE = 4.0  # times the noise of a gradient: less counts as none


@dataclass(frozen=True)
class FlipSearch:
    """The start of the search, the sign that must change, and the nearest flip so far."""

    outcome: Outcome
    start: FloatArray
    values: FloatArray
    margins: Sides
    best: RayPoint | None
    evidence: Mapping[str, Any]
    reason: Diagnosis | None = None
    left: float = np.inf  # the smallest margin where nothing flipped

    def flip(self, crossed: float = 0.0) -> Flip:
        """The result of the search; crossed: where one output changes side."""
        if self.best is None:
            return Flip(self.outcome, self.start, evidence=self.evidence, reason=self.reason)
        before, after = self.margins.smallest(np.array([self.values, self.best.values]))
        classes = self.margins.change(self.best.values)
        evidence = {**self.evidence, "threshold": crossed} if crossed and classes is None else self.evidence
        return Flip(self.outcome, self.start, self.best.x, classes, (float(before), float(after)), {}, evidence)

    def because(self, reason: Diagnosis, outcome: Outcome | None = None) -> FlipSearch:
        """With a reason that is more exact than the outcome, and another outcome if one is given."""
        return replace(self, outcome=outcome or self.outcome, best=None, reason=reason)


def unflipped(outcome: Outcome, steps: int, *others: Remedy) -> Diagnosis:
    """How a search on the target ended, with other remedies, or its own; more steps are no remedy after some."""
    if outcome is Outcome.NOT_FLIPPED and steps > 1:
        return Diagnosis("not-flipped-in-steps", {"steps": steps, "what": "target"}, others)
    return replace(outcome.diagnosis, remedies=others or outcome.diagnosis.remedies)


RaySearch: TypeAlias = Callable[[Margins, FloatArray, FloatArray, FloatArray, SideLimit], RayPoint]


def follow_gradients(
    source: GradientSource,
    start: FloatArray,
    steps: int,
    values: FloatArray,
    margins: Margins,
    search: RaySearch | None = None,
) -> FlipSearch:
    """Search from an input with these answers (m,) and margins; along each ray by values, if not by `search`."""
    margin = float(margins.smallest(values[None])[0])
    evidence: dict[str, Any] = {"margin": margin, "noise": source.sd}
    if margins.classes is None:
        evidence["above"] = bool(margins.winner)  # the threshold
    if margin <= source.least:
        return FlipSearch(Outcome.ON_BOUNDARY, start, values, margins, None, evidence)
    best, here, stepped = None, RayPoint(start, values, flipped=False), False
    for _ in range(steps):
        slopes = source.gradient(here.x)
        change, limit = _wanted_change(source, margins, start, here, slopes), source.limit(slopes)
        if change is None:
            break
        if here.x is start and margin <= limit.at(start[None], values[None])[0]:
            return FlipSearch(Outcome.ON_BOUNDARY, start, values, margins, None, evidence)
        evidence.setdefault("linear size", float(np.linalg.norm(change)))
        stepped = True
        if search is None:
            here = search_ray(source.ask, margins, start, values, change, source.domain, limit)
        else:
            here = search(margins, start, values, change, limit)
        if best is not None and not (here.flipped and _distance(here, start) < _distance(best, start)):
            break
        best = here if here.flipped else None
    evidence |= {"noise": source.sd}
    if best is not None:
        return FlipSearch(Outcome.FLIPPED, start, values, margins, best, evidence)
    left = evidence["smallest margin"] = float(margins.smallest(here.values[None])[0])
    unflipped = Outcome.NOT_FLIPPED if stepped else Outcome.FLAT
    return FlipSearch(unflipped, start, values, margins, None, evidence, left=left)


def _wanted_change(
    source: GradientSource, margins: Margins, start: FloatArray, here: RayPoint, slopes: FloatArray
) -> FloatArray | None:
    """The change of the start that the gradients (m, d) at a point ask for; None where there are none.

    From a flipped point: the nearest input on the boundary as it looks from there. From one that is not flipped yet:
    that point, and a step of its own.
    """
    least = LEAST_SLOPE * source.slope_noise
    if here.flipped:
        toward = margins.toward_boundary(here.values, slopes, start - here.x, least)
        return None if toward is None else toward.change
    toward = margins.toward_boundary(here.values, slopes, np.zeros_like(start), least)
    return None if toward is None else here.x - start + toward.change


def _distance(point: RayPoint, start: FloatArray) -> float:
    return float(np.linalg.norm(point.x - start))


BEYOND_THE_STEP = np.append(10.0 ** np.arange(-7.0, 0.0), [0.3, 1.0])  # of it: how much further the target may ask
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
        with raw_answers(oracle) as raw:
            given = oracle.query(np.array([search.start, found]))
            if copy.may_round(search.values, given):
                given = np.concatenate([given, oracle.query(_unlike_label(copy, on_the_way, beyond))])
        sides, slopes = copy.sides(given), copy.network.gradients(found[None])[0]
        digits = narrowest_format(np.concatenate(raw) if raw else given)
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
        """All points but the first, asked or not."""
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
    """Points at which the network flips by more than sums in few digits round; all points if there is none.

    A target may compute in few digits, and its labels do not show in how many.
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
        ended = Diagnosis("copy-not-flipped", {"outcome": search.outcome.slug, "steps": steps})
        remedies = copy.own_units(search.values[None]) or unflipped(search.outcome, steps).remedies
        return search.because(replace(ended, remedies=remedies))
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


def _unconfirmed(copy: NetworkCopy, search: FlipSearch, asked: TargetAnswers) -> FlipSearch:
    units = copy.own_units(search.values[None]) if copy.facts.saturates else copy.other_units(asked.answers)
    slug = "copy-unconfirmed" if copy.agrees(search.margins, asked.sides) else "copy-opposed"
    return search.because(Diagnosis(slug, remedies=units), Outcome.NOT_FLIPPED)
