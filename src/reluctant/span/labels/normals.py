"""Normals of the decision boundary, direction by direction: how far the crossing moves when its line moves aside."""

from __future__ import annotations

import numpy as np

from reluctant.domains import Domain
from reluctant.geometry.batches import batches
from reluctant.numerics import FloatArray
from reluctant.span.ground import WITHIN
from reluctant.span.labels.boundary import Boundary
from reluctant.span.labels.crossings import Lines
from reluctant.span.labels.field import Field

__all__ = ["slopes"]

SMALLEST = 2.0**-20  # of the size before: a batch of slopes that are all zero
FARTHEST = 2.0**12  # times its expected size that a crossing may be away


def slopes(
    field: Field,
    boundary: Boundary,
    directions: FloatArray,
    step: FloatArray | float,
    bits: float,
    *,
    expected: float,
    guess: FloatArray | None = None,
    symmetric: bool = False,
) -> FloatArray:
    """Slopes (n, k) of the crossing against steps along unit directions (k, d); NaN where it was lost.

    The normal has these components along the directions, times minus its component along the line. `expected`: size of
    a slope, or of its distance from a guess (n, k). Cost: about 2.4 + bits rows each; twice that if symmetric.
    """
    n, k = len(boundary), len(directions)
    step = np.broadcast_to(np.asarray(step, float), n)
    found, size = np.full((n, k), np.nan), expected
    for some in batches(n * k, 1, boundary.points.shape[1]):
        which, along = np.divmod(np.arange(some.start, some.stop), k)
        lengths = _allowed(field.domain, boundary.points[which], directions[along], step[which], symmetric)
        predicted = np.zeros(len(which)) if guess is None else guess[which, along]
        parts = []
        for side in (lengths, -lengths) if symmetric else (lengths,):
            lines = boundary[which].lines(side[:, None] * directions[along])
            parts.append(_on_one_side(field, lines, side, predicted, size, bits))
        found[which, along] = np.mean(parts, axis=0)
        size = _typical_size(found[which, along] - predicted, size)
    return found


def _on_one_side(
    field: Field, lines: Lines, lengths: FloatArray, predicted: FloatArray, size: float, bits: float
) -> FloatArray:
    """Slopes (n,) of crossings on lines that have moved aside by signed lengths (n,)."""
    scale = np.abs(lengths) * size
    tol = np.maximum(scale * 2.0**-bits, _resolution(field, lengths))
    return field.crossings(lines, predicted * lengths, scale, tol, FARTHEST * scale) / lengths


def _resolution(field: Field, lengths: FloatArray) -> FloatArray:
    """How well a crossing can be placed after a step: far from typical inputs rounding grows with the distance."""
    return np.asarray(field.resolution * np.maximum(1.0, np.abs(lengths) / field.typical))


def _typical_size(differences: FloatArray, before: float) -> float:
    known = np.abs(differences[np.isfinite(differences)])
    return max(float(np.median(known)), before * SMALLEST) if len(known) else before


def _allowed(
    domain: Domain, points: FloatArray, directions: FloatArray, step: FloatArray, symmetric: bool
) -> FloatArray:
    """Signed lengths of the steps that stay inside."""
    if domain.is_space:
        return step.copy()
    ahead = np.minimum(WITHIN * domain.room(points, directions), step)
    behind = np.minimum(WITHIN * domain.room(points, -directions), step)
    if symmetric:
        return np.minimum(ahead, behind)
    return np.where(ahead >= behind, ahead, -behind)
