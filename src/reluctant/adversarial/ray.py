"""Queries along a ray from one input: its noise, the step for a gradient, and the first flip.

The probe takes three points on a ray into the domain, at steps from long to short: the second difference bounds
both what noise and what a crease does to a slope. The shortest step at which noise is small beside the slope is
taken, because a gradient takes many steps and each may meet a crease. Where no step is long enough, for noise or
few digits, steps as long as the input itself are tried. The first flip is looked for as far as some multiples of
the distance that a linear function would need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluctant.adversarial.decision import ANSWER_ROUNDINGS, OWN_ROUNDINGS, Margins, SideLimit
from reluctant.domains import Domain
from reluctant.interface.noise import SECOND_DIFFERENCE_GAIN, UNIFORM_SD, digits_noise, narrowest_format, rounding_noise
from reluctant.numerics import FloatArray, unit_roundoff

# Looked at together, in units of the distance of a linear function: dense around it first, further out if need be.
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
        ray.look(_bracket_guesses(ray.lengths[last - 1 : last + 1], ray.margins[last - 1 : last + 1]))
    last = ray.first_flipped()
    assert last is not None  # it was there before more was looked at
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


def _bracket_guesses(lengths: FloatArray, margins: FloatArray) -> FloatArray:
    """Three lengths inside a bracket, around where a straight line between its ends crosses zero."""
    (a, b), (at_a, at_b) = lengths, margins
    crossing = at_a / (at_a - at_b) if at_a > 0 else 0.0
    share = np.clip(crossing + ROUND_APART, LEAST_BRACKET_SHARE, 1 - LEAST_BRACKET_SHARE)
    return np.asarray(a + share * (b - a))


SHORT_STEPS = 3  # of the steps, at which noise is read
CREASED_BEND = 5.0  # times the median there: noise seldom bends more
SMALL_NOISE = 1e-3  # of the slope: noise that a gradient does not feel
ALIKE_SLOPES = 0.5  # of it: slopes that differ by more, and not for noise, are not those of one linear piece
TELLING_CHANGE = 20.0  # times the noise: a change of answers that a slope can be taken from, if nothing better is there


@dataclass(frozen=True)
class RayLooks:
    """Answers on the ray: here (m,), and one and two steps (s,) away, (s, m) each; steps from long to short."""

    here: FloatArray
    steps: FloatArray
    near: FloatArray
    far: FloatArray

    def after(self, steps: FloatArray, answers: FloatArray) -> RayLooks:
        """With longer steps in front, those of them that have numbers."""
        near, far = np.split(answers, 2)
        told = np.isfinite(near).all(axis=1) & np.isfinite(far).all(axis=1)
        parts = ((steps[told], self.steps), (near[told], self.near), (far[told], self.far))
        return RayLooks(self.here, *(np.concatenate(part) for part in parts))

    @property
    def answers(self) -> FloatArray:
        """All of them (2s + 1, m), the first at the input."""
        return np.concatenate([self.here[None], self.near, self.far])

    @property
    def bends(self) -> FloatArray:
        """Second differences (s,), of the output that has the largest."""
        return np.asarray(np.abs(self.here - 2 * self.near + self.far).max(axis=1))

    @property
    def bend(self) -> float:
        """What noise bends three answers by: root mean square at the shortest steps, and at all that bend no more."""
        bends = self.bends
        alike = bends[bends <= CREASED_BEND * np.median(bends[-SHORT_STEPS:])]
        with np.errstate(over="ignore"):  # answers close to the largest number: infinite noise
            return float(np.sqrt(np.mean(alike**2)))

    @property
    def slopes(self) -> FloatArray:
        """Slopes (s,) over each step, of the output that has the largest."""
        return np.asarray(np.abs(self.near - self.here).max(axis=1) / self.steps)

    def best(self, sd: float) -> int:
        """The step that errs least."""
        return int(np.argmin(np.maximum(self.bends, sd) / self.steps))

    def fine(self, sd: float) -> NDArray[np.intp]:
        """Steps whose noise is small beside the slope; none if shorter ones do not show it: answers are rounded."""
        best, slopes = self.best(sd), self.slopes
        slope, shorter = slopes[best], slice(best, None)
        off = np.abs(slopes[shorter] - slope)
        hidden = (off > ALIKE_SLOPES * slope + TELLING_CHANGE * sd / self.steps[shorter]).any()
        return np.flatnonzero((sd / self.steps <= SMALL_NOISE * slope) & ~hidden)

    def telling(self, sd: float) -> NDArray[np.bool_]:
        """Which steps show a change that is clearly more than noise."""
        changes = np.maximum(np.abs(self.near - self.here), np.abs(self.far - self.here)).max(axis=1)
        return np.asarray(changes >= TELLING_CHANGE * sd)

    def step(self, sd: float) -> float:
        """The shortest that is fine; if there is none, the one that errs least."""
        best, fine = self.best(sd), self.fine(sd)
        return float(self.steps[max(best, fine[-1])] if len(fine) else self.steps[best])

    def telling_step(self, sd: float) -> float:
        """The shortest that shows a change beyond noise, as the next longer one does; if none does, the longest."""
        telling = self.telling(sd)
        both = np.flatnonzero(telling & np.append(True, telling[:-1]))
        return float(self.steps[both[-1] if len(both) else 0])


PROBE_STEPS: FloatArray = 10.0 ** -np.arange(1.0, 7.0)  # of the size of a coordinate
LONGER_STEPS: FloatArray = np.array(
    [3.0, 1.0, 0.3]
)  # where these are too short; random networks flip at 0.7 of that size
INPUTS_AROUND = 8  # more inputs, as far away as the input is long: how answers are rounded shows where they differ
ASKED_AGAIN = 4  # times that one input is asked where noise may be: it shows where answers differ
PROBE_ROWS = 1 + 2 * (len(PROBE_STEPS) + len(LONGER_STEPS)) + ASKED_AGAIN + INPUTS_AROUND  # at most
MOST_ROUNDED_BEND = 2.001  # grids: rounding alone bends three answers by no more

AskRows = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Probe:
    """What was seen on the ray.

    answers (n, m): all of them, the first at the input; still: none within the short steps differs from it.
    sd: all that is unknown of an answer, coarse: more than float32 leaves. fresh: of that, what is not rounding to
    decimals. step: for a gradient; long: longer than the short steps.
    """

    answers: FloatArray
    sd: float
    fresh: float
    step: float
    coarse: bool = False
    long: bool = False
    still: bool = False

    @property
    def flat(self) -> bool:
        """True if nothing changed along the ray."""
        return bool(np.ptp(self.answers, axis=0).max() == 0)


def typical_size(x: FloatArray) -> float:
    """Root mean square of the coordinates, 1 for the origin."""
    size = float(np.linalg.norm(x) / np.sqrt(len(x)))
    return size if size > 0 else 1.0


def probe_input(
    ask: AskRows,
    x: FloatArray,
    domain: Domain,
    rng: np.random.Generator,
    *,
    ask_far: AskRows | None = None,
    told_noise: Callable[[], float] = lambda: 0.0,
    longest: float = np.inf,
) -> Probe:
    """Ask along one ray. Cost: 13 rows, 31 where no short step tells a slope from noise.

    Arguments:
        ask: the target.
        x: the input (d,).
        domain: rows stay inside.
        rng: chooses the ray.
        ask_far: the target, NaN where it has no number, for longer steps.
        told_noise: noise of what was answered so far that answers do not show, as behind a link.
        longest: of the steps to try where short ones do not do; 0 for none.
    """
    direction = _inward_direction(x, domain, rng)
    room, size = _room_along(x, direction, domain), typical_size(x)
    steps = PROBE_STEPS * min(size, room / (2 * PROBE_STEPS[0]))
    answers = ask(walk(x, direction, np.concatenate([[0.0], steps, 2 * steps]), domain))
    short = RayLooks(answers[0], steps, answers[1 : 1 + len(steps)], answers[1 + len(steps) :])
    found = _probe_of(short, short, told_noise())
    told_apart = short.fine(found.sd).size or (found.coarse and short.telling(found.sd)[0])
    if told_apart or longest <= steps[0]:
        return found
    steps = np.minimum(size * LONGER_STEPS, min(room / 2, longest))
    rows = walk(x, direction, np.concatenate([steps, 2 * steps]), domain)
    rows = np.concatenate([rows, np.repeat(x[None], ASKED_AGAIN, axis=0), _rows_around(x, size, domain, rng)])
    far, again, others = np.split((ask_far or ask)(rows), [2 * len(steps), 2 * len(steps) + ASKED_AGAIN])
    same = np.concatenate([short.here[None], again[np.isfinite(again).all(axis=1)]])
    with np.errstate(over="ignore"):  # answers close to the largest number
        fresh = float(same.std(axis=0).max())
    every = _probe_of(short, short.after(steps, far), told_noise(), others, fresh)
    return every if every.coarse else _probe_of(short, short, told_noise(), every.answers[1:], fresh)


def answer_noise(answers: FloatArray) -> float:
    """What the number format and rounding to decimals leave unknown of answers."""
    return max(_format_noise(answers), rounding_noise(answers))


def _format_noise(answers: FloatArray) -> float:
    return ANSWER_ROUNDINGS * unit_roundoff(narrowest_format(answers)) * float(np.abs(answers).max())


def _probe_of(
    short: RayLooks, looks: RayLooks, told: float, others: FloatArray | None = None, again: float = 0.0
) -> Probe:
    """Noise and step by what was seen.

    told: noise that answers do not show; others (n, m): more answers that noise is read from; again: what answers
    differ by when they are asked for again.
    """
    every = looks.answers if others is None else np.concatenate([looks.answers, others])
    every = every[np.isfinite(every).all(axis=1)]
    bend, rounding, size = short.bend, rounding_noise(every), float(np.abs(every).max())
    seen = max(again, 0.0 if bend <= MOST_ROUNDED_BEND * rounding / UNIFORM_SD else bend / SECOND_DIFFERENCE_GAIN)
    fresh = max(_format_noise(every), seen)
    sd = max(fresh, rounding, told)
    step = looks.step(sd) if looks is short else looks.telling_step(sd)
    return Probe(
        every, sd, fresh, step,
        coarse=max(digits_noise(every), seen, told) > OWN_ROUNDINGS * unit_roundoff(np.float32) * size,  # digits miss
        long=bool(step > short.steps[0]), still=bool((short.answers == short.here).all()),
    )  # fmt: skip


def _rows_around(x: FloatArray, size: float, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Random inputs (n, d) as far from this one as it is long."""
    return np.clip(x + size * rng.standard_normal((INPUTS_AROUND, len(x))), domain.low, domain.high)


def _inward_direction(x: FloatArray, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """A random unit vector that points to the roomier side of the domain in every coordinate."""
    v = rng.standard_normal(len(x))
    if not domain.is_space:
        roomier = np.asarray(domain.high) - x >= x - np.asarray(domain.low)
        v = np.where(roomier, np.abs(v), -np.abs(v))
    return np.asarray(v / np.linalg.norm(v))


def _room_along(x: FloatArray, direction: FloatArray, domain: Domain) -> float:
    """How far the direction may be followed inside the domain."""
    bound = np.where(direction > 0, domain.high, domain.low)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(direction == 0, np.inf, (bound - x) / direction).min())
