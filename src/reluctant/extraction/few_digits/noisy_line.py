"""First stage of few digits: neurons on one line as knots of a spline, and the choice of lines.

Samples are spread like the creases of random neurons, doubled until every straight run has a dozen; then knots and
samples take turns: fit, add and drop knots, ask around each, until nothing changes. On a crowded line a neuron is
easily missed and reading another costs little: of several lines those with the most neurons come first.

The spline is fitted by Levenberg–Marquardt on knot positions and values. A sample between knots i and i + 1 depends
on these two alone, and by its slope on their positions, so the normal equations are block tridiagonal. The first
knots lie between the longest straight runs of samples; later ones come where a hinge would explain the residual, and
go where a bend is in the noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import ge
from typing import TypeAlias

import numpy as np
import scipy.linalg

from reluctant.extraction.few_digits.scaled_view import FARTHEST_CREASE, View
from reluctant.extraction.method import StageFailed
from reluctant.fitting.least_squares import Damping, Linearisation, StepRules, least_squares
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.interface.noise import MEDIAN_OF_ABS_NORMAL
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray, unit_roundoff


@dataclass(frozen=True)
class LineData:
    """Samples of a line in order: positions (n,), values (n, m), one over the noise (n,)."""

    t: FloatArray
    f: FloatArray
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True)
class Spline:
    """Knots (n,) in order, the two ends included, and the values (n, m) there."""

    knots: FloatArray
    values: FloatArray

    @property
    def slopes(self) -> FloatArray:
        """Slopes (n - 1, m) between knots."""
        return np.diff(self.values, axis=0) / np.diff(self.knots)[:, None]

    @property
    def bends(self) -> FloatArray:
        """Changes of slope (n - 2, m) at the inner knots."""
        return np.diff(self.slopes, axis=0)

    def residual(self, data: LineData) -> FloatArray:
        """What the function leaves of the values, in units of their noise."""
        piece, share = locate(self.knots, data.t)
        found = self.values[piece] * (1 - share)[:, None] + self.values[piece + 1] * share[:, None]
        return (data.f - found) * data.weight[:, None]


def locate(knots: FloatArray, t: FloatArray) -> tuple[IntArray, FloatArray]:
    """The piece each position lies in, and how far along it."""
    piece = np.clip(np.searchsorted(knots, t, side="right") - 1, 0, len(knots) - 2)
    return piece, (t - knots[piece]) / (knots[piece + 1] - knots[piece])


_Fitted: TypeAlias = tuple[Spline, FloatArray]  # with what it leaves of the values


def fit_spline(knots: FloatArray, data: LineData) -> tuple[Spline, FloatArray]:
    """The function with as many knots that fits best around these, and what it leaves of the values."""
    fit_steps = 15
    step_tries = 6  # of one step, each with ten times the damping
    first_damping, least_damping = 1e-3, 1e-12  # of the diagonal
    refused_damping = 1e-6
    spline = _fit_values(knots[np.append(_apart(knots), True)], data)
    policy = Damping(first_damping, least=least_damping, refused=refused_damping, singular=0.0, tries=step_tries)
    rules = StepRules(fit_steps if len(spline.knots) > 2 else 0, policy, accept=ge, enough=_gained_little)
    return least_squares((spline, spline.residual(data)), lambda at: _linearised(*at, data), rules).state


def _gained_little(before: float, after: float) -> bool:
    enough_gain = 1e-3  # gain of a step, in squares of the noise, below which no other follows
    return before - after < enough_gain * max(1.0, enough_gain * after)


def _apart(knots: FloatArray) -> BoolArray:
    """Whether each knot but the last (n - 1,) differs from the next by more than rounding."""
    closest = DOUBLE.spacing * np.maximum(np.abs(knots[1:]), np.abs(knots[:-1]))
    return np.asarray(np.diff(knots) > closest)


def _fit_values(knots: FloatArray, data: LineData) -> Spline:
    """Values at given knots by weighted least squares."""
    knot_ridge = 1e-12  # of the diagonal: knots without samples stay determined
    n, sums = len(knots), _PieceSums.of(knots, data)
    banded = np.zeros((2, n))
    banded[0, 1:] = sums.both
    banded[1] = np.append(sums.left, 0) + np.append(0, sums.right)
    banded[1] = banded[1] * (1 + knot_ridge) + DOUBLE.tiny
    wanted = np.zeros((n, data.f.shape[1]))
    weighted = data.f * data.weight[:, None]
    to_left, to_right = sums.to_knots(weighted)
    wanted[:-1] += to_left
    wanted[1:] += to_right
    return Spline(knots, scipy.linalg.solveh_banded(banded, wanted, check_finite=False))


@dataclass(frozen=True)
class _PieceSums:
    """Sums over the samples of each piece: squares of their shares in its two knots, and shares of any values."""

    left: FloatArray
    both: FloatArray
    right: FloatArray
    piece: IntArray
    shares: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, knots: FloatArray, data: LineData) -> _PieceSums:
        piece, share = locate(knots, data.t)
        right, left = share * data.weight, (1 - share) * data.weight
        products = (left * left, left * right, right * right)
        of_left, both, of_right = (np.bincount(piece, each, len(knots) - 1).astype(np.float64) for each in products)
        return cls(of_left, both, of_right, piece, (left, right))

    def to_knots(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums (pieces, m) of values (n, m) by their shares in the left knot of each piece, and in the right one."""
        left, right = (
            np.stack([np.bincount(self.piece, share * column, len(self.both)) for column in values.T], axis=1)
            for share in self.shares
        )
        return left.astype(np.float64, copy=False), right.astype(np.float64, copy=False)


