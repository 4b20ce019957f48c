"""One round of a search: what to ask next, for every open interval of every line at once.

Lone samples get partners, creases that fall on a sample are looked at from beside it, bent runs are cut in halves, and
where pieces meet the function is asked on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from reluctant.geometry.bent import bent_runs, untested_runs, wide_beside, widest_inside
from reluctant.geometry.creases import before_creases, bends
from reluctant.geometry.samples import NONE, SPACING, IntArray, Pieces, Samples
from reluctant.geometry.search.asking import Places, Search, Usual, Wanted
from reluctant.geometry.search.meetings import SIDE, Meetings
from reluctant.geometry.search.starts import PAIR_WIDTH

__all__ = ["Round", "next_round"]

CHECK_WIDTH = 1e-5  # of the interval, on both sides of an expected crease, and less for a weak one
NUDGE = 1e-3  # of the neighbouring intervals, beside a crease that falls on a sample
ROOM = 1e4 * SPACING  # of an interval, relatively: it may be cut in halves once


@dataclass(frozen=True)
class Round:
    """The samples with what is newly asked about them and their pieces, what to ask next, intervals still open."""

    samples: Samples
    pieces: Pieces
    wanted: Wanted
    open: Places
    usual: Usual


def next_round(search: Search, s: Samples) -> Round:
    """What to ask, by what is seen so far."""
    wanted, pieces = Wanted(), search.pieces(s)
    s = _give_partners(search, s, pieces, wanted)
    left = before_creases(s, pieces)
    distance = pieces.first[left + 1] - pieces.last[left]
    s = _look_beside(search, s, pieces, left[distance == 0], wanted)
    bent = _straighten(search, s, pieces, wanted)
    open_, usual = _resolve(search, s, pieces, left[distance == 1], wanted)
    between = left[distance > 1]
    if not wanted and search.is_crowded(s) and search.is_whole:
        _test(search, s, pieces, untested_runs(s, pieces), wanted)
    unresolved = pieces.last[np.concatenate([open_, between, bent])]
    return Round(s, pieces, wanted, Places(s.line[unresolved], s.t[unresolved]), usual)


def _give_partners(search: Search, s: Samples, pieces: Pieces, wanted: Wanted) -> Samples:
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


def _look_beside(search: Search, s: Samples, pieces: Pieces, left: IntArray, wanted: Wanted) -> Samples:
    """A crease that falls on a sample is looked at once from nearby; in a crowd, if what is beside it is sure."""
    if len(left) and search.is_crowded(s):
        beside = np.intersect1d(np.concatenate([left, left + 1]), untested_runs(s, pieces))
        unsure = _test(search, s, pieces, beside, wanted)
        left = left[~(np.isin(left, unsure) | np.isin(left + 1, unsure))]
    at = pieces.last[left]
    known = (s.check[at] != NONE) & (s.check[at] == s.check[at - 1]) & (s.check[at] == s.check[at + 1])
    at = at[bends(pieces, left) & ~known]
    if not len(at):
        return s
    check = s.check.copy()
    check[at] = numbers = search.new_numbers(len(at))
    wanted.add(s.line[at], s.t[at] - NUDGE * (s.t[at] - s.t[at - 1]), check=numbers)
    wanted.add(s.line[at], s.t[at] + NUDGE * (s.t[at + 1] - s.t[at]), check=numbers)
    return replace(s, check=check)


def _straighten(search: Search, s: Samples, pieces: Pieces, wanted: Wanted) -> IntArray:
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


def _test(search: Search, s: Samples, pieces: Pieces, runs: IntArray, wanted: Wanted) -> IntArray:
    """One more sample inside each of these runs that has room for it; returns them."""
    here = widest_inside(s, pieces, runs)
    wide = search.is_wide(s, here, ROOM)
    _ask_inside(search, s, here[wide], wanted)
    return runs[wide]


def _ask_inside(search: Search, s: Samples, here: IntArray, wanted: Wanted) -> None:
    """One sample in the middle of each of these intervals."""
    wanted.add(s.line[here], search.middle(s.t[here], s.t[here + 1]))


def _resolve(search: Search, s: Samples, pieces: Pieces, left: IntArray, wanted: Wanted) -> tuple[IntArray, Usual]:
    """Look where neighbouring pieces meet; return the pieces left of what stays open, and what is usual."""
    meeting = Meetings.of(s, pieces, left, search.sd, search.usual)
    todo = ~meeting.certified & ~meeting.stuck
    expected = meeting.inside & ~meeting.checked
    _ask_beside_meeting(search, s, meeting, np.flatnonzero(todo & expected), wanted)
    _ask_in_the_middle(search, s, meeting, np.flatnonzero(todo & ~expected), wanted)
    return left[~meeting.certified], meeting.usual


def _ask_beside_meeting(search: Search, s: Samples, meeting: Meetings, which: IntArray, wanted: Wanted) -> None:
    t, gap, x = meeting.t[which], meeting.gap[which], meeting.x[which]
    near = CHECK_WIDTH * meeting.share[which] * np.minimum(gap, search.lines.scale + np.abs(t))
    width = np.maximum.reduce([near, SIDE * meeting.blur[which], SIDE * SPACING * meeting.end[which]])
    line, numbers = s.line[meeting.i[which]], search.new_numbers(len(which))
    wanted.add(line, t - np.minimum(width, x / 2), numbers, numbers)
    wanted.add(line, t + np.minimum(width, (gap - x) / 2), numbers, numbers)


def _ask_in_the_middle(search: Search, s: Samples, meeting: Meetings, which: IntArray, wanted: Wanted) -> None:
    a, b = s.t[meeting.i[which]], s.t[meeting.i[which] + 1]
    middle = search.middle(a, b)
    width = PAIR_WIDTH * np.minimum(middle - a, b - middle)
    line, numbers = s.line[meeting.i[which]], search.new_numbers(len(which))
    wanted.add(line, middle - width, numbers)
    wanted.add(line, middle + width, numbers)
