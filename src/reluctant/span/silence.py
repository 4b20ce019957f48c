"""Is anything left outside a span? A long step orthogonal to it must change nothing.

Where it does, the part of the step along which the answers change most is worth a gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry.samples import TOLERANCE
from reluctant.numerics import FloatArray
from reluctant.span.found import Found
from reluctant.span.ground import Ground, as_long_as_allowed, moves_outside

__all__ = ["LEAST_NEW", "Heard", "leaks", "loud_places", "slopes_along", "tilt"]

LEAST_NEW = 1e-5  # part of a gradient outside the span that may be a direction; those so far are not exact either
FEWEST = 32  # long steps
INSIDE_BOUNDS = 128  # long steps where bounds make them short
PLACES = 8  # looked at on a step that changes the answers
LOUD = 4  # steps that are looked at


@dataclass(frozen=True)
class Heard:
    """Largest leak of the long steps, and places on the loudest where a gradient may be new."""

    leak: float
    points: FloatArray
    values: FloatArray


def leaks(
    ground: Ground, basis: FloatArray, starts: FloatArray, before: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Change (n,) of the answers on a long step from each start, as a slope along one direction; moves and noise too.

    The step is random, so a direction is met by its length over √(n - k) only: the slope counts that. Cost: 1 row each.
    """
    moves = moves_outside(basis, starts, ground.reach * ground.typical, ground.domain, rng)
    after = ground.ask(starts + moves)
    met = np.linalg.norm(moves, axis=1) / np.sqrt(max(1, ground.dim - len(basis)))
    sd = np.sqrt(2) * ground.sd(starts + moves) / met
    with np.errstate(over="ignore"):  # answers close to the largest number: an infinite slope
        slope = np.linalg.norm(after - before, axis=1) / met
    return slope, moves, sd


def tilt(ground: Ground, found: Found, rng: np.random.Generator) -> float:
    """How far directions are off, in gradients: what short steps outside show where they were measured.

    Weak directions, which long steps would meet as well, are part of the gradients there. Cost: 1 row a point.
    """
    moves = moves_outside(found.basis, found.points, found.steps, ground.domain, rng)
    change = np.linalg.norm(ground.ask(found.points + moves) - found.values, axis=1)
    slope = change / np.linalg.norm(moves, axis=1) * np.sqrt(ground.dim - found.rank)
    return float(slope.max()) / found.size


def slopes_along(ground: Ground, directions: FloatArray, starts: FloatArray, before: FloatArray) -> FloatArray:
    """Change (n,) of the answers on a long step along each direction (n, d) from its start, as a slope.

    A direction that a crease made up shows nothing here. Cost: 1 row each.
    """
    moves = as_long_as_allowed(ground.domain, starts, ground.reach * ground.scale * directions)
    change = np.linalg.norm(ground.ask(starts + moves) - before, axis=1)
    return np.asarray(change / np.linalg.norm(moves, axis=1))


def loud_places(
    ground: Ground,
    basis: FloatArray,
    active: FloatArray,
    values: FloatArray,
    size: float,
    least: float,
    rng: np.random.Generator,
) -> Heard:
    """Long steps from points known to be active and from others; the places on the loudest, none if all are silent."""
    fewest = FEWEST if ground.domain.is_space else INSIDE_BOUNDS
    others = ground.sample(max(fewest - len(active), fewest // 4), rng)
    answers = ground.ask(others)
    starts = np.concatenate([active, others])
    before = np.concatenate([values.reshape(-1, answers.shape[1]), answers])
    slope, moves, sd = leaks(ground, basis, starts, before, rng)
    loud = slope > np.maximum(least * size, TOLERANCE * sd)
    leak = float(slope.max() / size) if size > 0 else 0.0
    if not loud.any():
        return Heard(leak, np.empty((0, ground.dim)), np.empty((0, 0)))
    chosen = np.flatnonzero(loud)[np.argsort(-slope[loud])[:LOUD]]
    shares = (np.arange(PLACES) + rng.uniform(0, 1, (len(chosen), PLACES))) / PLACES
    places = (starts[chosen, None] + shares[:, :, None] * moves[chosen, None]).reshape(-1, ground.dim)
    return Heard(leak, places, ground.ask(places))
