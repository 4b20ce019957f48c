"""Answers and gradients around one input, from queries, from queries along a known span, or from a network.

The probe takes three points on a ray into the domain, at steps from long to short: the second difference bounds
both what noise and what a crease does to a slope. It chooses the shortest step at which noise is small beside the
slope, because a gradient takes many steps and each may meet a crease. Where no step is long enough, for noise or
few digits, it tries steps as long as the input itself. The search along a ray finds the first flip, as far as some
multiples of the distance that a linear function would need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluctant.adversarial.decision import ANSWER_ROUNDINGS, DECIDED, OWN_ROUNDINGS, SideLimit
from reluctant.domains import Domain
from reluctant.errors import InvalidInput, InvalidRows, NonFiniteAnswer, OutsideDomain
from reluctant.geometry import DistanceNoise
from reluctant.geometry.gradients import gradients
from reluctant.interface.noise import (
    SECOND_DIFFERENCE_GAIN,
    UNIFORM_SD,
    RawDigits,
    digits_noise,
    narrowest_format,
    rounding_noise,
)
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting
from reluctant.oracles.base import Ask
from reluctant.oracles.links import raw_answers
from reluctant.span.cheap_gradients import INSIDE, SpanGradients
from reluctant.span.subspace import Subspace

SHORT_STEPS = 3  # of the steps, at which noise is read
CREASED_BEND = 5.0  # times the median there: noise seldom bends more
SMALL_NOISE = 1e-3  # of the slope: noise that a gradient does not feel
ALIKE_SLOPES = 0.5  # of it: slopes that differ by more, and not for noise, are not those of one linear piece
TELLING_CHANGE = 20.0  # times the noise: a change of answers that gives a slope, if nothing better is there


def walk(x: FloatArray, direction: FloatArray, lengths: FloatArray, domain: Domain) -> FloatArray:
    """Points at these lengths along a ray, pushed back into the domain coordinate by coordinate."""
    return domain.nearest(x + lengths[:, None] * direction)


@dataclass(frozen=True)
class RayLooks:
    """Answers on the ray: here (m,), and one and two steps (s,) away, (s, m) each; steps from long to short."""

    here: FloatArray
    steps: FloatArray
    near: FloatArray
    far: FloatArray

    def after(self, steps: FloatArray, answers: FloatArray) -> RayLooks:
        """The same with longer steps in front, if these have numbers."""
        near, far = np.split(answers, 2)
        finite = np.isfinite(near).all(axis=1) & np.isfinite(far).all(axis=1)
        parts = ((steps[finite], self.steps), (near[finite], self.near), (far[finite], self.far))
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
LONGER_STEPS: FloatArray = np.array([3.0, 1.0, 0.3])  # where these are too short; random networks flip at 0.7 of it
INPUTS_AROUND = 8  # more inputs, as far away as the input is long: how answers are rounded shows where they differ
ASKED_AGAIN = 4  # times that one input is asked where noise may be: it shows where answers differ
PROBE_ROWS = 1 + 2 * (len(PROBE_STEPS) + len(LONGER_STEPS)) + ASKED_AGAIN + INPUTS_AROUND  # at most
MOST_ROUNDED_BEND = 2.001  # grids: rounding alone bends three answers by no more


@dataclass(frozen=True)
class Probe:
    """The answers on the ray.

    answers (n, m): all of them, the first at the input; still: none within the short steps differs from it.
    sd: all that is unknown of an answer, coarse: more than float32 leaves. fresh: of that, the part beyond rounding to
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
    ask: Ask,
    x: FloatArray,
    domain: Domain,
    rng: np.random.Generator,
    *,
    ask_far: Ask | None = None,
    hidden_noise: Callable[[], float] = lambda: 0.0,
    longest: float = np.inf,
) -> Probe:
    """Ask along one ray. Cost: 13 rows, 31 where no short step tells a slope from noise.

    Arguments:
        ask: the target.
        x: the input (d,).
        domain: rows stay inside.
        rng: chooses the ray.
        ask_far: the target, NaN where it has no number, for longer steps.
        hidden_noise: noise of what was answered so far that answers do not show, as behind a link.
        longest: of the steps to try where short ones do not do; 0 for none.
    """
    v = rng.standard_normal(len(x))
    if not domain.is_space:
        roomier = np.asarray(domain.high) - x >= x - np.asarray(domain.low)
        v = np.where(roomier, np.abs(v), -np.abs(v))
    direction = np.asarray(v / np.linalg.norm(v))
    room, size = _room_along(x, direction, domain), typical_size(x)
    steps = PROBE_STEPS * min(size, room / (2 * PROBE_STEPS[0]))
    answers = ask(walk(x, direction, np.concatenate([[0.0], steps, 2 * steps]), domain))
    short = RayLooks(answers[0], steps, answers[1 : 1 + len(steps)], answers[1 + len(steps) :])
    found = _probe_of(short, short, hidden_noise())
    told_apart = short.fine(found.sd).size or (found.coarse and short.telling(found.sd)[0])
    if told_apart or longest <= steps[0]:
        return found
    steps = np.minimum(size * LONGER_STEPS, min(room / 2, longest))
    rows = walk(x, direction, np.concatenate([steps, 2 * steps]), domain)
    around = domain.nearest(x + size * rng.standard_normal((INPUTS_AROUND, len(x))))
    rows = np.concatenate([rows, np.repeat(x[None], ASKED_AGAIN, axis=0), around])
    far, again, others = np.split((ask_far or ask)(rows), [2 * len(steps), 2 * len(steps) + ASKED_AGAIN])
    same = np.concatenate([short.here[None], again[np.isfinite(again).all(axis=1)]])
    with np.errstate(over="ignore"):  # answers close to the largest number
        fresh = float(same.std(axis=0).max())
    every = _probe_of(short, short.after(steps, far), hidden_noise(), others, fresh)
    return every if every.coarse else _probe_of(short, short, hidden_noise(), every.answers[1:], fresh)


