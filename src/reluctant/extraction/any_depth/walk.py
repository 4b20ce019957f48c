"""Walks over the part of a crease that is already known, to its walls: no queries.

A step goes along the crease to the next known hinge. If the bend behind it is predicted, the walk goes on there; if
not, the place is a wall: behind it one number is unknown, and it can be asked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from reluctant.extraction.any_depth.crease import Incoming
from reluctant.extraction.any_depth.known import Around, Known
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray

__all__ = ["Walls", "find_walls", "tangents"]

TARGETED = 0.7  # share of steps that aim at a hinge whose coefficient is open
WANDER = (0.1, 0.5, 1.0)  # random part of an aimed step
BEHIND = 0.4  # of the way from one hinge to the next: where a step lands behind a hinge
WIDEST_GAP = 0.5  # in units of the scale
STRAY = 20.0  # how far out walks may go, in units of the scale
FLAT = 1e-16  # square of a normal, relative: a neuron does not change in this cell
PART_OF_THE_WAY = (0.2, 0.8)  # to a wall: where a walk goes on that met it


@dataclass(frozen=True)
class Walls:
    """Places (n, d) where the crease meets a hinge behind which it is unknown.

    direction: along the crease towards the hinge. normal: unit normal of the crease before it. hinge: number of the
    known neuron. slope: its unit gradient. gap: from this hinge to the next along the direction.
    """

    place: FloatArray
    direction: FloatArray
    normal: FloatArray
    hinge: IntArray
    slope: FloatArray
    gap: FloatArray

    def __len__(self) -> int:
        return len(self.hinge)

    def chosen(self, which: IntArray) -> Walls:
        """These walls only."""
        return Walls(*(getattr(self, field.name)[which] for field in fields(self)))

    @classmethod
    def joined(cls, parts: list[Walls]) -> Walls:
        """All walls of several lists."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def clearance(self) -> FloatArray:
        """How much room a wall offers: behind it, and by the angle at which the crease meets it."""
        across = np.abs((self.slope * self.direction).sum(axis=1))
        parallel = np.sqrt(np.maximum(1 - (self.slope * self.normal).sum(axis=1) ** 2, 0))
        return self.gap * across * parallel


def tangents(directions: FloatArray, normals: FloatArray) -> FloatArray:
    """Unit directions (n, d) made orthogonal to unit normals."""
    along = directions - (directions * normals).sum(axis=1)[:, None] * normals
    return np.asarray(along / np.linalg.norm(along, axis=1, keepdims=True))


def find_walls(
    known: Known, incoming: Incoming, starts: FloatArray, steps: int, scale: float, rng: np.random.Generator
) -> tuple[Walls, FloatArray]:
    """Walk from each start on the known part of the crease and collect the walls met; also where the walks end."""
    found, x = [], starts
    for _ in range(steps):
        step = _Step.aim(known, incoming, x, scale, rng)
        walls, x = step.go(known, incoming, x, scale, rng)
        found.append(walls)
    return Walls.joined(found), x


