"""All creases of a piecewise linear function along lines: every open interval of every line in one batch.

Between two pieces one crease is expected where their lines meet. The function is asked just before and just
after: if both answers lie on their pieces the crease is certified, if not there is more between them and the
new samples become pieces of their own. Asking at the meeting point alone would not do, for the values agree
there also when the function leaves the first piece early and joins the second before the meeting point. Nor
would several outputs: the lines of pieces that are not neighbours hardly ever meet, but they do where two
neurons with proportional outputs lie close together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from reluctant.geometry.bent import (
    bent_runs,
    is_straight,
    split_bent,
    untested_runs,
    wide_beside,
    widest_inside,
    without_bridges,
)
from reluctant.geometry.lines import Lines
from reluctant.geometry.noise import DistanceNoise, roundings
from reluctant.geometry.samples import NONE, TOLERANCE, BoolArray, IntArray, Pieces, Samples, find_pieces
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["Creases", "Scan", "merge_slivers", "scan_lines"]

FIRST_PAIRS = 6  # pieces looked for at the start, evenly in angle
FEW_SAMPLES = 3  # between the ends, where few creases are expected
JITTER = 0.2  # of a cell: how far from its middle the first samples are, at most
PAIR_WIDTH = 0.06  # of the interval a new pair is put into
CHECK_WIDTH = 1e-5  # of the interval, on both sides of an expected crease, and less for a weak one
WEAK = 0.1  # of the usual bend
CROWDED = 1000  # creases on a line: with more, checks are narrower in proportion, or some would hold two creases
LOOSE = 1e-3  # of the pieces beside it: a check wider than that, and than blur asks for, is made again
TOO_WIDE = 32.0  # blurs between the two sides of a check; eight are asked for
NUDGE = 1e-3  # of the neighbouring intervals, beside a crease that falls on a sample
AT_THE_END = 1e-3  # of the interval: a crease this close to a sample is at the sample
SMALLEST_BEND = 3 * TOLERANCE  # change of slope that counts as one, in deviations of its noise
MOST_ROUNDS = 80
CROWD_ROUNDS = 48  # in a crowd: what is open after that is begun afresh, so often, if it is a small part of the line
FRESH_STARTS, FEW_PLACES = 4, 0.02
CREASES_AT_FIRST = 500  # samples allowed before any crease is certified, in creases
MOST_PER_CREASE = 8  # samples for each piece found: many times what a search takes that gets anywhere
SPACING = 16 * unit_roundoff(np.float64)  # positions closer than this, relatively, cannot be told apart
WIDE, ROOM = float(np.sqrt(SPACING)), 1e4 * SPACING  # intervals, relatively: to be cut in halves again, or once


@dataclass(frozen=True)
class Creases:
    """Creases in order of line and position: where, how the slope jumps, and with what noise."""

    line: IntArray
    t: FloatArray
    jump: FloatArray  # (n, m)
    jump_sd: FloatArray

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True)
class Scan:
    """Lines scanned from end to end; `open` counts intervals of each line that could not be resolved."""

    samples: Samples
    pieces: Pieces
    creases: Creases
    open: IntArray


@dataclass(frozen=True)
class _Places:
    """Positions on lines."""

    line: IntArray
    t: FloatArray

    def __len__(self) -> int:
        return len(self.t)


@dataclass
class _Wanted:
    """Questions collected in one round."""

    line: list[IntArray] = field(default_factory=list)
    t: list[FloatArray] = field(default_factory=list)
    pair: list[IntArray] = field(default_factory=list)
    check: list[IntArray] = field(default_factory=list)

    def add(self, line: IntArray, t: FloatArray, pair: IntArray | None = None, check: IntArray | None = None) -> None:
        none = np.full(len(t), NONE)
        self.line.append(line)
        self.t.append(t)
        self.pair.append(none if pair is None else pair)
        self.check.append(none if check is None else check)

    def __bool__(self) -> bool:
        return any(len(t) for t in self.t)


def scan_lines(
    ask: Callable[[FloatArray], FloatArray],
    lines: Lines,
    noise: DistanceNoise,
    rng: np.random.Generator,
    *,
    few: bool = False,
    close: bool = False,
    places: FloatArray | None = None,
    most: int | None = None,
    watch: Callable[[Scan], None] | None = None,
    ask_at: Callable[[IntArray, FloatArray], FloatArray] | None = None,
) -> Scan:
    """Find every crease on every line, from limit to limit; `watch` is shown what is known after every round.

    `ask` answers rows; `ask_at`, if given, positions t on lines of these indices: rows need not be written out here.

    Every line is also looked at in `places` (p,), positions where something narrow is known to be. After `most`
    rows the search ends as it stands, with intervals open. `close` creases, with little between them for their noise,
    are looked for as carefully as in a crowd.

    Cost: about five rows a crease, and 16 a line; 5 a line where `few` creases are expected.
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # positions that rounding makes one give no slope
        search = _Search(ask_at or _by_rows(ask, lines), lines, noise, crowded=close)
        return _scan(search, rng, few, places, most, watch)


