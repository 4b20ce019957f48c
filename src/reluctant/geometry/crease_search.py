"""A crease search under way: how its questions are asked, what is seen of the function by now, and its first samples.

The first samples are pairs spread evenly over each line, or single ones where few creases are expected. A search
that gets stuck in a few places starts afresh there, with pairs at random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np

from reluctant.geometry.creases import split_bent, without_bridges
from reluctant.geometry.lines import Lines
from reluctant.geometry.samples import (
    NO_NUMBER,
    BoolArray,
    DistanceNoise,
    IntArray,
    Pieces,
    Samples,
    answer_roundings,
    find_pieces,
)
from reluctant.numerics import DOUBLE, FloatArray

__all__ = [
    "CROWDED",
    "PAIR_WIDTH",
    "AskAt",
    "CreaseSearch",
    "LinePlaces",
    "LostAt",
    "UsualBend",
    "WantedSamples",
    "sample_at",
    "start_afresh",
    "start_with_few",
    "start_with_pairs",
]

AskAt: TypeAlias = Callable[[IntArray, FloatArray], FloatArray]  # positions on lines of these indices to answers
LostAt: TypeAlias = Callable[[IntArray, FloatArray, FloatArray], FloatArray]  # the same and answers to their noise

CROWDED = 1000  # creases on a line: with more, checks are narrower in proportion, or some would hold two creases


@dataclass(frozen=True)
class LinePlaces:
    """Positions on lines."""

    line: IntArray
    t: FloatArray

    @classmethod
    def none(cls) -> LinePlaces:
        """No place at all."""
        return cls(np.empty(0, dtype=np.intp), np.empty(0))

    def __add__(self, other: LinePlaces) -> LinePlaces:
        return LinePlaces(np.concatenate([self.line, other.line]), np.concatenate([self.t, other.t]))

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True)
class UsualBend:
    """The bend that creases usually have, and how much narrower checks are than that where there is no crowd."""

    bend: float
    narrower: float


@dataclass
class WantedSamples:
    """Questions collected in one round."""

    line: list[IntArray] = field(default_factory=list)
    t: list[FloatArray] = field(default_factory=list)
    pair: list[IntArray] = field(default_factory=list)
    check: list[IntArray] = field(default_factory=list)

    def add(self, line: IntArray, t: FloatArray, pair: IntArray | None = None, check: IntArray | None = None) -> None:
        """Ask these; samples of one pair, or of one check, share a number."""
        none = np.full(len(t), NO_NUMBER)
        self.line.append(line)
        self.t.append(t)
        self.pair.append(none if pair is None else pair)
        self.check.append(none if check is None else check)

    @property
    def places(self) -> LinePlaces:
        """Where they are."""
        return LinePlaces(np.concatenate(self.line), np.concatenate(self.t)) if self.t else LinePlaces.none()

    def __len__(self) -> int:
        return sum(len(t) for t in self.t)


@dataclass
class SearchCounts:
    """What a search counts: numbers of pairs and checks it has given out, and rounds."""

    numbers: int = 0
    rounds: int = 0


@dataclass
class CreaseSearch:
    """What a search asks and how, what it has counted so far, and whether its lines are crowded.

    `usual` is what creases are like elsewhere, if the search is about a part of its lines; it counts with the whole.
    `lost_at` is noise that answers have by what they are, besides that of their distance.
    """

    ask_at: AskAt
    lines: Lines
    noise: DistanceNoise
    crowded: bool
    counts: SearchCounts = field(default_factory=SearchCounts)
    usual: UsualBend | None = None
    lost_at: LostAt | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is about its lines from end to end."""
        return self.usual is None

    def ask_all(self, wanted: WantedSamples) -> Samples:
        """The answers, as samples of one round."""
        places = wanted.places
        line, t = places.line, places.t
        f = self.ask_at(line, t)
        sd = np.hypot(self.sd(t), answer_roundings(np.abs(f).max(axis=1)))
        sd = sd if self.lost_at is None else np.hypot(sd, self.lost_at(line, t, f))
        numbers = np.concatenate(wanted.pair), np.concatenate(wanted.check), np.full(len(t), self.counts.rounds)
        self.counts.rounds += 1
        return Samples(line, t, f, sd, *numbers)

    def sd(self, t: FloatArray) -> FloatArray:
        """Noise of answers at these positions."""
        return self.noise.at(np.hypot(t, self.lines.scale))

    def new_numbers(self, n: int) -> IntArray:
        """Numbers that no pair and no check has."""
        self.counts.numbers += n
        return np.arange(self.counts.numbers - n, self.counts.numbers)

    def middle(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Middle in angle; where angles no longer tell the ends apart, in position."""
        low, high = self.lines.angle(a), self.lines.angle(b)
        return np.where(high - low > DOUBLE.wide, self.lines.position((low + high) / 2), (a + b) / 2)

    def is_wide(self, s: Samples, here: IntArray, room: float = DOUBLE.wide) -> BoolArray:
        """Whether there is room for a sample after these."""
        return s.t[here + 1] - s.t[here] > room * (self.lines.scale + np.abs(s.t[here]))

    def pieces(self, s: Samples) -> Pieces:
        """Runs and pairs; in a crowd, runs that are straight as a whole, as far as they can be told apart."""
        found = find_pieces(s)
        return without_bridges(s, split_bent(s, found, partial(self.is_wide, s))) if self.is_crowded(s) else found

    def is_crowded(self, s: Samples) -> bool:
        """More creases than a line usually has; once found so it stays so."""
        most = CROWDED * len(self.lines)
        self.crowded = self.crowded or (len(s) > most and len(find_pieces(s)) > most)
        return self.crowded

    def has_too_many(self, s: Samples, pieces: Pieces) -> bool:
        """True if the search is not getting anywhere: a curved function splits for ever."""
        creases_at_first = 500  # samples allowed before any crease is certified, in creases
        most_samples_per_crease = 8  # samples for each piece found: many times what a search takes that gets anywhere
        return len(s) > most_samples_per_crease * (int(pieces.certified.sum()) + creases_at_first * len(self.lines))


FIRST_PAIRS = 6  # pieces looked for at the start, evenly in angle
JITTER = 0.2  # of a cell: how far from its middle the first samples are, at most
PAIR_WIDTH = 0.06  # of the interval a new pair is put into


def start_with_pairs(search: CreaseSearch, rng: np.random.Generator) -> Samples:
    """Pairs evenly spread in angle on every line, and one at each of its ends."""
    lines, n = search.lines, len(search.lines)
    first, last, cell = _angle_cells(search, FIRST_PAIRS)
    middles = first[:, None] + (np.arange(FIRST_PAIRS) + 0.5) * cell[:, None]
    angles = middles + rng.uniform(-JITTER, JITTER, (n, FIRST_PAIRS)) * cell[:, None]
    width = PAIR_WIDTH * cell
    after_low, before_high = lines.position(first + width), lines.position(last - width)
    # Far out, where angles are coarse, no farther inside than half the distance.
    after_low = np.where(lines.low < 0, np.minimum(after_low, lines.low / 2), after_low)
    before_high = np.where(lines.high > 0, np.maximum(before_high, lines.high / 2), before_high)
    left = np.column_stack([lines.low, lines.position(angles), before_high])
    right = np.column_stack([after_low, lines.position(angles + width[:, None]), lines.high])
    wanted, line, pair = WantedSamples(), np.repeat(np.arange(n), FIRST_PAIRS + 2), search.new_numbers(left.size)
    wanted.add(line, left.reshape(-1), pair)
    wanted.add(line, right.reshape(-1), pair)
    return _sorted_samples(search.ask_all(wanted))


def start_with_few(search: CreaseSearch, rng: np.random.Generator) -> Samples:
    """Single samples: enough where a line is expected to be straight."""
    few_samples = 3  # between the ends, where few creases are expected
    lines, n, wanted = search.lines, len(search.lines), WantedSamples()
    first, _, cell = _angle_cells(search, few_samples + 1)
    inner = np.arange(1, few_samples + 1) + rng.uniform(-JITTER, JITTER, (n, few_samples))
    t = np.column_stack([lines.low, lines.position(first[:, None] + inner * cell[:, None]), lines.high])
    wanted.add(np.repeat(np.arange(n), t.shape[1]), t.reshape(-1))
    return _sorted_samples(search.ask_all(wanted))


def sample_at(search: CreaseSearch, positions: FloatArray) -> Samples:
    """Single samples at the same positions of every line; each gets a partner when it needs one."""
    wanted, n = WantedSamples(), len(search.lines)
    wanted.add(np.repeat(np.arange(n), len(positions)), np.tile(positions, n))
    return search.ask_all(wanted)


def start_afresh(search: CreaseSearch, s: Samples, places: LinePlaces, rng: np.random.Generator) -> Samples:
    """Forget the samples around these places and look there again, with pairs at random.

    Where samples are where they happen to mislead, more of them only add to the crowd.
    """
    pieces_around = 2  # pieces on either side of a place that is begun afresh
    pieces, wanted, keep = search.pieces(s), WantedSamples(), np.ones(len(s), dtype=bool)
    middle = (s.t[pieces.first] + s.t[pieces.last]) / 2
    for line in np.unique(places.line):
        own = np.flatnonzero(s.line[pieces.first] == line)
        at = np.searchsorted(s.t[pieces.last[own]], places.t[places.line == line])
        low, high = (own[np.clip(at + side, 0, len(own) - 1)] for side in (-pieces_around, pieces_around))
        for begin, end in _joined_stretches(middle[low], middle[high]):
            keep &= (s.line != line) | (s.t <= begin) | (s.t >= end)
            _add_pairs(search, line, begin, end, rng, wanted)
    return s.chosen(np.flatnonzero(keep)) + search.ask_all(wanted)


def _add_pairs(
    search: CreaseSearch, line: int, begin: float, end: float, rng: np.random.Generator, wanted: WantedSamples
) -> None:
    """Pairs all over a stretch of one line, each at random in a part of its own."""
    cell = (end - begin) / FIRST_PAIRS
    first = begin + (np.arange(FIRST_PAIRS) + rng.uniform(JITTER, 1 - JITTER, FIRST_PAIRS)) * cell
    which, pair = np.full(FIRST_PAIRS, line), search.new_numbers(FIRST_PAIRS)
    wanted.add(which, first, pair)
    wanted.add(which, first + PAIR_WIDTH * cell, pair)


def _joined_stretches(low: FloatArray, high: FloatArray) -> list[tuple[float, float]]:
    """Stretches that overlap as one."""
    joined: list[tuple[float, float]] = []
    for start, stop in sorted(zip(low.tolist(), high.tolist(), strict=True)):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((start, stop))
    return joined


def _angle_cells(search: CreaseSearch, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """First and last angle of each line, and its part for each of so many cells."""
    lines = search.lines
    first, last = lines.angle(lines.low), lines.angle(lines.high)
    return first, last, (last - first) / count


def _sorted_samples(s: Samples) -> Samples:
    """Sorted by line and position, as sums of samples are."""
    return s + s.without_any()
