"""Neurons of the next layer: creases whose incoming weights agree wherever the same features are on.

At a crease the normal is a combination of the slopes of the features that are on there, and its coefficients are the
incoming weights of the neuron, up to a factor. Two creases of one neuron agree in the weights that they share, and in
the bias. Creases of deeper neurons agree only while the layers between do not change; a neuron made of those would have
other creases that no line shows.

`crease_places` asks for these: a few places with other patterns on the crease that a neuron would have, two rows each.
A neuron jumps at all of them. Where gradients are zero on both sides, nothing shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.any_depth.output_layer import without_outputs
from reluctant.extraction.deep_gradients.crease_normals import CreaseLines, Normals, explained, units, values_and_slopes
from reluctant.geometry.lines import Batch, BoolArray, IntArray
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles.base import Explained
from reluctant.verification.cells import diverse_points

WORST_CONDITION = 1e7  # of the slopes of the features that are on at a crease
OFF_SPAN = 1e-5  # what a normal may have outside them: else it is that of a neuron further below
AGREE = 1e-5  # between weights of one neuron from two creases, relative
FEWEST_SHARED = 2  # weights that two creases of one neuron share, besides the bias


@dataclass(frozen=True)
class Equations(Batch):
    """Weights (n, k) into a neuron by crease, biases (n,), up to a factor; which weights are known; errors of both."""

    weights: FloatArray
    biases: FloatArray
    known: BoolArray
    error: FloatArray
    bias_error: FloatArray


def equations(layers: KnownLayers, normals: Normals) -> tuple[Equations, BoolArray]:
    """Of creases on known layers; and which creases (n,) say nothing: too many features are on, or one is unknown."""
    width = layers.dim if not layers.layers else len(layers.layers[-1])
    weights, known = np.zeros((len(normals), width)), np.zeros((len(normals), width), dtype=bool)
    biases, mute = np.zeros(len(normals)), np.ones(len(normals), dtype=bool)
    error, bias_error = np.full((2, len(normals)), np.inf)
    if not layers.layers:
        biases = -np.einsum("nd,nd->n", normals.normals, normals.points)
        off = normals.off + normals.error * units(normals.points)
        return Equations(normals.normals, biases, ~known, normals.error, off), ~mute
    for i in range(len(normals)):
        values, gradients = values_and_slopes(layers, normals.points[i : i + 1])
        features, slopes = np.maximum(values[-1][0], 0), gradients[-1][0]
        on = np.flatnonzero(features > 0)
        if not len(on):
            continue
        solved, _, rank, sizes = np.linalg.lstsq(slopes[on].T, normals.normals[i], rcond=None)
        left = np.linalg.norm(slopes[on].T @ solved - normals.normals[i])
        if rank < len(on) or sizes[0] > WORST_CONDITION * sizes[-1] or left > OFF_SPAN:
            continue
        size = np.linalg.norm(solved)
        weights[i, on], known[i, on], mute[i] = solved / size, True, False
        biases[i], error[i] = -float(weights[i] @ features), normals.error[i] * sizes[0] / sizes[-1]
        bias_error[i] = normals.off[i] / size + error[i] * np.linalg.norm(features)
    return Equations(weights, biases, known, error, bias_error), mute


@dataclass(frozen=True)
class Match:
    """What may be one neuron: weights, which of them are known, bias, and the creases that are its own.

    lines: on how many different ones these are. missing: creases that it would have and that no line shows.
    """

    weights: FloatArray
    known: BoolArray
    bias: float
    creases: IntArray
    lines: int = 1
    missing: int = 0

    @property
    def whole(self) -> bool:
        """True if every weight is known."""
        return bool(self.known.all())

    @property
    def row(self) -> FloatArray:
        """Weights and bias, of length 1: the same for one neuron, up to the sign."""
        row = np.append(self.weights, self.bias)
        return np.asarray(row / np.linalg.norm(row))


def grown(found: Equations, start: int, scale: FloatArray) -> Match:
    """The neuron of one crease: all creases that agree with it, or with those that do, added one by one."""
    members, weights = [start], found.weights[start].copy()
    known, bias, error = found.known[start].copy(), float(found.biases[start]), float(found.error[start])
    bias_error = float(found.bias_error[start])
    left = np.setdiff1d(np.arange(len(found)), members)
    while len(left):
        shared = found.known[left] & known
        enough = shared.sum(axis=1) >= min(FEWEST_SHARED, found.weights.shape[1])
        mine, theirs = np.where(shared, weights, 0.0), np.where(shared, found.weights[left], 0.0)
        square = (theirs**2).sum(axis=1)
        factor = np.divide((mine * theirs).sum(axis=1), square, out=np.zeros(len(left)), where=square > 0)
        size = np.linalg.norm(mine, axis=1)
        tolerance = AGREE + DOUBLE.in_line * (error + found.error[left])
        alike = np.linalg.norm(mine - factor[:, None] * theirs, axis=1) <= tolerance * size
        meet = np.abs(bias - factor * found.biases[left]) <= tolerance * (size * scale[left] + abs(bias))
        agree = np.flatnonzero(enough & alike & meet & (size > AGREE * np.linalg.norm(weights)))
        if not len(agree):
            break
        for each in agree:  # new weights from each, the best of those that several have
            i = left[each]
            fresh = found.known[i] & ~known
            better = found.known[i] & (found.error[i] < error)
            weights[fresh | better] = factor[each] * found.weights[i][fresh | better]
            known |= fresh
            error = min(error, float(found.error[i]))
            off = abs(float(factor[each])) * float(found.bias_error[i])
            if off < bias_error:
                bias, bias_error = float(factor[each] * found.biases[i]), off
            members.append(int(i))
        left = np.setdiff1d(left, members)
    return Match(weights, known, bias, np.array(sorted(members), dtype=np.intp))


def matches(layers: KnownLayers, lines: CreaseLines, found: Layer) -> list[Match]:
    """What creases that neither known layers nor the neurons found of the next one explain may be of."""
    may_tell = lines.normals.depth <= len(layers.layers)
    open_ = np.flatnonzero(may_tell & ~explained(layers.extended(found), lines.normals))
    said, mute = equations(layers, lines.normals.chosen(open_))
    open_, said = open_[~mute], said.chosen(~mute)
    chosen = lines.normals.chosen(open_)
    features = layers.features(chosen.points)
    scale = np.linalg.norm(features, axis=1) if layers.layers else units(chosen.points)
    first, last = lines.ends()
    at_ends, flat = (_Ends.of(layers, first), _Ends.of(layers, last)), np.concatenate(lines.flat)
    result, used = [], np.zeros(len(said), dtype=bool)
    for start in np.argsort(said.error):
        if used[start]:
            continue
        match = grown(said, int(start), scale)
        used[match.creases] = True
        missing = at_ends[0].missing(at_ends[1], match, flat)
        lines_met = len(np.unique(chosen.line[match.creases]))
        result.append(replace(match, creases=open_[match.creases], lines=lines_met, missing=missing))
    return result


def with_more_weights(layers: KnownLayers, match: Match, normals: Normals, turned_on: BoolArray) -> Match | None:
    """The same neuron with the weights of more features (k,): of the first of these creases that is its own.

    Known weights count as one column, so this also works where features are too many to solve for all of them.
    """
    for i in range(len(normals)):
        values, slopes = values_and_slopes(layers, normals.points[i : i + 1])
        on, own = values[-1][0] > 0, slopes[-1][0]
        if (on & ~match.known & ~turned_on).any():
            continue
        columns = np.vstack([np.where(on & match.known, match.weights, 0.0) @ own, own[turned_on]]).T
        lengths = np.linalg.norm(columns, axis=0)
        if not lengths.all():
            continue
        solved, _, rank, sizes = np.linalg.lstsq(columns / lengths, normals.normals[i], rcond=None)
        left = np.linalg.norm(columns / lengths @ solved - normals.normals[i])
        if rank < len(lengths) or sizes[0] > WORST_CONDITION * sizes[-1] or left > OFF_SPAN or abs(solved[0]) < AGREE:
            continue
        weights = match.weights.copy()
        weights[turned_on] = solved[1:] / lengths[1:] * lengths[0] / solved[0]
        return replace(match, weights=weights, known=match.known | turned_on)
    return None


@dataclass(frozen=True)
class _Ends:
    """Features (n, k) at one end of all pieces, and which of them are on."""

    features: FloatArray
    on: BoolArray

    @classmethod
    def of(cls, layers: KnownLayers, points: FloatArray) -> _Ends:
        if not layers.layers:
            return cls(points, np.ones(points.shape, dtype=bool))
        features = layers.features(points)[:, : len(layers.layers[-1])]
        return cls(features, features > 0)

    def missing(self, other: _Ends, match: Match, flat: BoolArray) -> int:
        """Pieces inside which a neuron would have a crease that shows, and all weights that count are known."""
        weights = np.where(match.known, match.weights, 0.0)
        clear = ~flat & ~((self.on | other.on) & ~match.known).any(axis=1)
        here, there = (end.features @ weights + match.bias for end in (self, other))
        size = DOUBLE.wide * (np.abs(self.features) @ np.abs(weights) + abs(match.bias))
        sure = (np.abs(here) > size) & (np.abs(there) > size)
        return int((clear & sure & (here * there < 0)).sum())


HALVINGS = 60  # more than float64 has bits
PAIRS = 24  # of points on both sides of a crease, for each place that is wanted
BESIDE, MARGIN = 1e-6, 1e-4  # of the scale: rows beside a crease, and how far known creases are from it at least
PARALLEL = 1e-5  # of a jump: what it may have across the normal


@dataclass(frozen=True)
class Places:
    """Points (n, d) on the crease of a neuron, unit normals (n, d), and lengths (n,) of the step to either side."""

    points: FloatArray
    normals: FloatArray
    steps: FloatArray

    @property
    def rows(self) -> FloatArray:
        """Two rows (2n, d) for each: before and behind the crease."""
        step = self.steps[:, None] * self.normals
        return np.concatenate([self.points - step, self.points + step])

    def __len__(self) -> int:
        return len(self.points)

    def seen(self, found: Explained, smallest: float) -> tuple[int, int]:
        """At how many places the gradient jumps along the normal, and at how many it does not, but is not zero."""
        before, behind = np.split(found.gradients, 2)
        jump, size = behind - before, np.maximum(np.abs(before), np.abs(behind)).max(axis=(1, 2), initial=0.0)
        along = np.einsum("nmd,nd->nm", jump, self.normals)
        across = np.linalg.norm(jump - along[:, :, None] * self.normals[:, None], axis=(1, 2))
        length = np.linalg.norm(jump, axis=(1, 2))
        jumps = length > smallest
        return int((jumps & (across <= PARALLEL * length)).sum()), int((~jumps & (size > smallest)).sum())


def pool(known: KnownLayers, rng: np.random.Generator) -> FloatArray:
    """Points (n, d) of many patterns of the known layers."""
    if not known.layers:
        return rng.standard_normal((64, known.dim)) * np.repeat([1.0, 3.0, 10.0, 100.0], 16)[:, None]
    return diverse_points(without_outputs(known, 1), rng)


def crease_places(
    known: KnownLayers, match: Match, points: FloatArray, count: int, rng: np.random.Generator
) -> Places:  # fmt: skip
    """At most so many places on the crease that a neuron of the next layer would have between points (n, d)."""
    width = len(match.weights)
    weights = np.where(match.known, match.weights, 0.0)

    def values(rows: FloatArray) -> FloatArray:
        return np.asarray(known.features(rows)[:, :width] @ weights + match.bias)

    at = values(points)
    low, high = np.flatnonzero(at < 0), np.flatnonzero(at > 0)
    if not len(low) or not len(high):
        return Places(points[:0], points[:0], np.empty(0))
    start, stop = points[rng.choice(low, PAIRS * count)], points[rng.choice(high, PAIRS * count)]
    for _ in range(HALVINGS):
        middle = (start + stop) / 2
        below = (values(middle) < 0)[:, None]
        start, stop = np.where(below, middle, start), np.where(below, stop, middle)
    found = (start + stop) / 2
    normals, clear = _normals(known, match, weights, found)
    clear &= np.linalg.norm(found, axis=1) < FARTHEST * np.sqrt(known.dim)
    first = np.flatnonzero(clear)[:count]
    return Places(found[first], normals[first], BESIDE * units(found[first]))


FARTHEST = 1e3  # of the scale: steps beside a crease are long beside the rounding of a row there


def _normals(
    known: KnownLayers, match: Match, weights: FloatArray, points: FloatArray
) -> tuple[FloatArray, BoolArray]:  # fmt: skip
    """Unit normals (n, d) of the crease, and where known creases are far and only known weights count."""
    if not known.layers:
        normal = weights / np.linalg.norm(weights)
        return np.repeat(normal[None], len(points), axis=0), np.ones(len(points), dtype=bool)
    values, slopes = values_and_slopes(known, points)
    on = values[-1] > 0
    normals = np.einsum("nh,nhd->nd", np.where(on, weights, 0.0), slopes[-1])
    sizes = np.linalg.norm(normals, axis=1)
    clear = (sizes > 0) & ~(on & ~match.known).any(axis=1)
    scale = MARGIN * units(points)[:, None]
    for z, g in zip(values, slopes, strict=True):
        clear &= (np.abs(z) > scale * np.linalg.norm(g, axis=2)).all(axis=1)
    return normals / np.where(sizes > 0, sizes, 1.0)[:, None], clear
