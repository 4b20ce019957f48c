"""Points of the decision boundary: between two inputs with different labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.span.ground import all_over
from reluctant.span.labels.crossings import Lines
from reluctant.span.labels.field import Field

__all__ = ["Boundary", "LabelledPoints", "label_points", "resolution"]

BLOCKS = ((64, 1.0), (448, 1.0), (512, 10.0), (1024, 1.0), (2048, 1.0))  # rows, scale: until labels differ
LOOKED_AT = 8  # boundary points, for the resolution
OFFSETS = 24  # distances from each that are looked at
LEAST_RESOLUTION = 2.0**-50  # of a typical input
NEAR = 1e-3  # of a typical input: the farthest of the distances
NOT_ALL, NOISY = 0.25, 0.2  # of that distance, from which on more is looked at; and of a typical input, how far
FLICKER_ZONE, MOST = 2.0, 0.75  # the resolution is so many times the flicker zone at this quantile of the points
FAR = 64.0  # steps away that a turned line may cross


@dataclass(frozen=True)
class LabelledPoints:
    """Random inputs with their labels."""

    points: FloatArray  # (n, d)
    labels: FloatArray  # (n,)
    scale: float

    @property
    def one_label(self) -> bool:
        """True if all labels are the same."""
        return bool((self.labels == self.labels[0]).all())

    def with_farther(self, oracle: Counting, factor: float, rng: np.random.Generator) -> LabelledPoints:
        """These inputs and as many again, so many times as far out."""
        points = all_over(oracle.facts.domain, rng, len(self.points), oracle.dim, factor * self.scale)
        labels = oracle.query(points)[:, 0]
        return LabelledPoints(np.concatenate([self.points, points]), np.concatenate([self.labels, labels]), self.scale)

    def pairs(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Random pairs of inputs with different labels: first ones, second ones, labels of the first."""
        rare = self._rare()
        first = rng.choice(np.flatnonzero(rare), n)
        others = [np.flatnonzero(self.labels != label) for label in self.labels[first]]
        second = np.array([rng.choice(other) for other in others])
        swap = rng.random(n) < 0.5
        first, second = np.where(swap, second, first), np.where(swap, first, second)
        return self.points[first], self.points[second], self.labels[first]

    def _rare(self) -> BoolArray:
        """All inputs but those of the most common label, so that every label has its turn."""
        names, where, counts = np.unique(self.labels, return_inverse=True, return_counts=True)
        return np.asarray(where.reshape(-1) != np.argmax(counts)) if len(names) > 1 else np.ones(len(self.labels), bool)


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


def label_points(oracle: Counting, rng: np.random.Generator) -> LabelledPoints:
    """Random inputs, as many as it takes to see two labels. Cost: 64 rows; 4096 for one that never changes."""
    seen: dict[float, list[tuple[FloatArray, FloatArray]]] = {}
    for size, scale in BLOCKS:
        points = all_over(oracle.facts.domain, rng, size, oracle.dim, scale)
        seen.setdefault(scale, []).append((points, oracle.query(points)[:, 0]))
        labels = np.concatenate([some for _, some in seen[scale]])
        if len(np.unique(labels)) > 1:
            break
    return LabelledPoints(np.concatenate([rows for rows, _ in seen[scale]]), labels, scale)


def resolution(field: Field, boundary: Boundary, rng: np.random.Generator) -> float:
    """How well a crossing can be placed: labels on each side of it are looked at closer and closer.

    Rounding inside a target, in float32 above all, makes labels flicker beside the boundary. Cost: about 100 rows each.
    """
    some, typical = boundary[: min(LOOKED_AT, len(boundary))], field.typical
    least = LEAST_RESOLUTION * typical
    sharp, found = some.turned(field, some.along, NEAR * typical, least)
    if not found.any():
        return typical
    width = _flicker(field, sharp[found], (least, NEAR * typical), rng)
    if width > NOT_ALL * NEAR * typical:  # noise: labels flicker as far as was looked
        width = _flicker(field, sharp[found], (NEAR * typical, NOISY * typical), rng)
    return max(FLICKER_ZONE * width, least)


def _flicker(field: Field, sharp: Boundary, between: tuple[float, float], rng: np.random.Generator) -> float:
    """How far from the boundary labels are still wrong, of distances between these two, at most of the points."""
    offsets = np.geomspace(*between, OFFSETS) * rng.uniform(0.5, 1.0, (len(sharp), OFFSETS))
    lines = sharp.lines()[np.repeat(np.arange(len(sharp)), OFFSETS)]
    wrong = lines.before(field.ask, offsets.reshape(-1)) | ~lines.before(field.ask, -offsets.reshape(-1))
    width = np.where(wrong.reshape(offsets.shape), offsets, 0.0).max(axis=1)
    return float(np.quantile(width, MOST))
