"""The search for creases on many lines at once: its start, its rounds, and where two pieces meet.

All lines advance together, and every stretch has a status of its own: open, settled, or too close to tell apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from reluctant.geometry.creases import (
    before_creases,
    bends,
    bent_runs,
    intersect,
    lines_apart,
    split_bent,
    untested_runs,
    wide_beside,
    widest_inside,
    without_bridges,
)
from reluctant.geometry.lines import (
    NO_NUMBER,
    BoolArray,
    DistanceNoise,
    IntArray,
    Lines,
    Pieces,
    Samples,
    answer_roundings,
    find_pieces,
)
from reluctant.numerics import DOUBLE, FloatArray

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


ROOM_FOR_ONE = 1e4 * DOUBLE.spacing  # of an interval, relatively: it may be cut in halves once


@dataclass(frozen=True)
class SearchRound:
    """The samples with what is newly asked about them and their pieces, what to ask next, intervals still open."""

    samples: Samples
    pieces: Pieces
    wanted: WantedSamples
    open: LinePlaces
    usual: UsualBend


def next_round(search: CreaseSearch, s: Samples) -> SearchRound:
    """What to ask, by what is seen so far."""
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
    """A crease that falls on a sample is looked at once from nearby; in a crowd, if what is beside it is sure."""
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
    """One more sample inside each of these runs that has room for it; returns them."""
    here = widest_inside(s, pieces, runs)
    wide = search.is_wide(s, here, ROOM_FOR_ONE)
    _ask_inside(search, s, here[wide], wanted)
    return runs[wide]


def _ask_inside(search: CreaseSearch, s: Samples, here: IntArray, wanted: WantedSamples) -> None:
    """One sample in the middle of each of these intervals."""
    wanted.add(s.line[here], search.middle(s.t[here], s.t[here + 1]))


def _resolve_meetings(
    search: CreaseSearch, s: Samples, pieces: Pieces, left: IntArray, wanted: WantedSamples
) -> tuple[IntArray, UsualBend]:
    """Look where neighbouring pieces meet; return the pieces left of what stays open, and what is usual."""
    meeting = Meetings.of(s, pieces, left, search.sd, search.usual)
    todo = ~meeting.certified & ~meeting.stuck
    expected = meeting.inside & ~meeting.checked
    _ask_beside_meeting(search, s, meeting, np.flatnonzero(todo & expected), wanted)
    _ask_in_the_middle(search, s, meeting, np.flatnonzero(todo & ~expected), wanted)
    return left[~meeting.certified], meeting.usual


def _ask_beside_meeting(
    search: CreaseSearch, s: Samples, meeting: Meetings, which: IntArray, wanted: WantedSamples
) -> None:
    check_width = 1e-5  # of the interval, on both sides of an expected crease, and less for a weak one
    t, gap, x = meeting.t[which], meeting.gap[which], meeting.x[which]
    near = check_width * meeting.share[which] * np.minimum(gap, search.lines.scale + np.abs(t))
    width = np.maximum.reduce(
        [near, CHECK_SIDE * meeting.blur[which], CHECK_SIDE * DOUBLE.spacing * meeting.end[which]]
    )
    line, numbers = s.line[meeting.i[which]], search.new_numbers(len(which))
    wanted.add(line, t - np.minimum(width, x / 2), numbers, numbers)
    wanted.add(line, t + np.minimum(width, (gap - x) / 2), numbers, numbers)


def _ask_in_the_middle(
    search: CreaseSearch, s: Samples, meeting: Meetings, which: IntArray, wanted: WantedSamples
) -> None:
    a, b = s.t[meeting.i[which]], s.t[meeting.i[which] + 1]
    middle = search.middle(a, b)
    width = PAIR_WIDTH * np.minimum(middle - a, b - middle)
    line, numbers = s.line[meeting.i[which]], search.new_numbers(len(which))
    wanted.add(line, middle - width, numbers)
    wanted.add(line, middle + width, numbers)


CHECK_SIDE = 4.0  # blurs, or spacings of numbers, from an expected crease to each side of its check, at least
WIDEST_CHECK = 8 * CHECK_SIDE  # blurs between the two sides of a check; twice SIDE is asked for


@dataclass(frozen=True)
class Meetings:
    """Where the lines of neighbouring pieces meet, in the interval from sample i to sample i + 1.

    Arguments:
        i: the last sample of the piece before.
        gap: length of the interval.
        end: the end of the interval farther from the origin.
        x: meeting point, from sample i.
        t: its position, inside the interval.
        blur: its uncertainty.
        share: of the usual width of a check; < 1 for a weak bend, where two creases may cancel, and in a crowd.
        checked: whether it was looked at from both sides, near enough for what is known now.
        certified: whether the crease is certain.
        usual: what creases are usually like.
    """

    i: IntArray
    gap: FloatArray
    end: FloatArray
    x: FloatArray
    t: FloatArray
    blur: FloatArray
    share: FloatArray
    checked: BoolArray
    certified: BoolArray
    usual: UsualBend

    @classmethod
    def of(
        cls,
        s: Samples,
        p: Pieces,
        left: IntArray,
        sd: Callable[[FloatArray], FloatArray],
        usual: UsualBend | None = None,
    ) -> Meetings:
        """Those of these pieces with the next ones; `sd` is the noise of an answer at a position.

        What creases are usually like follows from these, unless it is given.
        """
        loose_check = 1e-3  # of the pieces beside it: a check wider than that, and than blur asks for, is made again
        i = p.last[left]
        gap = s.t[i + 1] - s.t[i]
        end = np.maximum(np.abs(s.t[i]), np.abs(s.t[i + 1]))
        x, bend = intersect(s, p, left)
        t = s.t[i] + np.clip(x, 0, gap)
        blur = _meeting_blur(s, p, left, t, sd(t), bend)
        usual = usual or _usual_bend(s, p, bend)
        share = _check_share(bend, usual)
        both = p.certified[left] & p.certified[left + 1]
        shortest = np.minimum(p.length[left], p.length[left + 1])
        # What was blurred when it was checked may be sharp by now: then the check was too wide to tell.
        sharp = np.maximum.reduce(
            [WIDEST_CHECK * blur, loose_check * share * shortest, WIDEST_CHECK * DOUBLE.spacing * end]
        )
        checked = (s.check[i] == s.check[i + 1]) & (s.check[i] != NO_NUMBER) & (~both | (gap < sharp))
        seen = checked & (x > 0) & (x < gap)
        no_sharper = (x > -blur) & (x < gap + blur) & (gap < 2 * CHECK_SIDE * blur) & (gap < shortest / 2)
        certified = both & (seen | _at_an_end(s, p, left, x, gap) | no_sharper)
        return cls(i, gap, end, x, t, blur, share, checked, certified, usual)

    @property
    def inside(self) -> BoolArray:
        """Whether they meet inside the interval, away from its ends."""
        rim = np.maximum(DOUBLE.spacing * self.gap, DOUBLE.spacing * self.end)
        return (self.x > rim) & (self.x < self.gap - rim)

    @property
    def stuck(self) -> BoolArray:
        """Whether it is uncertain, and no number fits between the samples any more."""
        return ~self.certified & (self.gap < CHECK_SIDE * DOUBLE.spacing * self.end)


def _meeting_blur(s: Samples, p: Pieces, left: IntArray, t: FloatArray, sd: FloatArray, bend: FloatArray) -> FloatArray:
    """How far from a meeting point the lines are still within the noise of each other."""
    allowed = p.tolerance(s, left, t, sd) + p.tolerance(s, left + 1, t, sd)
    with np.errstate(divide="ignore"):
        return np.asarray(allowed / bend)


def _usual_bend(s: Samples, p: Pieces, bend: FloatArray) -> UsualBend:
    bend = bend[np.isfinite(bend)]  # positions that rounding makes one give no slope, and no bend
    median = max(float(np.median(bend)), DOUBLE.tiny) if len(bend) else 1.0
    return UsualBend(median, min(1.0, CROWDED * int(s.line[-1] + 1) / max(len(p), 1)))


def _check_share(bend: FloatArray, usual: UsualBend) -> FloatArray:
    weak_bend = 0.1  # of the usual bend
    with np.errstate(over="ignore"):
        return np.minimum(1, bend / (weak_bend * usual.bend)) * usual.narrower


def _at_an_end(s: Samples, p: Pieces, left: IntArray, x: FloatArray, gap: FloatArray) -> BoolArray:
    """The crease is at one of the two samples, and that sample lies on both pieces."""
    at_the_end = 1e-3  # of the interval: a crease this close to a sample is at the sample
    i, right = p.last[left], left + 1
    off_right = np.abs(lines_apart(s, p, left, np.zeros(len(left)))).max(axis=1)
    off_left = np.abs(lines_apart(s, p, left, gap)).max(axis=1)
    at_start = (off_right <= p.tolerance(s, right, s.t[i], s.sd[i])) & (np.abs(x) < at_the_end * gap)
    at_stop = (off_left <= p.tolerance(s, left, s.t[i + 1], s.sd[i + 1])) & (np.abs(x - gap) < at_the_end * gap)
    return at_start | at_stop
