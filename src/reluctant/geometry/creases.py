"""Creases of a piecewise linear function on lines, as values: where neighbouring pieces meet, and how they bend.

The search that finds them is in `reluctant.geometry.search`. Nothing here asks anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry.bent import is_straight
from reluctant.geometry.samples import TOLERANCE, BoolArray, IntArray, Pieces, Samples
from reluctant.numerics import FloatArray

__all__ = [
    "SMALLEST_BEND",
    "Creases",
    "Scan",
    "before_creases",
    "bends",
    "creases_after",
    "intersect",
    "lines_apart",
    "merge_equal",
    "merge_slivers",
]

SMALLEST_BEND = 3 * TOLERANCE  # change of slope that counts as one, in deviations of its noise


@dataclass(frozen=True)
class Creases:
    """Creases in order of line and position: where, how the slope jumps, and with what noise."""

    line: IntArray
    t: FloatArray
    jump: FloatArray  # (n, m)
    jump_sd: FloatArray

    def __len__(self) -> int:
        return len(self.t)

    @property
    def nowhere(self) -> BoolArray:
        """Those of pieces that do not meet: answers are too coarse there, or jump."""
        return ~np.isfinite(self.t) | ~np.isfinite(self.jump).all(axis=1)


@dataclass(frozen=True)
class Scan:
    """Lines scanned from end to end; `open` counts intervals of each line that could not be resolved."""

    samples: Samples
    pieces: Pieces
    creases: Creases
    open: IntArray


def before_creases(s: Samples, pieces: Pieces) -> IntArray:
    """Pieces that are followed by another on their line."""
    return np.flatnonzero(s.line[pieces.first[1:]] == s.line[pieces.first[:-1]])


def creases_after(s: Samples, pieces: Pieces, left: IntArray) -> Creases:
    """Where these pieces meet the next ones."""
    x, _ = intersect(s, pieces, left)
    jump = pieces.slope[left + 1] - pieces.slope[left]
    return Creases(s.line[pieces.first[left]], s.t[pieces.last[left]] + x, jump, _jump_sd(pieces, left))


def intersect(s: Samples, p: Pieces, left: IntArray) -> tuple[FloatArray, FloatArray]:
    """Distance from the last sample of a piece to where the next one's line meets its own, and the bend."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # no bend, or one close to the largest number
        bend = p.slope[left] - p.slope[left + 1]
        size = np.sqrt((bend**2).sum(axis=1))
        x = (lines_apart(s, p, left, np.zeros(len(left))) * bend).sum(axis=1) / size**2
    return np.where(size > 0, x, np.inf), size


def lines_apart(s: Samples, p: Pieces, left: IntArray, x: FloatArray) -> FloatArray:
    """Next piece's line minus the piece's own, x beyond its last sample."""
    i, j = p.last[left], p.first[left + 1]
    x = np.where(np.isfinite(x), x, 0.0)[:, None]
    ahead = (s.t[j] - s.t[i])[:, None] - x
    return s.f[j] - p.slope[left + 1] * ahead - s.f[i] - p.slope[left] * x


def bends(pieces: Pieces, left: IntArray) -> BoolArray:
    """True where the slope changes by more than its noise."""
    return np.abs(pieces.slope[left] - pieces.slope[left + 1]).max(axis=1) > SMALLEST_BEND * _jump_sd(pieces, left)


def _jump_sd(pieces: Pieces, left: IntArray) -> FloatArray:
    return np.hypot(pieces.slope_sd()[left], pieces.slope_sd()[left + 1])


def merge_equal(s: Samples, pieces: Pieces, crowded: bool) -> Pieces:
    """Join neighbours whose slopes do not differ: a noisy sample had split them. In a crowd all must be straight."""
    while True:
        left = before_creases(s, pieces)
        equal = left[~bends(pieces, left)]
        if crowded:
            equal = np.array([k for k in equal if is_straight(s, pieces.first[k], pieces.last[k + 1])], dtype=np.intp)
        equal = _without_successors(equal)
        if not len(equal):
            return pieces
        last = pieces.last.copy()
        last[equal] = pieces.last[equal + 1]
        keep = np.setdiff1d(np.arange(len(pieces)), equal + 1)
        pieces = Pieces.between(s, pieces.first[keep], last[keep], pieces.certified[keep])


def merge_slivers(scan: Scan, width: float, depth: float) -> Scan:
    """Take neighbouring creases for one if they are closer than `width`, and merging changes less than `depth`."""
    s, pieces, creases = scan.samples, scan.pieces, scan.creases
    jump = np.linalg.norm(creases.jump, axis=1)
    gap = np.where(creases.line[1:] == creases.line[:-1], np.diff(creases.t), np.inf)
    shallow = np.flatnonzero((gap < width) & (np.minimum(jump[1:], jump[:-1]) * gap < depth))
    shallow = _without_successors(shallow)
    if not len(shallow):
        return scan
    keep = np.setdiff1d(np.arange(len(pieces)), before_creases(s, pieces)[shallow] + 1)
    pieces = Pieces.between(s, pieces.first[keep], pieces.last[keep], pieces.certified[keep])
    return replace(scan, pieces=pieces, creases=creases_after(s, pieces, before_creases(s, pieces)))


def _without_successors(which: IntArray) -> IntArray:
    """Those whose predecessor is not among them: what is merged has one neighbour to be merged with."""
    return which[np.append(True, np.diff(which) > 1)[: len(which)]]
