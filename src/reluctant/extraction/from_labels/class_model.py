"""`ClassModel`: one hidden layer with an output for each class, kinks as absolute values, and its decision boundary.

F_c(y) = Σ αᵢ_c |uᵢ·y + bᵢ| + s_c·y + β_c, with unit uᵢ; the label is the class of the largest. Labels leave a function
that is added to all classes open: here the classes have sum zero. Nothing here asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from reluctant.extraction.from_labels.bent_model import BentModel, BoundaryPoints, Points, row_norms
from reluctant.numerics import FloatArray

Draw = Callable[[int], FloatArray]  # so many random points of the space


@dataclass(frozen=True)
class ClassModel:
    """F(y) = α |u·y + b| + s·y + β, a row of α, s and β for each class."""

    directions: FloatArray  # u (k, r), unit rows
    offsets: FloatArray  # b (k,)
    bends: FloatArray  # α (m, k)
    slopes: FloatArray  # s (m, r)
    levels: FloatArray  # β (m,)

    @classmethod
    def of_two(cls, model: BentModel) -> Self:
        """Two classes: the lower one is 0, the upper one the model."""
        none = np.zeros(model.width), np.zeros(model.dim), 0.0
        both = (np.array([zero, one]) for zero, one in zip(none, (model.bends, model.slope, model.level), strict=True))
        return cls(model.directions, model.offsets, *both)

    def second(self) -> BentModel:
        """The second of two classes less the first."""
        parts = (part[1] - part[0] for part in (self.bends, self.slopes, self.levels))
        return BentModel(self.directions, self.offsets, *parts)

    def centred(self) -> Self:
        """The same labels, with classes of sum zero."""
        bends, slopes, levels = (part - part.mean(axis=0) for part in (self.bends, self.slopes, self.levels))
        return replace(self, bends=bends, slopes=slopes, levels=levels)

    @property
    def width(self) -> int:
        """Number of neurons k."""
        return len(self.offsets)

    @property
    def dim(self) -> int:
        """Number of coordinates r."""
        return self.slopes.shape[1]

    @property
    def classes(self) -> int:
        """Number of classes m."""
        return len(self.levels)

    @property
    def numbers(self) -> int:
        """How many numbers it has, up to scales and a function of all classes."""
        return self.width * self.dim + (self.classes - 1) * (self.width + self.dim + 1) - 1

    def preactivations(self, y: FloatArray) -> FloatArray:
        """Signed distances (n, k) from the creases."""
        return y @ self.directions.T + self.offsets

    def __call__(self, y: FloatArray) -> FloatArray:
        """Values (n, m)."""
        return np.asarray(np.abs(self.preactivations(y)) @ self.bends.T + y @ self.slopes.T + self.levels)

    def labels(self, y: FloatArray) -> np.ndarray:
        """Classes (n,)."""
        return self(y).argmax(axis=1)

    def differences(self, at: Points) -> FloatArray:
        """Value (n,) of the upper class less that of the lower one."""
        values, each = self(at.points), np.arange(len(at.points))
        lower, upper = at.pairs.T.astype(int)
        return np.asarray(values[each, upper] - values[each, lower])

    def bends_between(self, pairs: np.ndarray) -> FloatArray:
        """α (n, k) of the upper class less that of the lower one."""
        lower, upper = pairs.T.astype(int)
        return np.asarray(self.bends[upper] - self.bends[lower])

    def class_signs(self, pairs: np.ndarray) -> FloatArray:
        """1 for the upper class, -1 for the lower one, 0 for all others (n, m)."""
        signs, each = np.zeros((len(pairs), self.classes)), np.arange(len(pairs))
        lower, upper = pairs.T.astype(int)
        signs[each, upper] = 1.0
        signs[each, lower] = -1.0
        return signs

    def gradients(self, y: FloatArray, pairs: np.ndarray) -> FloatArray:
        """Gradients (n, r) of the upper class less the lower one."""
        lower, upper = pairs.T.astype(int)
        bent = np.sign(self.preactivations(y)) * self.bends_between(pairs)
        return np.asarray(bent @ self.directions + self.slopes[upper] - self.slopes[lower])

    def room(self, y: FloatArray) -> FloatArray:
        """Distance (n,) from the nearest crease; infinite without neurons."""
        return np.abs(self.preactivations(y)).min(axis=1, initial=np.inf)

    def junction_room(self, at: BoundaryPoints) -> FloatArray:
        """About how far (n,) boundary points are from a third class."""
        lower, upper = at.pairs.T.astype(int)
        values, room = self(at.points), np.full(len(at), np.inf)
        bent = np.sign(self.preactivations(at.points))
        each = np.arange(len(at))
        for c in range(self.classes):
            slope = (bent * (self.bends[lower] - self.bends[c])) @ self.directions + self.slopes[lower] - self.slopes[c]
            gap = (values[each, lower] - values[:, c]) / row_norms(slope)
            room = np.where((c == lower) | (c == upper), room, np.minimum(room, gap))
        return room

    # ---- its boundary

    def clear(self, at: BoundaryPoints, room: float) -> BoundaryPoints:
        """Those boundary points that lie on no crease and at no third class."""
        return at[np.minimum(self.room(at.points), self.junction_room(at)) > room]

    def boundary_points(self, draw: Draw, n: int) -> BoundaryPoints:
        """Boundary points between n random pairs of points, with unit normals."""
        return self.between(draw(n), draw(n))

    def between(self, start: FloatArray, end: FloatArray) -> BoundaryPoints:
        """All boundary points that some steps from start to end (n, r) see, with unit normals."""
        steps, halvings = 33, 48
        share = np.linspace(0, 1, steps)
        seen = np.stack([self.labels(start + t * (end - start)) for t in share], axis=1)
        line, step = np.nonzero(seen[:, 1:] != seen[:, :-1])
        low, high, lower = share[step], share[step + 1], seen[line, step]
        for _ in range(halvings):
            middle = (low + high) / 2
            before = self.labels(start[line] + middle[:, None] * (end - start)[line]) == lower
            low, high = np.where(before, middle, low), np.where(before, high, middle)
        beyond = self.labels(start[line] + high[:, None] * (end - start)[line])
        points = start[line] + ((low + high) / 2)[:, None] * (end - start)[line]
        return self.across(points, np.stack([lower, beyond], axis=1))

    def across(self, points: FloatArray, pairs: np.ndarray) -> BoundaryPoints:
        """These boundary points with the model's unit normals."""
        gradients = self.gradients(points, pairs)
        return BoundaryPoints(points, gradients / row_norms(gradients)[:, None], pairs)

    # ---- its numbers, one after the other

    def equations(self, at: Points) -> tuple[FloatArray, FloatArray]:
        """Distances (n,) of points from the model's boundary, and their derivatives (n, p) by all its numbers."""
        y, n, m = at.points, len(at.points), self.classes
        z = self.preactivations(y)
        side = np.sign(z) * self.bends_between(at.pairs)
        size = row_norms(self.gradients(y, at.pairs))[:, None]
        by_direction = (side[:, :, None] * y[:, None, :]).reshape(n, self.directions.size)
        sign = self.class_signs(at.pairs)
        by_class = [(sign[:, :, None] * part[:, None, :]).reshape(n, m * part.shape[1]) for part in (np.abs(z), y)]
        return self.differences(at) / size[:, 0], np.concatenate([by_direction, side, *by_class, sign], axis=1) / size

    def moved(self, step: FloatArray) -> Self:
        """The model with these changes (p,) to its numbers, scales as before."""
        (k, r), m = self.directions.shape, self.classes
        parts = np.split(step, np.cumsum([k * r, k, m * k, m * r]))
        directions, offsets = self.directions + parts[0].reshape(k, r), self.offsets + parts[1]
        length = row_norms(directions)
        bends = (self.bends + parts[2].reshape(m, k)) * length
        slopes, levels = self.slopes + parts[3].reshape(m, r), self.levels + parts[4]
        common = float(np.linalg.norm(slopes)) or 1.0
        return replace(
            self, directions=directions / length[:, None], offsets=offsets / length,
            bends=bends / common, slopes=slopes / common, levels=levels / common,
        )  # fmt: skip

    def scale_rows(self) -> FloatArray:
        """Rows of steps that change nothing but scales, or add one function to all classes."""
        (k, r), m = self.directions.shape, self.classes
        p = k * r + k + m * (k + r + 1)
        rows = np.zeros((k + 1 + k + r + 1, p))
        for i in range(k):
            rows[i, i * r : (i + 1) * r] = self.directions[i]
        first = k * r + k
        rows[k, first + m * k : first + m * (k + r)] = self.slopes.ravel()
        rows[k + 1 : 2 * k + 1, first : first + m * k] = np.tile(np.eye(k), m)
        rows[2 * k + 1 : 2 * k + 1 + r, first + m * k : first + m * (k + r)] = np.tile(np.eye(r), m)
        rows[-1, -m:] = 1.0
        return rows
