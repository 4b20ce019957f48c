"""First look at a target: points where it is alive, at which scale, and the health of its answers there.

A thin network is constant on most of its inputs. Where two random points give the very same answer both are taken for
dead; looking for live ones costs a row each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry import DistanceNoise
from reluctant.geometry.samples import BoolArray
from reluctant.health import Health
from reluctant.health.check import examine
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.span.ground import Ground, guarded
from reluctant.span.inputs import KINDS, Inputs

__all__ = ["LivePoints", "Look", "look"]

# Rows asked one block after the other until something is alive, and at which scale.
BLOCKS = ((64, 1.0), (192, 1.0), (256, 10.0), (512, 1.0), (1024, 1.0), (2048, 1.0))
LINES = 4
DRAWN = 16  # points asked for their value together
RARE = 0.3  # share of live points below which others are looked for near them
ALIKE = 0.8  # how much of a live point is in those: as a part of the norm, or squared as a share of the way


@dataclass(frozen=True)
class Look:
    """What was seen: points with their answers, which of them are alive, and the answers' health."""

    points: FloatArray  # (n, d)
    values: FloatArray  # (n, m)
    live: BoolArray  # (n,)
    health: Health
    ground: Ground

    @property
    def live_share(self) -> float:
        """Share of the points that are alive."""
        return float(self.live.mean())

    @property
    def is_constant(self) -> bool:
        """True if every answer was the same."""
        return bool((self.values == self.values[0]).all())


def _alone(values: FloatArray) -> BoolArray:
    """Which rows (n, m) appear once only."""
    _, where, counts = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(counts[where.reshape(-1)] == 1)


def look(oracle: Counting, inputs: Inputs, rng: np.random.Generator, reach: float) -> Look:
    """Find live points and check the health there. Cost: 64 rows and 68 for the check; 4096 for a dead target."""
    with oracle.stage("look"):
        points, values, scale = inputs.until_answers_differ(oracle.query, BLOCKS, rng)
    live = _alone(values)
    chosen = np.flatnonzero(live if live.any() else np.ones(len(live), dtype=bool))
    chosen = chosen[np.argsort(chosen % len(KINDS), kind="stable")]  # inside bounds the first kind has room around it
    centres = points[np.resize(chosen, LINES)]
    health = examine(oracle, rng, LINES, centres=centres)
    noise = DistanceNoise.of(health, oracle.dim) if health.readings else DistanceNoise(0.0, 0.0)
    ground = Ground(
        guarded(oracle.query, inputs.domain), inputs, noise,
        scale=inputs.scale_of(points, scale), drawn=scale, reach=reach,
    )  # fmt: skip
    return Look(points, values, live, health, ground)


class LivePoints:
    """Points that are alive, with their values, those of the first look before others."""

    def __init__(self, seen: Look, rng: np.random.Generator) -> None:
        self.ground, self.rng = seen.ground, rng
        live = seen.live if seen.live.any() else np.ones(len(seen.live), dtype=bool)
        self.points, self.values = seen.points[live], seen.values[live]
        self.dead = set(map(bytes, seen.values[~live]))
        self.rare = live.mean() < RARE
        self.known = self.points

    def draw(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Take n of them out. Cost: a row for each point that has to be asked, dead ones too."""
        while len(self.points) < n:
            points = self.near_known() if self.rare else self.ground.sample(DRAWN, self.rng)
            values = self.ground.ask(points)
            live = np.array([bytes(value) not in self.dead for value in values])
            self.put_last(points[live], values[live])
        points, values = self.points[:n], self.values[:n]
        self.points, self.values = self.points[n:], self.values[n:]
        return points, values

    def near_known(self) -> FloatArray:
        """Points between ones known to be alive and any others: more of them are alive."""
        known = self.known[self.rng.integers(len(self.known), size=DRAWN)]
        others = self.ground.sample(DRAWN, self.rng)
        alike = ALIKE if self.ground.domain.is_space else ALIKE**2
        return np.asarray(
            alike * known + (np.sqrt(1 - ALIKE**2) if self.ground.domain.is_space else 1 - alike) * others
        )

    def put_first(self, points: FloatArray, values: FloatArray) -> None:
        """Points to be drawn before all others."""
        self.points, self.values = np.concatenate([points, self.points]), np.concatenate([values, self.values])

    def put_last(self, points: FloatArray, values: FloatArray) -> None:
        """Points to be drawn after all others."""
        self.points, self.values = np.concatenate([self.points, points]), np.concatenate([self.values, values])
