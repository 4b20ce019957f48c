"""One round of a crease search: what to ask next, for every open interval of every line at once.

Where the lines of neighbouring pieces meet, one crease is expected. The function is asked just before and just
after: if both answers lie on their pieces the crease is certified. Lone samples get partners, creases that fall on
a sample are looked at from beside it, and bent runs are cut in halves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from reluctant.geometry.crease_search import CROWDED, PAIR_WIDTH, CreaseSearch, LinePlaces, UsualBend, WantedSamples
from reluctant.geometry.creases import (
    before_creases,
    bends,
    bent_runs,
    intersect,
    lines_apart,
    untested_runs,
    wide_beside,
    widest_inside,
)
from reluctant.geometry.samples import NO_NUMBER, BoolArray, IntArray, Pieces, Samples
from reluctant.numerics import DOUBLE, FloatArray

__all__ = ["CHECK_SIDE", "Meetings", "SearchRound", "next_round"]

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
