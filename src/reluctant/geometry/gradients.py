"""Gradients at many points, by finite differences or as the target answers them, and bends across expected creases.

Where a target answers gradients, a `Question` to it has each of them for one row. Any other gradient takes one step
from each point along every direction. One more row, at a random combination of the steps, must be what they predict;
if it is not, a step crossed a crease and all are made shorter. For a crease that is expected at a place, four points on
a short line through it decide: the line through the two points before and the line through the two after must bend,
and must meet there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from reluctant.domains import Domain
from reluctant.geometry.lines import BoolArray, DistanceNoise, ExtraNoise, Frame, answer_roundings
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles.base import Ask, Explained, Oracle

GRADIENT_ROWS = 2  # besides one for each direction: the point itself, and the check
MOST_GRADIENT_ROUNDS = 6
CHECK_SHARE = (0.5, 1.0)  # of each step in the check, before it is divided among them
EVERYWHERE = Domain()


@dataclass(frozen=True)
class Question:
    """What rows are asked: answers, and gradients with them where the target gives those."""

    answers: Ask
    explained: Callable[[FloatArray], Explained] | None = None

    @classmethod
    def of(cls, oracle: Oracle) -> Self:
        """Of a target, in its own inputs."""
        return cls(oracle.query, None if oracle.explained is None else oracle.query_gradients)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Answers (n, m)."""
        return self.answers(rows)

    def within(self, frame: Frame, unit: float = 1.0) -> Self:
        """Of coordinates y in a frame: the rows are frame.points(unit y)."""
        asked = self.of_rows(lambda y: frame.points(unit * y))
        explained = asked.explained
        if explained is None:
            return asked

        def along(y: FloatArray) -> Explained:
            found = explained(y)
            return Explained(found.values, unit * found.gradients @ frame.basis.T)

        return replace(asked, explained=along)

    def of_rows(self, rows: Ask) -> Self:
        """Of what `rows` makes of the rows that are asked; gradients stay those of the target's own."""
        explained = self.explained
        answers = self.answers
        of_gradients = None if explained is None else (lambda x: explained(rows(x)))
        return type(self)(lambda x: answers(rows(x)), of_gradients)


@dataclass(frozen=True)
class Gradients:
    """At each point the value, the slopes along the directions, their noise, and whether the check passed.

    Gradients that the target answers itself pass, and nothing checks them.
    """

    points: FloatArray  # (n, d)
    value: FloatArray  # (n, m)
    slope: FloatArray  # (n, m, k)
    step: FloatArray  # (n,)
    sd: FloatArray  # (n,)
    good: BoolArray  # (n,)
    off: FloatArray  # (n,): by how much the check was off, as the noise of one answer

    def __len__(self) -> int:
        return len(self.value)

    @property
    def shown_sd(self) -> FloatArray:
        """Noise (n,) of a slope as the check shows it: answers of a few active neurons are better than most."""
        rounding = DOUBLE.rounding * np.abs(self.value).max(axis=1)
        return np.minimum(self.sd, DOUBLE.safety * np.sqrt(2) * np.maximum(self.off, rounding) / self.step)


def gradients(
    ask: Ask,
    points: FloatArray,
    directions: FloatArray | None,
    steps: FloatArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
    *,
    domain: Domain = EVERYWHERE,
    rounds: int = MOST_GRADIENT_ROUNDS,
    lost: ExtraNoise | None = None,
) -> Gradients:
    """Slopes along unit directions (k, d), None for the coordinates, on the roomier side of the domain.

    Steps of 0, where rounding leaves no room, give none that is good. Cost: k + 2 rows a point, and as many again for
    each time its steps had to be shortened; with one round the steps stay as they are. `lost` is noise of answers
    besides, by what they are. Of a `Question` with gradients, 1 row a point.
    """
    if isinstance(ask, Question) and ask.explained is not None:
        return _answered(ask.explained, points, directions, steps, noise, lost)
    shorter_steps = 4.0
    at = np.linalg.norm(points, axis=1)
    near, steps, good = noise.at(at), steps.copy(), np.zeros(len(points), dtype=bool)
    sd = near.copy()
    parts: list[_StepAnswers | None] = [None] * len(points)
    for _ in range(rounds):
        for some in _point_batches(np.flatnonzero(~good), points.shape[1], directions):
            found = _take_steps(ask, points[some], directions, steps[some], rng, domain)
            if lost is not None:
                sd[some] = np.hypot(near[some], lost(points[some], found.value))
            good[some] = found.off <= DOUBLE.in_line * np.sqrt(found.gain) * sd[some]
            for i, part in zip(some, found.each(), strict=True):
                parts[i] = part
        if good.all():
            break
        steps[~good] /= shorter_steps
    done = [part for part in parts if part is not None]
    value, slope = np.stack([part.value for part in done]), np.stack([part.slope for part in done])
    off = np.stack([part.off / np.sqrt(part.gain) for part in done])
    with np.errstate(divide="ignore"):
        slope_sd = np.sqrt(2) * sd / steps
    return Gradients(points, value, slope, steps, slope_sd, good, off)


