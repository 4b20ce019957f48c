"""`Flat`: an affine subspace of input space, or all of it, whose points are asked for their labels.

Labels are 0 below the boundary, 1 above it and NaN for any other class. Points of a flat are coordinates (n, r).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.from_labels.bent_model import BoundaryPoints
from reluctant.extraction.from_labels.joint_polish import LocatedPoints
from reluctant.geometry.boundary import Ask, LabelLines, label_crossings
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray

SCALES = (1.0, 1.0, 3.0)  # of random points, in typical inputs


@dataclass(frozen=True)
class Flat:
    """The points origin + y·basis.

    typical: norm of a typical input, seen from the origin. finest: distance at which crossings are located best.
    """

    ask: Ask
    origin: FloatArray  # (d,)
    basis: FloatArray | None  # (r, d), orthonormal rows; None of the whole space
    typical: float
    finest: float
    rng: np.random.Generator

    @property
    def dim(self) -> int:
        """Number of coordinates r."""
        return len(self.origin if self.basis is None else self.basis)

    def whole(self) -> Flat:
        """All of space, whose points are inputs as they are."""
        return replace(self, basis=None)

    @property
    def located_to(self) -> float:
        """How far a located point may be off: rounding on the way to the target is part of it."""
        return 4 * self.finest

    def located(self, y: FloatArray) -> LocatedPoints:
        """Boundary points (n, r) that were located best."""
        return LocatedPoints(y, np.full(len(y), self.located_to))

    def rows(self, y: FloatArray) -> FloatArray:
        """Inputs (n, d) of points (n, r)."""
        return y if self.basis is None else self.origin + y @ self.basis

    def along(self, directions: FloatArray) -> FloatArray:
        """Directions (n, d) of input space of those (n, r) of the flat."""
        return directions if self.basis is None else directions @ self.basis

    def labels(self, y: FloatArray) -> FloatArray:
        """Labels (n,) of points (n, r). Cost: a row each."""
        return self.ask(self.rows(y))[:, 0] if len(y) else np.empty(0)

    def draw(self, n: int) -> FloatArray:
        """Random points (n, r) whose inputs are as large as typical ones, or three times as large."""
        # In a flat projected weights are smaller by √(r/d), so creases lie farther out by as much.
        sizes = self.typical / np.sqrt(self.dim) * self.rng.choice(SCALES, (n, 1))
        centre = self.origin if self.basis is None else 0.0
        return np.asarray(centre + sizes * self.rng.standard_normal((n, self.dim)))

    def crossings(
        self,
        lines: BoundaryPoints,
        scale: FloatArray | float,
        tol: FloatArray | float,
        limit: FloatArray | float,
        guess: FloatArray | float = 0.0,
    ) -> FloatArray:
        """Positions (n,) of the boundary along lines across it, NaN where there is none within the limit."""
        if not len(lines):
            return np.empty(0)
        whole = LabelLines(self.rows(lines.points), self.along(lines.across), np.zeros(len(lines)))
        return label_crossings(self.ask, whole, guess, scale, np.maximum(tol, self.finest), limit)

    def holds(self, lines: BoundaryPoints, offset: FloatArray | float) -> BoolArray:
        """Whether the boundary passes within the offset of each point. Cost: two rows, one where the first says no."""
        offset = np.broadcast_to(np.asarray(offset, float), len(lines))[:, None]
        held = self.labels(lines.points + offset * lines.across) == 1
        some = np.flatnonzero(held)
        held[some] = self.labels((lines.points - offset * lines.across)[some]) == 0
        return np.asarray(held)
