"""What is behind a wall: the crease bends by one unknown number, found on a short line parallel to the hinge.

The line lies close behind the hinge, so that it is short compared with the distance of other creases and long
compared with any likely bend. What it finds is believed when the crease it predicts is there, farther away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.asker import Asker
from reluctant.extraction.any_depth.crease import Crease, Incoming, solve
from reluctant.extraction.any_depth.known import Around, Known
from reluctant.extraction.any_depth.walk import Walls, tangents
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray

__all__ = ["INCONSISTENT", "cross_walls"]

SEARCHED = 0.1  # half length of the search line, in typical distances of kinks
SHORTER = 5.0  # each time a hinge is tried again
WIDE = 30.0  # half length of the search line, in its distance from the hinge
INNER = 0.5  # of the half length: the crease must lie in the inner part
ALMOST = 0.98  # of the way to the next hinge
NARROW = 3.0  # a search line shorter than this, in its distance from the hinge, is not worth asking
CHECKS = 3  # places where a predicted crease is looked for
ENOUGH = 2  # of them
FAR_ALONG = 0.7  # of the way through the cell: where it is looked for
FARTHEST = 0.5  # in units of the scale
ROOM = 1e-2  # of the way there: room left around it
INCONSISTENT = 1e-5  # residual of a linear system that cannot be one neuron's


def cross_walls(
    asker: Asker, known: Known, crease: Crease, incoming: Incoming, walls: Walls, failed: IntArray
) -> tuple[list[FloatArray], BoolArray]:
    """Points (k, d) of the crease behind each wall, none where it was not found; `failed` (n,) earlier tries.

    Also where nothing could be seen: the function is constant, or there was no room to ask.

    Cost: 4 rows a wall, 12 more where a crease is found.
    """
    places = [np.empty((0, known.dim)) for _ in range(len(walls))]
    search = _SearchLines.behind(asker, known, walls, failed)
    asked = np.flatnonzero(search.usable)
    reach = search.reach[asked]
    met = asker.cross(search.middle[asked], search.direction[asked], reach, INNER * reach)
    trials = []
    for k, t, found in zip(asked, met.position, met.found, strict=True):
        if not found:
            continue
        point = search.middle[k] + t * search.direction[k]
        trial = _Trial.of(asker, known, crease, incoming, walls, int(k), point)
        if trial is not None:
            trials.append(trial)
    if trials:
        for trial, points in zip(trials, _confirmed(asker, trials), strict=True):
            places[trial.wall] = points
    blind = ~search.usable
    blind[asked] |= met.constant
    return places, blind


@dataclass(frozen=True)
class _SearchLines:
    """Short lines parallel to the hinges, close behind them."""

    middle: FloatArray
    direction: FloatArray
    reach: FloatArray
    usable: BoolArray

    @classmethod
    def behind(cls, asker: Asker, known: Known, walls: Walls, failed: IntArray) -> _SearchLines:
        across = np.abs((walls.slope * walls.direction).sum(axis=1))
        half = SEARCHED * asker.spacing * asker.unit(walls.place) / SHORTER**failed
        half = np.minimum(half, WIDE * walls.gap * across / 2)
        distance = half / WIDE
        base = walls.place + (distance / across)[:, None] * walls.direction
        direction = tangents(walls.normal, walls.slope)
        around = known.around(base)
        room = [ALMOST * _reach(around, side * direction, walls) for side in (-1, 1)]
        low, high = -np.minimum(half, room[0]), np.minimum(half, room[1])
        usable = np.minimum(-low, high) > NARROW * distance
        middle = base + ((low + high) / 2)[:, None] * direction
        return cls(middle, direction, (high - low) / 2, usable)


def _reach(around: Around, directions: FloatArray, walls: Walls) -> FloatArray:
    """Distance to the next hinge other than the wall's own."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = -around.values / around.hinge_slopes(directions)
    reach[np.arange(len(walls)), walls.hinge] = np.inf
    return np.where(reach > 0, reach, np.inf).min(axis=1)


@dataclass(frozen=True)
class _Trial:
    """A point that may be on the crease behind a wall, and where the crease would be seen again."""

    wall: int
    point: FloatArray
    checks: FloatArray  # (k, d)
    normal: FloatArray
    room: FloatArray

    @classmethod
    def of(
        cls, asker: Asker, known: Known, crease: Crease, incoming: Incoming, walls: Walls, wall: int, point: FloatArray
    ) -> _Trial | None:
        moved = solve(known, crease.with_points(point[None]))
        around = known.around(point[None])
        if moved.residual > INCONSISTENT or moved.open.shape[1] >= incoming.open.shape[1]:
            return None
        if not moved.flat(around).all():
            return None
        normal = around.feature_gradients(moved.weights[None])[0]
        normal /= np.linalg.norm(normal)
        away = walls.slope[wall] * np.sign(walls.slope[wall] @ walls.direction[wall])
        wander = asker.rng.standard_normal((CHECKS, known.dim)) / np.sqrt(known.dim)
        directions = tangents(away + wander, np.repeat(normal[None], CHECKS, axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = -around.values / known.around(np.repeat(point[None], CHECKS, axis=0)).hinge_slopes(directions)
        reach[:, walls.hinge[wall]] = np.inf
        reach = np.minimum(np.where(reach > 0, reach, np.inf).min(axis=1), FARTHEST * asker.scale)
        return cls(wall, point, point + (FAR_ALONG * reach)[:, None] * directions, normal, ROOM * reach)


def _confirmed(asker: Asker, trials: list[_Trial]) -> list[FloatArray]:
    """For each trial the points that were found, none if too few checks agree."""
    points = np.concatenate([trial.checks for trial in trials])
    normals = np.repeat([trial.normal for trial in trials], CHECKS, axis=0)
    met = asker.test(points, normals, np.concatenate([trial.room for trial in trials]))
    seen = points + np.where(met.found, met.position, 0.0)[:, None] * normals
    found = []
    for k, trial in enumerate(trials):
        mine = slice(k * CHECKS, (k + 1) * CHECKS)
        agree = met.found[mine]
        points_here = np.concatenate([trial.point[None], seen[mine][agree]])
        found.append(points_here if agree.sum() >= ENOUGH else points_here[:0])
    return found
