"""Where a neuron that was never met may show: random points, and points that are extreme in some hidden layer.

A neuron that hardly ever switches does so where the layer before it takes unusual values. Those points are found
among many random ones without a query.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reluctant.extraction.any_depth.crease import Incoming
from reluctant.extraction.any_depth.known import Known
from reluctant.geometry.samples import IntArray
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["check_points", "suspected_points", "undetermined_points"]

EXTREME = 0.5  # share of the points
POOL = 40_000  # random points they are taken from
CLIMB_STEPS, CLIMB_STEP = 20, 0.05  # the step of the distance from the origin
FOR_EACH = 40  # points for every neuron with open coefficients, twice
CHUNK = 50  # directions at a time
SCALES = (0.1, 10.0)
AT_USE = 0.5  # share of points at the scale of use; the others are spread over the scales


def check_points(known: Known, count: int, rng: np.random.Generator) -> FloatArray:
    """Fresh points (n, d), no more than `count`."""
    extreme = int(EXTREME * count)
    pool = _random(POOL, known.dim, rng)
    return np.concatenate([_random(count - extreme, known.dim, rng), pool[_extremes(known, pool, extreme, rng)]])


def _random(count: int, dim: int, rng: np.random.Generator) -> FloatArray:
    low, high = np.log(SCALES)
    scale = np.where(rng.random(count) < AT_USE, 1.0, np.exp(rng.uniform(low, high, count)))
    return scale[:, None] * rng.standard_normal((count, dim))


def _extremes(known: Known, pool: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Indices of pool points that are farthest in random directions of the hidden layers, each layer alike."""
    size = np.hypot(np.sqrt(known.dim), np.linalg.norm(pool, axis=1))[:, None]
    chosen = [np.empty(0, dtype=np.intp)]
    layers = [Known(known.dim, known.layers[: k + 1]) for k in range(len(known.layers) - 1)] or [Known(known.dim)]
    for part in layers:
        directions = rng.standard_normal((count // len(layers), part.features(pool[:1]).shape[1]))
        values = _white(part.features(pool) / size)
        chosen.append(farthest(values, directions))
    return np.unique(np.concatenate(chosen))


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
    for _ in range(CLIMB_STEPS):
        slope = np.einsum("nfd,nf->nd", known.local(points).jacobian, rows)
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        points = points + CLIMB_STEP * size * slope / np.where(length > 0, length, 1.0)
        points *= np.minimum(size / np.linalg.norm(points, axis=1, keepdims=True), 1.0)
    return points


def undetermined_points(known: Known, incomings: Iterable[Incoming], rng: np.random.Generator) -> FloatArray:
    """Points at which the value of a neuron on top of `known` depends on coefficients that are open, some for each."""
    pool, open_ = _random(POOL, known.dim, rng), [incoming for incoming in incomings if not incoming.closed]
    features, chosen = known.features(pool), [pool[:0]]
    for incoming in open_:
        unsure = np.flatnonzero(~incoming.determined(features))
        nearest = unsure[np.argsort(np.abs(incoming.values(features[unsure])))]  # those that switch most easily
        chosen += [pool[nearest[:FOR_EACH]], pool[unsure[:FOR_EACH]]]
    return np.concatenate(chosen)


def _white(values: FloatArray) -> FloatArray:
    """Values of unit spread in every direction that has any."""
    centred = values - values.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    kept = sizes > np.sqrt(unit_roundoff(np.float64)) * sizes[0]
    return centred @ (directions[kept] / sizes[kept, None]).T @ directions[kept]
