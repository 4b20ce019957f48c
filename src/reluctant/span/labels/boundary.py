"""Points of the decision boundary: between two inputs with different labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.span.inputs import Inputs
from reluctant.span.labels.crossings import Lines
from reluctant.span.labels.field import Field

__all__ = ["Boundary", "LabelledPoints", "label_points"]

BLOCKS = ((64, 1.0), (448, 1.0), (512, 10.0), (1024, 1.0), (2048, 1.0))  # rows, scale: until labels differ
TINY = float(np.finfo(np.float64).tiny)
FAR = 64.0  # steps away that a turned line may cross


@dataclass(frozen=True)
class LabelledPoints:
    """Random inputs with their labels."""

    points: FloatArray  # (n, d)
    labels: FloatArray  # (n,)
    source: Inputs
    scale: float

    @property
    def one_label(self) -> bool:
        """True if all labels are the same."""
        return bool((self.labels == self.labels[0]).all())

    @property
    def names(self) -> set[float]:
        """Labels that occur."""
        return set(self.labels.tolist())

    def rare(self, names: set[float], least: int) -> set[float]:
        """Those of these labels, and of its own, that occur less often."""
        return {name for name in names | self.names if (self.labels == name).sum() < least}

    def __getitem__(self, which: BoolArray) -> LabelledPoints:
        return replace(self, points=self.points[which], labels=self.labels[which])

    def more(self, oracle: Counting, n: int, rng: np.random.Generator, *, farther: float = 1.0) -> LabelledPoints:
        """New inputs like these, or so many times as far out. Cost: a row each."""
        points = self.source.draw(n, farther * self.scale, rng)
        return replace(self, points=points, labels=oracle.query(points)[:, 0])

    def __add__(self, other: LabelledPoints) -> LabelledPoints:
        points, labels = np.concatenate([self.points, other.points]), np.concatenate([self.labels, other.labels])
        return replace(self, points=points, labels=labels)

    def pairs(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Random pairs of inputs with different labels: first ones, second ones, labels of the first.

        Every label has its turn, however rare it is.
        """
        names = np.unique(self.labels)
        chosen = rng.choice(names, n)
        first = np.array([rng.choice(np.flatnonzero(self.labels == label)) for label in chosen])
        second = np.array([rng.choice(np.flatnonzero(self.labels != label)) for label in chosen])
        return self.points[first], self.points[second], self.labels[first]


@dataclass(frozen=True)
class Boundary:
    """Points of the boundary, a direction across it at each, and the label on the side where it comes from."""

    points: FloatArray  # (n, d)
    along: FloatArray  # (n, d), unit
    label: FloatArray  # (n,)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, which: slice | np.ndarray | list[int]) -> Boundary:
        return Boundary(self.points[which], self.along[which], self.label[which])

    def __add__(self, other: Boundary) -> Boundary:
        pairs = [(getattr(self, name), getattr(other, name)) for name in ("points", "along", "label")]
        return Boundary(*(np.concatenate(pair) for pair in pairs))

    def moved(self, t: FloatArray) -> Boundary:
        """The same with every point moved along its direction."""
        return Boundary(self.points + t[:, None] * self.along, self.along, self.label)

    def lines(self, offsets: FloatArray | None = None) -> Lines:
        """Lines across the boundary, through points moved aside by `offsets`."""
        return Lines(self.points if offsets is None else self.points + offsets, self.along, self.label)

    @classmethod
    def between(cls, field: Field, pairs: tuple[FloatArray, FloatArray, FloatArray], tol: float) -> Boundary:
        """One point between each pair. Cost: log2(distance / tol) rows each."""
        first, second, label = pairs
        length = np.linalg.norm(second - first, axis=1)
        along = (second - first) / length[:, None]
        low, high = np.zeros(len(first)), length.copy()
        for _ in range(int(np.ceil(np.log2(max(float(length.max()) / tol, 1.0))))):
            middle = (low + high) / 2
            before = field.ask(first + middle[:, None] * along)[:, 0] == label
            low, high = np.where(before, middle, low), np.where(before, high, middle)
        return cls(first + ((low + high) / 2)[:, None] * along, along, label)

    def turned(self, field: Field, along: FloatArray, scale: float, tol: float) -> tuple[Boundary, BoolArray]:
        """The boundary along other directions, from the same points, and where it was found nearby."""
        turned = Boundary(self.points, along, self.label)
        t = field.crossings(turned.lines(), 0.0, scale, tol, FAR * scale)
        return turned.moved(np.nan_to_num(t)), np.isfinite(t)

    def inside(self, field: Field, basis: FloatArray, scale: float, tol: float) -> tuple[Boundary, BoolArray]:
        """The boundary along lines turned into a span, and where it was found at all.

        Where the normal is orthogonal to the span no such line crosses: there the line stays as it was.
        """
        inside = (self.along @ basis.T) @ basis if len(basis) else self.along
        length = np.linalg.norm(inside, axis=1, keepdims=True)
        turned, found = self.turned(
            field, np.where(length > 0, inside / np.maximum(length, TINY), self.along), scale, tol
        )
        if found.all():
            return turned, found
        kept, again = self[~found].turned(field, self.along[~found], scale, tol)
        points, along = turned.points.copy(), turned.along.copy()
        points[~found], along[~found] = kept.points, kept.along
        found[~found] = again
        return Boundary(points, along, self.label), found


def label_points(oracle: Counting, inputs: Inputs, rng: np.random.Generator) -> LabelledPoints:
    """Random inputs, as many as it takes to see two labels. Cost: 64 rows; 4096 for one that never changes."""
    points, labels, scale = inputs.until_answers_differ(oracle.query, BLOCKS, rng)
    return LabelledPoints(points, labels[:, 0], inputs, scale)
