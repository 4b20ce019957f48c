"""Points of the known subspace that climb away from all creases, to where there is room for long steps. No queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluctant.arrays import HOST, Array, Arrays
from reluctant.extraction.linear import MANY_NEURONS
from reluctant.geometry import FramedNetwork
from reluctant.numerics import FloatArray

__all__ = ["climb", "per_coordinate", "reach_of"]

CLIMBING_STEPS = 40
SOFTNESS = 0.5  # of the margin: creases this much farther than the nearest still push
SMALLEST_MARGIN = 1e-3  # of the typical one, for a point that starts on a crease
NO_PULL = -80.0  # exponent below which numbers lose digits, and time, in single precision
STRIDE, FIRST_STRIDE = 2.0, 0.3  # in margins, and at least in typical ones
COOLING = 2.5  # strides are full at first and shorten over the last 1/COOLING of the steps
REACH = 5.0  # of the climb, in median distances of a crease from the origin of the frame
SURE = 2.0  # errors of a neuron's value that the usual margin is to hold


def climb(
    known: FramedNetwork, scale: float, candidates: int, rng: np.random.Generator, arrays: Arrays = HOST
) -> FloatArray:
    """Random points of a ball, moved away from the creases around them."""
    (g, _), (z, _) = known.network.weights, known.network.biases
    k, reach = g.shape[1], reach_of(known, scale)
    y = rng.standard_normal((candidates, k))
    y *= reach * rng.uniform(0.3, 1.0, (candidates, 1)) / np.linalg.norm(y, axis=1, keepdims=True)
    size, block = per_coordinate(known, reach), max(1, arrays.cells // len(z))
    # In units of the reach and of each neuron's size single precision is plenty to find room in.
    units = (np.asarray(part, dtype=np.float32) for part in (g / size[:, None], z / (size * reach), y / reach))
    normals, offsets, starts = (arrays.put(part) for part in units)
    parts = [_climb_block(normals, offsets, starts[i : i + block], arrays.xp) for i in range(0, candidates, block)]
    return reach * np.concatenate([arrays.get(part) for part in parts]).astype(np.float64)


def reach_of(known: FramedNetwork, scale: float) -> float:
    """How far from the origin of the frame base points are looked for."""
    (g, _), (z, _) = known.network.weights, known.network.biases
    typical = float(np.median(np.abs(z) / np.linalg.norm(g, axis=1)))
    return max(REACH * typical * float(np.sqrt(g.shape[1])), 0.5 * scale)


def _climb_block(g: Array, z: Array, y: Array, xp: Any) -> Array:
    """Follow the gradient of a soft minimum of |g y + z| inside the unit ball; keep the best point met."""
    length = float(xp.sqrt((g**2).sum(axis=1)).mean())
    typical = length / len(z)  # margin to expect with this many creases
    best, best_margin = y, xp.zeros_like(y[:, 0])
    for step in range(CLIMBING_STEPS):
        values = y @ g.T + z
        sizes = xp.abs(values)
        margin = xp.amin(sizes, axis=1)
        better = margin > best_margin
        best, best_margin = xp.where(better[:, None], y, best), xp.maximum(margin, best_margin)
        softness = SOFTNESS * xp.clip(margin, SMALLEST_MARGIN * typical, None)
        pull = xp.subtract(margin[:, None], sizes, out=sizes)
        pull /= softness[:, None]
        xp.exp(xp.clip(pull, NO_PULL, None, out=pull), out=pull)
        direction = xp.copysign(pull, values, out=pull) @ g
        direction /= xp.linalg.norm(direction, axis=1, keepdims=True) + float(np.finfo(np.float32).tiny)
        cooling = min(1.0, COOLING * (1 - step / CLIMBING_STEPS))
        y = y + (cooling * STRIDE / length * xp.clip(margin, FIRST_STRIDE * typical, None))[:, None] * direction
        y = y / xp.clip(xp.linalg.norm(y, axis=1, keepdims=True), 1, None)
    return best


def per_coordinate(known: FramedNetwork, reach: float) -> FloatArray:
    """Typical size of one coordinate of each neuron's weights; among many, more for one that is known badly.

    A margin as large as margins are is then also a few times the error of such a neuron's values.
    """
    g = known.network.weights[0]
    if len(g) < MANY_NEURONS:
        return np.sqrt((g**2).mean(axis=1))
    return np.hypot(np.sqrt((g**2).mean(axis=1)), SURE * known.sd_within(reach) / reach * len(g) / np.sqrt(g.shape[1]))
