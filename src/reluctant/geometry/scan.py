"""`scan_lines`: every crease on a batch of lines.

All lines advance together, and every stretch has a status of its own: open, settled, or too close to tell apart. A
round gives lone samples a partner, straightens runs, and looks where two pieces meet; in a crowd of creases rounds
go on around the open stretches alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from reluctant.geometry.creases import (
    CHECK_SIDE,
    CROWDED,
    Meetings,
    Scan,
    UsualBend,
    before_creases,
    bends,
    bent_runs,
    creases_after,
    merge_equal,
    split_bent,
    untested_runs,
    wide_beside,
    widest_inside,
    without_bridges,
)
from reluctant.geometry.lines import (
    NO_NUMBER,
    Batch,
    BoolArray,
    DistanceNoise,
    ExtraNoise,
    IntArray,
    Lines,
    Pieces,
    Samples,
    answer_roundings,
    find_pieces,
)
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles.base import Ask

AskAt: TypeAlias = Callable[[IntArray, FloatArray], FloatArray]  # positions on lines of these indices to answers
LostAt: TypeAlias = Callable[[IntArray, FloatArray, FloatArray], FloatArray]  # the same and answers to their noise


@dataclass(frozen=True)
class LinePlaces(Batch):
    """Positions on lines."""

    line: IntArray
    t: FloatArray


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
        none = LinePlaces(np.empty(0, dtype=np.intp), np.empty(0))
        return LinePlaces(np.concatenate(self.line), np.concatenate(self.t)) if self.t else none

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
        """Runs and pairs; in a crowd, runs that are straight as a whole, as far as rounding allows."""
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
        at_first = most_samples_per_crease * creases_at_first * len(self.lines)
        if len(s) <= at_first:
            return False
        return len(s) > at_first + most_samples_per_crease * int(pieces.certified.sum()) or self.is_dust(s, pieces)

    def is_dust(self, s: Samples, pieces: Pieces) -> bool:
        """True if most pieces are shorter than those of any network: noise larger than was measured splits for ever."""
        dust = 1e-5  # of the distance from the middle of the line: 20,000 neurons have pieces ten times as long
        at, line = s.t[pieces.last], s.line[pieces.last]
        length = (at[1:] - at[:-1])[line[1:] == line[:-1]]
        away = (self.lines.scale + np.abs(at[1:]))[line[1:] == line[:-1]]
        return bool(len(length) and np.median(length / away) < dust)


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
            cell = (end - begin) / FIRST_PAIRS
            at = begin + (np.arange(FIRST_PAIRS) + rng.uniform(JITTER, 1 - JITTER, FIRST_PAIRS)) * cell
            which, pair = np.full(FIRST_PAIRS, line), search.new_numbers(FIRST_PAIRS)
            wanted.add(which, at, pair)
            wanted.add(which, at + PAIR_WIDTH * cell, pair)
    return s.chosen(np.flatnonzero(keep)) + search.ask_all(wanted)


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


@dataclass(frozen=True)
class SearchRound:
    """The samples with the new rows and their pieces, what to ask next, intervals still open."""

    samples: Samples
    pieces: Pieces
    wanted: WantedSamples
    open: LinePlaces
    usual: UsualBend


def next_round(search: CreaseSearch, s: Samples) -> SearchRound:
    """What to ask, by the samples so far."""
    wanted, pieces = WantedSamples(), search.pieces(s)
    s = _give_partners(search, s, pieces, wanted)
    left = before_creases(s, pieces)
    distance = pieces.first[left + 1] - pieces.last[left]
    s = _look_beside(search, s, pieces, left[distance == 0], wanted)
    bent = _straighten(search, s, pieces, wanted)
    open_, usual = _resolve_meetings(search, s, pieces, left[distance == 1], wanted)
    between = left[distance > 1]
    if not wanted and search.is_crowded(s) and search.is_whole:
        _test_runs(search, s, pieces, untested_runs(s, pieces), wanted)
    unresolved = pieces.last[np.concatenate([open_, between, bent])]
    return SearchRound(s, pieces, wanted, LinePlaces(s.line[unresolved], s.t[unresolved]), usual)


def _give_partners(search: CreaseSearch, s: Samples, pieces: Pieces, wanted: WantedSamples) -> Samples:
    """A sample that belongs to no piece gets a partner in the wider interval beside it."""
    cover = np.zeros(len(s) + 1, dtype=int)
    np.add.at(cover, pieces.first, 1)
    np.add.at(cover, pieces.last + 1, -1)
    alone = np.flatnonzero(np.cumsum(cover)[:-1] == 0)
    if not len(alone):
        return s
    after, before = s.room_after(alone), s.room_before(alone)
    pair = s.pair.copy()
    pair[alone] = numbers = search.new_numbers(len(alone))
    step = PAIR_WIDTH * np.where(after >= before, after, -before)
    wanted.add(s.line[alone], s.t[alone] + step, numbers)
    return replace(s, pair=pair)


def _look_beside(search: CreaseSearch, s: Samples, pieces: Pieces, left: IntArray, wanted: WantedSamples) -> Samples:
    """A crease that falls on a sample is sampled once from nearby; in a crowd, if the pieces beside it are sure."""
    nudge = 1e-3  # of the neighbouring intervals, beside a crease that falls on a sample
    if len(left) and search.is_crowded(s):
        beside = np.intersect1d(np.concatenate([left, left + 1]), untested_runs(s, pieces))
        unsure = _test_runs(search, s, pieces, beside, wanted)
        left = left[~(np.isin(left, unsure) | np.isin(left + 1, unsure))]
    at = pieces.last[left]
    known = (s.check[at] != NO_NUMBER) & (s.check[at] == s.check[at - 1]) & (s.check[at] == s.check[at + 1])
    at = at[bends(pieces, left) & ~known]
    if not len(at):
        return s
    check = s.check.copy()
    check[at] = numbers = search.new_numbers(len(at))
    wanted.add(s.line[at], s.t[at] - nudge * (s.t[at] - s.t[at - 1]), check=numbers)
    wanted.add(s.line[at], s.t[at] + nudge * (s.t[at + 1] - s.t[at]), check=numbers)
    return replace(s, check=check)


def _straighten(search: CreaseSearch, s: Samples, pieces: Pieces, wanted: WantedSamples) -> IntArray:
    """Samples close together agree with anything: a run must follow the line through its ends too.

    Returns the bent runs of a crowd that leave no room for more samples.
    """
    runs, at = bent_runs(s, pieces)
    here = np.concatenate([at - 1, at])  # the intervals before and after it
    _ask_inside(search, s, here[search.is_wide(s, here)], wanted)
    stuck: list[int] = []
    for run, k in zip(runs, at, strict=True) if search.is_crowded(s) else ():
        if not search.is_wide(s, np.array([k - 1, k])).any():
            beside = np.concatenate(wide_beside(pieces, int(run), int(k), partial(search.is_wide, s)))
            _ask_inside(search, s, beside, wanted)
            stuck += [] if len(beside) else [run]
    return np.array(stuck, dtype=np.intp)


def _test_runs(search: CreaseSearch, s: Samples, pieces: Pieces, runs: IntArray, wanted: WantedSamples) -> IntArray:
    """One more sample inside each of these runs that has room for one; returns these runs."""
    room_for_one = 1e4 * DOUBLE.spacing  # of an interval, relatively: it may be cut in halves once
    here = widest_inside(s, pieces, runs)
    wide = search.is_wide(s, here, room_for_one)
    _ask_inside(search, s, here[wide], wanted)
    return runs[wide]


def _ask_inside(search: CreaseSearch, s: Samples, here: IntArray, wanted: WantedSamples) -> None:
    """One sample in the middle of each of these intervals."""
    wanted.add(s.line[here], search.middle(s.t[here], s.t[here + 1]))


def _resolve_meetings(
    search: CreaseSearch, s: Samples, pieces: Pieces, left: IntArray, wanted: WantedSamples
) -> tuple[IntArray, UsualBend]:
    """Look where neighbouring pieces meet; return the pieces left of what stays open, and the usual ones."""
    check_width = 1e-5  # of the interval, on both sides of an expected crease, and less for a weak one
    meeting = Meetings.of(s, pieces, left, search.sd, search.usual)
    todo = ~meeting.certified & ~meeting.stuck
    expected = meeting.inside & ~meeting.checked
    beside = np.flatnonzero(todo & expected)  # a sample on each side of the expected crease
    t, gap, x = meeting.t[beside], meeting.gap[beside], meeting.x[beside]
    near = check_width * meeting.share[beside] * np.minimum(gap, search.lines.scale + np.abs(t))
    blur, spacing = CHECK_SIDE * meeting.blur[beside], CHECK_SIDE * DOUBLE.spacing * meeting.end[beside]
    width = np.maximum.reduce([near, blur, spacing])
    line, numbers = s.line[meeting.i[beside]], search.new_numbers(len(beside))
    wanted.add(line, t - np.minimum(width, x / 2), numbers, numbers)
    wanted.add(line, t + np.minimum(width, (gap - x) / 2), numbers, numbers)
    halved = np.flatnonzero(todo & ~expected)  # a pair in the middle
    a, b = s.t[meeting.i[halved]], s.t[meeting.i[halved] + 1]
    middle = search.middle(a, b)
    width = PAIR_WIDTH * np.minimum(middle - a, b - middle)
    line, numbers = s.line[meeting.i[halved]], search.new_numbers(len(halved))
    wanted.add(line, middle - width, numbers)
    wanted.add(line, middle + width, numbers)
    return left[~meeting.certified], meeting.usual


CROWD_ROUNDS = 48  # in a crowd: intervals open after that are begun afresh, so often, if it is a small part of the line
FRESH_STARTS, FEW_OPEN = 4, 0.02


def scan_lines(
    ask: Ask,
    lines: Lines,
    noise: DistanceNoise,
    rng: np.random.Generator,
    *,
    few: bool = False,
    close: bool = False,
    places: FloatArray | None = None,
    most: int | None = None,
    ask_at: AskAt | None = None,
    lost: ExtraNoise | None = None,
) -> Scan:
    """Find every crease on every line, from limit to limit.

    `ask` answers rows; `ask_at`, if given, positions t on lines of these indices: rows need not be written out here.

    Every line is also sampled in `places` (p,), positions where something narrow is known to be. After `most`
    rows the search ends, with intervals open. `close` creases, with little between them for their noise,
    are looked for as carefully as in a crowd. `lost`, if given, says how much more noise answers have than `noise`
    by what they are.

    Cost: about five rows a crease, and 16 a line; 5 a line where `few` creases are expected.
    """

    def ask_rows(line: IntArray, t: FloatArray) -> FloatArray:
        return ask(lines.points(line, t))

    lost_at: LostAt | None = None if lost is None else lambda line, t, f: lost(lines.points(line, t), f)
    with np.errstate(divide="ignore", invalid="ignore"):  # positions that rounding makes one give no slope
        search = CreaseSearch(ask_at or ask_rows, lines, noise, close, lost_at=lost_at)
        samples = start_with_few(search, rng) if few else start_with_pairs(search, rng)
        if places is not None:
            wanted, n = WantedSamples(), len(lines)  # single samples: each gets a partner when it needs one
            wanted.add(np.repeat(np.arange(n), len(places)), np.tile(places, n))
            samples = samples + search.ask_all(wanted)
        samples, left = _searched(search, samples, rng, most)
        return _ended_scan(search, samples, left)


@dataclass(frozen=True)
class _EndTerms:
    """Where a search ends though something is open: in rows, and in rounds since it began."""

    most: int | None
    begun: int

    def are_over(self, search: CreaseSearch, seen: SearchRound) -> bool:
        """Too many rows, or rounds of a crowd, or nothing gets better."""
        most_rounds = 80
        rounds, rows = search.counts.rounds - self.begun, len(seen.samples)
        if search.has_too_many(seen.samples, seen.pieces) or (self.most is not None and rows >= self.most):
            return True
        return rounds >= (CROWD_ROUNDS if search.is_crowded(seen.samples) else most_rounds)


def _searched(
    search: CreaseSearch, samples: Samples, rng: np.random.Generator, most: int | None
) -> tuple[Samples, LinePlaces]:
    """All samples, and where something is left open; a few places of a crowd are begun afresh."""
    samples, left = _rounds(search, samples, _EndTerms(most, search.counts.rounds))
    for _ in range(FRESH_STARTS):
        if not 0 < len(left) < FEW_OPEN * len(search.pieces(samples)) or not search.is_crowded(samples):
            break
        samples = start_afresh(search, samples, left, rng)
        samples, left = _rounds(search, samples, _EndTerms(most, search.counts.rounds))
    return samples, left


def _rounds(search: CreaseSearch, samples: Samples, terms: _EndTerms) -> tuple[Samples, LinePlaces]:
    """Ask until nothing is open, or nothing gets better; then also where something is left open."""
    while True:
        seen = next_round(search, samples)
        if not seen.wanted:
            return seen.samples, seen.open
        if terms.are_over(search, seen):
            return seen.samples, seen.open + seen.wanted.places
        samples = seen.samples + search.ask_all(seen.wanted)
        if little_is_open(search, seen):
            samples = _rounds_in_part(search, samples, seen, terms)


def _rounds_in_part(search: CreaseSearch, samples: Samples, seen: SearchRound, terms: _EndTerms) -> Samples:
    """All samples, after rounds around the open intervals."""
    stretches = Stretches.around(seen)
    inside, others = stretches.apart(samples)
    most = None if terms.most is None else terms.most - len(others)
    inside, _ = _rounds(stretches.search(search, seen), inside, replace(terms, most=most))
    return stretches.together(inside, others)


def _ended_scan(search: CreaseSearch, s: Samples, left: LinePlaces) -> Scan:
    """The result: every piece but the last of a line is followed by a crease."""
    pieces = merge_equal(s, search.pieces(s), search.is_crowded(s))
    creases = creases_after(s, pieces, before_creases(s, pieces))
    return Scan(s, pieces, creases, np.bincount(left.line, minlength=len(search.lines)))


def little_is_open(search: CreaseSearch, seen: SearchRound) -> bool:
    """Whether parts of a crowd, between pieces, are all that is left to look at."""
    many_for_one = 10  # pieces for each sample that is wanted
    if len(seen.pieces) <= max(CROWDED, many_for_one * len(seen.wanted)) or not search.is_crowded(seen.samples):
        return False
    return bool(np.isin(seen.wanted.places.line, seen.samples.line[seen.pieces.first]).all())


@dataclass(frozen=True)
class Stretches:
    """Parts of lines: which line, from where to where; in order, and none touches another."""

    line: IntArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def around(cls, seen: SearchRound) -> Stretches:
        """Stretches around every wanted place, from the end of a piece to the end of another, or of the line."""
        s, pieces = seen.samples, seen.pieces
        line = s.line[pieces.first]
        near = _pieces_near(s, pieces, seen.wanted.places)
        new_line = np.append(True, line[1:] != line[:-1])
        starts = np.flatnonzero(near & (new_line | ~np.append(False, near[:-1])))
        stops = np.flatnonzero(near & (np.append(new_line[1:], True) | ~np.append(near[1:], False)))
        low = np.where(new_line[starts], -np.inf, s.t[pieces.first[starts]])
        high = np.where(np.append(new_line[1:], True)[stops], np.inf, s.t[pieces.last[stops]])
        return cls(line[starts], low, high)

    def apart(self, s: Samples) -> tuple[Samples, Samples]:
        """The samples inside, numbered by stretch instead of line, and the others."""
        number = np.full(len(s), -1)
        for line in np.unique(self.line):
            here, own = np.flatnonzero(s.line == line), np.flatnonzero(self.line == line)
            at = np.searchsorted(self.low[own], s.t[here], side="right") - 1
            inside = (at >= 0) & (s.t[here] <= self.high[own[at]])
            number[here[inside]] = own[at[inside]]
        chosen = np.flatnonzero(number >= 0)
        return replace(s.chosen(chosen), line=number[chosen]), s.chosen(np.flatnonzero(number < 0))

    def together(self, inside: Samples, others: Samples) -> Samples:
        """All samples, numbered by line again."""
        return others + replace(inside, line=self.line[inside.line])

    def search(self, whole: CreaseSearch, seen: SearchRound) -> CreaseSearch:
        """The search within stretches."""
        lost = whole.lost_at
        return replace(
            whole,
            ask_at=lambda at, t: whole.ask_at(self.line[at], t),
            lost_at=None if lost is None else lambda at, t, answers: lost(self.line[at], t, answers),
            usual=seen.usual,
        )


def _pieces_near(s: Samples, pieces: Pieces, places: LinePlaces) -> BoolArray:
    """Which pieces are beside one of these places."""
    pieces_beside = 3  # pieces on either side of a place that belong to its stretch
    edges = np.zeros(len(pieces) + 1, dtype=int)
    for line in np.unique(places.line):
        own = np.flatnonzero(s.line[pieces.first] == line)
        at = np.searchsorted(s.t[pieces.last[own]], places.t[places.line == line])
        np.add.at(edges, own[0] + np.maximum(at - pieces_beside, 0), 1)
        np.add.at(edges, own[0] + np.minimum(at + pieces_beside + 1, len(own)), -1)
    return np.cumsum(edges)[:-1] > 0
