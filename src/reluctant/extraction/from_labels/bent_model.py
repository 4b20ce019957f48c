"""`BentModel`: one hidden layer with its kinks as absolute values, and points of its decision boundary.

f(y) = Σ αᵢ |uᵢ·y + bᵢ| + c·y + β, with unit uᵢ; the label is the upper one where f > 0. In this form a neuron has no
active side: the sides are part of c. A crease that never meets the boundary is part of c as well. Nothing here asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np

from reluctant.geometry.lines import Batch, BoolArray
from reluctant.numerics import DOUBLE, FloatArray

FIRST_TWO = np.array([0, 1])  # labels below and above a boundary where there are two
Draw = Callable[[int], FloatArray]  # so many random points of the space


def row_norms(rows: FloatArray) -> FloatArray:
    """Euclidean norms (n,) that may be divided by."""
    return np.maximum(np.linalg.norm(rows, axis=-1), DOUBLE.tiny)


class Points(Protocol):
    """Points (n, r) of a boundary between two labels (n, 2) each."""

    @property
    def points(self) -> FloatArray:
        """The points (n, r)."""

    @property
    def pairs(self) -> np.ndarray:
        """The labels (n, 2) below and above."""


@dataclass(frozen=True)
class BoundaryPoints(Batch):
    """Points (n, r) of a decision boundary, with unit directions (n, r) across it, towards the upper label.

    pairs: the lower and the upper label (n, 2) of each; 0 and 1 unless given.
    """

    points: FloatArray
    across: FloatArray
    pairs: np.ndarray = field(default_factory=lambda: FIRST_TWO)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", np.broadcast_to(self.pairs, (len(self.points), 2)))


@dataclass(frozen=True)
class BentModel:
    """f(y) = Σ αᵢ |uᵢ·y + bᵢ| + c·y + β."""

    directions: FloatArray  # u (k, r), unit rows
    offsets: FloatArray  # b (k,)
    bends: FloatArray  # α (k,)
    slope: FloatArray  # c (r,)
    level: float  # β

    @classmethod
    def affine(cls, slope: FloatArray, level: float) -> Self:
        """A model without neurons."""
        return cls(np.empty((0, len(slope))), np.empty(0), np.empty(0), slope, level)

    @property
    def width(self) -> int:
        """Number of neurons k."""
        return len(self.offsets)

    @property
    def dim(self) -> int:
        """Number of coordinates r."""
        return len(self.slope)

    @property
    def numbers(self) -> int:
        """How many numbers it has, up to scales."""
        return self.width * (self.dim + 1) + self.dim

    def preactivations(self, y: FloatArray) -> FloatArray:
        """Signed distances (n, k) from the creases."""
        return y @ self.directions.T + self.offsets

    def __call__(self, y: FloatArray) -> FloatArray:
        """Values (n,)."""
        return np.asarray(np.abs(self.preactivations(y)) @ self.bends + y @ self.slope + self.level)

    def gradients(self, y: FloatArray) -> FloatArray:
        """Gradients (n, r)."""
        return (np.sign(self.preactivations(y)) * self.bends) @ self.directions + self.slope

    def room(self, y: FloatArray) -> FloatArray:
        """Distance (n,) from the nearest crease; infinite without neurons."""
        return np.abs(self.preactivations(y)).min(axis=1, initial=np.inf)

    def first_creases(self, y: FloatArray, along: FloatArray) -> FloatArray:
        """How far (n, k) each crease is along unit directions (n, r); infinite where it lies behind."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = -self.preactivations(y) / (along @ self.directions.T)
        return np.where(t > 0, t, np.inf)

    # ---- other models

    def with_terms(self, terms: FloatArray, levels: FloatArray, beyond: FloatArray) -> Self:
        """With neurons that add terms[i]·y + levels[i] on the side of beyond[i] (r,), and nothing on the other."""
        size = row_norms(terms)
        side = np.sign((terms * beyond).sum(axis=1) + levels)
        return replace(
            self,
            directions=np.vstack([self.directions, terms / size[:, None]]),
            offsets=np.append(self.offsets, levels / size),
            bends=np.append(self.bends, side * size / 2),
            slope=self.slope + terms.sum(axis=0) / 2,
            level=self.level + float(levels.sum()) / 2,
        )

    def without(self, neuron: int, kept: FloatArray) -> Self:
        """With one neuron continued affinely from its side of the point `kept` (r,)."""
        side = np.sign(self.directions[neuron] @ kept + self.offsets[neuron]) * self.bends[neuron]
        others = np.arange(self.width) != neuron
        return replace(
            self,
            directions=self.directions[others],
            offsets=self.offsets[others],
            bends=self.bends[others],
            slope=self.slope + side * self.directions[neuron],
            level=self.level + float(side * self.offsets[neuron]),
        )

    # ---- its boundary

    def boundary_points(self, draw: Draw, n: int) -> BoundaryPoints:
        """Up to n points of the model's boundary between random points; none where its sign never changes."""
        steps, halvings = 33, 48
        start, end = draw(n), draw(n)
        share = np.linspace(0, 1, steps)
        signs = np.stack([self(start + t * (end - start)) > 0 for t in share], axis=1)
        line, step = np.nonzero(signs[:, 1:] != signs[:, :-1])
        low, high, upper = share[step], share[step + 1], signs[line, step + 1]
        for _ in range(halvings):
            middle = (low + high) / 2
            beyond = (self(start[line] + middle[:, None] * (end - start)[line]) > 0) == upper
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        points = start[line] + ((low + high) / 2)[:, None] * (end - start)[line]
        return self.across(points)

    def clear(self, at: BoundaryPoints, room: float) -> BoundaryPoints:
        """Those boundary points that lie on no crease."""
        return at[self.room(at.points) > room]

    def across(self, points: FloatArray) -> BoundaryPoints:
        """These boundary points with the model's unit normals."""
        gradients = self.gradients(points)
        return BoundaryPoints(points, gradients / row_norms(gradients)[:, None])

    def projected(self, y: FloatArray, tol: float) -> tuple[FloatArray, BoolArray]:
        """Points (n, r) moved onto the boundary along its normals, and which of them arrived within tol."""
        steps = 16
        for _ in range(steps):
            gradients = self.gradients(y)
            y = y - (self(y) / np.maximum((gradients**2).sum(axis=1), DOUBLE.tiny))[:, None] * gradients
        arrived = np.abs(self(y)) <= tol * row_norms(self.gradients(y))
        return y, np.asarray(arrived & np.isfinite(y).all(axis=1))

    def points_beside_creases(self, draw: Draw, per_crease: int, aside: float) -> tuple[BoundaryPoints, FloatArray]:
        """Boundary points about so far from every crease that meets the boundary, and the crease (n,) of each.

        Random points go onto a crease, along it onto the boundary, then aside, and back onto the boundary.
        """
        steps = 16
        found, creases = BoundaryPoints(*np.empty((2, 0, self.dim))), []
        for i, (u, b) in enumerate(zip(self.directions, self.offsets, strict=True)):
            y = draw(per_crease)
            size = row_norms(y).max()
            for _ in range(steps):
                y = y - np.outer(y @ u + b, u)
                inside = self.gradients(y)
                inside = inside - np.outer(inside @ u, u)
                square = (inside**2).sum(axis=1)
                y = y - (self(y) / np.maximum(square, 1e-12 * square.max(initial=DOUBLE.tiny)))[:, None] * inside
            side = np.where(np.arange(per_crease) % 2, aside, -aside)
            near = np.abs(y @ u + b) < aside / 2
            y, arrived = self.projected(y + side[:, None] * u, 1e-9 * size)
            kept = near & arrived & (np.linalg.norm(y, axis=1) < 2 * size)
            found += self.across(y[kept])
            creases += [i] * int(kept.sum())
        return found, np.array(creases, dtype=int)

    # ---- its numbers, one after the other

    def equations(self, at: Points) -> tuple[FloatArray, FloatArray]:
        """Distances (n,) of points from the model's boundary, and their derivatives (n, p) by all its numbers."""
        y = at.points
        z = self.preactivations(y)
        side = np.sign(z) * self.bends
        size = row_norms(side @ self.directions + self.slope)[:, None]
        by_direction = (side[:, :, None] * y[:, None, :]).reshape(len(y), self.directions.size)
        rows = np.concatenate([by_direction, side, np.abs(z), y, np.ones((len(y), 1))], axis=1)
        return self(y) / size[:, 0], rows / size

    def moved(self, step: FloatArray) -> Self:
        """The model with these changes (p,) to its numbers, scales as before."""
        k, r = self.directions.shape
        by_direction, offsets, bends, slope, level = np.split(step, np.cumsum([k * r, k, k, r]))
        directions, offsets = self.directions + by_direction.reshape(k, r), self.offsets + offsets
        bends, slope, level = self.bends + bends, self.slope + slope, self.level + level[0]
        length = row_norms(directions)
        common = float(np.linalg.norm(slope)) or 1.0
        return replace(
            self, directions=directions / length[:, None], offsets=offsets / length,
            bends=bends * length / common, slope=slope / common, level=float(level) / common,
        )  # fmt: skip

    def scale_rows(self) -> FloatArray:
        """Rows (k + 1, p) of steps that change nothing but scales."""
        k, r = self.directions.shape
        rows = np.zeros((k + 1, k * r + 2 * k + r + 1))
        for i in range(k):
            rows[i, i * r : (i + 1) * r] = self.directions[i]
        rows[k, k * r + 2 * k : -1] = self.slope
        return rows


@dataclass(frozen=True)
class Terms(Batch):
    """Terms slopes·y + levels that a model misses behind a crease; `behind` is a point there."""

    slopes: FloatArray  # (q, r)
    levels: FloatArray  # (q,)
    behind: FloatArray  # (q, r)

    def added_to(self, model: BentModel) -> BentModel:
        """The model with these neurons."""
        return model.with_terms(self.slopes, self.levels, self.behind)

    def different(self, size: float) -> np.ndarray:
        """One of every set of equal creases."""
        alike = 0.03
        creases = np.column_stack([self.slopes, self.levels / size]) / row_norms(self.slopes)[:, None]
        chosen: list[int] = []
        for i, crease in enumerate(creases):
            others = creases[chosen]
            apart = np.minimum(np.linalg.norm(others - crease, axis=1), np.linalg.norm(others + crease, axis=1))
            if apart.min(initial=np.inf) > alike:
                chosen.append(i)
        return np.array(chosen, dtype=int)
