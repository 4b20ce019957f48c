"""Points inside cells of a network: where chosen units are on and the others off, near and far out.

Random inputs hardly ever reach most cells. A unit of the second layer with one small positive weight is on only where
that unit of the first layer is large and the others are off. Far out along a ray where one unit is on alone, every unit
of the next layer with a positive weight from it is on, whatever its bias: one row for each unit shows all of them. A
network that lacks one has another gradient there.

First layers no wider than the input take any values; deeper ones those that a linear programme finds. Nothing here
queries the target.

`covering_points` asks what a missing unit could look like: units are drawn on the features of a layer, and points are
chosen until each of them that is on anywhere is on at one of these. Features of the second layer and above do not take
any values. There a unit may be on in a small bounded part of space alone; then it is on where some sum of the features
is largest (`outermost_points`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray, joined

LINE_REACH = 3.0  # scales of use to either side
FARTHEST_ALONE = 1e3  # scales of use: points farther out where one unit is on alone are left out
FAR_OUT = 1e5  # scales of use: biases count for nothing there
OFF = 0.05, 1.0  # of a value that is off, in its own size
SPREAD = 1.5  # of the logarithm of a value that is on
POOL = 400  # rays that those of layers beyond the second are chosen from
DRAWN_UNITS, COVERED = 1500, 0.99  # that points are chosen for, and the share of them that is to be on at one
POOL_SCALES = (1.0, 3.0, 10.0, 1e3)  # of random inputs among which these points are
POOLS, CLIMBERS, CLIMB_STEPS = 8, 600, 60  # of the search for points where sums of features are largest
NEAR = 30.0  # scales of use: sums that grow farther out grow without end, and far points show such units
NARROWEST, WIDEST = 0.001, 0.5  # of the way from the largest sum to the median: drawn units are on so far down
LONGER, SHORTER = 1.3, 0.6  # times: a step of a climb after one that led higher, and after another


def _takes_any_values(network: ReLUNetwork) -> bool:
    """True if the first layer has hidden ones above it, and can be given any values."""
    lengths = np.linalg.norm(network.weights[0], axis=1)
    return network.depth > 1 and network.widths[1] <= network.dim and bool(lengths.all())


def _right_inverse(weights: FloatArray) -> FloatArray:
    """The inverse (d, h) of rows, whatever their lengths; none along directions in which they differ by rounding.

    Rows that are parallel differ by rounding alone. Points at which one of them is on and the other is off would lie
    where answers have no digits.
    """
    lengths = np.linalg.norm(weights, axis=1)
    lengths = np.where(lengths > 0, lengths, 1.0)
    return np.asarray(np.linalg.pinv(weights / lengths[:, None], float(np.sqrt(DOUBLE.rounding))) / lengths)


def alone_points(network: ReLUNetwork, most: int, rng: np.random.Generator) -> FloatArray:
    """Points (n, d) where one unit of the first layer is on alone: one in each piece of a ray on which it grows.

    Hardly any random input is there, and each piece is a part of the layers above that nothing else blurs. No point
    for a unit that is never alone, nor for first layers wider than the input. Points farther out than a thousand
    scales of use are left out: of layers of low rank, units are alone only where answers have no digits.
    """
    shares, margins = np.linspace(0, LINE_REACH, 301), (0.05, 0.5)  # in units of a row's length
    points = [np.empty((0, network.dim))]
    w, b, width = network.weights[0], network.biases[0], network.widths[1]
    if not most or not _takes_any_values(network):
        return points[0]
    lengths, inverse = np.linalg.norm(w, axis=1), _right_inverse(w)
    for unit in rng.permutation(width)[:most]:
        start = inverse @ (-lengths * np.where(np.arange(width) == unit, 0.0, rng.uniform(*margins, width)) - b)
        ray = lengths[unit] * inverse[:, unit]
        patterns = np.hstack(network.patterns(start + shares[:, None] * ray)[: network.depth - 1])
        if np.delete(patterns[:, :width], unit, axis=1).any():
            continue
        bounds = np.concatenate([[0.0], shares[1:][(patterns[1:] != patterns[:-1]).any(axis=1)], [LINE_REACH]])
        chosen = bounds[:-1] + rng.uniform(0.1, 0.9, len(bounds) - 1) * np.diff(bounds)
        points.append(start + chosen[np.diff(bounds) > shares[1]][:, None] * ray)
    found = joined(points)
    found = found[np.linalg.norm(found, axis=1) < FARTHEST_ALONE * np.sqrt(network.dim)]
    return found[rng.permutation(len(found))[:most]]


def sparse_points(network: ReLUNetwork, count: int, rng: np.random.Generator) -> FloatArray:
    """Points (count, d) where a random part of the first layer, one unit to all, is on and the others are off.

    Values of units that are on are spread over orders of magnitude. No point for first layers wider than the input.
    """
    if not count or not _takes_any_values(network):
        return np.empty((0, network.dim))
    return _with_values(network, _sparse(network, count, rng), rng)


def far_points(network: ReLUNetwork, rng: np.random.Generator) -> FloatArray:
    """Points (n, d) far out, for each unit of every hidden layer but the last one where it is on alone, or nearly.

    And one where the whole first layer is off. None for first layers wider than the input.
    """
    if network.depth == 2 or not _takes_any_values(network):
        return np.empty((0, network.dim))
    rays = np.eye(network.widths[1])
    if network.depth > 3 and network.is_chain:
        found = [_ray_of(network, unit, rng) for unit in range(network.widths[2])]
        rays = joined([rays, *(each[None] for each in found if each is not None)])
    if network.depth > 4 and network.is_chain:
        rays = joined([rays, _rays_of_deeper(network, rays, rng)])
    values = np.where(rays > 0, rays, -rng.uniform(*OFF, rays.shape))
    near = _with_values(network, -rng.uniform(*OFF, (1, network.widths[1])), rng)
    return joined([near, _with_values(network, FAR_OUT * values, rng, FAR_OUT)])


def covering_points(
    network: ReLUNetwork, rng: np.random.Generator, *, layers: tuple[int, ...] | None = None, most: int = 64
) -> FloatArray:
    """At most so many points (n, d) for each layer at which nearly every unit that it may lack would be on.

    layers: that may lack one, from 1, also the one above the last hidden one; all hidden ones if None. Units are drawn
    with weights of all kinds, also mostly negative ones, which hardly any input switches on. Points far out are among
    those that are chosen from.
    """
    if network.depth < 2:
        return np.empty((0, network.dim))
    pool = diverse_points(network, rng)
    features = [pool, *(np.maximum(values, 0) for values in network.preactivations(pool)[: network.depth - 1])]
    shown = np.abs(network.gradients(pool)).max(axis=(1, 2)) > 0
    chosen = []
    for layer in layers or range(1, network.depth):
        below = features[layer - 1]
        some = shown if shown.any() else ~shown
        picked = covering(below[some], most, rng)
        chosen.append(pool[np.flatnonzero(some)[picked]])
        if layer > 2 or (layer == 2 and not _takes_any_values(network)):
            chosen.append(outermost_points(network, layer - 1, most, rng))
    return joined(chosen)


def outermost_points(network: ReLUNetwork, layer: int, most: int, rng: np.random.Generator) -> FloatArray:
    """At most so many points (n, d) not far out where sums of a hidden layer's features, from 1, are largest.

    A unit is on where such a sum is above a bound. So one that is on in a small part of space is on where its sum is
    largest. Sums are drawn and climbed from the best of many points. Few of all these are chosen: every drawn unit that
    is on a little below its largest value is on at one.
    """

    def features(points: FloatArray) -> FloatArray:
        return np.maximum(network.preactivations(points)[layer - 1], 0)

    def near(points: FloatArray) -> FloatArray:
        return points[np.linalg.norm(points, axis=1) < NEAR * np.sqrt(network.dim)]

    pool = near(joined([diverse_points(network, rng) for _ in range(POOLS)]))
    pool = joined([pool, near(_climbed(network, layer, pool, _drawn_sums(CLIMBERS, network.widths[layer], rng), rng))])
    sums = features(pool) @ _drawn_sums(DRAWN_UNITS, network.widths[layer], rng).T
    largest, middle = sums.max(axis=0), np.median(sums[::POOLS], axis=0)
    down = np.exp(rng.uniform(np.log(NARROWEST), np.log(WIDEST), DRAWN_UNITS))
    on = sums >= largest - down * (largest - middle)
    pool, on = pool[on.any(axis=1)], on[on.any(axis=1)]
    shown = np.abs(network.gradients(pool)).max(axis=(1, 2)) > 0  # elsewhere layers above hide the unit
    pool, on = (pool[shown], on[shown]) if shown.any() else (pool, on)
    return pool[_each_at_one(on, most, 1.0)]


def _climbed(
    network: ReLUNetwork, layer: int, pool: FloatArray, sums: FloatArray, rng: np.random.Generator
) -> FloatArray:  # fmt: skip
    """For each sum (n, width) of a layer's features, a point (n, d) where it is largest, as steps uphill find it."""
    start = np.argmax(sums @ np.maximum(network.preactivations(pool)[layer - 1], 0).T, axis=1)
    best, largest, point = pool[start], np.full(len(sums), -np.inf), pool[start]
    unit, step = np.maximum(np.linalg.norm(best, axis=1), np.sqrt(network.dim)), np.full(len(sums), 1 / 2)
    for number in range(CLIMB_STEPS):
        values = network.preactivations(point)[:layer]
        now = (sums * np.maximum(values[-1], 0)).sum(axis=1)
        higher = now > largest
        best, largest = np.where(higher[:, None], point, best), np.where(higher, now, largest)
        step = np.where(higher, LONGER, SHORTER) * step
        uphill = network.input_slopes([each > 0 for each in values], {layer: sums})
        uphill /= np.maximum(np.linalg.norm(uphill, axis=1, keepdims=True), np.finfo(float).tiny)
        aside = rng.standard_normal(point.shape) / np.sqrt(network.dim) if number % 2 else 0.0  # creases end a climb
        point = best + (step * unit)[:, None] * (uphill + aside)
    return best


