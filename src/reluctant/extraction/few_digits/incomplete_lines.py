"""Kinks of a piecewise linear function on one line, from noisy samples; a line need not be complete.

Samples that one straight line explains are a run. Two runs that follow each other meet in a kink, which is certain
where all samples between them lie on one of the two, and a sample lies close on either side. Otherwise the gap is
halved. Gaps that stay unclear down to a least size are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from reluctant.extraction.few_digits.scaled_view import View
from reluctant.numerics import FloatArray

AskLine: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]  # positions to answers (n, m), noise (n,)

STRAIGHT = 4.5  # deviations of an answer from a straight line: some 300 tests a line, ten lines


@dataclass(frozen=True)
class LineSamples:
    """Samples in order: positions (n,), answers (n, m) and their noise (n,)."""

    t: FloatArray
    f: FloatArray
    sd: FloatArray

    def __len__(self) -> int:
        return len(self.t)

    def part(self, start: int, stop: int) -> LineSamples:
        """Samples from `start` up to `stop`."""
        return LineSamples(self.t[start:stop], self.f[start:stop], self.sd[start:stop])

    def joined(self, other: LineSamples) -> LineSamples:
        """Both, in order."""
        t = np.concatenate([self.t, other.t])
        order = np.argsort(t, kind="stable")
        return LineSamples(
            t[order], np.concatenate([self.f, other.f])[order], np.concatenate([self.sd, other.sd])[order]
        )


@dataclass(frozen=True)
class StraightRun:
    """Samples start…stop-1 and their straight line: value and slope (m,) at `centre`, with deviations."""

    start: int
    stop: int
    low: float
    high: float
    centre: float
    value: FloatArray
    slope: FloatArray
    value_sd: float
    slope_sd: float

    @classmethod
    def of(cls, samples: LineSamples, start: int, stop: int) -> StraightRun:
        """The weighted line through these samples."""
        t, f, weight = samples.t[start:stop], samples.f[start:stop], samples.sd[start:stop] ** -2.0
        total = weight.sum()
        centre = float((weight * t).sum() / total)
        square = float((weight * (t - centre) ** 2).sum())
        slope = ((weight * (t - centre))[:, None] * f).sum(axis=0) / square
        value = (weight[:, None] * f).sum(axis=0) / total
        low, high = float(t[0]), float(t[-1])
        return cls(start, stop, low, high, centre, value, slope, float(total) ** -0.5, square**-0.5)

    @property
    def length(self) -> float:
        """From the first sample to the last."""
        return self.high - self.low

    @property
    def middle(self) -> float:
        """Half way."""
        return (self.low + self.high) / 2

    @property
    def is_constant(self) -> bool:
        """True if no slope shows."""
        return float(np.abs(self.slope).max()) < STRAIGHT * self.slope_sd

    def off(self, samples: LineSamples) -> FloatArray:
        """How far samples (n,) are from the line, in deviations."""
        away = samples.t - self.centre
        sd = np.sqrt(samples.sd**2 + self.value_sd**2 + (self.slope_sd * away) ** 2)
        return np.asarray(np.abs(samples.f - self.value - away[:, None] * self.slope).max(axis=1) / sd)

    def explains(self, samples: LineSamples, most: float = STRAIGHT) -> bool:
        """True if all of them lie on the line."""
        return not len(samples) or bool((self.off(samples) < most).all())


@dataclass(frozen=True)
class Meeting:
    """Where the lines of two runs meet: position, its deviation, and the bend there in deviations."""

    t: float
    sd: float
    bend: float

    @classmethod
    def of(cls, left: StraightRun, right: StraightRun) -> Meeting:
        """NaN for lines of the same slope."""
        change = right.slope - left.slope
        square = float(change @ change)
        if square == 0:
            return cls(np.nan, np.inf, 0.0)
        gap = (left.value - left.slope * left.centre) - (right.value - right.slope * right.centre)
        t = float(change @ gap) / square
        noise = np.sqrt(
            left.value_sd**2
            + right.value_sd**2
            + (left.slope_sd * (t - left.centre)) ** 2
            + (right.slope_sd * (t - right.centre)) ** 2
        )
        bend = float(np.abs(change).max() / np.hypot(left.slope_sd, right.slope_sd))
        return cls(t, float(noise / np.sqrt(square)), bend)


@dataclass(frozen=True)
class Kink:
    """A kink at t ± sd between the runs of these two numbers."""

    t: float
    sd: float
    left: int
    right: int


@dataclass(frozen=True)
class LineReading:
    """A line as far as it was read: samples, straight runs in order, and the kinks that are certain."""

    samples: LineSamples
    runs: list[StraightRun]
    kinks: list[Kink]

    @property
    def positions(self) -> FloatArray:
        """Positions (n,) of the kinks."""
        return np.array([kink.t for kink in self.kinks])

    @property
    def position_sds(self) -> FloatArray:
        """Deviations (n,) of the positions."""
        return np.array([kink.sd for kink in self.kinks])

    def shows(self, t: float, tolerance: float) -> bool | None:
        """Whether there is a kink at t; None where the line was not read, or answers are constant.

        Where deeper layers are off as a whole no neuron shows.
        """
        if len(self.kinks) and (np.abs(self.positions - t) < tolerance + 6 * self.position_sds).any():
            return True
        run = next((run for run in self.runs if run.low + tolerance < t < run.high - tolerance), None)
        return None if run is None or run.is_constant else False

    def around(self, kinks: list[Kink]) -> tuple[list[int], FloatArray, FloatArray]:
        """Numbers of the runs beside these kinks, their middles and their lengths."""
        beside = sorted({kink.left for kink in kinks} | {kink.right for kink in kinks})
        middles = np.array([self.runs[k].middle for k in beside])
        return beside, middles, np.array([self.runs[k].length for k in beside])

    def mean_squares(self) -> list[FloatArray]:
        """Of what each long run leaves inside, for every output, in deviations."""
        fewest = 6
        squares = []
        for run in self.runs:
            if (n := run.stop - run.start) >= fewest:
                part = self.samples.part(run.start, run.stop)
                left = part.f - run.value - (part.t - run.centre)[:, None] * run.slope
                squares.append(((left / part.sd[:, None])[1:-1] ** 2).mean(axis=0) * n / (n - 2))
        return squares


def read_incomplete_line(
    ask: AskLine, places: FloatArray, *, least_gap: float = 3e-4, rounds: int = 12, most: int = 4000
) -> LineReading:
    """Ask at these positions, then where runs do not yet meet. Cost: about 7 rows a kink."""
    ends_rounds = 4  # in which samples are asked beyond the outermost runs
    places = np.sort(places)
    samples = LineSamples(places, *ask(places))
    for turn in range(rounds + 1):
        runs = _merged_runs(samples, _straight_runs(samples))
        kinks, wanted = _kinks_between(samples, runs, least_gap)
        if not runs:
            wanted = [(samples.t[1:] + samples.t[:-1]) / 2]
        elif turn < ends_rounds:
            ends = (slice(0, runs[0].start + 1), slice(runs[-1].stop - 1, len(samples)))
            wanted += [(samples.t[end][1:] + samples.t[end][:-1]) / 2 for end in ends if len(samples.t[end]) > 2]
        new = np.setdiff1d(np.concatenate([np.empty(0), *wanted]), samples.t)
        if not len(new) or turn == rounds or len(samples) > most:
            break
        samples = samples.joined(LineSamples(new, *ask(new)))
    return LineReading(samples, runs, kinks)


def _straight_runs(samples: LineSamples) -> list[StraightRun]:
    """From left to right, the longest runs that a line explains."""
    n, flat, runs, start = len(samples), _flat(samples), [], 0
    while start < n - 2:
        if not flat[start]:
            start += 1
            continue
        stop, run = start + 3, StraightRun.of(samples, start, start + 3)
        while stop < n and run.explains(samples.part(stop, stop + 1)):
            stop += 1
            run = StraightRun.of(samples, start, stop)
        if stop - start > 4 and not run.explains(samples.part(start, stop)):  # bent, by little at each sample
            stop, run = start + 3, StraightRun.of(samples, start, start + 3)
        runs.append(run)
        start = stop
    return runs


def _flat(samples: LineSamples) -> list[bool]:
    """Whether samples k, k + 1, k + 2 lie on a line, for all k."""
    t, f, sd = samples.t, samples.f, samples.sd
    before, after = t[1:-1] - t[:-2], t[2:] - t[1:-1]
    share = after / (before + after)
    off = np.abs(f[1:-1] - share[:, None] * f[:-2] - (1 - share)[:, None] * f[2:]).max(axis=1)
    noise = np.sqrt(sd[1:-1] ** 2 + (share * sd[:-2]) ** 2 + ((1 - share) * sd[2:]) ** 2)
    return list(off < STRAIGHT * noise)


def _merged_runs(samples: LineSamples, runs: list[StraightRun]) -> list[StraightRun]:
    """Neighbouring runs of the same line as one."""
    merged: list[StraightRun] = []
    for run in runs:
        if merged:
            last = merged[-1]
            same = Meeting.of(last, run).bend < STRAIGHT and last.explains(samples.part(last.stop, run.stop))
            if same:
                merged[-1] = StraightRun.of(samples, last.start, run.stop)
                continue
        merged.append(run)
    return merged


def _kinks_between(
    samples: LineSamples, runs: list[StraightRun], least_gap: float
) -> tuple[list[Kink], list[FloatArray]]:
    """Kinks that are certain, and positions to ask at for the others."""
    kinks: list[Kink] = []
    wanted: list[FloatArray] = []
    for k, (left, right) in enumerate(pairwise(runs)):
        met, between = Meeting.of(left, right), samples.part(left.stop, right.start)
        if _is_consistent(met, left, right, between):
            missing = _witnesses_missing(met, left, right, between)
            wanted.append(missing)
            if not len(missing):
                kinks.append(Kink(met.t, met.sd, k, k + 1))
        elif right.low - left.high >= least_gap * (1 + max(abs(left.high), abs(right.low))):
            wanted.append(_halved_gap(left.high, right.low, between.t, least_gap))
    return kinks, wanted


def _is_consistent(met: Meeting, left: StraightRun, right: StraightRun, between: LineSamples) -> bool:
    """True if the lines meet in the gap, and samples of the gap lie on them."""
    position_room, clear = 4.0, 0.25  # deviations; and of the shorter run, how well the position has to be known
    if not np.isfinite(met.t) or met.sd >= clear * min(left.length, right.length):
        return False
    if not left.high - position_room * met.sd <= met.t <= right.low + position_room * met.sd:
        return False
    first = int(np.searchsorted(between.t, met.t))
    return left.explains(between.part(0, first), STRAIGHT + 1) and right.explains(
        between.part(first, len(between)), STRAIGHT + 1
    )


def _witnesses_missing(met: Meeting, left: StraightRun, right: StraightRun, between: LineSamples) -> FloatArray:
    """Positions close to a kink, on each side that has no sample there."""
    near = max(10 * met.sd, 0.04 * min(left.length, right.length))
    missing = []
    if left.high < met.t - near and not ((between.t < met.t) & (between.t > met.t - near)).any():
        missing.append(met.t - 0.6 * near)
    if right.low > met.t + near and not ((between.t > met.t) & (between.t < met.t + near)).any():
        missing.append(met.t + 0.6 * near)
    return np.array(missing)


def _halved_gap(low: float, high: float, inside: FloatArray, least_gap: float) -> FloatArray:
    if not len(inside):
        return low + (high - low) * np.array([0.25, 0.5, 0.75])
    edges = np.concatenate([[low], inside, [high]])
    wide = np.diff(edges) > 0.3 * least_gap * (1 + np.abs(edges[1:]))
    return np.asarray(((edges[1:] + edges[:-1]) / 2)[wide])


PARALLEL_SAMPLES = 160


def bent_share(view: View, origin: FloatArray, direction: FloatArray, across: FloatArray) -> float:
    """Part of the kinks on a line whose crease is not straight. Cost: three lines, about 7 rows a kink each.

    On three parallel lines as far apart as each other, positions of a straight crease are even. Creases of a second
    hidden layer bend where they cross the first. 0 if no kink was read.
    """
    apart, deviations = 0.5, 6.0
    sharp, farthest, most = 1e-4, 3.0, 1000  # kinks known well, and not far out; samples of a line
    readings = []
    for number in range(3):
        start = origin + number * apart * view.size * across

        def ask(t: FloatArray, start: FloatArray = start) -> tuple[FloatArray, FloatArray]:
            rows, f = view.ask(start + t[:, None] * view.size * direction)
            return f, view.noise.at(np.linalg.norm(rows, axis=1))

        places = view.line_places(start, direction, PARALLEL_SAMPLES)
        readings.append(read_incomplete_line(ask, places, most=most))
    clear = [[kink for kink in reading.kinks if kink.sd < sharp * (1 + abs(kink.t))] for reading in readings]
    first, second, third = (np.array([kink.t for kink in kinks]) for kinks in clear)
    sds = [np.array([kink.sd for kink in kinks]) for kinks in clear]
    central = np.abs(first) < farthest
    if not central.any() or not len(second) or not len(third):
        return 0.0
    expected = 2 * second[:, None] - first  # on the third line, for every pair of the others
    noise = np.hypot(2 * sds[1][:, None], sds[0])
    limits = deviations * np.hypot(noise, sds[2][:, None, None]) + 1e-5 * (1 + np.abs(expected))
    straight = (np.abs(third[:, None, None] - expected) < limits).any(axis=(0, 1))
    return float(np.mean(~straight[central]))


def rank_one(jump: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """A jump (m, k) of gradients as a ⊗ n: unit normal n (k,), a (m,), and the size of the residual."""
    if len(jump) == 1:
        size = float(np.linalg.norm(jump))
        return jump[0] / (size or 1.0), np.array([size]), 0.0
    u, s, v = np.linalg.svd(jump, full_matrices=False)
    return v[0], u[:, 0] * s[0], float(s[1]) if len(s) > 1 else 0.0
