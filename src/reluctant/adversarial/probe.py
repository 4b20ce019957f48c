"""How noisy a target is around one input, and how long a step a gradient there wants.

Three points on a ray into the domain, at steps from long to short: the second difference bounds both what noise
and what a crease does to a slope. The shortest step at which noise is small beside the slope is taken, because
a gradient takes many steps and each may meet a crease.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.adversarial.line import walk
from reluctant.domains import Domain
from reluctant.health.answers import narrowest_format, rounding_noise
from reluctant.health.noise import SECOND_DIFFERENCE_GAIN
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["Probe", "answer_noise", "probe", "typical_size"]

STEPS: FloatArray = 10.0 ** -np.arange(1.0, 7.0)  # of the size of a coordinate
SHORT = 3  # of them, at which noise is read
SMALL = 1e-3  # of the slope: noise that a gradient does not feel
ANSWER_ROUNDINGS = 2.0  # an answer is a sum of a few numbers of its size


@dataclass(frozen=True)
class Probe:
    """All answers (13, m), the first of them at the input; their noise, and the step for a gradient."""

    answers: FloatArray
    sd: float
    step: float

    @property
    def flat(self) -> bool:
        """True if nothing changed along the ray."""
        return bool(np.ptp(self.answers, axis=0).max() == 0)


def typical_size(x: FloatArray) -> float:
    """Root mean square of the coordinates, 1 for the origin."""
    size = float(np.linalg.norm(x) / np.sqrt(len(x)))
    return size if size > 0 else 1.0


def probe(ask: Callable[[FloatArray], FloatArray], x: FloatArray, domain: Domain, rng: np.random.Generator) -> Probe:
    """Ask along one ray. Cost: 13 rows."""
    direction = _inward_direction(x, domain, rng)
    steps = STEPS * min(typical_size(x), _room(x, direction, domain) / (2 * STEPS[0]))
    answers = ask(walk(x, direction, np.concatenate([[0.0], steps, 2 * steps]), domain))
    here, near, far = answers[0], answers[1 : 1 + len(steps)], answers[1 + len(steps) :]
    bends = np.abs(here - 2 * near + far).max(axis=1)
    sd = max(answer_noise(answers), float(np.median(bends[-SHORT:])) / SECOND_DIFFERENCE_GAIN)
    return Probe(answers, sd, _step(steps, bends, np.abs(near - here).max(axis=1) / steps, sd))


def answer_noise(answers: FloatArray) -> float:
    """What the number format and rounding to decimals leave unknown of answers."""
    rounding = ANSWER_ROUNDINGS * unit_roundoff(narrowest_format(answers)) * float(np.abs(answers).max())
    return max(rounding, rounding_noise(answers))


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


def _step(steps: FloatArray, bends: FloatArray, slopes: FloatArray, sd: float) -> float:
    """The shortest step whose noise is small beside the slope; if there is none, the one that errs least."""
    error = np.maximum(bends, sd) / steps
    best = int(np.argmin(error))
    fine = np.flatnonzero(sd / steps <= SMALL * slopes[best])
    return float(steps[max(best, fine[-1])] if len(fine) else steps[best])
