"""The first flip on a ray from an input, as far as some multiples of the distance a linear function would need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.adversarial.margins import Margins
from reluctant.domains import Domain
from reluctant.numerics import FloatArray

__all__ = ["RayFlip", "first_flip", "walk"]

# Looked at together, in units of the distance of a linear function: dense around it, then ever further out.
PLACES = np.array([0.25, 0.5, 0.7, 0.85, 0.95, 1.01, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 16.0])
ROUNDS = 4  # of three rows each, in which the flip is closed in on
APART = 0.02  # of the bracket, to both sides of where it is expected


@dataclass(frozen=True)
class RayFlip:
    """A flipped point at this length along the ray, and the answers (m,) there."""

    length: float
    x: FloatArray
    values: FloatArray


def walk(x: FloatArray, direction: FloatArray, lengths: FloatArray, domain: Domain) -> FloatArray:
    """Points at these lengths along a ray, pushed back into the domain coordinate by coordinate."""
    return np.clip(x + lengths[:, None] * direction, domain.low, domain.high)


def first_flip(
    ask: Callable[[FloatArray], FloatArray],
    margins: Margins,
    x: FloatArray,
    values: FloatArray,
    change: FloatArray,
    domain: Domain,
    least: float,
) -> RayFlip | None:
    """Where the smallest margin first falls below -least on the ray from x, with these values, through x + change.

    None if it does not within 16 times the change. Cost: 30 rows.
    """
    expected = float(np.linalg.norm(change))
    direction, lengths = change / expected, np.concatenate([[0.0], expected * PLACES])
    answers = np.concatenate([values[None], ask(walk(x, direction, lengths[1:], domain))])
    for _ in range(ROUNDS):
        last = _first_below(margins.smallest(answers), -least)
        if last is None:
            return None
        between = _guesses(lengths[last - 1 : last + 1], margins.smallest(answers[last - 1 : last + 1]))
        lengths = np.insert(lengths, last, between)
        answers = np.insert(answers, last, ask(walk(x, direction, between, domain)), axis=0)
    last = int(np.flatnonzero(margins.smallest(answers) < -least)[0])
    return RayFlip(float(lengths[last]), walk(x, direction, lengths[last : last + 1], domain)[0], answers[last])


def _first_below(values: FloatArray, limit: float) -> int | None:
    below = np.flatnonzero(values < limit)
    return int(below[0]) if len(below) else None


def _guesses(lengths: FloatArray, margins: FloatArray) -> FloatArray:
    """Three lengths inside a bracket, around where a straight line between its ends crosses zero."""
    (a, b), (at_a, at_b) = lengths, margins
    crossing = at_a / (at_a - at_b) if at_a > 0 else 0.0
    share = np.clip(crossing + APART * np.array([-1.0, 0.0, 1.0]), APART / 4, 1 - APART / 4)
    return np.asarray(a + share * (b - a))
