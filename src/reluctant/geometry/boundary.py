"""The decision boundary of a target with labels: crossings on lines by bisection, their resolution, and its normals.

Between two inputs of different label lies a boundary point. All lines are searched together: gallop away from a
guess, then bisect, one bit a row. A crossing of size `scale` costs about 2.4 + log2(scale / tolerance) rows,
little more than its entropy. Rounding inside a target makes labels flicker beside the boundary: the width of the
flicker is the resolution of every crossing. A normal is measured direction by direction: how far the crossing moves
when its line moves aside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import InvalidInput, words
from reluctant.geometry.gradients import row_batches
from reluctant.geometry.lines import Batch, BoolArray
from reluctant.numerics import DOUBLE, FloatArray, unit_roundoff
from reluctant.oracles import Counting, Facts, Kind, Oracle, Wrapper
from reluctant.oracles.base import Ask

WITHIN_BOUNDS = 0.9  # of the way to a bound of the domain: the longest step towards it
FAR_CROSSING = 64.0  # steps away that a turned line may cross


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


def refuse_link(oracle: Oracle) -> None:
    """Raise of a target behind a link: log-ratios have lost a class, and logits their threshold."""
    if (link := oracle.facts.link) is not None:
        raise InvalidInput.about(
            "link", got=repr(link), expected="none where labels alone are used",
            fix=words("Leave the link out ({link}).", link="identity"),
        )  # fmt: skip


def check_threshold(oracle: Oracle, threshold: float) -> None:
    """Raise of a threshold that is no finite number, or that several outputs have no use for."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | np.number) or not np.isfinite(threshold):
        raise InvalidInput.about("threshold", got=repr(threshold), expected="a finite number")
    if oracle.outputs > 1:
        raise InvalidInput.about(
            "threshold", got=f"{threshold} for {oracle.outputs} outputs", expected="none: the largest is the label",
            fix=words("Open one output with {output} to compare it with a threshold.", output=0),
        )  # fmt: skip


def only_labels(oracle: Counting, threshold: float | None = None) -> Counting:
    """The opened target, with its ledger, as labels alone."""
    refuse_link(oracle)
    return Counting(LabelWall(oracle.inner, threshold), oracle.ledger, oracle.facts.domain)


@dataclass(frozen=True)
class LabelLines(Batch):
    """Starts (n, d), directions (n, d) and the label that each line has before its crossing."""

    starts: FloatArray
    along: FloatArray
    label: FloatArray  # (n,)

    def before(self, ask: Ask, t: FloatArray) -> BoolArray:
        """Whether each position has the label from before the crossing. Cost: a row a line."""
        if not len(self):
            return np.empty(0, dtype=bool)
        return np.asarray(ask(self.starts + t[:, None] * self.along)[:, 0] == self.label)


def label_crossings(
    ask: Ask,
    lines: LabelLines,
    guess: FloatArray | float,
    scale: FloatArray | float,
    tol: FloatArray | float,
    limit: FloatArray | float,
) -> FloatArray:
    """Positions (n,) where the label changes, NaN where there is none within `limit` of the guess.

    The first step from the guess is `scale` long, each next one twice as long; the bracket is halved down to `tol`.
    """
    n = len(lines)
    guess, scale, tol, limit = (np.broadcast_to(np.asarray(x, float), n) for x in (guess, scale, tol, limit))
    low, high = _brackets(ask, lines, guess, scale, limit)
    with np.errstate(invalid="ignore"):
        open_ = np.flatnonzero(high - low > tol)
    while len(open_):
        middle = (low[open_] + high[open_]) / 2
        before = lines[open_].before(ask, middle)
        low[open_[before]], high[open_[~before]] = middle[before], middle[~before]
        wide = high[open_] - low[open_] > tol[open_]
        open_ = open_[wide & (np.nextafter(low[open_], np.inf) < high[open_])]
    return (low + high) / 2


