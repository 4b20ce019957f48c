"""First stage: every neuron on one line, as the knots of a spline with few digits.

Samples are spread like the creases of random neurons, doubled until every straight run has a dozen; then knots
and samples take turns: fit, add and drop knots, ask around each, until nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits.knots import more_knots, only_clear_knots, samples_wanted
from reluctant.extraction.few_digits.runs import first_knots, straight_runs
from reluctant.extraction.few_digits.spline import LineData, Spline, fit
from reluctant.extraction.few_digits.view import FARTHEST, View
from reluctant.health.noise import MEDIAN_OF_ABS_NORMAL
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["OnLine", "read_line", "read_stretch"]

FIRST_SAMPLES = 256
FAR_FROM, FAR_SAMPLES = 30.0, 24  # samples out there, at each end
MANY_SAMPLES, FALLS_APART, NOISIER = 2000, 1.6, 1.5  # runs that grow in number like samples are made of noise
PER_RUN = 14  # samples of a straight run before knots are looked for
MOST_COARSE_SAMPLES, MOST_SAMPLES = 20_000, 60_000
BOUNDED = 0.2  # of these on a bounded line, which several others share the work with
ROUNDS, TURNS = 30, 12
CLEAR = 5.5  # deviations a new knot must explain
CYCLE, MORE_EVIDENCE = 6, 1.1  # from this turn on a knot that came and went has to explain more
RECALIBRATE = (2, 4)  # rounds after which the noise is read from what the fit leaves
BEYOND = 1.0001  # ends of the spline, beyond the outermost sample


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
    return _read(_Asker(view, rng.standard_normal(view.dim), direction / np.linalg.norm(direction)), rng)


def read_stretch(
    view: View, origin: FloatArray, direction: FloatArray, reach: float, rng: np.random.Generator
) -> OnLine:
    """Scan a line as far as `reach` to both sides of its origin. Cost: 50 to 100 rows a neuron."""
    return _read(_Asker(view, origin, direction, reach), rng)


def _read(line: _Asker, rng: np.random.Generator) -> OnLine:
    with line.view.oracle.stage("line"):
        line, data = _coarse_samples(line, rng)
        knots = first_knots(data, straight_runs(data), BEYOND * float(np.abs(data.t).max()))
        line, data, spline, residual = _settle(line, data, knots, rng)
    if len(spline.knots) == 2:
        raise StageFailed("line", "no crease on the line", number=0, limit=1)
    chi = float(np.sqrt(np.mean(residual**2)))
    return OnLine(_network(spline), data, line.view, line.origin, line.direction, chi)


@dataclass(frozen=True)
class _Asker:
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

    def with_noise(self, factor: float) -> _Asker:
        """The same line where noise has turned out to be this many times as large."""
        return replace(self, view=self.view.with_noise(factor))

    @property
    def share(self) -> float:
        """Part of the most samples of a line that this one may have."""
        return BOUNDED if np.isfinite(self.reach) else 1.0

    def first_places(self, rng: np.random.Generator) -> FloatArray:
        """Positions to begin with; where nothing bounds the line, some far out."""
        if np.isfinite(self.reach):
            return self.places(FIRST_SAMPLES, rng)
        far = self.view.size * np.geomspace(FAR_FROM, FARTHEST, FAR_SAMPLES)
        return np.concatenate([self.places(FIRST_SAMPLES, rng), -far, far])

    def places(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Positions even in angle, as the creases of random neurons are; on a bounded line even."""
        angle = (np.arange(n) + rng.uniform(0.1, 0.9, n)) * np.pi / n - np.pi / 2
        if np.isfinite(self.reach):
            return np.asarray(self.reach * angle / (np.pi / 2))
        return np.asarray(self.view.size * np.clip(np.tan(angle), -FARTHEST, FARTHEST))

    def weighed(self, t: FloatArray, f: FloatArray) -> LineData:
        return LineData(t, f, 1 / self.view.noise.at(t))


def _coarse_samples(line: _Asker, rng: np.random.Generator) -> tuple[_Asker, LineData]:
    """Enough samples for every straight run, and the line with its noise if that has turned out to be larger."""
    data = line.ask(line.first_places(rng))
    before, runs = 0, len(straight_runs(data))
    while len(data) <= PER_RUN * runs:
        if len(data) > MANY_SAMPLES and runs > FALLS_APART * before:  # creases would all have been met by now
            line = line.with_noise(NOISIER)
            data = line.weighed(data.t, data.f)
        else:
            data = line.ask(line.places(len(data), rng), data)
        before, runs = runs, len(straight_runs(data))
        if len(data) > line.share * MOST_COARSE_SAMPLES:
            raise StageFailed("line", "no straight runs of samples", number=runs, limit=len(data) / PER_RUN)
    return line, data


def _settle(
    line: _Asker, data: LineData, knots: FloatArray, rng: np.random.Generator
) -> tuple[_Asker, LineData, Spline, FloatArray]:
    """Fit, change knots, ask more, until neither knots nor samples are missing."""
    clear = CLEAR
    for turn in range(ROUNDS):
        spline, residual, added, clear = _settle_knots(knots, data, clear)
        if turn in RECALIBRATE:
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
    added = 0
    for turn in range(TURNS):
        spline, residual = fit(knots, data)
        fewer = only_clear_knots(spline, data, residual)
        dropped = len(fewer) < len(spline.knots)
        if dropped:
            spline, residual = fit(fewer, data)
        more = more_knots(spline, data, residual, clear)
        if not len(more):
            return spline, residual, added, clear
        added, knots = added + len(more), np.unique(np.concatenate([spline.knots, more]))
        clear *= MORE_EVIDENCE if dropped and turn >= CYCLE else 1
    return *fit(knots, data), added, clear


def _recalibrated(line: _Asker, data: LineData, residual: FloatArray) -> tuple[_Asker, LineData]:
    """The noise as the residuals show it; the median does not mind a missing knot."""
    factor = float(np.median(np.abs(residual))) / MEDIAN_OF_ABS_NORMAL
    line = line.with_noise(factor)
    return line, line.weighed(data.t, data.f)


def _network(spline: Spline) -> ReLUNetwork:
    """The spline as a network of one input: the leftmost piece is its skip term, outputs have norm one."""
    bends = spline.bends
    sizes = np.linalg.norm(bends, axis=1)
    slope = spline.slopes[0]
    constant = spline.values[1] - slope * spline.knots[1]
    inner = spline.knots[1:-1]
    return ReLUNetwork([sizes[:, None], (bends / sizes[:, None]).T], [-sizes * inner, constant], slope[:, None])
