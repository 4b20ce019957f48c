"""Where the label changes on many lines at once: gallop away from a guess, then bisect. One bit a row.

A crossing whose size is about `scale` costs about 2.4 + log2(scale / tolerance) rows: little more than its entropy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["Lines", "crossings"]

LONGER = 2.0


@dataclass(frozen=True)
class Lines:
    """Starts (n, d), directions (n, d) and the label that each line has before its crossing."""

    starts: FloatArray
    along: FloatArray
    label: FloatArray  # (n,)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, which: slice | np.ndarray) -> Lines:
        return Lines(self.starts[which], self.along[which], self.label[which])

    def before(self, ask: Callable[[FloatArray], FloatArray], t: FloatArray) -> BoolArray:
        """Whether each position has the label from before the crossing. Cost: a row a line."""
        if not len(self):
            return np.empty(0, dtype=bool)
        return np.asarray(ask(self.starts + t[:, None] * self.along)[:, 0] == self.label)


def crossings(
    ask: Callable[[FloatArray], FloatArray],
    lines: Lines,
    guess: FloatArray | float,
    scale: FloatArray | float,
    tol: FloatArray | float,
    limit: FloatArray | float,
) -> FloatArray:
    """Positions (n,) where the label changes, NaN where there is none within `limit` of the guess."""
    n = len(lines)
    guess, scale, tol, limit = (np.broadcast_to(np.asarray(x, float), n) for x in (guess, scale, tol, limit))
    low, high = _gallop(ask, lines, guess, scale, limit)
    with np.errstate(invalid="ignore"):
        open_ = np.flatnonzero(high - low > tol)
    while len(open_):
        middle = (low[open_] + high[open_]) / 2
        before = lines[open_].before(ask, middle)
        low[open_[before]], high[open_[~before]] = middle[before], middle[~before]
        wide = high[open_] - low[open_] > tol[open_]
        open_ = open_[wide & (np.nextafter(low[open_], np.inf) < high[open_])]
    return (low + high) / 2


def _gallop(
    ask: Callable[[FloatArray], FloatArray], lines: Lines, guess: FloatArray, scale: FloatArray, limit: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Brackets with the label from before at the low end and another one at the high end; NaN where none was found."""
    before = lines.before(ask, guess)
    side = np.where(before, 1.0, -1.0)
    near, step = guess.copy(), np.minimum(scale, limit)
    far = np.full(len(lines), np.nan)
    open_ = np.arange(len(lines))
    while len(open_):
        t = guess[open_] + side[open_] * step[open_]
        flipped = lines[open_].before(ask, t) != before[open_]
        far[open_[flipped]], near[open_[~flipped]] = t[flipped], t[~flipped]
        open_ = open_[~flipped]
        step[open_] *= LONGER
        open_ = open_[step[open_] <= limit[open_]]
    return np.where(before, near, far), np.where(before, far, near)