def _answered(
    explained: Callable[[FloatArray], Explained],
    points: FloatArray,
    directions: FloatArray | None,
    steps: FloatArray,
    noise: DistanceNoise,
    lost: ExtraNoise | None,
) -> Gradients:
    """Gradients as the target answers them; relative to its terms they are as noisy as its values."""
    found = explained(points)
    at, full = np.linalg.norm(points, axis=1), np.linalg.norm(found.gradients, axis=2).max(axis=1)
    sd = noise.at(at) if lost is None else np.hypot(noise.at(at), lost(points, found.values))
    terms = np.maximum(np.abs(found.values).max(axis=1) + full * at, DOUBLE.tiny)
    slope_sd = np.maximum(answer_roundings(full), sd / terms * full)
    slope = found.gradients if directions is None else found.gradients @ directions.T
    good, unchecked = np.ones(len(points), dtype=bool), np.full(len(points), np.inf)
    return Gradients(points, found.values, slope, steps.copy(), slope_sd, good, unchecked)


def _point_batches(which: np.ndarray, dim: int, directions: FloatArray | None) -> list[np.ndarray]:
    rows = (dim if directions is None else len(directions)) + GRADIENT_ROWS
    return [which[some] for some in row_batches(len(which), rows, dim)]


@dataclass(frozen=True)
class _StepAnswers:
    """Answers of one round: values, slopes, how far the checks were off and the variance that noise gives that."""

    value: FloatArray
    slope: FloatArray
    off: FloatArray
    gain: FloatArray

    def each(self) -> list[_StepAnswers]:
        return [_StepAnswers(*parts) for parts in zip(self.value, self.slope, self.off, self.gain, strict=True)]


