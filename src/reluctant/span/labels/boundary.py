"""Stage 1 from labels: points of the decision boundary by bisection, and its resolution.

Between two inputs with different labels lies a boundary point. All lines are searched together: gallop away from a
guess, then bisect, one bit a row. A crossing of size `scale` costs about 2.4 + log2(scale / tolerance) rows,
little more than its entropy. Rounding inside a target makes labels flicker beside the boundary; how far they do is
the resolution of every crossing. Labels that change when the same input is asked again, far from any boundary, are
noise: one such bit sends a whole bisection astray.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reluctant.domains import Domain
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import DOUBLE, FloatArray, unit_roundoff
from reluctant.oracles import Counting, Facts, Kind, Oracle, Wrapper
from reluctant.span.first_look import WITHIN_BOUNDS, Inputs


class LabelWall(Wrapper):
    """Answers with one label a row.

    Several outputs: the index of the largest. One output: itself if the target answers whole numbers, else whether it
    reaches the threshold. Which of the two is decided by the first answers that are not all the same.
    """

    def __init__(self, inner: Oracle, threshold: float | None = None) -> None:
        super().__init__(inner)
        self.threshold = threshold
        self.whole: bool | None = None if threshold is None else False
        if inner.facts.kind is Kind.LABELS and threshold is None:
            self.whole = True

    @property
    def facts(self) -> Facts:
        """One output, which is a label."""
        return replace(self.inner.facts, outputs=1, kind=Kind.LABELS, identity="")

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, keep the label alone; NaN stays NaN."""
        answers = self.inner.answer(rows)
        if self.whole is None and answers.shape[1] == 1 and (answers != answers[0]).any():
            self.whole = are_whole_numbers(answers)
        return as_labels(answers, self.threshold, whole=bool(self.whole))


def are_whole_numbers(answers: FloatArray) -> bool:
    """Whether all answers are whole numbers."""
    return bool((answers == np.round(answers)).all())


def as_labels(answers: FloatArray, threshold: float | None, *, whole: bool) -> FloatArray:
    """One label (n, 1) for every answer (n, m): the largest of several; of one itself if whole, else by threshold."""
    half_threshold = 0.5  # tells 0 from 1, -1 from 1, and a probability from its complement
    if answers.shape[1] > 1:
        return np.where(np.isnan(answers).any(axis=1), np.nan, answers.argmax(axis=1))[:, None]
    if whole:
        return answers
    return np.where(np.isnan(answers), np.nan, answers >= (half_threshold if threshold is None else threshold))


def only_labels(oracle: Counting, threshold: float | None = None) -> Counting:
    """The same opened target with the same ledger, seen through labels."""
    return Counting(LabelWall(oracle.inner, threshold), oracle.ledger, oracle.facts.domain)


@dataclass(frozen=True)
class LabelLines:
    """Starts (n, d), directions (n, d) and the label that each line has before its crossing."""

    starts: FloatArray
    along: FloatArray
    label: FloatArray  # (n,)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, which: slice | np.ndarray) -> LabelLines:
        return LabelLines(self.starts[which], self.along[which], self.label[which])

    def before(self, ask: Callable[[FloatArray], FloatArray], t: FloatArray) -> BoolArray:
        """Whether each position has the label from before the crossing. Cost: a row a line."""
        if not len(self):
            return np.empty(0, dtype=bool)
        return np.asarray(ask(self.starts + t[:, None] * self.along)[:, 0] == self.label)


