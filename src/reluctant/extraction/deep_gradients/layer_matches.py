"""Neurons of the next layer: creases whose incoming weights agree wherever the same features are on.

At a crease the normal is a combination of the slopes of the features that are on there, and its coefficients are the
incoming weights of the neuron, up to a factor. Two creases of one neuron agree in the weights that they share, and in
the bias. Creases of deeper neurons agree only while the layers between do not change; a neuron made of those would have
other creases that no line shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.deep_gradients.crease_normals import CreaseLines, Normals, explained, units, values_and_slopes
from reluctant.geometry.lines import Batch, BoolArray, IntArray
from reluctant.numerics import DOUBLE, FloatArray

WORST_CONDITION = 1e7  # of the slopes of the features that are on at a crease
OFF_SPAN = 1e-5  # what a normal may have outside them: else it is that of a neuron further below
AGREE = 1e-5  # between weights of one neuron from two creases, relative
FEWEST_SHARED = 2  # weights that two creases of one neuron share, besides the bias
MOST_MISSING = 0.4  # creases that do not show, of those that do: some are where nothing depends on the neuron


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
    """One neuron: weights, which of them are known, bias, and the creases that are its own."""

    weights: FloatArray
    known: BoolArray
    bias: float
    creases: IntArray


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


def next_layer(layers: KnownLayers, lines: CreaseLines) -> tuple[Layer, BoolArray, FloatArray]:
    """Neurons that unexplained creases show, which of their weights are known, and weights (n, k) of other creases."""
    may_tell = lines.normals.depth <= len(layers.layers)
    open_ = np.flatnonzero(may_tell & ~explained(layers, lines.normals))
    found, mute = equations(layers, lines.normals.chosen(open_))
    said = np.flatnonzero(~mute)
    found = found.chosen(said)
    chosen = lines.normals.chosen(open_[said])
    features = layers.features(chosen.points)
    scale = np.linalg.norm(features, axis=1) if layers.layers else units(chosen.points)
    first, last = lines.ends()
    at_ends = _Ends.of(layers, first), _Ends.of(layers, last)
    matches, used = [], np.zeros(len(found), dtype=bool)
    order = np.argsort(found.error)
    for start in order:
        if used[start]:
            continue
        match = grown(found, int(start), scale)
        if len(np.unique(chosen.line[match.creases])) < 2 or len(match.creases) < FEWEST_SHARED:
            continue
        missing = at_ends[0].missing(at_ends[1], match, np.concatenate(lines.flat))
        if missing > MOST_MISSING * len(match.creases):
            continue
        used[match.creases] = True
        matches.append(match)
    width = found.weights.shape[1]
    weights = np.array([match.weights for match in matches]).reshape(-1, width)
    known = np.array([match.known for match in matches], dtype=bool).reshape(-1, width)
    biases = np.array([match.bias for match in matches])
    layer = Layer(weights, biases, np.ones(len(matches), dtype=bool), np.empty(0, dtype=np.intp))
    return layer, known, found.weights[~used]


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
