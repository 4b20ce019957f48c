"""Is there a crease at this point? Four answers on a short line across it: two slopes, and where they meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.geometry import DistanceNoise
from reluctant.geometry.samples import TOLERANCE, BoolArray
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["STRIDES", "Meeting", "find_meetings"]

STRIDES = np.array([-2.0, -1.0, 1.0, 2.0])  # of a test, in steps
ANSWER_ROUNDINGS = 4.0


@dataclass(frozen=True)
class Meeting:
    """Where the slopes before and after meet, with its noise; `found` if they differ and meet between the two.

    constant: nothing changes at all, so nothing can be seen.
    """

    t: FloatArray
    sd: FloatArray
    found: BoolArray
    constant: BoolArray


def find_meetings(
    ask: Callable[[FloatArray], FloatArray],
    points: FloatArray,
    directions: FloatArray,
    positions: FloatArray,
    noise: DistanceNoise,
) -> Meeting:
    """Ask at four increasing positions (n, 4) on the line through each point; the crease is expected in the middle.

    Cost: 4 rows a point.
    """
    n, d = points.shape
    if not n:
        nothing = np.empty(0)
        return Meeting(nothing, nothing, nothing.astype(bool), nothing.astype(bool))
    rows = points[:, None] + positions[:, :, None] * directions[:, None]
    f = ask(rows.reshape(4 * n, d)).reshape(n, 4, -1)
    size = unit_roundoff(np.float64) * np.abs(f).max(axis=(1, 2))
    sd = np.hypot(noise.at(np.linalg.norm(points, axis=1)), ANSWER_ROUNDINGS * size)
    return _meeting(positions, f, sd)


def _meeting(t: FloatArray, f: FloatArray, sd: FloatArray) -> Meeting:
    width_before, width_after = t[:, 1] - t[:, 0], t[:, 3] - t[:, 2]
    before = (f[:, 1] - f[:, 0]) / width_before[:, None]
    after = (f[:, 3] - f[:, 2]) / width_after[:, None]
    jump = after - before
    bend = np.linalg.norm(jump, axis=1)
    # f1 + before (x - t1) = f2 + after (x - t2), solved in least squares over the outputs
    gap = f[:, 1] - f[:, 2] - before * t[:, 1:2] + after * t[:, 2:3]
    with np.errstate(divide="ignore", invalid="ignore"):
        x = (gap * jump).sum(axis=1) / bend**2
        lever = 1 + np.maximum(np.abs(t[:, 1]) / width_before, np.abs(t[:, 2]) / width_after)
        x_sd = 2 * sd * lever / bend
    off = np.abs(gap - np.where(np.isfinite(x), x, 0.0)[:, None] * jump).max(axis=1)
    visible = bend > TOLERANCE * sd * np.hypot(1 / width_before, 1 / width_after)
    found = visible & (x > t[:, 1]) & (x < t[:, 2]) & (off <= TOLERANCE * 2 * lever * sd)
    constant = np.ptp(f, axis=1).max(axis=1) <= TOLERANCE * sd
    return Meeting(x, x_sd, found, constant)