def _drawn_sums(count: int, width: int, rng: np.random.Generator) -> FloatArray:
    """Weights (count, width) of all kinds, also mostly negative ones."""
    return rng.standard_normal((count, width)) - rng.uniform(-1.0, 2.0, (count, 1))


def _each_at_one(on: NDArray[np.bool_], most: int, share: float = COVERED) -> NDArray[np.intp]:
    """Rows of on (n, units), at most so many and the best first: this share of units that are on is on at one."""
    chosen: list[int] = []
    on = on[:, on.any(axis=0)]
    wanted = (1 - share) * on.shape[1]
    while on.shape[1] > wanted and len(chosen) < most:
        best = int(np.argmax(on.sum(axis=1)))
        chosen.append(best)
        on = on[:, ~on[best]]
    return np.array(chosen, dtype=np.intp)


def diverse_points(network: ReLUNetwork, rng: np.random.Generator) -> FloatArray:
    """Points (n, d) of many patterns: random ones of several scales, and where parts of the first layer are on."""
    each = POOL // len(POOL_SCALES)
    random = [scale * rng.standard_normal((each, network.dim)) for scale in POOL_SCALES]
    if not _takes_any_values(network):
        return joined(random)
    width = network.widths[1]
    axes = np.where(np.eye(width) > 0, 1.0, -rng.uniform(*OFF, (width, width)))
    low = np.where(rng.random((width, width)) < 1 / 2, -1.0, 1.0) * rng.uniform(1e-3, 1e-2, (width, width))
    beside = np.where(np.eye(width) > 0, 1.0, low)
    sparse = _sparse(network, POOL, rng)
    values = joined([axes, beside, sparse, -rng.uniform(*OFF, (1, width))])
    near, far = _with_values(network, values, rng), _with_values(network, POOL_SCALES[-1] * values, rng)
    return joined([*random, near, far])


