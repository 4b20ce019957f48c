"""Where a neuron that was never met may show: random points, and points that are extreme in some hidden layer.

A neuron that hardly ever switches does so where the layer before it takes unusual values. From random points those
that are farthest in some direction of that layer are chosen, and moved on until they are as far as they get at their
distance from the origin: all without a query. A neuron that one input in a hundred thousand switches is met so.
"""

from __future__ import annotations

import numpy as np

from reluctant.extraction.any_depth.known import Known
from reluctant.geometry.samples import IntArray
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["check_points", "suspected_points"]

EXTREME = 0.75  # share of the points
POOL = 10_000  # random points they are taken from
DISTANCES = (0.3, 1.0, 3.0, 10.0)  # of extreme points from the origin, in units of the scale of use
AS_THEY_ARE = 0.5  # share of directions in the units of the layer; the others in units of its spread in each direction
CLIMB_STEPS, CLIMB_STEP = 12, 0.2  # the first step, of the distance from the origin; the others are shorter
CHUNK = 50  # directions at a time
SCALES = (0.1, 10.0)
AT_USE = 0.5  # share of points at the scale of use; the others are spread over the scales


def check_points(known: Known, count: int, rng: np.random.Generator) -> FloatArray:
    """Fresh points (n, d), no more than `count`."""
    layers = [Known(known.dim, known.layers[: k + 1]) for k in range(len(known.layers) - 1)] or [Known(known.dim)]
    pool, each = rng.standard_normal((POOL, known.dim)), int(EXTREME * count / (len(layers) * len(DISTANCES)))
    extreme = [_extremes(layer, distance * pool, each, rng) for layer in layers for distance in DISTANCES]
    return np.concatenate([_random(count - len(extreme) * each, known.dim, rng), *extreme])


def _random(count: int, dim: int, rng: np.random.Generator) -> FloatArray:
    low, high = np.log(SCALES)
    scale = np.where(rng.random(count) < AT_USE, 1.0, np.exp(rng.uniform(low, high, count)))
    return scale[:, None] * rng.standard_normal((count, dim))


def _extremes(known: Known, pool: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Points (count, d), as far from the origin as those of the pool, where random directions of the features peak."""
    features = known.features(pool)
    rows = rng.standard_normal((count, features.shape[1]))
    rows[int(AS_THEY_ARE * count) :] @= _whitening(features)
    return _climbed(known, pool[farthest(features, rows)], rows)


def farthest(values: FloatArray, directions: FloatArray) -> IntArray:
    """Which of the values (n, k) is farthest along each direction."""
    parts = [directions[i : i + CHUNK] for i in range(0, len(directions), CHUNK)]
    none = np.empty(0, dtype=np.intp)
    return np.concatenate([none, *((values @ part.T).argmax(axis=0) for part in parts)])


def suspected_points(known: Known, rest: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Points that are extreme along rows `rest` (n, k) of the layer before the last, on both sides.

    If what is left of the outputs, beside the neurons known, is a neuron that is hardly ever off, it is off there.
    """
    before, pool = Known(known.dim, known.layers[:-1]), _random(POOL, known.dim, rng)
    rows = np.concatenate([rest, -rest])
    points = pool[farthest(before.features(pool), rows)]
    return np.concatenate([points, _climbed(before, points, rows)])


def _climbed(known: Known, points: FloatArray, rows: FloatArray) -> FloatArray:
    """Points (n, d) moved to where rows (n, k) of the features are larger, no farther from the origin."""
    size = np.linalg.norm(points, axis=1, keepdims=True)
    for step in np.linspace(CLIMB_STEP, 0, CLIMB_STEPS, endpoint=False):
        slope = known.around(points).feature_gradients(rows)
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        points = points + step * size * slope / np.where(length > 0, length, 1.0)
        points *= size / np.linalg.norm(points, axis=1, keepdims=True)
    return points


def _whitening(values: FloatArray) -> FloatArray:
    """A matrix (k, k): directions times it see values (n, k) with unit spread in every direction that has any."""
    _, sizes, directions = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)
    kept = sizes > np.sqrt(unit_roundoff(np.float64)) * sizes[0]
    return np.asarray(directions[kept].T @ (directions[kept] * (sizes[0] / sizes[kept, None])))
