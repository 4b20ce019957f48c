"""Stretches of lines around the few places where something is still open.

Most of a crowded line is settled long before the last of it is. What is open is searched as if each stretch were a
line of its own; what came of it is put back among the other samples and looked at as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry.samples import BoolArray, IntArray, Pieces, Samples
from reluctant.geometry.search.asking import CROWDED, Places, Search
from reluctant.geometry.search.rounds import Round
from reluctant.numerics import FloatArray

__all__ = ["Stretches", "little_is_open"]

BESIDE = 3  # pieces on either side of a place that belong to its stretch
MANY_FOR_ONE = 10  # pieces for each sample that is wanted


def little_is_open(search: Search, seen: Round) -> bool:
    """Whether parts of a crowd, between pieces, are all that is left to look at."""
    if len(seen.pieces) <= max(CROWDED, MANY_FOR_ONE * len(seen.wanted)) or not search.is_crowded(seen.samples):
        return False
    return bool(np.isin(seen.wanted.places.line, seen.samples.line[seen.pieces.first]).all())


@dataclass(frozen=True)
class Stretches:
    """Parts of lines: which line, from where to where; in order, and none touches another."""

    line: IntArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def around(cls, seen: Round) -> Stretches:
        """Those around all that is wanted, from the end of a piece to that of another, or of the line."""
        s, pieces = seen.samples, seen.pieces
        line = s.line[pieces.first]
        near = _near(s, pieces, seen.wanted.places)
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

    def search(self, whole: Search, seen: Round) -> Search:
        """The same search, asked about stretches."""
        lost = whole.lost_at
        return replace(
            whole,
            ask_at=lambda at, t: whole.ask_at(self.line[at], t),
            lost_at=None if lost is None else lambda at, t, answers: lost(self.line[at], t, answers),
            usual=seen.usual,
        )


def _near(s: Samples, pieces: Pieces, places: Places) -> BoolArray:
    """Which pieces are beside one of these places."""
    edges = np.zeros(len(pieces) + 1, dtype=int)
    for line in np.unique(places.line):
        own = np.flatnonzero(s.line[pieces.first] == line)
        at = np.searchsorted(s.t[pieces.last[own]], places.t[places.line == line])
        np.add.at(edges, own[0] + np.maximum(at - BESIDE, 0), 1)
        np.add.at(edges, own[0] + np.minimum(at + BESIDE + 1, len(own)), -1)
    return np.cumsum(edges)[:-1] > 0
