"""`Creases`: points where neighbouring pieces of a line meet, their bends, and the history of their search.

Where samples stand close together every one of them is in line with its neighbours, whatever the function does, and
such a cluster joins the pieces on its two sides. So a run must follow the line through its ends too; one that does
not is split where two lines explain all of its samples. Two clusters on the two sides of a crease make a piece of
their own, a bridge over it, which no sample in between has tested. `reluctant.geometry.scan` finds the creases;
nothing here asks anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reluctant.geometry.lines import (
    NO_NUMBER,
    BoolArray,
    IntArray,
    Lines,
    Pieces,
    Samples,
)
from reluctant.numerics import DOUBLE, FloatArray


@dataclass(frozen=True)
class Creases:
    """Creases in order of line and position: where, how the slope jumps, and with what noise."""

    line: IntArray
    t: FloatArray
    jump: FloatArray  # (n, m)
    jump_sd: FloatArray

    def __len__(self) -> int:
        return len(self.t)

    @property
    def nowhere(self) -> BoolArray:
        """Mask of pieces that do not meet: answers are too coarse there, or jump."""
        return ~np.isfinite(self.t) | ~np.isfinite(self.jump).all(axis=1)


@dataclass(frozen=True)
class Scan:
    """Lines scanned from end to end; `open` counts intervals of each line that could not be resolved."""

    samples: Samples
    pieces: Pieces
    creases: Creases
    open: IntArray


def before_creases(s: Samples, pieces: Pieces) -> IntArray:
    """Pieces that are followed by another on their line."""
    return np.flatnonzero(s.line[pieces.first[1:]] == s.line[pieces.first[:-1]])


def creases_after(s: Samples, pieces: Pieces, left: IntArray) -> Creases:
    """Where these pieces meet the next ones."""
    x, _ = intersect(s, pieces, left)
    jump = pieces.slope[left + 1] - pieces.slope[left]
    return Creases(s.line[pieces.first[left]], s.t[pieces.last[left]] + x, jump, _jump_sd(pieces, left))


def intersect(s: Samples, p: Pieces, left: IntArray) -> tuple[FloatArray, FloatArray]:
    """Distance from the last sample of a piece to where the next one's line meets its own, and the bend."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # no bend, or one close to the largest number
        bend = p.slope[left] - p.slope[left + 1]
        size = np.sqrt((bend**2).sum(axis=1))
        x = (lines_apart(s, p, left, np.zeros(len(left))) * bend).sum(axis=1) / size**2
    return np.where(size > 0, x, np.inf), size


def lines_apart(s: Samples, p: Pieces, left: IntArray, x: FloatArray) -> FloatArray:
    """Next piece's line minus the piece's own, x beyond its last sample."""
    i, j = p.last[left], p.first[left + 1]
    x = np.where(np.isfinite(x), x, 0.0)[:, None]
    ahead = (s.t[j] - s.t[i])[:, None] - x
    return s.f[j] - p.slope[left + 1] * ahead - s.f[i] - p.slope[left] * x


def bends(pieces: Pieces, left: IntArray) -> BoolArray:
    """True where the slope changes by more than its noise."""
    return np.abs(pieces.slope[left] - pieces.slope[left + 1]).max(axis=1) > DOUBLE.bend * _jump_sd(pieces, left)


def _jump_sd(pieces: Pieces, left: IntArray) -> FloatArray:
    return np.hypot(pieces.slope_sd()[left], pieces.slope_sd()[left + 1])


def merge_equal(s: Samples, pieces: Pieces, crowded: bool) -> Pieces:
    """Join neighbours whose slopes do not differ: a noisy sample had split them. In a crowd all must be straight."""
    while True:
        left = before_creases(s, pieces)
        equal = left[~bends(pieces, left)]
        if crowded:
            equal = np.array([k for k in equal if is_straight(s, pieces.first[k], pieces.last[k + 1])], dtype=np.intp)
        equal = _without_successors(equal)
        if not len(equal):
            return pieces
        last = pieces.last.copy()
        last[equal] = pieces.last[equal + 1]
        keep = np.setdiff1d(np.arange(len(pieces)), equal + 1)
        pieces = Pieces.between(s, pieces.first[keep], last[keep], pieces.certified[keep])


