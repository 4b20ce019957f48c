"""A continuous piecewise linear function of one variable whose knots are free, fitted to noisy values.

Levenberg–Marquardt on knot positions and values. A sample between knots i and i + 1 depends on these two alone,
and by its slope on their positions, so the normal equations are block tridiagonal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse

from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["LineData", "Spline", "fit"]

STEPS = 15
TRIES = 6  # of one step, each with ten times the damping
FIRST_DAMPING, LEAST_DAMPING = 1e-3, 1e-12  # of the diagonal
REFUSED_DAMPING = 1e-6
ENOUGH = 1e-3  # gain of a step, in squares of the noise, below which no other follows
CLOSEST = 16.0  # roundings of a position, between two knots
LONGEST_MOVE = 0.4  # of the distance to the next knot
RIDGE = 1e-12  # of the diagonal: knots without samples stay determined
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class LineData:
    """Samples of a line in order: positions (n,), values (n, m), one over the noise (n,)."""

    t: FloatArray
    f: FloatArray
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True)
class Spline:
    """Knots (n,) in order, the two ends included, and the values (n, m) there."""

    knots: FloatArray
    values: FloatArray

    @property
    def slopes(self) -> FloatArray:
        """Slopes (n - 1, m) between knots."""
        return np.diff(self.values, axis=0) / np.diff(self.knots)[:, None]

    @property
    def bends(self) -> FloatArray:
        """Changes of slope (n - 2, m) at the inner knots."""
        return np.diff(self.slopes, axis=0)

    def residual(self, data: LineData) -> FloatArray:
        """What the function leaves of the values, in units of their noise."""
        piece, share = locate(self.knots, data.t)
        found = self.values[piece] * (1 - share)[:, None] + self.values[piece + 1] * share[:, None]
        return (data.f - found) * data.weight[:, None]


def locate(knots: FloatArray, t: FloatArray) -> tuple[IntArray, FloatArray]:
    """The piece each position lies in, and how far along it."""
    piece = np.clip(np.searchsorted(knots, t, side="right") - 1, 0, len(knots) - 2)
    return piece, (t - knots[piece]) / (knots[piece + 1] - knots[piece])


def fit(knots: FloatArray, data: LineData) -> tuple[Spline, FloatArray]:
    """The function with as many knots that fits best around these, and what it leaves of the values."""
    spline, damping = _fit_values(knots[np.append(_apart(knots), True)], data), FIRST_DAMPING
    residual = spline.residual(data)
    for _ in range(STEPS if len(spline.knots) > 2 else 0):
        moved, damping = _improved(spline, residual, data, damping)
        if moved is None:
            break
        after = moved.residual(data)
        gain = float((residual**2).sum() - (after**2).sum())
        spline, residual = moved, after
        if gain < ENOUGH * max(1.0, ENOUGH * float((residual**2).sum())):
            break
    return spline, residual


def _apart(knots: FloatArray) -> BoolArray:
    """Whether each knot but the last (n - 1,) is told from the next by more than rounding."""
    closest = CLOSEST * unit_roundoff(np.float64) * np.maximum(np.abs(knots[1:]), np.abs(knots[:-1]))
    return np.asarray(np.diff(knots) > closest)


def _fit_values(knots: FloatArray, data: LineData) -> Spline:
    """Values at given knots by weighted least squares."""
    n, sums = len(knots), _PieceSums.of(knots, data)
    banded = np.zeros((2, n))
    banded[0, 1:] = sums.both
    banded[1] = np.append(sums.left, 0) + np.append(0, sums.right)
    banded[1] = banded[1] * (1 + RIDGE) + TINY
    wanted = np.zeros((n, data.f.shape[1]))
    weighted = data.f * data.weight[:, None]
    wanted[:-1] += sums.to_left @ weighted
    wanted[1:] += sums.to_right @ weighted
    return Spline(knots, scipy.linalg.solveh_banded(banded, wanted, check_finite=False))


@dataclass(frozen=True)
class _PieceSums:
    """Sums over the samples of each piece: squares of their shares in its two knots, and maps to these."""

    left: FloatArray
    both: FloatArray
    right: FloatArray
    to_left: scipy.sparse.csr_matrix
    to_right: scipy.sparse.csr_matrix

    @classmethod
    def of(cls, knots: FloatArray, data: LineData) -> _PieceSums:
        piece, share = locate(knots, data.t)
        pieces, n = len(knots) - 1, len(data)
        right, left = share * data.weight, (1 - share) * data.weight
        products = (left * left, left * right, right * right)
        squares = (np.bincount(piece, product, pieces).astype(np.float64) for product in products)
        maps = (scipy.sparse.csr_matrix((part, (piece, np.arange(n))), (pieces, n)) for part in (left, right))
        return cls(*squares, *maps)


def _improved(spline: Spline, residual: FloatArray, data: LineData, damping: float) -> tuple[Spline | None, float]:
    """A step that lowers the sum of squares, None if there is none; and the damping to go on with."""
    diagonal, above, wanted = _normal_equations(spline, residual, data)
    gaps, size = np.diff(spline.knots), (residual**2).sum()
    behind, ahead = np.append(gaps[0], gaps), np.append(gaps, gaps[-1])
    for _ in range(TRIES):
        try:
            moves = _solve_block_tridiagonal(diagonal, above, wanted, damping)[:, -1]
        except np.linalg.LinAlgError:
            damping *= 10
            continue
        knots = spline.knots + np.clip(moves, -LONGEST_MOVE * behind, LONGEST_MOVE * ahead)
        if not _apart(knots).all():
            damping = max(10 * damping, REFUSED_DAMPING)
            continue
        moved = _fit_values(knots, data)
        if (moved.residual(data) ** 2).sum() <= size:
            return moved, max(damping / 10, LEAST_DAMPING)
        damping = max(10 * damping, REFUSED_DAMPING)
    return None, damping


def _normal_equations(
    spline: Spline, residual: FloatArray, data: LineData
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Blocks (n, m + 1, m + 1) of each knot, blocks between neighbours, right side (n, m + 1).

    The last unknown of a knot is its position. A move by δ changes the function as a change of the value by
    minus slope times δ would, on each side with that side's slope.
    """
    n, m = spline.values.shape
    slopes, sums = spline.slopes, _PieceSums.of(spline.knots, data)
    effect = np.concatenate([np.broadcast_to(np.eye(m), (n - 1, m, m)), -slopes[:, :, None]], axis=2)
    gram = np.einsum("nia,nib->nab", effect, effect)
    diagonal = np.zeros((n, m + 1, m + 1))
    diagonal[:-1] += sums.left[:, None, None] * gram
    diagonal[1:] += sums.right[:, None, None] * gram
    above = sums.both[:, None, None] * gram
    wanted = np.zeros((n, m + 1))
    wanted[:-1] += np.einsum("nia,ni->na", effect, sums.to_left @ residual)
    wanted[1:] += np.einsum("nia,ni->na", effect, sums.to_right @ residual)
    for end in (0, n - 1):  # the ends stay where they are
        diagonal[end, m, :] = diagonal[end, :, m] = wanted[end, m] = 0
        diagonal[end, m, m] = 1
    above[0, m, :] = above[-1, :, m] = 0
    return diagonal, above, wanted


def _solve_block_tridiagonal(diagonal: FloatArray, above: FloatArray, wanted: FloatArray, damping: float) -> FloatArray:
    n, b, _ = diagonal.shape
    banded = np.zeros((2 * b, n * b))
    row, column = np.triu_indices(b)
    starts = b * np.arange(n)[:, None]
    banded[2 * b - 1 + row - column, starts + column] = diagonal[:, row, column]
    row, column = (index.reshape(-1) for index in np.indices((b, b)))
    banded[b - 1 + row - column, starts[1:] + column] = above[:, row, column]
    banded[-1] = banded[-1] * (1 + damping) + TINY
    solved = scipy.linalg.solveh_banded(banded, wanted.reshape(-1), check_finite=False)
    return np.asarray(solved).reshape(n, b)
