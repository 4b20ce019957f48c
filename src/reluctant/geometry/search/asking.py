"""One search under way: how its questions are asked, and what is seen of the function by now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np

from reluctant.geometry.bent import split_bent, without_bridges
from reluctant.geometry.lines import Lines
from reluctant.geometry.noise import DistanceNoise, roundings
from reluctant.geometry.samples import NONE, SPACING, BoolArray, IntArray, Pieces, Samples, find_pieces
from reluctant.numerics import FloatArray

__all__ = ["CROWDED", "AskAt", "LostAt", "Places", "Search", "Usual", "Wanted"]

AskAt: TypeAlias = Callable[[IntArray, FloatArray], FloatArray]  # positions on lines of these indices to answers
LostAt: TypeAlias = Callable[[IntArray, FloatArray, FloatArray], FloatArray]  # the same and answers to their noise

CROWDED = 1000  # creases on a line: with more, checks are narrower in proportion, or some would hold two creases
CREASES_AT_FIRST = 500  # samples allowed before any crease is certified, in creases
MOST_PER_CREASE = 8  # samples for each piece found: many times what a search takes that gets anywhere
WIDE = float(np.sqrt(SPACING))  # of an interval, relatively: it is cut in halves again and again


@dataclass(frozen=True)
class Places:
    """Positions on lines."""

    line: IntArray
    t: FloatArray

    @classmethod
    def none(cls) -> Places:
        """No place at all."""
        return cls(np.empty(0, dtype=np.intp), np.empty(0))

    def __add__(self, other: Places) -> Places:
        return Places(np.concatenate([self.line, other.line]), np.concatenate([self.t, other.t]))

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True)
class Usual:
    """The bend that creases usually have, and how much narrower checks are than that where there is no crowd."""

    bend: float
    narrower: float


@dataclass
class Wanted:
    """Questions collected in one round."""

    line: list[IntArray] = field(default_factory=list)
    t: list[FloatArray] = field(default_factory=list)
    pair: list[IntArray] = field(default_factory=list)
    check: list[IntArray] = field(default_factory=list)

    def add(self, line: IntArray, t: FloatArray, pair: IntArray | None = None, check: IntArray | None = None) -> None:
        """Ask these; samples of one pair, or of one check, share a number."""
        none = np.full(len(t), NONE)
        self.line.append(line)
        self.t.append(t)
        self.pair.append(none if pair is None else pair)
        self.check.append(none if check is None else check)

    @property
    def places(self) -> Places:
        """Where they are."""
        return Places(np.concatenate(self.line), np.concatenate(self.t)) if self.t else Places.none()

    def __len__(self) -> int:
        return sum(len(t) for t in self.t)


@dataclass
class Counts:
    """What a search counts: numbers of pairs and checks it has given out, and rounds."""

    numbers: int = 0
    rounds: int = 0


@dataclass
class Search:
    """What a search asks and how, what it has counted so far, and whether its lines are crowded.

    `usual` is what creases are like elsewhere, if the search is about a part of its lines; it counts with the whole.
    `lost_at` is noise that answers have by what they are, besides that of their distance.
    """

    ask_at: AskAt
    lines: Lines
    noise: DistanceNoise
    crowded: bool
    counts: Counts = field(default_factory=Counts)
    usual: Usual | None = None
    lost_at: LostAt | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is about its lines from end to end."""
        return self.usual is None

    def ask_all(self, wanted: Wanted) -> Samples:
        """The answers, as samples of one round."""
        places = wanted.places
        line, t = places.line, places.t
        f = self.ask_at(line, t)
        sd = np.hypot(self.sd(t), roundings(np.abs(f).max(axis=1)))
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
        return np.where(high - low > np.sqrt(SPACING), self.lines.position((low + high) / 2), (a + b) / 2)

    def is_wide(self, s: Samples, here: IntArray, room: float = WIDE) -> BoolArray:
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
        return len(s) > MOST_PER_CREASE * (int(pieces.certified.sum()) + CREASES_AT_FIRST * len(self.lines))