def merge_slivers(scan: Scan, width: float, depth: float) -> Scan:
    """Take neighbouring creases for one if they are closer than `width`, and merging changes less than `depth`."""
    s, pieces, creases = scan.samples, scan.pieces, scan.creases
    jump = np.linalg.norm(creases.jump, axis=1)
    gap = np.where(creases.line[1:] == creases.line[:-1], np.diff(creases.t), np.inf)
    shallow = np.flatnonzero((gap < width) & (np.minimum(jump[1:], jump[:-1]) * gap < depth))
    shallow = _without_successors(shallow)
    if not len(shallow):
        return scan
    keep = np.setdiff1d(np.arange(len(pieces)), before_creases(s, pieces)[shallow] + 1)
    pieces = Pieces.between(s, pieces.first[keep], pieces.last[keep], pieces.certified[keep])
    return replace(scan, pieces=pieces, creases=creases_after(s, pieces, before_creases(s, pieces)))


def _without_successors(which: IntArray) -> IntArray:
    """Indices whose predecessor is not among them: each piece merges with one neighbour."""
    return which[np.append(True, np.diff(which) > 1)[: len(which)]]


IsWide = Callable[[IntArray], BoolArray]  # whether there is room for a sample after these


def bent_runs(s: Samples, pieces: Pieces) -> tuple[IntArray, IntArray]:
    """Pieces that leave the line through their ends, and the sample of each that is farthest from it."""
    inner, run, index = _inner_samples(pieces)
    first = pieces.first[run]
    off = np.abs(s.f[index] - s.f[first] - pieces.slope[run] * (s.t[index] - s.t[first])[:, None]).max(axis=1)
    off /= np.maximum.reduce([s.sd[index], s.sd[first], s.sd[pieces.last[run]]])
    runs = np.flatnonzero(inner)
    if not len(runs):
        return runs, runs
    starts = np.cumsum(inner[runs]) - inner[runs]
    bent = np.flatnonzero(np.maximum.reduceat(off, starts) > DOUBLE.bent)
    worst = [
        start + np.argmax(off[start : start + inner[k]]) for start, k in zip(starts[bent], runs[bent], strict=True)
    ]
    return runs[bent], index[np.array(worst, dtype=np.intp)]


def untested_runs(s: Samples, pieces: Pieces) -> IntArray:
    """Pieces with samples at their ends alone: whatever is between may be hidden by chance."""
    at_the_ends = 0.02  # of a run's length
    _, run, index = _inner_samples(pieces)
    share = (s.t[index] - s.t[pieces.first[run]]) / pieces.length[run]
    tested = np.zeros(len(pieces), dtype=bool)
    tested[run[(share > at_the_ends) & (share < 1 - at_the_ends)]] = True
    return np.flatnonzero(~tested)


def widest_inside(s: Samples, pieces: Pieces, which: IntArray) -> IntArray:
    """The sample before the widest interval of each of these pieces."""
    gaps = [np.argmax(np.diff(s.t[pieces.first[k] : pieces.last[k] + 1])) for k in which]
    return pieces.first[which] + np.array(gaps, dtype=np.intp)


def _inner_samples(pieces: Pieces) -> tuple[IntArray, IntArray, IntArray]:
    """How many samples each piece has between its ends, and of every one the piece and the index."""
    inner = pieces.last - pieces.first - 1
    run = np.repeat(np.arange(len(pieces)), inner)
    return inner, run, np.arange(len(run)) - np.repeat(np.cumsum(inner) - inner, inner) + pieces.first[run] + 1


def wide_beside(pieces: Pieces, run: int, at: int, is_wide: IsWide) -> tuple[IntArray, IntArray]:
    """Samples of a run before the nearest wide interval on each side of one of them; none where there is none."""
    before = np.arange(pieces.first[run], at)
    after = np.arange(at, pieces.last[run])
    return before[is_wide(before)][-1:], after[is_wide(after)][:1]


def split_bent(s: Samples, pieces: Pieces, is_wide: IsWide) -> Pieces:
    """Split bent runs whose crease a cluster hides: no room beside the sample that is farthest off."""
    most_splits = 16  # of one run: creases that clusters of samples hid
    for _ in range(most_splits):
        cuts = {}
        for run, at in zip(*bent_runs(s, pieces), strict=True):
            if not is_wide(np.array([at - 1, at])).any():
                cut = _best_cut(s, pieces, int(run), int(at), is_wide)
                if cut is not None:
                    cuts[int(run)] = cut
        if not cuts:
            break
        pieces = _cut_runs(s, pieces, cuts)
    return pieces


