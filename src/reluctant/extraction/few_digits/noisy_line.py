"""First stage of few digits: neurons on one line as knots of a spline, and the choice of lines.

Samples are spread like the creases of random neurons, doubled until every straight run has a dozen; then knots and
samples take turns: fit, add and drop knots, ask around each, until nothing changes. On a crowded line a neuron is
easily missed and reading another costs little: of several lines those with the most neurons come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.few_digits.spline import (
    LineData,
    Spline,
    first_knots,
    fit_spline,
    more_knots,
    only_clear_knots,
    samples_wanted,
    straight_runs,
)
from reluctant.extraction.few_digits.view import FARTHEST_CREASE, View
from reluctant.extraction.method import StageFailed
from reluctant.interface.noise import MEDIAN_OF_ABS_NORMAL
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

PER_RUN = 14  # samples of a straight run before knots are looked for
MOST_COARSE_SAMPLES, MOST_SAMPLES = 20_000, 60_000
SETTLE_ROUNDS, KNOT_TURNS = 30, 12


@dataclass(frozen=True)
class OnLine:
    """What a line shows: the function on it as a network of one input, the samples, the view with its noise."""

    network: ReLUNetwork
    data: LineData
    view: View
    origin: FloatArray
    direction: FloatArray
    chi: float


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
    data = line.ask(line.first_places(rng))
    before, runs = 0, len(straight_runs(data))
    while len(data) <= PER_RUN * runs:
        if len(data) > many_samples and runs > falls_apart * before:  # creases would all have been met by now
            line = line.with_noise(noisier)
            data = line.weighed(data.t, data.f)
        else:
            data = line.ask(line.places(len(data), rng), data)
        before, runs = runs, len(straight_runs(data))
        if len(data) > line.share * MOST_COARSE_SAMPLES:
            raise StageFailed("line", "no straight runs of samples", number=runs, limit=len(data) / PER_RUN)
    return line, data


def _settle_line(
    line: _LineTarget, data: LineData, knots: FloatArray, rng: np.random.Generator
) -> tuple[_LineTarget, LineData, Spline, FloatArray]:
    """Fit, change knots, ask more, until neither knots nor samples are missing."""
    clear_knot = 5.5  # deviations a new knot must explain
    recalibrate = (2, 4)  # rounds after which the noise is read from what the fit leaves
    clear = clear_knot
    for turn in range(SETTLE_ROUNDS):
        spline, residual, added, clear = _settle_knots(knots, data, clear)
        if turn in recalibrate:
            line, data = _recalibrated(line, data, residual)
            residual = spline.residual(data)
        inner = spline.knots[1:-1]
        wanted = samples_wanted(spline, data, line.view.noise.at(inner), line.view.size, rng)
        if not added and not len(wanted):
            return line, data, spline, residual
        if len(data) + len(wanted) > line.share * MOST_SAMPLES:
            break
        knots, data = spline.knots, line.ask(wanted, data) if len(wanted) else data
    raise StageFailed("line", "knots that do not settle", number=len(knots) - 2, limit=len(data) / PER_RUN)


def _settle_knots(knots: FloatArray, data: LineData, clear: float) -> tuple[Spline, FloatArray, int, float]:
    cycle_turn, more_evidence = 6, 1.1  # from this turn on a knot that came and went has to explain more
    added = 0
    for turn in range(KNOT_TURNS):
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


CROWDED_LINE = 64  # neurons, from which on two of them are often taken for one
SPARE_SHARE = 0.1  # of the rows that all other directions will cost, for lines that are read to choose from
ROWS_A_WEIGHT = 4.0  # that other directions cost
MOST_SPARE = 6


def promising_lines(view: View, rng: np.random.Generator) -> Iterator[OnLine | StageFailed]:
    """Lines without end, those with the most neurons first; a line that could not be read is told as a failure."""
    while True:
        before = view.oracle.queries
        first = _line_or_failure(view, rng)
        if isinstance(first, StageFailed):
            yield first
            continue
        spare = _spare_lines(first, view.oracle.queries - before)
        others = [_line_or_failure(view, rng) for _ in range(spare)]
        lines = [first, *(line for line in others if isinstance(line, OnLine))]
        yield from sorted(lines, key=lambda line: -line.network.widths[1])


def _spare_lines(first: OnLine, rows: int) -> int:
    neurons = first.network.widths[1]
    if neurons < CROWDED_LINE:
        return 0
    return int(min(MOST_SPARE, SPARE_SHARE * ROWS_A_WEIGHT * neurons * first.view.dim / rows))


def _line_or_failure(view: View, rng: np.random.Generator) -> OnLine | StageFailed:
    try:
        return read_line(view, rng)
    except StageFailed as failure:
        return failure
