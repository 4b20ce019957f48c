"""How noisy a target is around one input, and how long a step a gradient there wants.

Three points on a ray into the domain, at steps from long to short: the second difference bounds both what noise
and what a crease does to a slope. The shortest step at which noise is small beside the slope is taken, because
a gradient takes many steps and each may meet a crease. Where no step is long enough, for noise or few digits, steps
as long as the input itself are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.adversarial.line import walk
from reluctant.adversarial.looks import Looks
from reluctant.adversarial.rounding import ANSWER_ROUNDINGS, OWN_ROUNDINGS
from reluctant.domains import Domain
from reluctant.health.answers import UNIFORM_SD, digits_noise, narrowest_format, rounding_noise
from reluctant.health.noise import SECOND_DIFFERENCE_GAIN
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["AGAIN", "PROBE_ROWS", "Probe", "answer_noise", "probe", "typical_size"]

STEPS: FloatArray = 10.0 ** -np.arange(1.0, 7.0)  # of the size of a coordinate
LONGER: FloatArray = np.array([3.0, 1.0, 0.3])  # where these are too short; random networks flip at 0.7 of that size
AROUND = 8  # more inputs, as far away as the input is long: how answers are rounded shows where they differ
AGAIN = 4  # times that one input is asked where noise may be: it shows where answers differ
PROBE_ROWS = 1 + 2 * (len(STEPS) + len(LONGER)) + AGAIN + AROUND  # at most
MOST_BENT = 2.001  # grids: rounding alone bends three answers by no more

Ask = Callable[[FloatArray], FloatArray]


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


def probe(
    ask: Ask,
    x: FloatArray,
    domain: Domain,
    rng: np.random.Generator,
    *,
    ask_far: Ask | None = None,
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
    room, size = _room(x, direction, domain), typical_size(x)
    steps = STEPS * min(size, room / (2 * STEPS[0]))
    answers = ask(walk(x, direction, np.concatenate([[0.0], steps, 2 * steps]), domain))
    short = Looks(answers[0], steps, answers[1 : 1 + len(steps)], answers[1 + len(steps) :])
    found = _chosen(short, short, told_noise())
    told_apart = short.fine(found.sd).size or (found.coarse and short.telling(found.sd)[0])
    if told_apart or longest <= steps[0]:
        return found
    steps = np.minimum(size * LONGER, min(room / 2, longest))
    rows = walk(x, direction, np.concatenate([steps, 2 * steps]), domain)
    rows = np.concatenate([rows, np.repeat(x[None], AGAIN, axis=0), _around(x, size, domain, rng)])
    far, again, others = np.split((ask_far or ask)(rows), [2 * len(steps), 2 * len(steps) + AGAIN])
    same = np.concatenate([short.here[None], again[np.isfinite(again).all(axis=1)]])
    with np.errstate(over="ignore"):  # answers close to the largest number
        fresh = float(same.std(axis=0).max())
    every = _chosen(short, short.after(steps, far), told_noise(), others, fresh)
    return every if every.coarse else _chosen(short, short, told_noise(), every.answers[1:], fresh)


def answer_noise(answers: FloatArray) -> float:
    """What the number format and rounding to decimals leave unknown of answers."""
    return max(_format_noise(answers), rounding_noise(answers))


def _format_noise(answers: FloatArray) -> float:
    return ANSWER_ROUNDINGS * unit_roundoff(narrowest_format(answers)) * float(np.abs(answers).max())


def _chosen(short: Looks, looks: Looks, told: float, others: FloatArray | None = None, again: float = 0.0) -> Probe:
    """Noise and step by what was seen.

    told: noise that answers do not show; others (n, m): more answers that noise is read from; again: what answers
    differ by when they are asked for again.
    """
    every = looks.answers if others is None else np.concatenate([looks.answers, others])
    every = every[np.isfinite(every).all(axis=1)]
    bend, rounding, size = short.bend, rounding_noise(every), float(np.abs(every).max())
    seen = max(again, 0.0 if bend <= MOST_BENT * rounding / UNIFORM_SD else bend / SECOND_DIFFERENCE_GAIN)
    fresh = max(_format_noise(every), seen)
    sd = max(fresh, rounding, told)
    step = looks.step(sd) if looks is short else looks.telling_step(sd)
    return Probe(
        every, sd, fresh, step,
        coarse=max(digits_noise(every), seen, told) > OWN_ROUNDINGS * unit_roundoff(np.float32) * size,  # digits miss
        long=bool(step > short.steps[0]), still=bool((short.answers == short.here).all()),
    )  # fmt: skip


def _around(x: FloatArray, size: float, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Random inputs (n, d) as far from this one as it is long."""
    return np.clip(x + size * rng.standard_normal((AROUND, len(x))), domain.low, domain.high)


def _inward_direction(x: FloatArray, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """A random unit vector that points to the roomier side of the domain in every coordinate."""
    v = rng.standard_normal(len(x))
    if not domain.is_space:
        roomier = np.asarray(domain.high) - x >= x - np.asarray(domain.low)
        v = np.where(roomier, np.abs(v), -np.abs(v))
    return np.asarray(v / np.linalg.norm(v))


def _room(x: FloatArray, direction: FloatArray, domain: Domain) -> float:
    """How far the direction may be followed inside the domain."""
    bound = np.where(direction > 0, domain.high, domain.low)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(direction == 0, np.inf, (bound - x) / direction).min())
