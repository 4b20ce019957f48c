"""Rays from the anchor with creases on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry import Scan
from reluctant.numerics import FloatArray

__all__ = ["Ray", "halves"]


@dataclass(frozen=True)
class Ray:
    """Creases at distances t from the anchor in a direction, up to a distance `end`.

    jump: how the slope along the ray changes there. The function is known as far as the first of them.
    """

    direction: FloatArray
    t: FloatArray
    jump: FloatArray  # (n, m)
    jump_sd: FloatArray
    end: float

    def __len__(self) -> int:
        return len(self.t)


def halves(scan: Scan, at: float, direction: FloatArray, end: tuple[float, float]) -> list[Ray]:
    """A scanned line as two rays from position `at` on it."""
    found = scan.creases
    after, before = np.flatnonzero(found.t > at), np.flatnonzero(found.t < at)[::-1]
    return [
        Ray(direction, found.t[after] - at, found.jump[after], found.jump_sd[after], end[1] - at),
        Ray(-direction, at - found.t[before], found.jump[before], found.jump_sd[before], at - end[0]),
    ]
