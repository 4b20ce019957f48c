"""Is there a crease where one is expected? Four points on a short line through the place decide.

The line through the two points before and the line through the two after must bend, and must meet where the
crease should be: a crease of something else in between does not meet there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.geometry.noise import DistanceNoise, roundings
from reluctant.geometry.samples import TOLERANCE, BoolArray
from reluctant.numerics import FloatArray

__all__ = ["Crossings", "cross"]

PLACES = np.array([-1.0, -0.5, 0.5, 1.0])  # of the reach
EXTRAPOLATED = np.sqrt(10.0)  # noise of the gap between two lines half way between their samples, of one answer's
SMALLEST_BEND = 20 * TOLERANCE  # in deviations of an answer, over the reach: the meeting point is then well known


@dataclass(frozen=True)
class Crossings:
    """What was seen across each place: slopes before and after, and where the two lines meet."""

    before: FloatArray  # (n, m)
    bend: FloatArray  # (n, m): slope after, less that before
    position: FloatArray  # (n,): of the meeting point, from the place that was expected
    sd: FloatArray  # (n,): of one answer
    critical: BoolArray  # (n,): a crease, and where it was expected

    @property
    def size(self) -> FloatArray:
        """Sizes (n,) of the bends."""
        return np.sqrt((self.bend**2).sum(axis=1))


def cross(
    ask: Callable[[FloatArray], FloatArray],
    points: FloatArray,
    directions: FloatArray,
    reach: FloatArray,
    within: FloatArray,
    noise: DistanceNoise,
) -> Crossings:
    """Cross the places `points` (n, d) along unit directions; a crease counts up to `within` away.

    Cost: 4 rows a place.
    """
    steps = PLACES[None, :, None] * reach[:, None, None] * directions[:, None]
    answers = ask((points[:, None] + steps).reshape(-1, points.shape[1])).reshape(len(points), len(PLACES), -1)
    sd = np.hypot(noise.at(np.linalg.norm(points, axis=1) + reach), roundings(np.abs(answers).max(axis=(1, 2))))
    far_before, before, after, far_after = np.swapaxes(answers, 0, 1)
    half = reach[:, None] / 2
    slope = (before - far_before) / half
    bend = (far_after - after) / half - slope
    gap = (2 * after - far_after) - (2 * before - far_before)  # of the two lines, at the place itself
    square = (bend**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        position = np.where(square > 0, -(gap * bend).sum(axis=1) / square, np.inf)
        blur = TOLERANCE * EXTRAPOLATED * sd / np.sqrt(square)
    bends = np.sqrt(square) * reach > SMALLEST_BEND * sd
    meets = np.abs(position) <= within + blur
    with np.errstate(invalid="ignore"):
        off = np.abs(gap + position[:, None] * bend).max(axis=1)  # several outputs must meet in one place
    critical = bends & meets & (off <= TOLERANCE * EXTRAPOLATED * sd)
    return Crossings(slope, bend, position, sd, critical)
