"""What every stage that asks needs: the target, its noise, random choices, and the sizes of things."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.crease_test import STRIDES, Meeting, find_meetings
from reluctant.geometry import DistanceNoise
from reluctant.numerics import FloatArray

__all__ = ["Asker"]

TEST_STEP = 2e-5  # of a crease test, relative to scale and distance
CENTRED = 0.1  # of the step: how far from the expected place a crease may be


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

    def test(self, points: FloatArray, normals: FloatArray, room: FloatArray) -> Meeting:
        """Is there a crease across these unit normals at these points, with `room` around them?

        Cost: 4 rows a point.
        """
        step = np.minimum(TEST_STEP * self.unit(points), room)
        met = find_meetings(self.ask, points, normals, step[:, None] * STRIDES, self.noise)
        centred = met.found & (np.abs(met.t) < CENTRED * step)
        return Meeting(met.t, met.sd, centred, met.constant)
