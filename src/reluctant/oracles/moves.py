"""Rows by description: points, and steps from them along directions or coordinates.

Most rows of an extraction are one step away from a point that was asked before. Described so they are a few numbers
each instead of d, and an adapter can write them out where its target lives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reluctant.arrays import HOST, Array, Arrays

__all__ = ["Fans", "Moves", "Steps", "whole_units"]


def whole_units(rows: int, unit: int) -> int:
    """At most so many rows, whole units if one fits."""
    return rows if rows < unit else rows - rows % unit


class Moves(ABC):
    """Rows (n, d) of which each is a step from one of the points (p, d), along a direction or a coordinate.

    Without `directions` (·, d), `along` counts coordinates. Arrays are of numpy, or where `on` has put them; they
    belong to the description from then on.
    """

    points: Array
    steps: Array
    along: Array
    directions: Array | None

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def dim(self) -> int:
        """Length of a row."""
        return int(self.points.shape[1])

    @property
    def unit(self) -> int:
        """Rows that are described together: parts of whole units are described as the whole is."""
        return 1

    @abstractmethod
    def rows(self, arrays: Arrays = HOST) -> Array:
        """Written out, (n, d), where these arrays are."""

    @abstractmethod
    def part(self, rows: slice) -> Moves:
        """Some of the rows, with the points they need."""

    @abstractmethod
    def on(self, arrays: Arrays) -> Moves:
        """The same, described where these arrays are, if parts can be cut there; else as it is."""


@dataclass(frozen=True)
class Steps(Moves):
    """Row i is points[which[i]] + steps[i] · directions[along[i]]; which, steps and along (n,)."""

    points: Array
    which: NDArray[np.intp]
    steps: Array
    along: Array
    directions: Array | None = None

    def __len__(self) -> int:
        return len(self.which)

    def rows(self, arrays: Arrays = HOST) -> Array:
        """Written out, (n, d)."""
        put = arrays.put
        rows = put(self.points)[put(self.which)]
        if self.directions is None:
            rows[put(np.arange(len(self))), put(self.along)] += put(self.steps)
        else:
            rows += put(self.steps)[:, None] * put(self.directions)[put(self.along)]
        return rows

    def part(self, rows: slice) -> Steps:
        """Some of the rows, with the points they need."""
        which = self.which[rows]
        first = which.min()
        points = self.points[first : which.max() + 1]
        return Steps(points, which - first, self.steps[rows], self.along[rows], self.directions)

    def on(self, arrays: Arrays) -> Steps:
        """As it is: parts are cut on the host."""
        return self


@dataclass(frozen=True)
class Fans(Moves):
    """Row i·k + j is points[i] + steps[i] · directions[along[j]]; steps (p,), along (k,)."""

    points: Array
    steps: Array
    along: Array
    directions: Array | None = None

    def __len__(self) -> int:
        return len(self.points) * len(self.along)

    @property
    def unit(self) -> int:
        """Those of one point."""
        return len(self.along)

    def rows(self, arrays: Arrays = HOST) -> Array:
        """Written out, (p·k, d)."""
        put, (p, d), k = arrays.put, self.points.shape, len(self.along)
        fans, steps = arrays.empty((p, k, d)), put(self.steps)
        fans[:] = put(self.points)[:, None]
        if self.directions is None:
            fans[:, put(np.arange(k)), put(self.along)] += steps[:, None]
        else:
            fans += steps[:, None, None] * put(self.directions)[put(self.along)]
        return fans.reshape(p * k, d)

    def part(self, rows: slice) -> Moves:
        """Some of the rows, with the points they need: fans again, if none is cut."""
        start, stop, _ = rows.indices(len(self))
        if start % self.unit or stop % self.unit:
            row = np.arange(start, stop)
            which = row // self.unit
            each = Steps(self.points, which, self.steps[which], self.along[row % self.unit], self.directions)
            return each.part(slice(None))
        whole = slice(start // self.unit, stop // self.unit)
        return replace(self, points=self.points[whole], steps=self.steps[whole])

    def on(self, arrays: Arrays) -> Self:
        """All of it there."""
        directions = None if self.directions is None else arrays.put(self.directions)
        put = arrays.put(self.points), arrays.put(self.steps), arrays.put(self.along)
        return replace(self, points=put[0], steps=put[1], along=put[2], directions=directions)
