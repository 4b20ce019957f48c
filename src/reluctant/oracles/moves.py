"""Rows by description: points, and steps from them along directions or coordinates.

Most rows of an extraction are one step away from a point that was asked before. Described so they are a few numbers
each instead of d, and an adapter can write them out where its target lives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluctant.numerics import FloatArray

__all__ = ["Moves"]


@dataclass(frozen=True)
class Moves:
    """Rows points[which[i]] + steps[i] · directions[along[i]]; without directions along coordinate along[i].

    points (p, d), which (n,) in rising order, steps (n,), along (n,), directions (k, d) or None.
    """

    points: FloatArray
    which: NDArray[np.intp]
    steps: FloatArray
    along: NDArray[np.intp]
    directions: FloatArray | None = None

    @classmethod
    def from_each(
        cls, points: FloatArray, steps: FloatArray, along: NDArray[np.intp], directions: FloatArray | None = None
    ) -> Moves:
        """From every point, by its own step (p,), along each of these (k,); point by point."""
        p, k = len(points), len(along)
        return cls(points, np.repeat(np.arange(p), k), np.repeat(steps, k), np.tile(along, p), directions)

    def __len__(self) -> int:
        return len(self.which)

    @property
    def dim(self) -> int:
        """Length of a row."""
        return int(self.points.shape[1])

    def rows(self, put: Callable[[Any], Any] = lambda array: array) -> Any:
        """Written out, (n, d), as an array of the kind that `put` makes of numpy's."""
        rows = put(self.points)[put(self.which)]
        if self.directions is None:
            rows.reshape(-1)[put(np.arange(len(self)) * self.dim + self.along)] += put(self.steps)
        else:
            rows += put(self.steps)[:, None] * put(self.directions)[put(self.along)]
        return rows

    def part(self, rows: slice) -> Moves:
        """Some of the rows, with the points they need."""
        which = self.which[rows]
        points = self.points[which[0] : which[-1] + 1]
        return Moves(points, which - which[0], self.steps[rows], self.along[rows], self.directions)
