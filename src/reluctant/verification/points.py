"""Where errors hide: on a network's own creases, a little beside them, and far along them; and whether a target bends
there.

Random points alone do not see two nearly parallel neurons taken for one: the difference lives within their distance
of the crease. So each neuron is tested at a random point of its own crease. A whole network is verified by its
answers. Of a network that is known in part, `look_for_bends` tests the first layer: the target bends on the crease
of a neuron, and a little beside it does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluctant.arrays import HOST, Arrays
from reluctant.domains import Domain
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Noise, joined
from reluctant.oracles.ledger import Counting

__all__ = ["Bends", "CreasePoints", "crease_points", "far_along_creases", "look_for_bends", "points_beside"]

CREASE_DRAWS = 8  # random points or lines tried for each neuron
LINE_SAMPLES = 17  # points on a line in which a sign change is looked for
BISECTIONS = 60  # more than float64 has bits
SCALE_OF_USE = (0.1, 10.0)
OUT_OF_USE = 2 * SCALE_OF_USE[1]  # of √d: a point of a crease that far out is not looked at

# Beside a crease: from just above rounding to the size of the point itself.
NEAREST_BESIDE, FARTHEST_BESIDE = 1e-8, 1.0

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
        found = _drawn_on_creases(network, layer, np.arange(width), domain, rng, arrays)
        for _ in range(CREASE_DRAWS - 1):
            open_ = np.flatnonzero(np.isnan(found[:, 0]))
            if not len(open_):
                break
            found[open_] = _drawn_on_creases(network, layer, open_, domain, rng, arrays)
        hit = np.flatnonzero(~np.isnan(found[:, 0]))
        points.append(found[hit] if len(hit) < width else found)
        neurons.append(np.column_stack([np.full(len(hit), layer), hit]))
        missed += width - len(hit)
    if not points:
        return CreasePoints(np.empty((0, network.dim)), np.empty((0, 2), dtype=np.intp), 0)
    return CreasePoints(joined(points), joined(neurons), missed)


def _drawn_on_creases(
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


def _random_starts(n: int, dim: int, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Random points, each at a scale of its own."""
    scale = _random_scales(n, rng)
    return domain.sample(rng, n, dim) if domain.is_box else domain.fold(scale * rng.standard_normal((n, dim)))


def _random_scales(n: int, rng: np.random.Generator) -> FloatArray:
    low, high = np.log(SCALE_OF_USE)
    return np.exp(rng.uniform(low, high, (n, 1)))


def _project_to_first(
    network: ReLUNetwork, neurons: NDArray[np.intp], rng: np.random.Generator, arrays: Arrays
) -> FloatArray:
    """Drop random points onto the hyperplanes of the first layer; NaN where that leaves the scale of use."""
    w, b, scale = network.weights[0], network.biases[0], _random_scales(len(neurons), rng)
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
    start, stop = (_random_starts(len(neurons), network.dim, domain, rng) for _ in range(2))

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


def points_beside(points: FloatArray, domain: Domain, rng: np.random.Generator) -> FloatArray:
    """Move each point by a random step, its size spread evenly over many orders of magnitude."""
    steps = rng.standard_normal(points.shape)
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    sizes = np.exp(rng.uniform(np.log(NEAREST_BESIDE), np.log(FARTHEST_BESIDE), (len(points), 1)))
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


BEND_PLACES = 6  # on the crease of each neuron
ENOUGH_BENDS = 2  # of them: elsewhere a neuron of a deeper layer may hide it
BEND_STEP = 1e-5  # across the crease, of the size of the point: other creases are hardly ever as near by chance
BEND_STEP_IN_NOISE = 1e4  # of the answers' deviation: the step is so much longer than noise asks for
LONGEST_BEND_STEP = 4e-3  # longer ones meet other creases: where noise asks for them, nothing can be confirmed
BEND_TIMES_BESIDE = 2.0  # as much as beside it has a target to bend on a crease
STEPS_BESIDE = 5.0  # steps away, where nothing may bend
BEND_NOISE_FACTOR = 8.0  # a second difference above this many standard deviations is no noise
SECOND_DIFFERENCE = np.array([1.0, -2.0, 1.0])


@dataclass(frozen=True)
class Bends:
    """Neurons of the first layer, and how many of them lie where the target bends. weights: of those, biases too."""

    neurons: int
    confirmed: int
    weights: int


def look_for_bends(
    oracle: Counting, network: ReLUNetwork, rng: np.random.Generator, *, noise: Noise, spread: float
) -> Bends:
    """Ask on the crease of every neuron of the first layer, and beside it. Cost: at most 36 rows a neuron.

    None is confirmed where answers are too noisy for a step that meets no other crease.
    """
    width = network.widths[1] if network.depth > 1 else 0
    step = max(BEND_STEP, BEND_STEP_IN_NOISE * noise.at(spread) / spread)
    if step > LONGEST_BEND_STEP:
        return Bends(width, 0, 0)
    points, owners = _first_layer_points(oracle, network, rng)
    bending = _target_bends(oracle, points, network.hyperplanes()[0][owners], step, noise)
    confirmed = int((np.bincount(owners[bending], minlength=width) >= ENOUGH_BENDS).sum())
    return Bends(width, confirmed, confirmed * (network.dim + 1))


def _first_layer_points(
    oracle: Counting, network: ReLUNetwork, rng: np.random.Generator
) -> tuple[FloatArray, NDArray[np.intp]]:
    """Points (n, d) on creases of the first layer, and the neuron each is of."""
    found = [crease_points(network, oracle.facts.domain, rng) for _ in range(BEND_PLACES)]
    points = np.concatenate([each.points for each in found])
    neurons = np.concatenate([each.neurons for each in found])
    first = neurons[:, 0] == 0
    return points[first], neurons[first, 1]


def _target_bends(
    oracle: Counting, points: FloatArray, normals: FloatArray, step: float, noise: Noise
) -> NDArray[np.bool_]:
    """Whether the target bends at each point (n,), and not beside it."""
    sizes = np.linalg.norm(points, axis=1, keepdims=True)
    places = np.array([-1.0, 0.0, 1.0, STEPS_BESIDE - 1, STEPS_BESIDE, STEPS_BESIDE + 1])
    rows = points + step * places[:, None, None] * sizes * normals  # (places, n, d)
    domain = oracle.facts.domain
    inside = ((rows >= domain.low) & (rows <= domain.high)).all(axis=(0, 2))
    bending = np.zeros(len(points), dtype=bool)
    if not inside.any():
        return bending
    kept = rows[:, inside]
    with oracle.stage("part", expected=kept.shape[0] * kept.shape[1]):
        answers = oracle.query(kept.reshape(-1, oracle.dim)).reshape(*kept.shape[:2], -1)
    on, beside = (np.abs(np.tensordot(SECOND_DIFFERENCE, part, axes=1)) for part in np.split(answers, 2))
    floor = (
        BEND_NOISE_FACTOR
        * np.linalg.norm(SECOND_DIFFERENCE)
        * np.hypot(noise.absolute, noise.relative * np.abs(answers))
    )
    bending[inside] = ((on > floor.max(axis=0)) & (on > BEND_TIMES_BESIDE * beside)).any(axis=1)
    return bending