def covering(features: FloatArray, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Indices of points with these features (n, k) at which nearly every drawn unit is on, at most so many."""
    k = features.shape[1]
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(features))
    there = np.isfinite(logs)
    sizes = np.exp(np.where(there, logs, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1))
    scaled = features / sizes
    weights = _drawn_sums(DRAWN_UNITS, k, rng)
    biases = np.sqrt(k) * rng.standard_normal(DRAWN_UNITS)
    on = scaled @ weights.T + biases > 0
    return _each_at_one(on, most)


def _sparse(network: ReLUNetwork, count: int, rng: np.random.Generator) -> FloatArray:
    """Values (n, h) of the first layer, in their own sizes."""
    width = network.widths[1]
    share = rng.random((count, 1)) ** 2  # small parts more often
    on = rng.random((count, width)) < share
    on[np.arange(count), rng.integers(width, size=count)] = True
    return np.where(on, np.exp(SPREAD * rng.standard_normal((count, width))), -rng.uniform(*OFF, (count, width)))


def _with_values(network: ReLUNetwork, values: FloatArray, rng: np.random.Generator, scale: float = 1.0) -> FloatArray:
    """Points (n, d) where the first layer has these values (n, h), in their own sizes; any where it does not count."""
    w, b, lengths = network.weights[0], network.biases[0], np.linalg.norm(network.weights[0], axis=1)
    inverse = _right_inverse(w)
    beside = scale * rng.standard_normal((len(values), network.dim))
    beside -= (beside @ w.T) @ inverse.T
    found = (np.sqrt(network.dim) * lengths * values - b) @ inverse.T + beside
    return np.asarray(found[np.isfinite(found).all(axis=1)])


def _second_layer(network: ReLUNetwork) -> FloatArray:
    """Weights (k, h) of the second layer by values of the first in their own sizes, each row of length 1."""
    rows = network.weights[1] * np.linalg.norm(network.weights[0], axis=1)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def _ray_of(network: ReLUNetwork, unit: int, rng: np.random.Generator) -> FloatArray | None:
    """Values (h,) of the first layer along which one unit of the second grows, and the others as little as can be."""
    margin = 0.02  # of that unit's value: the others are off by so much
    rows = _second_layer(network)
    others, (k, h) = np.delete(rows, unit, axis=0), rows.shape
    cost = np.concatenate([1e-3 * rng.random(h), rng.exponential(size=k - 1)])  # few units on, if that is as good
    found = linprog(
        cost, A_ub=np.hstack([others, -np.eye(k - 1)]), b_ub=np.full(k - 1, -margin),
        A_eq=np.concatenate([rows[unit], np.zeros(k - 1)])[None], b_eq=[1.0], bounds=(0.0, None), method="highs",
    )  # fmt: skip
    return None if found.status else np.asarray(found.x[:h] / found.x[:h].max())


def _rays_of_deeper(network: ReLUNetwork, rays: FloatArray, rng: np.random.Generator) -> FloatArray:
    """For each unit from the third layer on, the sum of rays on which it has the largest share of its layer."""
    few = 4
    weights = np.zeros((POOL, len(rays)))
    for _ in range(few):
        weights[np.arange(POOL), rng.integers(len(rays), size=POOL)] += rng.exponential(size=POOL)
    pool = joined([rays, weights @ rays, np.maximum(_sparse(network, POOL, rng), 0)])
    values, chosen = np.maximum(pool @ _second_layer(network).T, 0), []
    values *= np.linalg.norm(network.weights[1] * np.linalg.norm(network.weights[0], axis=1), axis=1)
    for w in network.weights[2:-2]:
        values = np.maximum(values @ w.T, 0)
        share = values / np.maximum(values.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        chosen += [pool[i] for i in np.unique(share.argmax(axis=0)[share.max(axis=0) > 0])]
    return np.array(chosen).reshape(-1, rays.shape[1])