def _best_cut(s: Samples, pieces: Pieces, run: int, at: int, is_wide: IsWide) -> tuple[int, int] | None:
    """Last sample before and first sample after a crease, if two lines explain the run much better."""
    much_less = 0.25  # of what the whole run is off: one of several creases was found
    first, last = int(pieces.first[run]), int(pieces.last[run])
    before, after = wide_beside(pieces, run, at, is_wide)
    intervals = sorted({at - 1, at, *map(int, before), *map(int, after)})
    cuts = [(i, i + 1) for i in intervals if first < i and i + 1 < last]
    if not cuts:
        return None
    left_over = [max(_distance_off_line(s, first, stop), _distance_off_line(s, start, last)) for stop, start in cuts]
    best = int(np.argmin(left_over))
    return cuts[best] if left_over[best] <= max(DOUBLE.bent, much_less * _distance_off_line(s, first, last)) else None


def is_straight(s: Samples, first: int, last: int) -> bool:
    """Whether the samples from first to last follow the line through these two."""
    return _distance_off_line(s, first, last) <= DOUBLE.bent


def _distance_off_line(s: Samples, first: int, last: int) -> float:
    """How far samples are from the line through the first and the last, at most, in deviations."""
    t: FloatArray = (s.t[first : last + 1] - s.t[first])[:, None]
    line = s.f[first] + (s.f[last] - s.f[first]) * (t / t[-1])
    return float((np.abs(s.f[first : last + 1] - line).max(axis=1) / s.sd[first : last + 1].max()).max())


def _cut_runs(s: Samples, pieces: Pieces, cuts: dict[int, tuple[int, int]]) -> Pieces:
    """The pieces with these runs cut in two."""
    runs = np.array(list(cuts))
    stop, start = np.array(list(cuts.values())).T
    first, last = pieces.first, pieces.last.copy()
    ends = last[runs].copy()
    last[runs] = stop
    first, last = np.insert(first, runs + 1, start), np.insert(last, runs + 1, ends)
    certified = np.insert(pieces.certified, runs + 1, True)
    return Pieces.between(s, first, last, certified & ((last - first > 1) | ~certified))


def without_bridges(s: Samples, pieces: Pieces) -> Pieces:
    """Leave out short pieces that no sample in between has tested, if the two neighbours explain their samples."""
    vague_slope = 1e-3  # noise of a slope, of the bend from the piece before to the one after
    middle = np.arange(1, len(pieces) - 1)
    touches = (pieces.first[middle] == pieces.last[middle - 1]) | (pieces.last[middle] == pieces.first[middle + 1])
    bend = np.abs(pieces.slope[middle + 1] - pieces.slope[middle - 1]).max(axis=1)
    unsure = np.isin(middle, untested_runs(s, pieces)) | (pieces.slope_sd()[middle] > vague_slope * bend)
    touches |= pieces.certified[middle] & unsure
    short = pieces.length[middle] < np.maximum(pieces.length[middle - 1], pieces.length[middle + 1])
    inside = s.line[pieces.last[middle - 1]] == s.line[pieces.first[middle + 1]]
    first, last = pieces.first.copy(), pieces.last.copy()
    bridges: list[int] = []
    for k, stop in zip(*_explained_by_neighbours(s, pieces, middle[touches & short & inside]), strict=True):
        if bridges and bridges[-1] == k - 1:
            continue
        bridges.append(k)
        last[k - 1], first[k + 1] = stop - 1, stop
    if not bridges:
        return pieces
    keep = np.setdiff1d(np.arange(len(pieces)), bridges)
    return Pieces.between(s, first[keep], last[keep], pieces.certified[keep])


def _explained_by_neighbours(s: Samples, pieces: Pieces, which: IntArray) -> tuple[list[int], list[int]]:
    """Pieces whose samples all lie on their neighbours' lines, and the first sample that lies on the right one's."""
    if not len(which):
        return [], []
    first = pieces.first[which]
    counts = pieces.last[which] + 1 - first
    starts = np.cumsum(counts) - counts
    place = np.arange(counts.sum()) - np.repeat(starts, counts)
    samples = np.repeat(first, counts) + place
    left, right = (_on_lines_of(s, pieces, np.repeat(side, counts), samples) for side in (which - 1, which + 1))
    stop = np.minimum.reduceat(np.where(left, np.repeat(counts, counts), place), starts)
    rest = np.logical_and.reduceat(right | (place < np.repeat(stop, counts)), starts)
    good = rest & (stop > 0) & (stop < counts)
    return which[good].tolist(), (first + stop)[good].tolist()


def _on_lines_of(s: Samples, pieces: Pieces, which: IntArray, samples: IntArray) -> BoolArray:
    """Which samples (n,) lie on the lines of these pieces (n,)."""
    end = np.where(samples >= pieces.last[which], pieces.last[which], pieces.first[which])
    line = s.f[end] + pieces.slope[which] * (s.t[samples] - s.t[end])[:, None]
    allowed = pieces.tolerance(s, which, s.t[samples], s.sd[samples])
    return np.asarray(np.abs(s.f[samples] - line).max(axis=1) <= allowed)


