"""Where errors hide: at several scales, on a network's own creases, and a little beside them.

Random points alone do not see two nearly parallel neurons taken for one: the difference lives within
their distance of the crease. So each neuron is looked at on a random point of its own crease.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluctant.arrays import HOST, Arrays
from reluctant.domains import Domain
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, joined

__all__ = ["CreasePoints", "beside", "crease_points", "far_along_creases"]

DRAWS = 8  # random points or lines tried for each neuron
LINE_SAMPLES = 17  # points on a line in which a sign change is looked for
BISECTIONS = 60  # more than float64 has bits
SCALE_OF_USE = (0.1, 10.0)
OUT_OF_USE = 2 * SCALE_OF_USE[1]  # of √d: a point of a crease that far out is not looked at

# Beside a crease: from just above rounding to the size of the point itself.
NEAREST, FARTHEST = 1e-8, 1.0

# Far along a crease, where one of a deeper layer has bent away: beyond the scale of use, and this much beside it.
FAR_SCALE, FAR_BESIDE = 30.0, 0.03


@dataclass(frozen=True)
class CreasePoints:
    """Points on creases, and the (layer, neuron) each one belongs to; `missed` neurons have none in reach."""

    points: FloatArray
    neurons: NDArray[np.intp]  # (n, 2)
    missed: int


def crease_points(
    network: ReLUNetwork, domain: Domain, rng: np.random.Generator, arrays: Arrays = HOST
) -> CreasePoints:
    """One random point on the crease of every hidden neuron whose crease passes the scale of use."""
    points, neurons, missed = [], [], 0
    for layer, width in enumerate(network.widths[1:-1]):
        found = _drawn(network, layer, np.arange(width), domain, rng, arrays)
        for _ in range(DRAWS - 1):
            open_ = np.flatnonzero(np.isnan(found[:, 0]))
            if not len(open_):
                break
            found[open_] = _drawn(network, layer, open_, domain, rng, arrays)
        hit = np.flatnonzero(~np.isnan(found[:, 0]))
        points.append(found[hit] if len(hit) < width else found)
        neurons.append(np.column_stack([np.full(len(hit), layer), hit]))
        missed += width - len(hit)
    if not points:
        return CreasePoints(np.empty((0, network.dim)), np.empty((0, 2), dtype=np.intp), 0)
    return CreasePoints(joined(points), joined(neurons), missed)


def _drawn(
    network: ReLUNetwork,
    layer: int,
    neurons: NDArray[np.intp],
    domain: Domain,
    rng: np.random.Generator,
    arrays: Arrays,
) -> FloatArray:
    """A random point on the crease of each of these neurons of a layer, NaN where none was met."""
    if layer == 0 and domain.is_space:
        return _project_to_first(network, neurons, rng, arrays)
    return _cross_deeper(network, layer, neurons, domain, rng)


def _starts(n: int, dim: int, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Random points, each at a scale of its own."""
    scale = _scales(n, rng)
    return domain.sample(rng, n, dim) if domain.is_box else domain.fold(scale * rng.standard_normal((n, dim)))


def _scales(n: int, rng: np.random.Generator) -> FloatArray:
    low, high = np.log(SCALE_OF_USE)
    return np.exp(rng.uniform(low, high, (n, 1)))


def _project_to_first(
    network: ReLUNetwork, neurons: NDArray[np.intp], rng: np.random.Generator, arrays: Arrays
) -> FloatArray:
    """Drop random points onto the hyperplanes of the first layer; NaN where that leaves the scale of use."""
    w, b, scale = network.weights[0], network.biases[0], _scales(len(neurons), rng)
    normals = arrays.put(w if len(neurons) == len(w) else w[neurons])
    lengths = arrays.xp.linalg.norm(normals, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN for a neuron without a crease
        normals, offsets = normals / lengths[:, None], arrays.put(b[neurons]) / lengths
    points = arrays.put(scale) * arrays.normals(rng, (len(neurons), network.dim))
    points -= ((points * normals).sum(axis=1) + offsets)[:, None] * normals
    sizes = arrays.xp.linalg.norm(points, axis=1)
    points[~(sizes <= OUT_OF_USE * float(np.sqrt(network.dim)))] = np.nan
    return arrays.get(points)


def _cross_deeper(
    network: ReLUNetwork, layer: int, neurons: NDArray[np.intp], domain: Domain, rng: np.random.Generator
) -> FloatArray:
    """Find a zero of each neuron's pre-activation between two random points; NaN where there is none."""
    start, stop = (_starts(len(neurons), network.dim, domain, rng) for _ in range(2))

    def values(t: FloatArray) -> FloatArray:
        rows = start + t[:, None] * (stop - start)
        return network.preactivations(rows)[layer][np.arange(len(neurons)), neurons]

    grid = np.linspace(0, 1, LINE_SAMPLES)
    signs = np.array([values(np.full(len(neurons), t)) > 0 for t in grid])
    changes = signs[1:] != signs[:-1]
    first = changes.argmax(axis=0)
    low, high = grid[first], grid[first + 1]
    below = signs[first, np.arange(len(neurons))]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        same = (values(middle) > 0) == below
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    points = start + low[:, None] * (stop - start)
    points[~changes.any(axis=0)] = np.nan
    return points


def beside(points: FloatArray, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Move each point by a random step, its size spread evenly over many orders of magnitude."""
    steps = rng.standard_normal(points.shape)
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    sizes = np.exp(rng.uniform(np.log(NEAREST), np.log(FARTHEST), (len(points), 1)))
    return np.clip(points + sizes * np.linalg.norm(points, axis=1, keepdims=True) * steps, domain.low, domain.high)


def far_along_creases(network: ReLUNetwork, count: int, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Points (n, d) far out along the hyperplanes of the first layer, a little beside them; none if it has none.

    A network whose neurons are really parts of deeper ones is wrong there, long before random points show it. In a
    bounded domain they are all over it.
    """
    if not count:
        return np.empty((0, network.dim))
    normals, offsets = network.hyperplanes()
    there = np.flatnonzero(np.isfinite(normals[:, 0]))
    which = there[rng.permutation(np.arange(count) % len(there))] if len(there) else there
    points = domain.sample(rng, len(which), network.dim, FAR_SCALE)
    sizes = np.linalg.norm(points - points.mean(axis=0), axis=1, keepdims=True) if len(points) else points[:, :1]
    points = points - ((points * normals[which]).sum(axis=1) + offsets[which])[:, None] * normals[which]
    return np.clip(points + FAR_BESIDE * sizes * rng.standard_normal(points.shape), domain.low, domain.high)