def answer_noise(answers: FloatArray) -> float:
    """What the number format and rounding to decimals leave unknown of answers."""
    return max(_format_noise(answers), rounding_noise(answers))


def _format_noise(answers: FloatArray) -> float:
    return ANSWER_ROUNDINGS * unit_roundoff(narrowest_format(answers)) * float(np.abs(answers).max())


def _probe_of(
    short: RayLooks, looks: RayLooks, hidden: float, others: FloatArray | None = None, again: float = 0.0
) -> Probe:
    """Noise and step, from these answers.

    hidden: noise that answers do not show; others (n, m): more answers that noise is read from; again: the difference
    between two answers to the same row.
    """
    every = looks.answers if others is None else np.concatenate([looks.answers, others])
    every = every[np.isfinite(every).all(axis=1)]
    bend, rounding, size = short.bend, rounding_noise(every), float(np.abs(every).max())
    seen = max(again, 0.0 if bend <= MOST_ROUNDED_BEND * rounding / UNIFORM_SD else bend / SECOND_DIFFERENCE_GAIN)
    fresh = max(_format_noise(every), seen)
    sd = max(fresh, rounding, hidden)
    step = looks.step(sd) if looks is short else looks.telling_step(sd)
    return Probe(
        every, sd, fresh, step,
        coarse=max(digits_noise(every), seen, hidden) > OWN_ROUNDINGS * unit_roundoff(np.float32) * size,  # digits miss
        long=bool(step > short.steps[0]), still=bool((short.answers == short.here).all()),
    )  # fmt: skip


def _room_along(x: FloatArray, direction: FloatArray, domain: Domain) -> float:
    """How far the direction may be followed inside the domain."""
    bound = np.where(direction > 0, domain.high, domain.low)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(direction == 0, np.inf, (bound - x) / direction).min())


class HasBasis(Protocol):
    """A subspace: anything with an orthonormal `basis` (k, d)."""

    @property
    def basis(self) -> FloatArray:
        """Orthonormal rows."""


