"""Jumps of the gradient along a line: every crease that the line crosses, with its normal, from values and gradients.

Two rows with the same gradient have no crease between them. Two with different ones have some: if it is one, the two
affine functions meet on it, and that place is asked on either side. A third gradient there means that there were more
creases, and cuts the interval in two. So a crease costs about two rows, and its place needs no bisection (the search of
Milli et al., 2019, who bisect). A crease that is expected at a place costs one: a row on either side of it, where the
affine functions meet there and differ along its normal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.geometry.lines import Batch, BoolArray, DistanceNoise, IntArray, Lines
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles.base import Explained

AskGradients = Callable[[FloatArray], Explained]

SAME_ROUNDINGS = 2.0**9  # of the largest gradient: gradients of one piece differ by less
NARROWEST = 2.0**-34  # angle between two rows that no second crease is looked for in
EXPECTED_WITHIN = 1e-7  # of scale and distance: how far from its place an expected crease may be
MOST_ROUNDS = 200  # a crowd of creases is cut in two in each
MOST_JUMPS = 2**13  # of a line: every interval of a smooth function holds one more


@dataclass(frozen=True)
class GradientNoise:
    """How well answers are known: values by distance from the origin, gradients by their size.

    rounding: unit roundoff of the answers.
    """

    values: DistanceNoise
    rounding: float = DOUBLE.rounding


@dataclass(frozen=True)
class Jumps(Batch):
    """Creases of a line: their points, the change of gradient along the line, and how far off the place may be.

    beside: a row next to each, on the side where the line goes on; value: the answer there.
    """

    points: FloatArray  # (n, d)
    jump: FloatArray  # (n, m, d)
    position: FloatArray  # (n,)
    off: FloatArray  # (n,)
    beside: FloatArray  # (n, d)
    value: FloatArray  # (n, m)


@dataclass(frozen=True)
class ExpectedCreases(Batch):
    """Where creases of known neurons would be on a line: positions and unit normals."""

    t: FloatArray  # (n,)
    normals: FloatArray  # (n, d)

    @classmethod
    def of_hyperplanes(cls, lines: Lines, normals: FloatArray, offsets: FloatArray) -> ExpectedCreases:
        """Where the one line of `lines` crosses hyperplanes {x : normals[i] @ x + offsets[i] = 0}."""
        slope = normals @ lines.directions[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            t = -(normals @ lines.origins[0] + offsets) / slope
        inside = np.isfinite(t) & (t > lines.low[0]) & (t < lines.high[0])
        return cls(t, normals).chosen(inside).sorted()

    def sorted(self) -> ExpectedCreases:
        """In order along the line."""
        return self.chosen(np.argsort(self.t, kind="stable"))


@dataclass(frozen=True)
class SearchedLine:
    """A line with rows (n, d) that were asked on it, and its jumps; None where the search was not ended."""

    lines: Lines
    rows: FloatArray
    answers: Explained
    jumps: Jumps | None = None

    @property
    def samples(self) -> _LineSamples:
        """The rows in order."""
        t = (self.rows - self.lines.origins[0]) @ self.lines.directions[0]
        return _LineSamples(t, self.answers.values, self.answers.gradients).sorted()


@dataclass(frozen=True)
class _LineSamples(Batch):
    """Rows of a line in order: positions, values, gradients."""

    t: FloatArray  # (n,)
    value: FloatArray  # (n, m)
    gradient: FloatArray  # (n, m, d)

    def sorted(self) -> _LineSamples:
        """In order along the line."""
        return self.chosen(np.argsort(self.t, kind="stable"))


class TooManyJumps(Exception):
    """A line with more creases than were allowed; found: how many showed."""

    def __init__(self, found: int) -> None:
        super().__init__(f"{found} jumps")
        self.found = found


def jumps_on_line(
    ask: AskGradients,
    lines: Lines,
    noise: GradientNoise,
    *,
    size: Callable[[], float] = lambda: 0.0,
    first: int = 2,
    most: float = MOST_JUMPS,
    expected: ExpectedCreases | None = None,
    begun: SearchedLine | None = None,
) -> Jumps:
    """All jumps on the one line of `lines`, in order.

    Arguments:
        ask: values and gradients of rows.
        lines: one line.
        noise: of answers.
        size: of the gradients that these are residuals of, for the tolerance.
        first: rows that the search begins with, at equal angles.
        most: jumps that are still looked for; `TooManyJumps` beyond.
        expected: creases that may be there; the search then begins with a row between any two of them.
        begun: rows of this line that were asked before.

    Cost: about two rows a crease, one more for each time that an interval held several.
    """
    search = _JumpSearch(ask, lines, noise, size, expected, None if begun is None else begun.samples)
    search.look(search.first_rows(first))
    for _ in range(MOST_ROUNDS):
        wanted = search.next_rows()
        if not len(wanted):
            break
        search.look(wanted)
        if search.regions - 1 > most:
            raise TooManyJumps(search.regions - 1)
    return search.jumps()


class _JumpSearch:
    """The rows so far, in order."""

    def __init__(
        self, ask: AskGradients, lines: Lines, noise: GradientNoise, size: Callable[[], float],
        expected: ExpectedCreases | None = None, samples: _LineSamples | None = None,
    ) -> None:  # fmt: skip
        self.ask, self.lines, self.noise, self.whole_size, self.size = ask, lines, noise, size, 0.0
        self.expected, self.samples = expected, samples

    def first_rows(self, count: int) -> FloatArray:
        """Positions to begin with: at equal angles, or between any two creases that are expected, where no row is."""
        ends = self.lines.angle(np.array([self.lines.low[0], self.lines.high[0]]))
        if self.expected is None or not len(self.expected):
            return self.lines.position(np.linspace(ends[0], ends[1], max(count, 2)))
        angles = np.concatenate([ends[:1], self.lines.angle(self.expected.t), ends[1:]])
        middles = (angles[1:] + angles[:-1]) / 2
        if self.samples is not None:
            asked = np.searchsorted(angles, self.lines.angle(self.samples.t)) - 1
            middles = np.delete(middles, np.unique(np.clip(asked, 0, len(middles) - 1)))
        return self.lines.position(np.concatenate([ends, middles]) if self.samples is None else middles)

    def as_expected(self, which: IntArray, at: FloatArray) -> BoolArray:
        """Which of these intervals hold the one crease that is expected there, and no other."""
        if self.expected is None or not len(self.expected):
            return np.zeros(len(which), dtype=bool)
        known, t = self.known, self.expected.t
        place = known.t[which] + at
        first = np.searchsorted(t, known.t[which])
        single = np.searchsorted(t, known.t[which + 1]) - first == 1
        nearest = np.minimum(first, len(t) - 1)
        jump = known.gradient[which + 1] - known.gradient[which]
        normals = self.expected.normals[nearest]
        across = jump - (jump @ normals[:, :, None]) * normals[:, None]
        along = np.linalg.norm(across, axis=2).max(axis=1) <= SAME_ROUNDINGS * self.noise.rounding * self.size
        with np.errstate(invalid="ignore"):
            there = np.abs(place - t[nearest]) <= EXPECTED_WITHIN * np.hypot(self.lines.scale, t[nearest])
        return np.asarray(single & along & there)

    def points(self, t: FloatArray) -> FloatArray:
        """Rows at these positions."""
        return self.lines.points(np.zeros(len(t), dtype=np.intp), t)

    def distance(self, t: FloatArray) -> FloatArray:
        """From the origin (n,), of rows at these positions."""
        origin, direction = self.lines.origins[0], self.lines.directions[0]
        return np.sqrt(np.maximum(origin @ origin + 2 * t * (origin @ direction) + t**2, 0.0))

    def look(self, t: FloatArray) -> None:
        """Ask at these positions."""
        if not len(t):  # every interval has a row already
            self.size = max(self.size, self.whole_size())
            return
        found = self.ask(self.points(t))
        fresh = _LineSamples(t, found.values, found.gradients)
        self.samples = (fresh if self.samples is None else self.samples + fresh).sorted()
        self.size = max(self.size, self.whole_size(), float(np.linalg.norm(fresh.gradient, axis=2).max()))

    @property
    def known(self) -> _LineSamples:
        """The rows so far."""
        assert self.samples is not None  # `look` comes first
        return self.samples

    def open(self) -> IntArray:
        """Intervals, by the row that they begin with, whose ends have different affine functions."""
        change = np.diff(self.known.gradient, axis=0)
        different = np.linalg.norm(change, axis=2).max(axis=1) > SAME_ROUNDINGS * self.noise.rounding * self.size
        gap, sd = self.gap()
        return np.flatnonzero(different | (np.abs(gap).max(axis=1) > DOUBLE.bend * sd))

    def gap(self) -> tuple[FloatArray, FloatArray]:
        """How far apart (n, m) the two affine functions of each interval are at its beginning; noise (n,) of that."""
        known = self.known
        slope, length = known.gradient @ self.lines.directions[0], np.diff(known.t)[:, None]
        near = self.noise.values.at(self.distance(known.t))
        lost = self.noise.rounding * np.abs(slope[1:] * length).max(axis=1)  # of the way from one end to the other
        return known.value[:-1] - known.value[1:] + slope[1:] * length, np.hypot(near[1:], near[:-1]) + lost

    @property
    def regions(self) -> int:
        """Pieces that were met."""
        return len(self.open()) + 1

    def meeting(self, which: IntArray) -> tuple[FloatArray, FloatArray]:
        """Where the two affine functions of these intervals meet, from their beginning, and how far off that may be."""
        bend = np.diff(self.known.gradient @ self.lines.directions[0], axis=0)[which]
        gap, sd = (part[which] for part in self.gap())
        square = (bend**2).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            at = (gap * bend).sum(axis=1) / square
            off = sd / np.sqrt(square)
        return np.where(square > 0, at, np.nan), np.where(square > 0, off, np.inf)

    def narrow(self, t: FloatArray, off: FloatArray) -> FloatArray:
        """Widths within which one jump is not cut any more: what rounding leaves of a place, or less."""
        scale = self.lines.scale
        smallest = NARROWEST * (scale**2 + t**2) / scale
        return np.maximum(np.maximum(smallest, DOUBLE.safety * 2 * off), 2 * DOUBLE.spacing * np.abs(t))

    def next_rows(self) -> FloatArray:
        """One row in each interval that may still hold several creases."""
        which = self.open()
        at, off = self.meeting(which)
        start, stop = self.known.t[which], self.known.t[which + 1]
        place = start + at
        with np.errstate(invalid="ignore"):
            inside = (at > 0) & (place < stop)
            width = self.narrow(np.where(inside, place, start), np.where(np.isfinite(off), off, 0.0))
            sure = inside & (4 * width < stop - start)
            beside = place + np.where(start >= place - width / 2, width / 4, -width / 4)  # before it, then behind it
        middle = self.lines.position((self.lines.angle(start) + self.lines.angle(stop)) / 2)
        rows = np.where(sure, beside, middle)
        todo = (stop - start > width) & (rows > start) & (rows < stop) & ~self.as_expected(which, at)
        return np.asarray(rows[todo])

    def jumps(self) -> Jumps:
        """What the open intervals hold, each one jump."""
        which, known = self.open(), self.known
        at, off = self.meeting(which)
        length = known.t[which + 1] - known.t[which]
        with np.errstate(invalid="ignore"):
            at = np.where((at > 0) & (at < length), at, length / 2)
        position = known.t[which] + at
        jump = known.gradient[which + 1] - known.gradient[which]
        return Jumps(
            self.points(position), jump, position, np.minimum(off, length),
            self.points(known.t[which + 1]), known.value[which + 1],
        )  # fmt: skip