@dataclass(frozen=True)
class _Step:
    """One step of every walk: along `direction`, over the hinge at `reach`, `gap` before the next."""

    around: Around
    normal: FloatArray
    direction: FloatArray
    hinge: IntArray
    reach: FloatArray
    gap: FloatArray

    @classmethod
    def aim(cls, known: Known, incoming: Incoming, x: FloatArray, scale: float, rng: np.random.Generator) -> _Step:
        around = known.around(x)
        normal = around.feature_gradients(np.broadcast_to(incoming.weights, around.features.shape))
        size = np.linalg.norm(normal, axis=1, keepdims=True)
        normal /= np.where(size > 0, size, 1.0)
        direction = tangents(_aims(known, incoming, around, x.shape[1], rng), normal)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = -around.values / around.hinge_slopes(direction)
        reach = np.where((reach > 0) & np.isfinite(reach), reach, np.inf)
        order = np.argsort(reach, axis=1)[:, :2]
        first, second = np.take_along_axis(reach, order, axis=1).T if reach.shape[1] > 1 else (reach[:, 0], np.inf)
        with np.errstate(invalid="ignore"):
            gap = np.minimum(second - first, WIDEST_GAP * scale)
        return cls(around, normal, direction, order[:, 0], first, gap)

    def go(
        self, known: Known, incoming: Incoming, x: FloatArray, scale: float, rng: np.random.Generator
    ) -> tuple[Walls, FloatArray]:
        usable = np.asarray(np.isfinite(self.reach) & np.isfinite(self.gap))
        reach, gap = np.where(usable, self.reach, 0.0), np.where(usable, self.gap, 0.0)
        landing = x + (reach + BEHIND * gap)[:, None] * self.direction
        behind = known.around(landing)
        each = np.arange(len(x))
        expected = self.around.values > 0
        expected[each, self.hinge] ^= True
        usable &= np.asarray(np.equal(behind.values > 0, expected).all(axis=1))
        usable &= np.linalg.norm(landing, axis=1) < STRAY * scale
        predicted = incoming.flat(behind)
        wall = np.flatnonzero(usable & ~predicted)
        on_crease, landed = _land(known, incoming, landing, behind)
        part = rng.uniform(*PART_OF_THE_WAY, len(x)) * reach
        moved = np.where((usable & ~predicted)[:, None], x + part[:, None] * self.direction, x)
        moved = np.where((usable & predicted & landed)[:, None], on_crease, moved)
        slope = self.around.hinge_gradients(self.hinge)
        slope = slope / np.linalg.norm(slope, axis=1, keepdims=True)
        place = x + reach[:, None] * self.direction
        walls = Walls(place, self.direction, self.normal, self.hinge, slope, gap)
        return walls.chosen(wall), moved


def _aims(known: Known, incoming: Incoming, around: Around, dim: int, rng: np.random.Generator) -> FloatArray:
    """Directions towards hinges whose coefficient is open and that are not yet active; else random ones."""
    n = len(around.values)
    aims = rng.standard_normal((n, dim)) / np.sqrt(dim)
    wanted = _open_hinges(known, incoming) & (around.values < 0)
    chance = np.where(wanted, rng.random(wanted.shape), -1.0)
    aimed = np.asarray(wanted.any(axis=1)) & (rng.random(n) < TARGETED)
    towards = around.hinge_gradients(chance.argmax(axis=1))
    size = np.linalg.norm(towards, axis=1, keepdims=True)
    towards = towards / np.where(size > 0, size, 1.0)
    return np.where(aimed[:, None], towards + rng.choice(WANDER, n)[:, None] * aims, aims)


def _open_hinges(known: Known, incoming: Incoming) -> BoolArray:
    """Hinges (H,) whose feature has an open coefficient."""
    open_ = incoming.open_features()
    hinges = np.zeros(known.hinge_count, dtype=bool)
    last = len(known.layers[-1])
    hinges[-last:] = open_[:last]
    if known.layers[-1].undecided.all() and len(known.layers) > 1:
        before = len(known.layers[-2])
        hinges[-last - before : -last] = open_[last : last + before]
    return hinges


def _land(known: Known, incoming: Incoming, landing: FloatArray, behind: Around) -> tuple[FloatArray, BoolArray]:
    """Drop points onto the crease of their cells; True where they stay in the cell."""
    normal = behind.feature_gradients(np.broadcast_to(incoming.weights, behind.features.shape))
    square = (normal**2).sum(axis=1)
    moves = square > FLAT * (incoming.weights**2).sum()
    on_crease = landing - (incoming.values(behind.features) / np.where(moves, square, np.inf))[:, None] * normal
    values = known.around(on_crease).values
    return on_crease, np.equal(values > 0, behind.values > 0).all(axis=1) & moves
