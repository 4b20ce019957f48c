"""What every stage that asks needs: the target, its noise, random choices, and the sizes of things."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.geometry import DistanceNoise
from reluctant.geometry.crossings import cross
from reluctant.geometry.samples import TOLERANCE, BoolArray
from reluctant.numerics import FloatArray

__all__ = ["Asker", "Seen"]

TEST_REACH = 4e-5  # of a crease test, relative to scale and distance
CENTRED = 0.05  # of the reach: how far from the expected place a crease may be


@dataclass(frozen=True)
class Seen:
    """Where across each place a crease was found; `constant` if nothing changes there, so nothing can be seen."""

    position: FloatArray
    found: BoolArray
    constant: BoolArray


@dataclass(frozen=True)
class Asker:
    """A target in the coordinates of the search.

    scale: typical size of an input. spacing: typical distance between kinks on a line, relative to the scale.
    """

    ask: Callable[[FloatArray], FloatArray]
    noise: DistanceNoise
    rng: np.random.Generator
    scale: float
    spacing: float

    def unit(self, points: FloatArray) -> FloatArray:
        """The scale at each point: it grows with the distance."""
        return np.hypot(self.scale, np.linalg.norm(points, axis=1))

    def test(self, points: FloatArray, normals: FloatArray, room: FloatArray) -> Seen:
        """Is there a crease across these unit normals at these points, with `room` around them?

        Cost: 4 rows a point.
        """
        reach = np.minimum(TEST_REACH * self.unit(points), room)
        return self.cross(points, normals, reach, CENTRED * reach)

    def cross(self, points: FloatArray, directions: FloatArray, reach: FloatArray, within: FloatArray) -> Seen:
        """Is there a crease within this distance of the points, on lines that reach so far? Cost: 4 rows a point."""
        if not len(points):
            return Seen(np.empty(0), np.empty(0, dtype=bool), np.empty(0, dtype=bool))
        crossed = cross(self.ask, points, directions, reach, within, self.noise)
        slopes = np.abs(crossed.before).max(axis=1) + np.abs(crossed.bend).max(axis=1)
        return Seen(crossed.position, crossed.critical, slopes * reach <= TOLERANCE * crossed.sd)