def _brackets(
    ask: Ask, lines: LabelLines, guess: FloatArray, scale: FloatArray, limit: FloatArray
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
        step[open_] *= 2
        open_ = open_[step[open_] <= limit[open_]]
    return np.where(before, near, far), np.where(before, far, near)


@dataclass(frozen=True)
class LabelField:
    """A target with labels: its inputs, their scale, and the resolution of its crossings (0 until it is measured)."""

    ask: Ask
    dim: int
    domain: Domain
    scale: float = 1.0  # of one coordinate of a typical input
    resolution: float = 0.0  # of a crossing near typical inputs
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
        """Positions (n,) where the label changes inside the domain; NaN where none is within `limit` of the guess."""
        limit = limit if self.domain.is_space else np.minimum(limit, WITHIN_BOUNDS * self.room(lines))
        return label_crossings(self.ask, lines, guess, scale, tol, limit)

    def room(self, lines: LabelLines) -> FloatArray:
        """How far (n,) lines may be followed to both sides."""
        if self.domain.is_space:
            return np.full(len(lines), np.inf)
        return np.minimum(self.domain.room(lines.starts, lines.along), self.domain.room(lines.starts, -lines.along))


@dataclass(frozen=True)
class Boundary(Batch):
    """Points of the decision boundary, a direction across it at each, and the label on the side it comes from."""

    points: FloatArray  # (n, d)
    along: FloatArray  # (n, d), unit
    label: FloatArray  # (n,)

    def moved(self, t: FloatArray) -> Boundary:
        """The boundary with every point moved along its direction."""
        return Boundary(self.points + t[:, None] * self.along, self.along, self.label)

    def lines(self, offsets: FloatArray | None = None) -> LabelLines:
        """Lines across the boundary, through points moved aside by `offsets`."""
        return LabelLines(self.points if offsets is None else self.points + offsets, self.along, self.label)

    @classmethod
    def between(cls, ask: Ask, first: FloatArray, second: FloatArray, label: FloatArray, tol: float) -> Boundary:
        """One point on each segment from `first` (n, d), whose labels are `label` (n,), to `second` of other labels.

        Cost: log2(longest segment / tol) rows each.
        """
        length = np.linalg.norm(second - first, axis=1)
        along = (second - first) / length[:, None]
        lines = LabelLines(first, along, label)
        low, high = np.zeros(len(first)), length.copy()
        for _ in range(int(np.ceil(np.log2(max(float(length.max()) / tol, 1.0))))):
            middle = (low + high) / 2
            before = lines.before(ask, middle)
            low, high = np.where(before, middle, low), np.where(before, high, middle)
        return cls(first + ((low + high) / 2)[:, None] * along, along, label)

    def turned(self, field: LabelField, along: FloatArray, scale: float, tol: float) -> tuple[Boundary, BoolArray]:
        """The boundary along other directions (n, d), from the same points, and where one was found nearby."""
        turned = Boundary(self.points, along, self.label)
        t = field.crossings(turned.lines(), 0.0, scale, tol, FAR_CROSSING * scale)
        return turned.moved(np.nan_to_num(t)), np.isfinite(t)

    def inside(self, field: LabelField, basis: FloatArray, scale: float, tol: float) -> tuple[Boundary, BoolArray]:
        """The boundary along lines turned into a span, and where it was found.

        Where the normal is orthogonal to the span no such line crosses: there the line keeps its direction.
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


FARTHEST_FLICKER = 1e-3  # of a typical input: the largest width of flickering labels that is measured


def boundary_resolution(
    field: LabelField, boundary: Boundary, dtype: np.dtype[np.generic], rng: np.random.Generator
) -> float:
    """The distance from the boundary below which labels flicker, at least the rounding of the target's numbers.

    Labels are compared on both sides of every boundary point, at distances over fifteen orders of magnitude. The
    widest point is left out: another boundary may be near. Cost: about 100 rows a boundary point.
    """
    distances = 24
    finest = 2.0**-50  # of a typical input
    typical = field.typical
    least = max(finest, unit_roundoff(dtype)) * typical
    sharp, found = boundary.turned(field, boundary.along, FARTHEST_FLICKER * typical, finest * typical)
    if not found.any():
        return typical
    n = int(found.sum())
    offsets = typical * np.geomspace(finest, FARTHEST_FLICKER, distances) * rng.uniform(0.5, 1.0, (n, distances))
    lines = sharp[found].lines()[np.repeat(np.arange(n), distances)]
    wrong = np.stack([lines.before(field.ask, offsets.reshape(-1)), ~lines.before(field.ask, -offsets.reshape(-1))])
    wrong = wrong.reshape(2, n, distances)
    # Labels that are wrong from somewhere to the farthest distance are another boundary and no flicker.
    other_boundary = np.cumprod(wrong[:, :, ::-1], axis=2)[:, :, ::-1].astype(bool)
    widths = np.sort(np.where(wrong & ~other_boundary, offsets, 0.0).max(axis=(0, 2)))
    return max(float(widths[-2] if n > 1 else widths[-1]), least)


def boundary_slopes(
    field: LabelField,
    boundary: Boundary,
    directions: FloatArray,
    step: FloatArray | float,
    bits: float,
    *,
    expected: float,
    guess: FloatArray | None = None,
    symmetric: bool = False,
) -> FloatArray:
    """Slopes (n, k) of the crossing against steps along unit directions (k, d); NaN where it was lost.

    The normal has these components along the directions, times minus its component along the line. `expected`: size of
    a slope, or of its distance from a guess (n, k). Cost: about 2.4 + bits rows each; twice that if symmetric.
    """
    farthest = 2.0**12  # times its expected size that a crossing may be away
    n, k = len(boundary), len(directions)
    step = np.broadcast_to(np.asarray(step, float), n)
    found, size = np.full((n, k), np.nan), expected
    for some in row_batches(n * k, 1, boundary.points.shape[1]):
        which, along = np.divmod(np.arange(some.start, some.stop), k)
        lengths = _allowed_steps(field.domain, boundary.points[which], directions[along], step[which], symmetric)
        predicted = np.zeros(len(which)) if guess is None else guess[which, along]
        # Far from typical inputs rounding grows with the distance.
        resolution = field.resolution * np.maximum(1.0, np.abs(lengths) / field.typical)
        scale = np.abs(lengths) * size
        tol = np.maximum(scale * 2.0**-bits, resolution)
        slopes = []
        for side in (lengths, -lengths) if symmetric else (lengths,):
            lines = boundary[which].lines(side[:, None] * directions[along])
            slopes.append(field.crossings(lines, predicted * side, scale, tol, farthest * scale) / side)
        found[which, along] = np.mean(slopes, axis=0)
        size = _typical_slope(found[which, along] - predicted, size)
    return found


def _typical_slope(differences: FloatArray, before: float) -> float:
    smallest_slope = 2.0**-20  # of the size before: a batch of slopes that are all zero
    known = np.abs(differences[np.isfinite(differences)])
    return max(float(np.median(known)), before * smallest_slope) if len(known) else before


def _allowed_steps(
    domain: Domain, points: FloatArray, directions: FloatArray, step: FloatArray, symmetric: bool
) -> FloatArray:
    """Signed lengths of the steps that stay inside."""
    if domain.is_space:
        return step.copy()
    ahead = np.minimum(WITHIN_BOUNDS * domain.room(points, directions), step)
    behind = np.minimum(WITHIN_BOUNDS * domain.room(points, -directions), step)
    if symmetric:
        return np.minimum(ahead, behind)
    return np.where(ahead >= behind, ahead, -behind)