CROWDED = 1000  # creases on a line: with more, checks are narrower in proportion, or some would hold two creases


@dataclass(frozen=True)
class UsualBend:
    """The bend that creases usually have, and how much narrower checks are than that where there is no crowd."""

    bend: float
    narrower: float


CHECK_SIDE = 4.0  # blurs, or spacings of numbers, from an expected crease to each side of its check, at least


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
        checked: whether both sides were measured, near enough for the present estimate.
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
        """Meetings of these pieces with the next ones; `sd` is the noise of an answer at a position.

        What creases are usually like follows from these, unless it is given.
        """
        widest_check = 8 * CHECK_SIDE  # blurs between the two sides of a check; twice SIDE is asked for
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
            [widest_check * blur, loose_check * share * shortest, widest_check * DOUBLE.spacing * end]
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


MAKES_A_PIECE = 3  # samples in line


@dataclass(frozen=True)
class LineSearch:
    """Questions on one line in order of position, and the creases found.

    scale: the unit of t. t, answers (n, m), round: what was asked, and when. known (n - 1,): whether the function
    between a sample and the next is known: straight, or with one certified crease. creases: their positions.
    """

    scale: float
    t: FloatArray
    answers: FloatArray
    round: IntArray
    known: BoolArray
    creases: FloatArray

    @classmethod
    def of(cls, lines: Lines, scan: Scan) -> LineSearch:
        """The search of a scan of one line, finished or not."""
        s, pieces = scan.samples, scan.pieces
        t = np.sort(scan.creases.t)  # creases that rounding does not tell apart may change places
        steps = np.zeros(len(s), dtype=int)
        np.add.at(steps, pieces.first[pieces.certified], 1)
        np.add.at(steps, pieces.last[pieces.certified], -1)
        known = np.cumsum(steps)[:-1] > 0
        known[np.clip(np.searchsorted(s.t, t) - 1, 0, len(known) - 1)] = True
        return cls(lines.scale, s.t, s.f, s.round, known, t)

    def __str__(self) -> str:
        return f"{len(self.t)} questions on one line, in {self.rounds} batches, found {len(self.creases)} creases."

    @property
    def rounds(self) -> int:
        """How many batches were asked."""
        return int(self.round.max(initial=-1)) + 1

    @property
    def angles(self) -> FloatArray:
        """Positions of the samples as angles: in these the whole line is short, and creases are spread evenly."""
        return np.arctan(self.t / self.scale)

    @property
    def found_in(self) -> IntArray:
        """The round after which each crease was certain: samples on both sides, between two pieces."""
        after = np.clip(np.searchsorted(self.t, self.creases), 1, len(self.t) - 1)
        piece = self._pieces()
        order = np.lexsort([self.round, piece])
        sizes = np.bincount(piece, minlength=len(self.creases) + 1)
        third = np.cumsum(sizes) - sizes + np.minimum(sizes, MAKES_A_PIECE) - 1
        settled = self.round[order][third]
        return np.maximum.reduce([self.round[after], self.round[after - 1], settled[:-1], settled[1:]])

    def at(self, round_: int) -> LineSearch:
        """The search as it was after this round, reconstructed from its end."""
        asked, found = np.flatnonzero(self.round <= round_), self.found_in <= round_
        piece = self._pieces()[asked]
        left, right = piece[:-1], piece[1:]
        is_piece = np.bincount(piece, minlength=len(found) + 1)[left] >= MAKES_A_PIECE
        crossed = (right == left + 1) & np.append(found, False)[left]
        unknown = np.append(0, np.cumsum(~self.known))
        whole = unknown[asked[1:]] == unknown[asked[:-1]]
        known = whole & (((left == right) & is_piece) | crossed)
        return LineSearch(self.scale, self.t[asked], self.answers[asked], self.round[asked], known, self.creases[found])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "scale": self.scale,
            "t": self.t.tolist(),
            "answers": self.answers.tolist(),
            "round": self.round.tolist(),
            "known": self.known.tolist(),
            "creases": self.creases.tolist(),
            "found in round": self.found_in.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LineSearch:
        """The search again from its plain data."""
        t, answers = np.array(data["t"], dtype=float), np.array(data["answers"], dtype=float)
        return cls(
            float(data["scale"]), t, answers.reshape(len(t), -1), np.array(data["round"], dtype=int),
            np.array(data["known"], dtype=bool), np.array(data["creases"], dtype=float),
        )  # fmt: skip

    def _pieces(self) -> IntArray:
        """Index of the piece each sample lies on."""
        return np.searchsorted(self.creases, self.t)
