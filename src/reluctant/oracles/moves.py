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

    def rows(self) -> FloatArray:
        """Written out, (n, d)."""
        return self.writer()(slice(None))

    def writer(self, put: Callable[[Any], Any] = lambda array: array) -> Callable[[slice], Any]:
        """Writes out a part of the rows, as an array of the kind that `put` makes of numpy's; all is put once."""
        points, which, steps, along = map(put, (self.points, self.which, self.steps, self.along))
        if self.directions is None:
            return lambda part: _along_coordinates(points[which[part]], steps[part], along[part])
        directions = put(self.directions)
        return lambda part: points[which[part]] + steps[part][:, None] * directions[along[part]]

    def part(self, rows: slice) -> Moves:
        """Some of the rows, with the points they need."""
        which = self.which[rows]
        points = self.points[which[0] : which[-1] + 1]
        return Moves(points, which - which[0], self.steps[rows], self.along[rows], self.directions)


def _along_coordinates(rows: Any, steps: Any, along: Any) -> Any:
    """The rows (n, d), moved by a step (n,) each along a coordinate (n,)."""
    if isinstance(rows, np.ndarray):
        rows[np.arange(len(rows)), along] += steps
        return rows
    return rows.scatter_add_(1, along[:, None], steps[:, None])