def _scan(
    search: _Search,
    rng: np.random.Generator,
    few: bool,
    places: FloatArray | None,
    most: int | None,
    watch: Callable[[Scan], None] | None,
) -> Scan:
    lines = search.lines
    samples = search.start_with_few(rng) if few else search.start(rng)
    if places is not None:
        samples = samples + search.look_at(places)
    samples, left = _rounds(search, samples, most, watch)
    for _ in range(FRESH_STARTS):
        if not 0 < len(left) < FEW_PLACES * len(search.pieces(samples)) or not search.is_crowded(samples):
            break
        samples, left = _rounds(search, search.start_afresh(samples, left, rng), most, watch)
    pieces = _merge_equal(samples, search.pieces(samples), search.is_crowded(samples))
    open_ = np.bincount(left.line, minlength=len(lines))
    return Scan(samples, pieces, _creases(samples, pieces, _before_creases(samples, pieces)), open_)


def _rounds(
    search: _Search, samples: Samples, most: int | None, watch: Callable[[Scan], None] | None
) -> tuple[Samples, _Places]:
    """Ask until nothing is open, or nothing gets better; then also where something is left open."""
    left = _Places(np.empty(0, dtype=np.intp), np.empty(0))
    for k in range(MOST_ROUNDS):
        if watch is not None:
            watch(search.so_far(samples))
        samples, wanted, left = search.round(samples)
        too_many = search.too_many(samples) or (most is not None and len(samples) >= most)
        if not wanted:
            break
        left = _Places(np.concatenate([left.line, *wanted.line]), np.concatenate([left.t, *wanted.t]))
        if too_many or (k >= CROWD_ROUNDS and search.is_crowded(samples)):
            break
        samples = samples + search.ask_all(wanted)
    return samples, left


def _joined(low: FloatArray, high: FloatArray) -> list[tuple[float, float]]:
    """Stretches that overlap as one."""
    joined: list[tuple[float, float]] = []
    for start, stop in sorted(zip(low.tolist(), high.tolist(), strict=True)):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((start, stop))
    return joined


def _by_rows(ask: Callable[[FloatArray], FloatArray], lines: Lines) -> Callable[[IntArray, FloatArray], FloatArray]:
    return lambda line, t: ask(lines.points(line, t))