def checked_input(x: ArrayLike, dim: int, domain: Domain) -> FloatArray:
    """One input (d,) inside the domain, or an error."""
    start = np.asarray(x, dtype=np.float64)
    if start.shape == (1, dim):
        start = start[0]
    if start.shape != (dim,) or not np.isfinite(start).all():
        raise InvalidRows.about("x", got=f"shape {start.shape}", expected=f"({dim},), finite")
    if not domain.contains(start[None]):
        raise OutsideDomain.about("x", got="an input outside", expected=f"one in the domain, {domain.describe()}")
    return start


@dataclass(frozen=True)
class Basis:
    """Rows (k, d) that span what a target changes along."""

    basis: FloatArray


def checked_basis(span: HasBasis | None, dim: int) -> FloatArray | None:
    """The basis (k, d) of a span, None without one."""
    if span is None:
        return None
    basis = np.asarray(getattr(span, "basis", None), dtype=np.float64)
    if basis.ndim != 2 or basis.shape[1] != dim or not len(basis):
        raise InvalidInput.about(
            "span", got=f"{type(span).__name__} with a basis of shape {basis.shape}",
            expected=f"an object with a basis (rank, {dim}), rank above 0",
        )  # fmt: skip
    return basis


def checked_steps(steps: int) -> None:
    """A whole number of steps."""
    if not isinstance(steps, int | np.integer) or isinstance(steps, bool) or steps < 1:
        raise InvalidInput.about("steps", got=repr(steps), expected="a whole number, at least 1")


MOVED_INSIDE = 2.0  # half the width of a box over this: the farthest that a point is moved away from its bounds


class GradientSource(Protocol):
    """Answers and gradients around one input."""

    domain: Domain
    sd: float  # noise of an answer

    @property
    def least(self) -> float:
        """Margins at the input that are no larger say nothing about a side."""

    def limit(self, slopes: FloatArray) -> SideLimit:
        """The limit at other inputs, with these gradients (m, d)."""

    @property
    def slope_noise(self) -> float:
        """Noise of a gradient, as a norm."""

    def ask(self, rows: FloatArray) -> FloatArray:
        """Answers (n, m), NaN where there is no number."""

    def gradient(self, x: FloatArray) -> FloatArray:
        """Gradients (m, d) of all outputs."""


@dataclass
class KnownNetwork:
    """A network whose weights are known: nothing is asked."""

    network: ReLUNetwork
    domain: Domain
    sd: float

    @classmethod
    def at(cls, network: ReLUNetwork, x: FloatArray, domain: Domain) -> KnownNetwork:
        """Around x."""
        size = float(np.abs(network(x[None])).max())
        return cls(network, domain, OWN_ROUNDINGS * unit_roundoff(np.float64) * size)

    @property
    def least(self) -> float:
        """A few times what arithmetic leaves unknown."""
        return DECIDED * self.sd

    def limit(self, slopes: FloatArray) -> SideLimit:
        """By the same arithmetic on the terms that are added up."""
        roundoff = OWN_ROUNDINGS * unit_roundoff(np.float64)
        return SideLimit.of_sums(roundoff, roundoff, slopes, self.least)

    @property
    def slope_noise(self) -> float:
        """There is none to speak of."""
        return 0.0

    def ask(self, rows: FloatArray) -> FloatArray:
        """Evaluate the network."""
        return self.network(rows)

    def gradient(self, x: FloatArray) -> FloatArray:
        """By one pass back through the network."""
        return np.asarray(self.network.gradients(x[None])[0])


