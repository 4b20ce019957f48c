"""How sharp a boundary is, and whether labels keep their word.

Rounding inside a target, in float32 above all, makes labels flicker beside the boundary: how far is the resolution of
every crossing. Labels that change when the same input is asked again, far from any boundary, are noise: one such bit
sends a whole bisection astray.
"""

from __future__ import annotations

import numpy as np

from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.oracles import Counting
from reluctant.span.labels.boundary import Boundary, LabelledPoints
from reluctant.span.labels.field import Field

__all__ = ["LOOKED_AT", "NEAR", "changed_labels", "resolution"]

LOOKED_AT = 16  # boundary points
OFFSETS = 24  # distances from each that are looked at
LEFT_OUT = 1  # of them, the widest: another boundary may be near
LEAST_RESOLUTION = 2.0**-50  # of a typical input
NEAR = 1e-3  # of a typical input: the farthest of the distances


def resolution(field: Field, boundary: Boundary, dtype: np.dtype[np.generic], rng: np.random.Generator) -> float:
    """How well a crossing can be placed: labels on each side of it are looked at closer and closer.

    Never below the rounding of the target's number format. Cost: about 100 rows a boundary point.
    """
    typical = field.typical
    least = max(LEAST_RESOLUTION, unit_roundoff(dtype)) * typical
    sharp, found = boundary.turned(field, boundary.along, NEAR * typical, LEAST_RESOLUTION * typical)
    if not found.any():
        return typical
    offsets = typical * np.geomspace(LEAST_RESOLUTION, NEAR, OFFSETS) * rng.uniform(0.5, 1.0, (found.sum(), OFFSETS))
    lines = sharp[found].lines()[np.repeat(np.arange(found.sum()), OFFSETS)]
    wrong = np.stack([lines.before(field.ask, offsets.reshape(-1)), ~lines.before(field.ask, -offsets.reshape(-1))])
    widths = _widths(wrong.reshape(2, *offsets.shape), offsets)
    return max(float(np.sort(widths)[-1 - min(LEFT_OUT, len(widths) - 1)]), least)


def _widths(wrong: BoolArray, offsets: FloatArray) -> FloatArray:
    """How far (n,) labels flicker at each point, by what is wrong (2, n, m) on its two sides.

    What is wrong from somewhere to the farthest distance is another boundary and no flicker.
    """
    beyond = np.cumprod(wrong[:, :, ::-1], axis=2)[:, :, ::-1].astype(bool)
    return np.asarray(np.where(wrong & ~beyond, offsets, 0.0).max(axis=(0, 2)))


def changed_labels(oracle: Counting, seen: LabelledPoints, times: int = 1) -> int:
    """How many inputs have another label when they are asked again so many times. Cost: a row each, every time."""
    again = oracle.query(np.tile(seen.points, (times, 1)))[:, 0].reshape(times, -1)
    return int((again != seen.labels).any(axis=0).sum())