def label_crossings(
    ask: Callable[[FloatArray], FloatArray],
    lines: LabelLines,
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
    ask: Callable[[FloatArray], FloatArray], lines: LabelLines, guess: FloatArray, scale: FloatArray, limit: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Brackets with the label from before at the low end and another one at the high end; NaN where none was found."""
    gallop = 2.0
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
        step[open_] *= gallop
        open_ = open_[step[open_] <= limit[open_]]
    return np.where(before, near, far), np.where(before, far, near)


@dataclass(frozen=True)
class LabelField:
    """A target of labels. resolution: how well a crossing can be placed near typical inputs; 0 until it is known."""

    ask: Callable[[FloatArray], FloatArray]
    dim: int
    domain: Domain
    scale: float = 1.0
    resolution: float = 0.0
    reach: float = 3.0  # of long steps, in typical inputs

    @property
    def typical(self) -> float:
        """Norm of a typical input."""
        return self.scale * float(np.sqrt(self.dim))

    @property
    def coarse(self) -> bool:
        """True if curvature has to be cancelled rather than out-resolved: float32, or labels that flicker."""
        # Resolution, of a typical input, from which curvature shows within a step it can resolve.
        coarse_resolution = 1e-9
        return self.resolution > coarse_resolution * self.typical

    def step(self, finest: float) -> float:
        """A step aside for a normal: the finest, if crossings can be placed well, else what balances the curvature."""
        return self.scale * (float(np.cbrt(self.resolution / self.scale)) if self.coarse else finest)

    def crossings(
        self,
        lines: LabelLines,
        guess: FloatArray | float,
        scale: FloatArray | float,
        tol: FloatArray | float,
        limit: FloatArray | float,
    ) -> FloatArray:
        """Positions where the label changes, looked for inside the domain alone."""
        limit = limit if self.domain.is_space else np.minimum(limit, WITHIN_BOUNDS * self.room(lines))
        return label_crossings(self.ask, lines, guess, scale, tol, limit)

    def room(self, lines: LabelLines) -> FloatArray:
        """How far (n,) lines may be followed to both sides."""
        if self.domain.is_space:
            return np.full(len(lines), np.inf)
        return np.minimum(self.domain.room(lines.starts, lines.along), self.domain.room(lines.starts, -lines.along))


FAR_CROSSING = 64.0  # steps away that a turned line may cross


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

    def lines(self, offsets: FloatArray | None = None) -> LabelLines:
        """Lines across the boundary, through points moved aside by `offsets`."""
        return LabelLines(self.points if offsets is None else self.points + offsets, self.along, self.label)

    @classmethod
    def between(cls, field: LabelField, pairs: tuple[FloatArray, FloatArray, FloatArray], tol: float) -> Boundary:
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

    def turned(self, field: LabelField, along: FloatArray, scale: float, tol: float) -> tuple[Boundary, BoolArray]:
        """The boundary along other directions, from the same points, and where it was found nearby."""
        turned = Boundary(self.points, along, self.label)
        t = field.crossings(turned.lines(), 0.0, scale, tol, FAR_CROSSING * scale)
        return turned.moved(np.nan_to_num(t)), np.isfinite(t)

    def inside(self, field: LabelField, basis: FloatArray, scale: float, tol: float) -> tuple[Boundary, BoolArray]:
        """The boundary along lines turned into a span, and where it was found at all.

        Where the normal is orthogonal to the span no such line crosses: there the line stays as it was.
        """
        inside = (self.along @ basis.T) @ basis if len(basis) else self.along
        length = np.linalg.norm(inside, axis=1, keepdims=True)
        turned, found = self.turned(
            field, np.where(length > 0, inside / np.maximum(length, DOUBLE.tiny), self.along), scale, tol
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
    label_blocks = ((64, 1.0), (448, 1.0), (512, 10.0), (1024, 1.0), (2048, 1.0))  # rows, scale: until labels differ
    points, labels, scale = inputs.until_answers_differ(oracle.query, label_blocks, rng)
    return LabelledPoints(points, labels[:, 0], inputs, scale)


FLICKER_POINTS = 16  # boundary points
FARTHEST_FLICKER = 1e-3  # of a typical input: the farthest of the distances


def boundary_resolution(
    field: LabelField, boundary: Boundary, dtype: np.dtype[np.generic], rng: np.random.Generator
) -> float:
    """How well a crossing can be placed: labels on each side of it are looked at closer and closer.

    Never below the rounding of the target's number format. Cost: about 100 rows a boundary point.
    """
    flicker_offsets = 24  # distances from each that are looked at
    widest_left_out = 1  # of them, the widest: another boundary may be near
    least_resolution = 2.0**-50  # of a typical input
    typical = field.typical
    least = max(least_resolution, unit_roundoff(dtype)) * typical
    sharp, found = boundary.turned(field, boundary.along, FARTHEST_FLICKER * typical, least_resolution * typical)
    if not found.any():
        return typical
    offsets = (
        typical
        * np.geomspace(least_resolution, FARTHEST_FLICKER, flicker_offsets)
        * rng.uniform(0.5, 1.0, (found.sum(), flicker_offsets))
    )
    lines = sharp[found].lines()[np.repeat(np.arange(found.sum()), flicker_offsets)]
    wrong = np.stack([lines.before(field.ask, offsets.reshape(-1)), ~lines.before(field.ask, -offsets.reshape(-1))])
    widths = _flicker_widths(wrong.reshape(2, *offsets.shape), offsets)
    return max(float(np.sort(widths)[-1 - min(widest_left_out, len(widths) - 1)]), least)


def _flicker_widths(wrong: BoolArray, offsets: FloatArray) -> FloatArray:
    """How far (n,) labels flicker at each point, by what is wrong (2, n, m) on its two sides.

    What is wrong from somewhere to the farthest distance is another boundary and no flicker.
    """
    beyond = np.cumprod(wrong[:, :, ::-1], axis=2)[:, :, ::-1].astype(bool)
    return np.asarray(np.where(wrong & ~beyond, offsets, 0.0).max(axis=(0, 2)))


def changed_labels(oracle: Counting, seen: LabelledPoints, times: int = 1) -> int:
    """How many inputs have another label when they are asked again so many times. Cost: a row each, every time."""
    again = oracle.query(np.tile(seen.points, (times, 1)))[:, 0].reshape(times, -1)
    return int((again != seen.labels).any(axis=0).sum())
