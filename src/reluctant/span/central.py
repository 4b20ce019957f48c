"""Slopes by central differences, for answers with few digits: long steps, shortened only where they meet a crease.

A crease shows in the second difference of its own direction, so that hundreds of directions need not share the step of
the worst of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry.batches import batches
from reluctant.geometry.samples import BoolArray
from reluctant.health.noise import SECOND_DIFFERENCE_GAIN
from reluctant.numerics import FloatArray
from reluctant.span.ground import Ground, as_long_as_allowed

__all__ = ["Central", "central_slopes"]

SHORTER = 4.0
MOST_ROUNDS = 4
BENT = 3.0  # deviations of the noise (which has its own safety) that a second difference may have without a crease


@dataclass(frozen=True)
class Central:
    """At each point the value, the slopes along all directions, their noise, and the share that met a crease.

    good: every step could be made short enough to meet none.
    """

    points: FloatArray  # (p, d)
    value: FloatArray  # (p, m)
    slope: FloatArray  # (p, m, k)
    sd: FloatArray  # (p, k)
    bent: FloatArray  # (p,): share of the first steps
    good: BoolArray  # (p,)


def central_slopes(ground: Ground, points: FloatArray, directions: FloatArray | None, step: float) -> Central:
    """Slopes along unit directions (k, d), None for the coordinates. Cost: 2k + 1 rows a point, more beside creases."""
    parts = [_one_batch(ground, points[some], directions, step) for some in _split(ground, len(points), directions)]
    arrays = zip(*((part.points, part.value, part.slope, part.sd, part.bent, part.good) for part in parts), strict=True)
    return Central(*(np.concatenate(array) for array in arrays))


def _split(ground: Ground, n: int, directions: FloatArray | None) -> list[slice]:
    return batches(n, 2 * (ground.dim if directions is None else len(directions)), ground.dim)


def _one_batch(ground: Ground, points: FloatArray, directions: FloatArray | None, step: float) -> Central:
    directions = np.eye(ground.dim) if directions is None else directions
    value = ground.ask(points)
    shape = (len(points), len(directions))
    slope, steps = np.zeros((*shape, value.shape[1])), np.full(shape, step)
    open_ = np.ones(shape, dtype=bool)
    first: BoolArray = open_
    for round_ in range(MOST_ROUNDS):
        which, along = np.nonzero(open_)
        moves = steps[which, along, None] * directions[along]
        open_[which, along], slope[which, along] = _differences(ground, points[which], value[which], moves)
        first = open_.copy() if round_ == 0 else first
        if not open_.any():
            break
        steps[open_] /= SHORTER if round_ < MOST_ROUNDS - 1 else 1.0
    sd = ground.sd(points)[:, None] / (np.sqrt(2) * steps)
    return Central(points, value, np.swapaxes(slope, 1, 2), sd, first.mean(axis=1), np.asarray(~open_.any(axis=1)))


def _differences(
    ground: Ground, points: FloatArray, value: FloatArray, moves: FloatArray
) -> tuple[BoolArray, FloatArray]:
    """Which moves (n, d) to both sides of points (n, d) met a crease, and the slopes over them."""
    moves = as_long_as_allowed(ground.domain, points, moves, both=True)
    ahead, behind = np.split(ground.ask(np.concatenate([points + moves, points - moves])), 2)
    second = np.abs(ahead + behind - 2 * value).max(axis=1)
    bent = second > BENT * SECOND_DIFFERENCE_GAIN * ground.sd(points)
    return bent, (ahead - behind) / (2 * np.linalg.norm(moves, axis=1, keepdims=True))