def _take_steps(
    ask: Ask,
    points: FloatArray,
    directions: FloatArray | None,
    steps: FloatArray,
    rng: np.random.Generator,
    domain: Domain,
) -> _StepAnswers:
    n = len(points)
    build = _along_coordinates if directions is None else _along(directions)
    rows, taken, share = build(points, steps, rng, domain)
    answers = ask(rows.reshape(-1, rows.shape[-1])).reshape(n, rows.shape[1], -1)
    value = answers[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = (answers[:, 1:-1] - answers[:, :1]) / taken[:, :, None]
        predicted = value + np.einsum("nk,nkm->nm", share, slope)
        weight = share / taken
        gain = 1 + (1 - weight.sum(axis=1)) ** 2 + (weight**2).sum(axis=1)
    return _StepAnswers(value, np.swapaxes(slope, 1, 2), np.abs(answers[:, -1] - predicted).max(axis=1), gain)


_StepRows = tuple[FloatArray, FloatArray, FloatArray]  # rows (n, k + 2, d), steps (n, k), steps of the check (n, k)


def _along_coordinates(points: FloatArray, steps: FloatArray, rng: np.random.Generator, domain: Domain) -> _StepRows:
    n, d = points.shape
    up = np.asarray(domain.high) - points >= np.minimum(points - np.asarray(domain.low), steps[:, None])
    rows = np.repeat(points[:, None], d + GRADIENT_ROWS, axis=1)
    each = np.arange(d)
    rows[:, 1 + each, each] += np.where(up, steps[:, None], -steps[:, None])
    rows[:, -1] += _shares(n, d, rng) * steps[:, None]
    rows = domain.nearest(rows)
    taken = rows[:, 1 + each, each] - points  # what rounding left of the steps
    return rows, taken, rows[:, -1] - points


def _along(directions: FloatArray) -> Callable[[FloatArray, FloatArray, np.random.Generator, Domain], _StepRows]:
    def build(points: FloatArray, steps: FloatArray, rng: np.random.Generator, domain: Domain) -> _StepRows:
        n, k = len(points), len(directions)
        sides = _roomier_side(points, directions, domain)
        moves = (sides * steps[:, None])[:, :, None] * directions
        share = _shares(n, k, rng) if domain.is_space else rng.uniform(*CHECK_SHARE, (n, k)) / k  # stay in their hull
        check = np.einsum("nk,nkd->nd", share, moves)
        rows = np.concatenate([points[:, None], points[:, None] + moves, (points + check)[:, None]], axis=1)
        return domain.nearest(rows), sides * steps[:, None], share * sides * steps[:, None]

    return build


def _shares(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """How much of each step the check takes; with both signs, so that noise of the start does not add up."""
    return rng.uniform(*CHECK_SHARE, (n, k)) * rng.choice([-1.0, 1.0], (n, k)) / np.sqrt(k)


def _roomier_side(points: FloatArray, directions: FloatArray, domain: Domain) -> FloatArray:
    """+1 or -1 for each point and direction: the side on which there is more of the domain."""
    if domain.is_space:
        return np.ones((len(points), len(directions)))
    return np.where(_room(points, directions, domain) >= _room(points, -directions, domain), 1.0, -1.0)


def _room(points: FloatArray, directions: FloatArray, domain: Domain) -> FloatArray:
    """How far (n, k) each direction may be followed inside the domain."""
    bound = np.where(directions[None] > 0, np.asarray(domain.high), np.asarray(domain.low))
    with np.errstate(divide="ignore", invalid="ignore"):
        room = (bound - points[:, None]) / directions[None]
    return np.asarray(np.where(directions[None] == 0, np.inf, room).min(axis=2))


# Noise of the gap between two lines, half way between their samples, in units of that of one answer.
EXTRAPOLATION_NOISE = np.sqrt(10.0)
SMALLEST_CROSSED_BEND = 20 * DOUBLE.in_line  # deviations of an answer, over the reach: the meeting point is well known


@dataclass(frozen=True)
class Crossings:
    """What was seen across each place: slopes before and after, and where the two lines meet."""

    before: FloatArray  # (n, m)
    bend: FloatArray  # (n, m): slope after, less that before
    position: FloatArray  # (n,): of the meeting point, from the place that was expected
    sd: FloatArray  # (n,): of one answer
    critical: BoolArray  # (n,): a crease, and where it was expected

    @property
    def size(self) -> FloatArray:
        """Sizes (n,) of the bends."""
        return np.sqrt((self.bend**2).sum(axis=1))


def cross(
    ask: Ask,
    points: FloatArray,
    directions: FloatArray,
    reach: FloatArray,
    noise: DistanceNoise,
    within: FloatArray | None = None,
) -> Crossings:
    """Cross the places `points` (n, d) along unit directions; a crease counts up to `within` (n,) away.

    within: a twentieth of the reach where it is not given. A place without any reach shows nothing.
    Cost: 4 rows a place.
    """
    crossing_places = np.array([-1.0, -0.5, 0.5, 1.0])  # of the reach
    within = 0.05 * reach if within is None else within
    steps = crossing_places[None, :, None] * reach[:, None, None] * directions[:, None]
    answers = ask((points[:, None] + steps).reshape(-1, points.shape[1])).reshape(len(points), len(crossing_places), -1)
    sd = np.hypot(noise.at(np.linalg.norm(points, axis=1) + reach), answer_roundings(np.abs(answers).max(axis=(1, 2))))
    far_before, before, after, far_after = np.swapaxes(answers, 0, 1)
    half = np.where(reach > 0, reach, 1.0)[:, None] / 2
    slope = (before - far_before) / half
    bend = (far_after - after) / half - slope
    gap = (2 * after - far_after) - (2 * before - far_before)  # of the two lines, at the place itself
    square = (bend**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        position = np.where(square > 0, -(gap * bend).sum(axis=1) / square, np.inf)
        blur = DOUBLE.in_line * EXTRAPOLATION_NOISE * sd / np.sqrt(square)
    bends = np.sqrt(square) * reach > SMALLEST_CROSSED_BEND * sd
    meets = np.abs(position) <= within + blur
    with np.errstate(invalid="ignore"):
        off = np.abs(gap + position[:, None] * bend).max(axis=1)  # several outputs must meet in one place
    critical = bends & meets & (off <= DOUBLE.in_line * EXTRAPOLATION_NOISE * sd)
    return Crossings(slope, bend, position, sd, critical)


def row_batches(n: int, rows_each: int, dim: int) -> list[slice]:
    """Parts of n things of so many rows each that are asked together."""
    rows_batch_bytes = 2**24  # of float64
    size = max(1, rows_batch_bytes // (8 * max(rows_each, 1) * dim))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