@dataclass
class QueriedTarget:
    """A target that is asked; with the basis (k, d) of a span a gradient takes k + 2 rows instead of d + 2.

    behind: the digits of the probabilities that answers were read from; None without a link.
    """

    oracle: Counting
    domain: Domain
    probe: Probe
    behind: RawDigits | None
    sd: float
    basis: FloatArray | None
    rng: np.random.Generator

    @classmethod
    def at(
        cls,
        oracle: Counting,
        x: FloatArray,
        basis: FloatArray | None,
        rng: np.random.Generator,
        *,
        far: bool = False,
    ) -> QueriedTarget:
        """Probe the target around x; far: where digits are few, by steps as long as x. Cost: 13 rows, or 31."""
        domain = oracle.facts.domain
        with oracle.stage("probe"), raw_answers(oracle) as raw:
            found = probe_input(
                oracle.query, x, domain, rng, ask_far=lambda rows: _query_with_gaps(oracle, rows),
                hidden_noise=lambda: 0.0 if not raw else RawDigits.behind(oracle, raw).noise,
                longest=_longest_step(domain, basis) if far else 0.0,
            )  # fmt: skip
        return cls(oracle, domain, found, RawDigits.behind(oracle, raw) if raw else None, found.sd, basis, rng)

    @property
    def values(self) -> FloatArray:
        """Answers (m,) at the input."""
        return np.asarray(self.probe.answers[0])

    @property
    def least(self) -> float:
        """A few times the noise; of rounding half a unit of the last digit, which is the most that it changes."""
        noise = self.sd if self.sd > self.probe.sd else self.probe.fresh
        return max(DECIDED * noise, rounding_noise(self.probe.answers) / UNIFORM_SD / 2)

    def limit(self, slopes: FloatArray) -> SideLimit:
        """By the digits in which the target gave its answers."""
        number_format = narrowest_format(self.probe.answers) if self.behind is None else self.behind.number_format
        return SideLimit.of(number_format, slopes, self.least)

    @property
    def slope_noise(self) -> float:
        """Noise of a slope: of a difference of two answers over a step, all directions together."""
        directions = self.oracle.dim if self.basis is None else len(self.basis)
        return self.slope_noise_of(directions)

    def slope_noise_of(self, directions: int) -> float:
        """Norm of the noise of slopes along so many directions."""
        return float(np.sqrt(2 * directions) * self.sd / self.probe.step)

    def ask(self, rows: FloatArray) -> FloatArray:
        """Ask along the ray; far out a target may have no number to give."""
        with self.oracle.stage("line"):
            return _query_with_gaps(self.oracle, rows)

    def gradient(self, x: FloatArray) -> FloatArray:
        """By forward differences, once: a few steps across a crease turn a gradient only a little.

        The row that checks them is another reading of the noise, where rounding or creases on long steps are not.
        """
        if self.basis is None:
            slope, off = self.slopes(x[None], None)
            gradient = slope[0]
        else:
            with self.oracle.stage("gradient"):
                found = self.in_span(self.basis).inside(x[None])
            gradient, off = found.slope[0] @ self.basis, found.off
        if self.probe.fresh == self.probe.sd and not self.probe.long:
            self.sd = max(self.sd, float(off[0]))
        return np.asarray(gradient)

    def in_span(self, basis: FloatArray) -> SpanGradients:
        """Gradients among the directions of a span, with the step and the noise of this input."""
        noise = DistanceNoise(self.sd, 0.0)
        return SpanGradients(self.oracle, Subspace(basis), noise, self.probe.step, self.rng, rounds=1)

    def slopes(self, points: FloatArray, basis: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Slopes (n, m, k) along a basis, None for the inputs, and what the check of each was off, as noise."""
        noise, steps = DistanceNoise(self.sd, 0.0), np.full(len(points), self.probe.step)
        with self.oracle.stage("gradient"):
            found = gradients(self.oracle.query, points, basis, steps, noise, self.rng, domain=self.domain, rounds=1)
        return found.slope, found.off

    def inside(self, x: FloatArray) -> FloatArray:
        """Moved so far from the bounds that a step along any unit direction stays between them."""
        return self.domain.away(x, INSIDE * self.probe.step)


def _query_with_gaps(oracle: Counting, rows: FloatArray) -> FloatArray:
    """Answers (n, m), NaN in rows that have no number."""
    try:
        return oracle.query(rows)
    except NonFiniteAnswer as error:
        return np.where(np.isfinite(error.answers).all(axis=1, keepdims=True), error.answers, np.nan)


def _longest_step(domain: Domain, basis: FloatArray | None) -> float:
    """The longest step for a gradient. In a box, points keep that far from its bounds."""
    return (
        np.inf if basis is None else float(np.min(np.subtract(domain.high, domain.low)) / (2 * MOVED_INSIDE * INSIDE))
    )