def _linearised(spline: Spline, residual: FloatArray, data: LineData) -> Linearisation[_Fitted, FloatArray]:
    """Equations of knots and values; a step moves the knots (n,), and the values follow them."""
    longest_move = 0.4  # of the distance to the next knot
    diagonal, above, wanted = _normal_equations(spline, residual, data)
    gaps = np.diff(spline.knots)
    behind, ahead = np.append(gaps[0], gaps), np.append(gaps, gaps[-1])

    def solve(damping: float) -> FloatArray:
        return _solve_block_tridiagonal(diagonal, above, wanted, damping)[:, -1]

    def move(moves: FloatArray) -> tuple[_Fitted, float] | None:
        knots = spline.knots + np.clip(moves, -longest_move * behind, longest_move * ahead)
        if not _apart(knots).all():
            return None
        moved = _fit_values(knots, data)
        left = moved.residual(data)
        return (moved, left), float((left**2).sum())

    return Linearisation((spline, residual), float((residual**2).sum()), solve, move)


def _normal_equations(
    spline: Spline, residual: FloatArray, data: LineData
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Blocks (n, m + 1, m + 1) of each knot, blocks between neighbours, right side (n, m + 1).

    The last unknown of a knot is its position. A move by δ changes the function as a change of the value by
    minus slope times δ would, on each side with that side's slope.
    """
    n, m = spline.values.shape
    slopes, sums = spline.slopes, _PieceSums.of(spline.knots, data)
    effect = np.concatenate([np.broadcast_to(np.eye(m), (n - 1, m, m)), -slopes[:, :, None]], axis=2)
    gram = np.einsum("nia,nib->nab", effect, effect)
    diagonal = np.zeros((n, m + 1, m + 1))
    diagonal[:-1] += sums.left[:, None, None] * gram
    diagonal[1:] += sums.right[:, None, None] * gram
    above = sums.both[:, None, None] * gram
    wanted = np.zeros((n, m + 1))
    to_left, to_right = sums.to_knots(residual)
    wanted[:-1] += np.einsum("nia,ni->na", effect, to_left)
    wanted[1:] += np.einsum("nia,ni->na", effect, to_right)
    for end in (0, n - 1):  # the ends stay where they are
        diagonal[end, m, :] = diagonal[end, :, m] = wanted[end, m] = 0
        diagonal[end, m, m] = 1
    above[0, m, :] = above[-1, :, m] = 0
    return diagonal, above, wanted


def _solve_block_tridiagonal(diagonal: FloatArray, above: FloatArray, wanted: FloatArray, damping: float) -> FloatArray:
    n, b, _ = diagonal.shape
    banded = np.zeros((2 * b, n * b))
    row, column = np.triu_indices(b)
    starts = b * np.arange(n)[:, None]
    banded[2 * b - 1 + row - column, starts + column] = diagonal[:, row, column]
    row, column = (index.reshape(-1) for index in np.indices((b, b)))
    banded[b - 1 + row - column, starts[1:] + column] = above[:, row, column]
    banded[-1] = banded[-1] * (1 + damping) + DOUBLE.tiny
    solved = scipy.linalg.solveh_banded(banded, wanted.reshape(-1), check_finite=False)
    return np.asarray(solved).reshape(n, b)


def straight_runs(data: LineData) -> list[tuple[int, int]]:
    """First and last sample of each run, greedily from the left: as long as possible, found by doubling."""
    runs, start, last = [], 0, len(data) - 1
    while start < last:
        good, stride = start + 1, 1
        while good < last and _is_straight(data, start, min(good + stride, last)):
            good, stride = min(good + stride, last), 2 * stride
        bad = min(good + stride, last)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if _is_straight(data, start, middle) else (good, middle)
        runs.append((start, good))
        start = good + 1
    return runs


def _is_straight(data: LineData, first: int, last: int) -> bool:
    lenient = 1.6  # times the noise: where it is larger than elsewhere runs must not fall apart
    largest_in_run = 4.5  # residual of a straight run, in deviations of the noise; a little more with several outputs
    rough_outputs = 2.0  # mean square up to which several outputs, of unlike noise, count as straight
    run_spread = 4.0  # deviations of a mean square
    part = slice(first, last + 1)
    left = _around_a_line(data.t[part], data.f[part], data.weight[part] / lenient)
    m, spare = left.shape[1], last - first - 1
    limit = (1.0 if m == 1 else rough_outputs) + run_spread / np.sqrt(max(spare, 1) * m)
    small = np.abs(left).max() < largest_in_run + np.log(m)
    return bool(small and (spare <= 0 or (left**2).sum() / (spare * m) < limit))


def _around_a_line(t: FloatArray, f: FloatArray, weight: FloatArray) -> FloatArray:
    square = weight**2
    t, f = t - square @ t / square.sum(), f - square @ f / square.sum()
    slope = (square * t) @ f / max((square * t * t).sum(), DOUBLE.tiny)
    return np.asarray((f - t[:, None] * slope) * weight[:, None])


def first_knots(data: LineData, runs: list[tuple[int, int]], end: float) -> FloatArray:
    """Where neighbouring runs meet: at the crossing of their lines if that is between them, else half way."""
    inner = [_meeting(data, before, after) for before, after in pairwise(runs)]
    return np.unique([-end, *inner, end])


def _meeting(data: LineData, before: tuple[int, int], after: tuple[int, int]) -> float:
    fewest_in_run = 4  # samples of a run whose slope is good for anything
    loose_ends = 2  # samples by which the crossing of two runs may lie inside one of them
    half_way = float(data.t[before[1]] + data.t[after[0]]) / 2
    if min(before[1] - before[0], after[1] - after[0]) + 1 < fewest_in_run:
        return half_way
    (slope, value), (other_slope, other_value) = (_line_through(data, run, half_way) for run in (before, after))
    bend = slope - other_slope
    if not bend @ bend > 0:
        return half_way
    crossing = half_way + float((other_value - value) @ bend / (bend @ bend))
    low = data.t[max(before[1] - loose_ends, before[0])]
    high = data.t[min(after[0] + loose_ends, after[1])]
    return crossing if low < crossing < high else half_way


def _line_through(data: LineData, run: tuple[int, int], at: float) -> tuple[FloatArray, FloatArray]:
    """Slope (m,) and value (m,) of the straight line through a run."""
    part = slice(run[0], run[1] + 1)
    slope, value = np.polyfit(data.t[part] - at, data.f[part], 1, w=data.weight[part])
    return slope, value


def more_knots(spline: Spline, data: LineData, residual: FloatArray, clear: float) -> FloatArray:
    """Positions at which another knot would explain more than chance does, one in a piece at most."""
    fewest_for_hinge = 4  # samples in which a hinge can be seen
    worth_a_look = 0.5  # of the gain asked for: the whole residual of a piece
    m = residual.shape[1]
    wanted_gain = clear**2 + m + clear * np.sqrt(2 * m)
    edges = np.searchsorted(data.t, spline.knots[1:-1])
    found = []
    for part in np.split(np.arange(len(data)), edges):
        left = residual[part]
        if len(part) < fewest_for_hinge or (left**2).sum() < worth_a_look * wanted_gain:
            continue
        gain, position = _best_hinge(data.t[part], left, data.weight[part])
        if gain > wanted_gain * _roughness(residual, part[0], part[-1]):
            found.append(position)
    return np.array(found)


def _roughness(residual: FloatArray, first: int, last: int) -> float:
    """Mean square of the noise around these samples, by the median; at least one."""
    neighbours = 40  # samples on both sides of a piece that tell its noise: a missing knot spoils few of them
    roughest = 4.0  # in squares: noise of float32 differs from piece to piece, by no more than this
    median_square = 0.455  # of a standard normal
    around = residual[max(first - neighbours, 0) : last + neighbours + 1]
    return float(np.clip(np.median(around**2) / median_square, 1, roughest))


def _best_hinge(t: FloatArray, residual: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """How many squares the best hinge explains besides a straight line, and where it is."""
    most_hinges = 400  # tried in one piece
    flat_hinge = 1e-6  # of the largest: a hinge of which so little is left besides a straight line is none
    middle, size = t.mean(), max(np.ptp(t), DOUBLE.tiny)
    x = (t - middle) / size
    places = np.concatenate([x[1:-1], (x[2:-1] + x[1:-2]) / 2])
    places = places[:: 1 + len(places) // most_hinges]
    line = np.linalg.qr(np.column_stack([np.ones(len(x)), x]) * weight[:, None])[0]
    left = residual - line @ (line.T @ residual)
    hinges = np.maximum(x[:, None] - places, 0) * weight[:, None]
    hinges -= line @ (line.T @ hinges)
    sizes = np.linalg.norm(hinges, axis=0)
    usable = sizes > flat_hinge * sizes.max()
    explained = ((hinges.T @ left) ** 2).sum(axis=1)
    gains = np.where(usable, explained / np.where(usable, sizes, 1) ** 2, 0)
    best = int(np.argmax(gains))
    return float(gains[best]), float(middle + size * places[best])


def only_clear_knots(spline: Spline, data: LineData, residual: FloatArray) -> FloatArray:
    """The knots without those whose bend is in the noise; of two neighbours only the weaker goes."""
    clear_bend, clear_of_several, per_root_output = 4.5, 7.0, 0.5  # bend in deviations of its slopes
    if len(spline.knots) <= 2:
        return spline.knots
    sd = _slope_deviations(spline, data)
    at = np.searchsorted(data.t, spline.knots[1:-1])
    rough = np.sqrt([_roughness(residual, k, k) for k in at])
    clarity = np.linalg.norm(spline.bends, axis=1) / (rough * np.hypot(sd[:-1], sd[1:]))
    m = data.f.shape[1]
    limit = clear_bend if m == 1 else clear_of_several + per_root_output * np.sqrt(m)
    weakest = np.minimum(np.append(clarity[1:], np.inf), np.append(np.inf, clarity[:-1])) >= clarity
    return np.delete(spline.knots, 1 + np.flatnonzero(~(clarity >= limit) & weakest))


def _slope_deviations(spline: Spline, data: LineData) -> FloatArray:
    """Standard error of the slope of each piece, from its own samples."""
    piece, pieces = locate(spline.knots, data.t)[0], len(spline.knots) - 1
    square, tiny = data.weight**2, DOUBLE.tiny
    middle = np.bincount(piece, square * data.t, pieces) / np.maximum(np.bincount(piece, square, pieces), tiny)
    spread = np.bincount(piece, square * (data.t - middle[piece]) ** 2, pieces)
    return 1 / np.sqrt(np.maximum(spread, tiny))


def samples_wanted(spline: Spline, data: LineData, sd: FloatArray, size: float, rng: np.random.Generator) -> FloatArray:
    """New positions: a few at every distance from each knot, down to where noise hides its bend.

    sd: noise (n,) of an answer at each inner knot. size: length of a typical input.
    """
    per_octave = 2  # samples at each distance from a knot, doubling, on both sides
    widest_octave = 0.6  # of a piece, or of the size of an input: the first octave
    narrowest_octave = 3.0  # deviations of a knot's position
    input_steps = 7.0  # roundings of a float32 input: samples closer to each other say nothing new
    inner, gaps = spline.knots[1:-1], np.diff(spline.knots)
    reach = size + np.abs(inner)
    bends = np.maximum(np.linalg.norm(spline.bends, axis=1), DOUBLE.tiny)
    least = np.maximum(narrowest_octave * sd / bends, input_steps * unit_roundoff(np.float32) * reach)
    found = []
    for side, gap in ((-1, gaps[:-1]), (1, gaps[1:])):
        widest = widest_octave * np.minimum(gap, reach)
        octaves = int(np.ceil(np.log2(np.max(widest / least, initial=1.0))))
        outer = widest[:, None] * 0.5 ** np.arange(octaves)
        near, far = inner[:, None] + side * outer / 2, inner[:, None] + side * outer
        low, high = np.minimum(near, far), np.maximum(near, far)
        there = np.searchsorted(data.t, high) - np.searchsorted(data.t, low)
        missing = np.where(outer > least[:, None], np.maximum(per_octave - there, 0), 0)
        low, width = (np.repeat(part.reshape(-1), missing.reshape(-1)) for part in (low, high - low))
        found.append(low + width * rng.random(len(low)))
    return np.concatenate(found)


PER_RUN = 14  # samples of a straight run before knots are looked for


@dataclass(frozen=True)
class OnLine:
    """What a line shows: the function on it as a network of one input, the samples, the view with its noise."""

    network: ReLUNetwork
    data: LineData
    view: View
    origin: FloatArray
    direction: FloatArray
    chi: float

    @property
    def crowded(self) -> bool:
        """Whether two of its neurons often look like one."""
        return self.network.widths[1] >= CROWDED_LINE


def read_line(view: View, rng: np.random.Generator) -> OnLine:
    """Scan one random line. Cost: 50 to 100 rows a neuron."""
    direction = rng.standard_normal(view.dim)
    return _read_target(_LineTarget(view, rng.standard_normal(view.dim), direction / np.linalg.norm(direction)), rng)


def read_stretch(
    view: View, origin: FloatArray, direction: FloatArray, reach: float, rng: np.random.Generator
) -> OnLine:
    """Scan a line as far as `reach` to both sides of its origin. Cost: 50 to 100 rows a neuron."""
    return _read_target(_LineTarget(view, origin, direction, reach), rng)


def _read_target(line: _LineTarget, rng: np.random.Generator) -> OnLine:
    beyond_ends = 1.0001  # ends of the spline, beyond the outermost sample
    with line.view.oracle.stage("line"):
        line, data = _coarse_samples(line, rng)
        knots = first_knots(data, straight_runs(data), beyond_ends * float(np.abs(data.t).max()))
        line, data, spline, residual = _settle_line(line, data, knots, rng)
    if len(spline.knots) == 2:
        raise StageFailed("line", "no crease on the line", number=0, limit=1)
    chi = float(np.sqrt(np.mean(residual**2)))
    return OnLine(_network_of_spline(spline), data, line.view, line.origin, line.direction, chi)


@dataclass(frozen=True)
class _LineTarget:
    view: View
    origin: FloatArray
    direction: FloatArray
    reach: float = np.inf  # to both sides

    def ask(self, t: FloatArray, known: LineData | None = None) -> LineData:
        """The samples known, and new ones at these positions, in order."""
        rows, f = self.view.ask(self.origin + t[:, None] * self.direction)
        t = (rows - self.origin) @ self.direction
        if known is not None:
            t, f = np.concatenate([known.t, t]), np.concatenate([known.f, f])
        order = np.argsort(t, kind="stable")
        return self.weighed(t[order], f[order])

    def with_noise(self, factor: float) -> _LineTarget:
        """The same line where noise has turned out to be this many times as large."""
        return replace(self, view=self.view.with_noise(factor))

    @property
    def share(self) -> float:
        """Part of the most samples of a line that this one may have."""
        bounded_share = 0.2  # of these on a bounded line, which several others share the work with
        return bounded_share if np.isfinite(self.reach) else 1.0

    def first_places(self, rng: np.random.Generator) -> FloatArray:
        """Positions to begin with; where nothing bounds the line, some far out."""
        first_samples = 256
        far_from, far_samples = 30.0, 24  # samples out there, at each end
        if np.isfinite(self.reach):
            return self.places(first_samples, rng)
        far = self.view.size * np.geomspace(far_from, FARTHEST_CREASE, far_samples)
        return np.concatenate([self.places(first_samples, rng), -far, far])

    def places(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Positions even in angle, as the creases of random neurons are; on a bounded line even."""
        angle = (np.arange(n) + rng.uniform(0.1, 0.9, n)) * np.pi / n - np.pi / 2
        if np.isfinite(self.reach):
            return np.asarray(self.reach * angle / (np.pi / 2))
        return np.asarray(self.view.size * np.clip(np.tan(angle), -FARTHEST_CREASE, FARTHEST_CREASE))

    def weighed(self, t: FloatArray, f: FloatArray) -> LineData:
        return LineData(t, f, 1 / self.view.noise.at(t))


def _coarse_samples(line: _LineTarget, rng: np.random.Generator) -> tuple[_LineTarget, LineData]:
    """Enough samples for every straight run, and the line with its noise if that has turned out to be larger."""
    many_samples, falls_apart, noisier = 2000, 1.6, 1.5  # runs that grow in number like samples are made of noise
    most_samples = 20_000
    data = line.ask(line.first_places(rng))
    before, runs = 0, len(straight_runs(data))
    while len(data) <= PER_RUN * runs:
        if len(data) > many_samples and runs > falls_apart * before:  # creases would all have been met by now
            line = line.with_noise(noisier)
            data = line.weighed(data.t, data.f)
        else:
            data = line.ask(line.places(len(data), rng), data)
        before, runs = runs, len(straight_runs(data))
        if len(data) > line.share * most_samples:
            raise StageFailed("line", "no straight runs of samples", number=runs, limit=len(data) / PER_RUN)
    return line, data


def _settle_line(
    line: _LineTarget, data: LineData, knots: FloatArray, rng: np.random.Generator
) -> tuple[_LineTarget, LineData, Spline, FloatArray]:
    """Fit, change knots, ask more, until neither knots nor samples are missing."""
    clear_knot = 5.5  # deviations a new knot must explain
    recalibrate = (2, 4)  # rounds after which the noise is read from what the fit leaves
    rounds, most_samples = 30, 60_000
    clear = clear_knot
    for turn in range(rounds):
        spline, residual, added, clear = _settle_knots(knots, data, clear)
        if turn in recalibrate:
            line, data = _recalibrated(line, data, residual)
            residual = spline.residual(data)
        inner = spline.knots[1:-1]
        wanted = samples_wanted(spline, data, line.view.noise.at(inner), line.view.size, rng)
        if not added and not len(wanted):
            return line, data, spline, residual
        crowded = len(inner) > len(data) / PER_RUN  # a knot for every step of rounded answers
        if crowded or len(data) + len(wanted) > line.share * most_samples:
            break
        knots, data = spline.knots, line.ask(wanted, data) if len(wanted) else data
    raise StageFailed("line", "knots that do not settle", number=len(inner), limit=len(data) / PER_RUN)


def _settle_knots(knots: FloatArray, data: LineData, clear: float) -> tuple[Spline, FloatArray, int, float]:
    cycle_turn, more_evidence = 6, 1.1  # from this turn on a knot that came and went has to explain more
    turns, added = 12, 0
    for turn in range(turns):
        spline, residual = fit_spline(knots, data)
        fewer = only_clear_knots(spline, data, residual)
        dropped = len(fewer) < len(spline.knots)
        if dropped:
            spline, residual = fit_spline(fewer, data)
        more = more_knots(spline, data, residual, clear)
        if not len(more):
            return spline, residual, added, clear
        added, knots = added + len(more), np.unique(np.concatenate([spline.knots, more]))
        clear *= more_evidence if dropped and turn >= cycle_turn else 1
    return *fit_spline(knots, data), added, clear


def _recalibrated(line: _LineTarget, data: LineData, residual: FloatArray) -> tuple[_LineTarget, LineData]:
    """The noise as the residuals show it; the median does not mind a missing knot."""
    factor = float(np.median(np.abs(residual))) / MEDIAN_OF_ABS_NORMAL
    line = line.with_noise(factor)
    return line, line.weighed(data.t, data.f)


def _network_of_spline(spline: Spline) -> ReLUNetwork:
    """The spline as a network of one input: the leftmost piece is its skip term, outputs have norm one."""
    bends = spline.bends
    sizes = np.linalg.norm(bends, axis=1)
    slope = spline.slopes[0]
    constant = spline.values[1] - slope * spline.knots[1]
    inner = spline.knots[1:-1]
    return ReLUNetwork([sizes[:, None], (bends / sizes[:, None]).T], [-sizes * inner, constant], slope[:, None])


CROWDED_LINE = 64  # neurons, from which on two of them often look like one
SPARE_SHARE = 0.1  # of the rows that all other directions will cost, for lines that are read to choose from
ROWS_A_WEIGHT = 4.0  # that other directions cost
MOST_SPARE = 6


def promising_lines(view: View, rng: np.random.Generator) -> Iterator[OnLine | StageFailed]:
    """Lines without end, after the first those with the most neurons; a line that could not be read is a failure."""
    while True:
        before = view.oracle.queries
        first = _line_or_failure(view, rng)
        if isinstance(first, StageFailed):
            yield first
            continue
        spare = _spare_lines(first, view.oracle.queries - before)
        yield first
        others = [_line_or_failure(view, rng) for _ in range(spare)]
        lines = [line for line in others if isinstance(line, OnLine)]
        yield from sorted(lines, key=lambda line: -line.network.widths[1])


def _spare_lines(first: OnLine, rows: int) -> int:
    if not first.crowded:
        return 0
    return int(min(MOST_SPARE, SPARE_SHARE * ROWS_A_WEIGHT * first.network.widths[1] * first.view.dim / rows))


def _line_or_failure(view: View, rng: np.random.Generator) -> OnLine | StageFailed:
    try:
        return read_line(view, rng)
    except StageFailed as failure:
        return failure
