"""Which creases of two lines belong to the same neurons, and what is left to each line alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import connected_components

from reluctant.extraction.depth_two.seen_neurons import AGREE, Line, Marks, Neurons
from reluctant.geometry.samples import NONE, BoolArray, IntArray

__all__ = ["Other", "put_together", "same_creases"]

WINDOW = 20  # creases on either side of the place where one is expected that are looked at
BESIDE = 2  # creases on either side of a place that say how much noise there is


def same_creases(expected: Marks, seen: Marks) -> IntArray:
    """For each crease that is expected the one that was seen there, if a single one agrees; none is given twice."""
    around = np.searchsorted(seen.t, expected.t)[:, None] + np.arange(-WINDOW, WINDOW)
    inside = (around >= 0) & (around < len(seen))
    around = np.clip(around, 0, len(seen) - 1)
    place = np.abs(seen.t[around] - expected.t[:, None]) / np.hypot(seen.t_sd[around], expected.t_sd[:, None])
    bend = np.abs(seen.bend[around] - expected.bend[:, None]) / np.hypot(
        seen.bend_sd[around], expected.bend_sd[:, None]
    )
    agree = inside & (place < AGREE) & (bend < AGREE)
    same = np.where(agree.sum(axis=1) == 1, around[np.arange(len(expected)), agree.argmax(axis=1)], NONE)
    number, often = np.unique(same, return_counts=True)
    return np.where(np.isin(same, number[often > 1]), NONE, same)


@dataclass(frozen=True)
class Other:
    """The other line, and all creases that were seen on it."""

    line: Line
    marks: Marks

    def lacks(self, expected: Marks) -> BoolArray:
        """Which creases would have been seen if they were there: they bend the function by more than noise hides."""
        at = np.searchsorted(self.marks.t, expected.t)[:, None] + np.arange(-BESIDE, BESIDE)
        around = self.marks.bend_sd[np.clip(at, 0, len(self.marks) - 1)].max(axis=1)
        return np.asarray(np.abs(expected.bend) > AGREE * np.hypot(expected.bend_sd, around))


def put_together(here: Neurons, open_here: IntArray, there: Neurons, marks: Marks, other: Other) -> Neurons:
    """All neurons, in the order of their creases along the first line; `marks` are those of `there` on the other.

    Most are seen from both lines. Of the others, neurons here that are known well may explain a crease there which is
    that of several. Then neurons that were measured there take the place of those here whose creases are where theirs
    are, if all bend the function alike. What may be nothing here is nothing, and so is what is known well and would
    have been seen there: if it is anything, yet another line will show it.
    """
    old, new = _seen_twice(here, open_here, there)
    better = there.sd[new] < here.sd[old]
    here = here.with_weights(old[better], there.chosen(new[better]))
    left_there = np.setdiff1d(np.arange(len(there)), new)
    open_here, left_there = _unexplained(here, np.setdiff1d(open_here, old), marks, left_there, other.line)
    nothing = open_here[here.may_be_nothing()[open_here]]
    left_there = left_there[~there.may_be_nothing()[left_there]]
    return _in_their_places(here, np.setdiff1d(open_here, nothing), there, left_there, nothing, other)


def _in_their_places(
    here: Neurons, open_here: IntArray, there: Neurons, open_there: IntArray, nothing: IntArray, other: Other
) -> Neurons:
    """The neurons of the other line in the places of those here, or in new ones; without those that are nothing."""
    first = Line.first(here.weights.shape[1])
    own, theirs = here.on(first), there.on(first)
    absent = open_here[(here.well_known() & other.lacks(here.on(other.line)))[open_here]]
    gone, added = nothing.tolist(), list[int]()
    for old, new in _meetings(own, open_here, theirs, open_there):
        absent = np.setdiff1d(absent, old)
        if len(old) and not own.chosen(old).bend_as(theirs.chosen(new)):
            continue
        if len(old) == len(new) == 1:
            here = here.with_weights(old, there.chosen(new))
        else:
            gone.extend(old)
            added.extend(new)
    both = here.without(np.array([*gone, *absent], dtype=np.intp)) + there.chosen(np.array(added, dtype=np.intp))
    return both.chosen(np.argsort(both.on(first).t, kind="stable"))


def _seen_twice(here: Neurons, open_here: IntArray, there: Neurons) -> tuple[IntArray, IntArray]:
    """Neurons here and there with the same weights: each the one that is most like the other."""
    ours, theirs = open_here[~here.may_be_nothing()[open_here]], np.flatnonzero(~there.may_be_nothing())
    if not len(ours) or not len(theirs):
        return ours[:0], theirs[:0]
    off = np.abs(here.weights[ours][:, None] - there.weights[theirs]).max(axis=2)
    off /= np.hypot(here.sd[ours][:, None], there.sd[theirs])
    off[here.outputs[ours][:, None] != there.outputs[theirs]] = np.inf
    nearest, each = off.argmin(axis=1), np.arange(len(ours))
    same = (off.argmin(axis=0)[nearest] == each) & (off[each, nearest] < AGREE)
    return ours[same], theirs[nearest[same]]


def _unexplained(
    here: Neurons, open_here: IntArray, marks: Marks, there: IntArray, other: Line
) -> tuple[IntArray, IntArray]:
    """What neurons that are known leave open on the other line: neurons here, and creases there."""
    expected = here.on(other)
    for old, new in _meetings(expected, open_here[~here.may_be_nothing()[open_here]], marks, there):
        if len(old) and expected.chosen(old).bend_as(marks.chosen(new)):
            open_here, there = np.setdiff1d(open_here, old), np.setdiff1d(there, new)
    return open_here, there


def _meetings(
    ours: Marks, open_ours: IntArray, theirs: Marks, open_theirs: IntArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """Place by place, open creases of the one kind, or none, and of the other that may be there."""
    n, candidates = len(open_ours), theirs.chosen(open_theirs)
    linked = np.zeros((n + len(open_theirs),) * 2, dtype=bool)
    for row, one in enumerate(open_ours):
        linked[row, n:] = candidates.near(ours.chosen(np.array([one])))
    number, place = connected_components(linked, directed=False)
    for each in range(number):
        old, new = open_ours[place[:n] == each], open_theirs[place[n:] == each]
        if len(new):
            yield old, new