class _Search:
    """One search; `round` takes samples and says what to ask next."""

    def __init__(
        self,
        ask_at: Callable[[IntArray, FloatArray], FloatArray],
        lines: Lines,
        noise: DistanceNoise,
        *,
        crowded: bool,
    ) -> None:
        self.ask_at, self.lines, self.noise = ask_at, lines, noise
        self.numbers = 0  # of pairs and checks given out so far
        self.rounds = 0
        self.crowded = crowded

    def start(self, rng: np.random.Generator) -> Samples:
        """Pairs evenly spread in angle on every line, and one at each of its ends."""
        n, wanted = len(self.lines), _Wanted()
        first, last, cell = self.cells(FIRST_PAIRS)
        middles = first[:, None] + (np.arange(FIRST_PAIRS) + 0.5) * cell[:, None]
        angles = middles + rng.uniform(-JITTER, JITTER, (n, FIRST_PAIRS)) * cell[:, None]
        width = PAIR_WIDTH * cell
        low, high = self.lines.low, self.lines.high
        after_low, before_high = self.lines.position(first + width), self.lines.position(last - width)
        # Far out, where angles are coarse, no farther inside than half the distance.
        after_low = np.where(low < 0, np.minimum(after_low, low / 2), after_low)
        before_high = np.where(high > 0, np.maximum(before_high, high / 2), before_high)
        left = np.column_stack([low, self.lines.position(angles), before_high])
        right = np.column_stack([after_low, self.lines.position(angles + width[:, None]), high])
        line, pair = np.repeat(np.arange(n), FIRST_PAIRS + 2), self.new_numbers(left.size)
        wanted.add(line, left.reshape(-1), pair)
        wanted.add(line, right.reshape(-1), pair)
        samples = self.ask_all(wanted)
        return samples + _nothing(samples)

    def start_with_few(self, rng: np.random.Generator) -> Samples:
        """Single samples: enough where a line is expected to be straight."""
        n, wanted = len(self.lines), _Wanted()
        first, _, cell = self.cells(FEW_SAMPLES + 1)
        inner = np.arange(1, FEW_SAMPLES + 1) + rng.uniform(-JITTER, JITTER, (n, FEW_SAMPLES))
        inside = self.lines.position(first[:, None] + inner * cell[:, None])
        t = np.column_stack([self.lines.low, inside, self.lines.high])
        wanted.add(np.repeat(np.arange(n), t.shape[1]), t.reshape(-1))
        samples = self.ask_all(wanted)
        return samples + _nothing(samples)

    def look_at(self, places: FloatArray) -> Samples:
        """Single samples at the same positions of every line; each gets a partner when it needs one."""
        wanted, n = _Wanted(), len(self.lines)
        wanted.add(np.repeat(np.arange(n), len(places)), np.tile(places, n))
        return self.ask_all(wanted)

    def start_afresh(self, s: Samples, places: _Places, rng: np.random.Generator) -> Samples:
        """Forget the samples around these places and look there again, with pairs at random.

        Where samples are where they happen to mislead, more of them only add to the crowd.
        """
        pieces, wanted, keep = self.pieces(s), _Wanted(), np.ones(len(s), dtype=bool)
        middle = (s.t[pieces.first] + s.t[pieces.last]) / 2
        for line in np.unique(places.line):
            own = np.flatnonzero(s.line[pieces.first] == line)
            at = np.searchsorted(s.t[pieces.last[own]], places.t[places.line == line])
            low, high = middle[own[np.maximum(at - 2, 0)]], middle[own[np.minimum(at + 2, len(own) - 1)]]
            for start, stop in _joined(low, high):
                keep &= (s.line != line) | (s.t <= start) | (s.t >= stop)
                cell = (stop - start) / FIRST_PAIRS
                first = start + (np.arange(FIRST_PAIRS) + rng.uniform(JITTER, 1 - JITTER, FIRST_PAIRS)) * cell
                pair = self.new_numbers(FIRST_PAIRS)
                wanted.add(np.full(FIRST_PAIRS, line), first, pair)
                wanted.add(np.full(FIRST_PAIRS, line), first + PAIR_WIDTH * cell, pair)
        return s.chosen(np.flatnonzero(keep)) + self.ask_all(wanted)

    def too_many(self, s: Samples) -> bool:
        """True if the search is not getting anywhere: a curved function splits for ever."""
        allowed = CREASES_AT_FIRST * len(self.lines)
        if len(s) <= MOST_PER_CREASE * allowed:
            return False
        return len(s) > MOST_PER_CREASE * (int(find_pieces(s).certified.sum()) + allowed)

    def is_crowded(self, s: Samples) -> bool:
        """More creases than a line usually has; once found so it stays so."""
        most = CROWDED * len(self.lines)
        self.crowded = self.crowded or (len(s) > most and len(find_pieces(s)) > most)
        return self.crowded

    def cells(self, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """First and last angle of each line, and its part for each of so many cells."""
        first, last = self.lines.angle(self.lines.low), self.lines.angle(self.lines.high)
        return first, last, (last - first) / count

    def ask_all(self, wanted: _Wanted) -> Samples:
        line, t = np.concatenate(wanted.line), np.concatenate(wanted.t)
        f = self.ask_at(line, t)
        sd = np.hypot(self.sd(t), roundings(np.abs(f).max(axis=1)))
        self.rounds += 1
        numbers = np.concatenate(wanted.pair), np.concatenate(wanted.check), np.full(len(t), self.rounds - 1)
        return Samples(line, t, f, sd, *numbers)

    def sd(self, t: FloatArray) -> FloatArray:
        return self.noise.at(np.hypot(t, self.lines.scale))

    def new_numbers(self, n: int) -> IntArray:
        self.numbers += n
        return np.arange(self.numbers - n, self.numbers)

    def so_far(self, s: Samples) -> Scan:
        """What is known in the middle of the search: pieces, and the creases that are certified by now."""
        pieces = self.pieces(s)
        left = np.flatnonzero(s.line[pieces.first[1:]] == s.line[pieces.last[:-1]])
        left = left[pieces.first[left + 1] - pieces.last[left] <= 1]
        left = left[_Meetings.of(s, pieces, left, self.sd).certified & _bends(pieces, left)]
        return Scan(s, pieces, _creases(s, pieces, left), np.zeros(len(self.lines), dtype=int))

    def round(self, s: Samples) -> tuple[Samples, _Wanted, _Places]:
        """What to ask next, and the intervals that are still open."""
        wanted, pieces = _Wanted(), self.pieces(s)
        s = self.give_partners(s, pieces, wanted)
        left = np.flatnonzero(s.line[pieces.first[1:]] == s.line[pieces.last[:-1]])
        distance = pieces.first[left + 1] - pieces.last[left]
        s = self.look_beside(s, pieces, left[distance == 0], wanted)
        bent = self.straighten(s, pieces, wanted)
        open_ = self.resolve(s, pieces, left[distance == 1], wanted)
        crowded = left[distance > 1]
        if not wanted and self.is_crowded(s):
            self.test(s, pieces, untested_runs(s, pieces), wanted)
        unresolved = pieces.last[np.concatenate([open_, crowded, bent])]
        return s, wanted, _Places(s.line[unresolved], s.t[unresolved])

    def give_partners(self, s: Samples, pieces: Pieces, wanted: _Wanted) -> Samples:
        """A sample that belongs to no piece gets a partner in the wider interval beside it."""
        cover = np.zeros(len(s) + 1, dtype=int)
        np.add.at(cover, pieces.first, 1)
        np.add.at(cover, pieces.last + 1, -1)
        alone = np.flatnonzero(np.cumsum(cover)[:-1] == 0)
        if not len(alone):
            return s
        after, before = s.room_after(alone), s.room_before(alone)
        numbers = self.new_numbers(len(alone))
        pair = s.pair.copy()
        pair[alone] = numbers
        step = PAIR_WIDTH * np.where(after >= before, after, -before)
        wanted.add(s.line[alone], s.t[alone] + step, numbers)
        return replace(s, pair=pair)

    def look_beside(self, s: Samples, pieces: Pieces, left: IntArray, wanted: _Wanted) -> Samples:
        """A crease that falls on a sample is looked at once from nearby; in a crowd, if what is beside it is sure."""
        if len(left) and self.is_crowded(s):
            beside = np.intersect1d(np.concatenate([left, left + 1]), untested_runs(s, pieces))
            unsure = self.test(s, pieces, beside, wanted)
            left = left[~(np.isin(left, unsure) | np.isin(left + 1, unsure))]
        at = pieces.last[left]
        known = (s.check[at] != NONE) & (s.check[at] == s.check[at - 1]) & (s.check[at] == s.check[at + 1])
        at = at[_bends(pieces, left) & ~known]
        if not len(at):
            return s
        numbers = self.new_numbers(len(at))
        check = s.check.copy()
        check[at] = numbers
        wanted.add(s.line[at], s.t[at] - NUDGE * (s.t[at] - s.t[at - 1]), check=numbers)
        wanted.add(s.line[at], s.t[at] + NUDGE * (s.t[at + 1] - s.t[at]), check=numbers)
        return replace(s, check=check)

    def straighten(self, s: Samples, pieces: Pieces, wanted: _Wanted) -> IntArray:
        """Samples close together agree with anything: a run must follow the line through its ends too.

        Returns the bent runs of a crowd that leave no room for more samples.
        """
        runs, at = bent_runs(s, pieces)
        here = np.concatenate([at - 1, at])  # the intervals before and after it
        self.ask_inside(s, here[self.is_wide(s, here)], wanted)
        stuck: list[int] = []
        for run, k in zip(runs, at, strict=True) if self.is_crowded(s) else ():
            if not self.is_wide(s, np.array([k - 1, k])).any():
                beside = np.concatenate(wide_beside(pieces, int(run), int(k), partial(self.is_wide, s)))
                self.ask_inside(s, beside, wanted)
                stuck += [] if len(beside) else [run]
        return np.array(stuck, dtype=np.intp)

    def test(self, s: Samples, pieces: Pieces, runs: IntArray, wanted: _Wanted) -> IntArray:
        """One more sample inside each of these runs that has room for it; returns them."""
        here = widest_inside(s, pieces, runs)
        wide = self.is_wide(s, here, ROOM)
        self.ask_inside(s, here[wide], wanted)
        return runs[wide]

    def is_wide(self, s: Samples, here: IntArray, room: float = WIDE) -> BoolArray:
        """Whether there is room for a sample after these."""
        return s.t[here + 1] - s.t[here] > room * (self.lines.scale + np.abs(s.t[here]))

    def ask_inside(self, s: Samples, here: IntArray, wanted: _Wanted) -> None:
        """One sample in the middle of each of these intervals."""
        wanted.add(s.line[here], self.middle(s.t[here], s.t[here + 1]))

    def pieces(self, s: Samples) -> Pieces:
        """Runs and pairs; in a crowd, runs that are straight as a whole, as far as they can be told apart."""
        found = find_pieces(s)
        return without_bridges(s, split_bent(s, found, partial(self.is_wide, s))) if self.is_crowded(s) else found

    def middle(self, a: FloatArray, b: FloatArray) -> FloatArray:
        """Middle in angle; where angles no longer tell the ends apart, in position."""
        low, high = self.lines.angle(a), self.lines.angle(b)
        return np.where(high - low > np.sqrt(SPACING), self.lines.position((low + high) / 2), (a + b) / 2)

    def resolve(self, s: Samples, pieces: Pieces, left: IntArray, wanted: _Wanted) -> IntArray:
        """Look at the meeting point of neighbouring pieces; return the pieces left of what stays open."""
        meeting = _Meetings.of(s, pieces, left, self.sd)
        stuck = ~meeting.certified & (meeting.gap < SPACING * np.abs(meeting.end) * 4)
        todo = ~meeting.certified & ~stuck
        self.ask_beside_meeting(s, meeting, np.flatnonzero(todo & meeting.inside & ~meeting.checked), wanted)
        self.ask_in_the_middle(s, meeting, np.flatnonzero(todo & ~(meeting.inside & ~meeting.checked)), wanted)
        return left[~meeting.certified]

    def ask_beside_meeting(self, s: Samples, meeting: _Meetings, which: IntArray, wanted: _Wanted) -> None:
        t, gap, x = meeting.t[which], meeting.gap[which], meeting.x[which]
        near = CHECK_WIDTH * meeting.share[which] * np.minimum(gap, self.lines.scale + np.abs(t))
        width = np.maximum.reduce([near, 4 * meeting.blur[which], 4 * SPACING * np.abs(meeting.end[which])])
        line, numbers = s.line[meeting.i[which]], self.new_numbers(len(which))
        wanted.add(line, t - np.minimum(width, x / 2), numbers, numbers)
        wanted.add(line, t + np.minimum(width, (gap - x) / 2), numbers, numbers)

    def ask_in_the_middle(self, s: Samples, meeting: _Meetings, which: IntArray, wanted: _Wanted) -> None:
        a, b = s.t[meeting.i[which]], s.t[meeting.i[which] + 1]
        middle = self.middle(a, b)
        width = PAIR_WIDTH * np.minimum(middle - a, b - middle)
        line, numbers = s.line[meeting.i[which]], self.new_numbers(len(which))
        wanted.add(line, middle - width, numbers)
        wanted.add(line, middle + width, numbers)


@dataclass(frozen=True)
class _Meetings:
    """Where the lines of neighbouring pieces meet, in the interval from sample i to sample i + 1."""

    i: IntArray
    gap: FloatArray
    end: FloatArray  # the end of the interval farther from the origin
    x: FloatArray  # meeting point, from sample i
    t: FloatArray  # its position, inside the interval
    blur: FloatArray  # its uncertainty
    share: (
        FloatArray  # of the usual width of a check; < 1 for a weak bend, where two creases may cancel, and in a crowd
    )
    inside: BoolArray
    checked: BoolArray
    certified: BoolArray

    @classmethod
    def of(cls, s: Samples, p: Pieces, left: IntArray, sd: Callable[[FloatArray], FloatArray]) -> _Meetings:
        right, i = left + 1, p.last[left]
        gap = s.t[i + 1] - s.t[i]
        x, bend = _intersect(s, p, left)
        t = s.t[i] + np.clip(x, 0, gap)
        allowed = p.tolerance(s, left, t, sd(t)) + p.tolerance(s, right, t, sd(t))
        with np.errstate(divide="ignore"):
            blur = allowed / bend
        end = np.maximum(np.abs(s.t[i]), np.abs(s.t[i + 1]))
        rim = np.maximum(SPACING * gap, SPACING * end)
        both = p.certified[left] & p.certified[right]
        shortest = np.minimum(p.length[left], p.length[right])
        checked = (s.check[i] == s.check[i + 1]) & (s.check[i] != NONE)
        # What was blurred when it was checked may be sharp by now: then the check was too wide to tell.
        usual = max(float(np.median(bend)), np.finfo(float).tiny) if len(bend) else 1.0
        with np.errstate(over="ignore"):
            share = np.minimum(1, bend / (WEAK * usual)) * min(1.0, CROWDED * (s.line[-1] + 1) / len(p))
        sharp = np.maximum.reduce([TOO_WIDE * blur, LOOSE * share * shortest, TOO_WIDE * SPACING * end])
        checked &= ~both | (gap < sharp)
        hit = both & (
            (checked & (x > 0) & (x < gap))
            | _at_an_end(s, p, left, x, gap)
            | ((x > -blur) & (x < gap + blur) & (gap < 8 * blur) & (gap < shortest / 2))
        )
        return cls(i, gap, end, x, t, blur, share, (x > rim) & (x < gap - rim), checked, hit)


def _intersect(s: Samples, p: Pieces, left: IntArray) -> tuple[FloatArray, FloatArray]:
    """Distance from the last sample of a piece to where the next one's line meets its own, and the bend."""
    bend = p.slope[left] - p.slope[left + 1]
    size = np.sqrt((bend**2).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        x = (_distance(s, p, left, np.zeros(len(left))) * bend).sum(axis=1) / size**2
    return np.where(size > 0, x, np.inf), size


def _distance(s: Samples, p: Pieces, left: IntArray, x: FloatArray) -> FloatArray:
    """Next piece's line minus the piece's own, x beyond its last sample."""
    i, j = p.last[left], p.first[left + 1]
    x = np.where(np.isfinite(x), x, 0.0)[:, None]
    ahead = (s.t[j] - s.t[i])[:, None] - x
    return s.f[j] - p.slope[left + 1] * ahead - s.f[i] - p.slope[left] * x


def _at_an_end(s: Samples, p: Pieces, left: IntArray, x: FloatArray, gap: FloatArray) -> BoolArray:
    """The crease is at one of the two samples, and that sample lies on both pieces."""
    i, right = p.last[left], left + 1
    off_right = np.abs(_distance(s, p, left, np.zeros(len(left)))).max(axis=1)
    off_left = np.abs(_distance(s, p, left, gap)).max(axis=1)
    at_start = (off_right <= p.tolerance(s, right, s.t[i], s.sd[i])) & (np.abs(x) < AT_THE_END * gap)
    at_stop = (off_left <= p.tolerance(s, left, s.t[i + 1], s.sd[i + 1])) & (np.abs(x - gap) < AT_THE_END * gap)
    return at_start | at_stop


def _bends(pieces: Pieces, left: IntArray) -> BoolArray:
    """True where the slope changes by more than its noise."""
    sd = np.hypot(pieces.slope_sd()[left], pieces.slope_sd()[left + 1])
    return np.abs(pieces.slope[left] - pieces.slope[left + 1]).max(axis=1) > SMALLEST_BEND * sd


def _merge_equal(s: Samples, pieces: Pieces, crowded: bool) -> Pieces:
    """Join neighbours whose slopes do not differ: a noisy sample had split them. In a crowd all must be straight."""
    while True:
        left = _before_creases(s, pieces)
        equal = left[~_bends(pieces, left)]
        if crowded:
            equal = np.array([k for k in equal if is_straight(s, pieces.first[k], pieces.last[k + 1])], dtype=np.intp)
        equal = equal[np.append(True, np.diff(equal) > 1)[: len(equal)]]
        if not len(equal):
            return pieces
        last = pieces.last.copy()
        last[equal] = pieces.last[equal + 1]
        keep = np.setdiff1d(np.arange(len(pieces)), equal + 1)
        pieces = Pieces.between(s, pieces.first[keep], last[keep], pieces.certified[keep])


def _before_creases(s: Samples, pieces: Pieces) -> IntArray:
    """Pieces that are followed by another on their line."""
    return np.flatnonzero(s.line[pieces.first[1:]] == s.line[pieces.first[:-1]])


def merge_slivers(scan: Scan, width: float, depth: float) -> Scan:
    """Take neighbouring creases for one if they are closer than `width`, and merging changes less than `depth`."""
    s, pieces, creases = scan.samples, scan.pieces, scan.creases
    jump = np.linalg.norm(creases.jump, axis=1)
    gap = np.where(creases.line[1:] == creases.line[:-1], np.diff(creases.t), np.inf)
    shallow = np.flatnonzero((gap < width) & (np.minimum(jump[1:], jump[:-1]) * gap < depth))
    shallow = shallow[np.append(True, np.diff(shallow) > 1)[: len(shallow)]]
    if not len(shallow):
        return scan
    keep = np.setdiff1d(np.arange(len(pieces)), _before_creases(s, pieces)[shallow] + 1)
    pieces = Pieces.between(s, pieces.first[keep], pieces.last[keep], pieces.certified[keep])
    return replace(scan, pieces=pieces, creases=_creases(s, pieces, _before_creases(s, pieces)))


def _creases(s: Samples, pieces: Pieces, left: IntArray) -> Creases:
    """Where these pieces meet the next ones."""
    x, _ = _intersect(s, pieces, left)
    sd = np.hypot(pieces.slope_sd()[left], pieces.slope_sd()[left + 1])
    jump = pieces.slope[left + 1] - pieces.slope[left]
    return Creases(s.line[pieces.first[left]], s.t[pieces.last[left]] + x, jump, sd)


def _nothing(s: Samples) -> Samples:
    return Samples(s.line[:0], s.t[:0], s.f[:0], s.sd[:0], s.pair[:0], s.check[:0], s.round[:0])
