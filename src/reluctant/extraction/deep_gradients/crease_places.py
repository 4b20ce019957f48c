"""Places on the crease that a neuron would have: it jumps at all of them, or is a part of a deeper one.

A crease of a deeper neuron follows the weights of its next layer only while the layers between do not change. So a few
places with other patterns tell it from a neuron of that layer, two rows a place. Where gradients are zero on both
sides, nothing shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.extraction.any_depth.readout import without_outputs
from reluctant.extraction.deep_gradients.crease_normals import units, values_and_slopes
from reluctant.extraction.deep_gradients.layer_matches import Match
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Explained
from reluctant.verification.cells import diverse_points

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
