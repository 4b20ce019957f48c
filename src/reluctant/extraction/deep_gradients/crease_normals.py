"""Creases of whole lines with their normals, and which of them known layers explain.

Between neighbouring creases of a line every known feature is affine. So a neuron whose value changes its sign inside
such a piece has a crease there that nobody saw: it does not exist, or does not show.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.geometry.jumps import SAME_ROUNDINGS, ExpectedCreases, GradientNoise, Jumps
from reluctant.geometry.lines import Batch, BoolArray, IntArray, Lines
from reluctant.numerics import DOUBLE, FloatArray

ON_CREASE = 1e-7  # of the scale at a point: a value this small is that of a neuron whose crease goes through it


@dataclass(frozen=True)
class Normals(Batch):
    """Creases: points (n, d), unit normals (n, d), error of a normal, what places may be off by, line and position.

    depth: layers that do not change along the line, 0 of whole lines: it does not tell their neurons from deeper ones.
    """

    points: FloatArray
    normals: FloatArray
    error: FloatArray
    off: FloatArray
    line: IntArray
    t: FloatArray
    depth: IntArray

    @classmethod
    def of(cls, jumps: Jumps, line: int, depth: int, noise: GradientNoise, size: float) -> Normals:
        """Of jumps that one neuron makes: their gradients have rank one."""
        error = noise.rounding * size
        _, sizes, right = np.linalg.svd(jumps.jump, full_matrices=False)
        single = sizes[:, 0] > SAME_ROUNDINGS * error
        if sizes.shape[1] > 1:
            single &= sizes[:, 1] <= SAME_ROUNDINGS * error
        found = cls(
            jumps.points, right[:, 0], error / np.maximum(sizes[:, 0], DOUBLE.tiny), jumps.off,
            np.full(len(jumps), line), jumps.position, np.full(len(jumps), depth),
        )  # fmt: skip
        return found.chosen(single)


@dataclass
class CreaseLines:
    """Lines that were searched for creases: the creases, and a point on either end of every piece."""

    dim: int
    lines: list[Lines] = field(default_factory=list)
    found: Normals | None = None
    pieces: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)  # of each line, both ends (n, d)
    flat: list[BoolArray] = field(default_factory=list)  # pieces where answers do not change: nothing shows there

    def add(
        self, lines: Lines, jumps: Jumps, asked: tuple[FloatArray, FloatArray], noise: GradientNoise, size: float,
        depth: int = 0,
    ) -> None:  # fmt: skip
        """One more line; asked: rows (n, d) on it, and sizes (n,) of their gradients."""
        new = Normals.of(jumps, len(self.lines), depth, noise, size)
        self.found = new if self.found is None else self.found + new
        scale = lines.scale
        t = np.sort(jumps.position)
        ends = np.array([lines.low[0], lines.high[0]])
        low, high = np.concatenate([ends[:1], t]), np.concatenate([t, ends[1:]])
        short = PIECE_END * np.minimum(high - low, np.hypot(scale, np.minimum(np.abs(low), np.abs(high))))
        first, last = low + short, high - short
        zero = np.zeros(len(first), dtype=np.intp)
        self.pieces.append((lines.points(zero, first), lines.points(zero, last)))
        piece = np.searchsorted(t, (asked[0] - lines.origins[0]) @ lines.directions[0])
        largest = np.full(len(t) + 1, -1.0)
        np.maximum.at(largest, piece, asked[1])
        self.flat.append((largest >= 0) & (largest <= SAME_ROUNDINGS * noise.rounding * size))
        self.lines.append(lines)

    @property
    def normals(self) -> Normals:
        """All creases."""
        assert self.found is not None  # `add` comes first
        return self.found

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Both ends (n, d) of all pieces."""
        return np.concatenate([piece[0] for piece in self.pieces]), np.concatenate([piece[1] for piece in self.pieces])


PIECE_END = 1e-5  # of a piece: the distance of its probed points from its ends


def units(points: FloatArray) -> FloatArray:
    """The scale (n,) at each point."""
    return np.hypot(np.sqrt(points.shape[1]), np.linalg.norm(points, axis=1))


def is_zero(values: FloatArray, slopes: FloatArray, normals: Normals) -> BoolArray:
    """Which values (n, h) at creases are zero, for slopes (n, h) of their neurons."""
    within = ON_CREASE * units(normals.points) + DOUBLE.in_line * normals.off
    return np.asarray(np.abs(values) <= within[:, None] * np.maximum(slopes, DOUBLE.tiny))


def values_and_slopes(known: KnownLayers, rows: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
    """Values (n, h) of each layer's neurons, and their gradients (n, h, d); nothing is carried on beside a layer.

    Far cheaper than `KnownLayers.local` where inputs are many.
    """
    values, slopes = [], []
    below = rows
    for number, layer in enumerate(known.layers):
        values.append(below @ layer.weights.T + layer.biases)
        if number == 0:
            slopes.append(np.broadcast_to(layer.weights, (len(rows), *layer.weights.shape)))
        else:
            slopes.append(layer.weights @ np.where((values[-2] > 0)[:, :, None], slopes[-1], 0.0))
        below = np.maximum(values[-1], 0)
    return values, slopes


def explained(known: KnownLayers, normals: Normals) -> BoolArray:
    """Which creases (n,) are those of known neurons."""
    if not known.layers:
        return np.zeros(len(normals), dtype=bool)
    result = np.zeros(len(normals), dtype=bool)
    for start in range(0, len(normals), 64):  # slopes of all neurons by all inputs are large
        some = normals.chosen(slice(start, start + 64))
        values, slopes = values_and_slopes(known, some.points)
        sizes = np.concatenate([np.linalg.norm(each, axis=2) for each in slopes], axis=1)
        result[start : start + 64] = is_zero(np.concatenate(values, axis=1), sizes, some).any(axis=1)
    return result


def known_creases(known: KnownLayers, line: Lines) -> ExpectedCreases:
    """Where the neurons of known layers change sides on one line, with the normals there.

    Between the creases of the layers below, values are affine: two points of a piece give their zero in it.
    """
    ends = line.angle(np.array([line.low[0], line.high[0]]))
    bounds, where, normals = ends, [np.empty(0)], [np.empty((0, known.dim))]
    zeros = np.empty(0)
    for number in range(len(known.layers)):
        low, high = bounds[:-1], bounds[1:]
        thirds = line.position(np.stack([low + (high - low) / 3, high - (high - low) / 3]))  # (2, p)
        rows = line.points(np.zeros(thirds.size, dtype=np.intp), thirds.ravel())
        part = KnownLayers(known.dim, known.layers[: number + 1])
        values = part.around(rows).values[:, -len(known.layers[number]) :].reshape(2, len(low), -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (values[1] - values[0]) / (thirds[1] - thirds[0])[:, None]
            t = thirds[0][:, None] - values[0] / slope
        inside = np.isfinite(t) & (t > line.position(low)[:, None]) & (t < line.position(high)[:, None])
        piece, neuron = np.nonzero(inside)
        zeros = t[piece, neuron]
        _, slopes = values_and_slopes(part, line.points(np.zeros(len(zeros), dtype=np.intp), zeros))
        own = slopes[-1][np.arange(len(zeros)), neuron]
        sizes = np.linalg.norm(own, axis=1)
        there = sizes > 0
        where.append(zeros[there])
        normals.append(own[there] / sizes[there, None])
        bounds = np.sort(np.concatenate([bounds, line.angle(zeros)]))
    return ExpectedCreases(np.concatenate(where), np.concatenate(normals)).sorted()
