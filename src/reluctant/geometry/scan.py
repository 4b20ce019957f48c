"""`scan_lines`: every crease on a batch of lines, and the history of that search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from reluctant.geometry.crease_search import (
    CROWDED,
    AskAt,
    CreaseSearch,
    LinePlaces,
    LostAt,
    Meetings,
    SearchRound,
    next_round,
    sample_at,
    start_afresh,
    start_with_few,
    start_with_pairs,
)
from reluctant.geometry.creases import Scan, before_creases, bends, creases_after, merge_equal
from reluctant.geometry.lines import BoolArray, DistanceNoise, ExtraNoise, IntArray, Lines, Pieces, Samples
from reluctant.numerics import FloatArray

Ask: TypeAlias = Callable[[FloatArray], FloatArray]
Watch: TypeAlias = Callable[[Scan], None]
Show: TypeAlias = Callable[[Samples], None]

CROWD_ROUNDS = 48  # in a crowd: what is open after that is begun afresh, so often, if it is a small part of the line
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
    watch: Watch | None = None,
    ask_at: AskAt | None = None,
    lost: ExtraNoise | None = None,
) -> Scan:
    """Find every crease on every line, from limit to limit; `watch` is shown what is known after every round.

    `ask` answers rows; `ask_at`, if given, positions t on lines of these indices: rows need not be written out here.

    Every line is also looked at in `places` (p,), positions where something narrow is known to be. After `most`
    rows the search ends as it stands, with intervals open. `close` creases, with little between them for their noise,
    are looked for as carefully as in a crowd. `lost`, if given, says how much more noise answers have than `noise`
    by what they are.

    Cost: about five rows a crease, and 16 a line; 5 a line where `few` creases are expected.
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # positions that rounding makes one give no slope
        lost_at = None if lost is None else _lost_by_rows(lost, lines)
        search = CreaseSearch(ask_at or _ask_by_rows(ask, lines), lines, noise, crowded=close, lost_at=lost_at)
        samples = start_with_few(search, rng) if few else start_with_pairs(search, rng)
        if places is not None:
            samples = samples + sample_at(search, places)
        samples, left = _searched(search, samples, rng, most, watch)
        return _ended_scan(search, samples, left)


def _ask_by_rows(ask: Ask, lines: Lines) -> AskAt:
    return lambda line, t: ask(lines.points(line, t))


def _lost_by_rows(lost: ExtraNoise, lines: Lines) -> LostAt:
    return lambda line, t, answers: lost(lines.points(line, t), answers)


@dataclass(frozen=True)
class _EndTerms:
    """Where a search ends though something is open, in rows and in rounds since it began; and who sees its samples."""

    most: int | None
    begun: int
    show: Show | None

    def are_over(self, search: CreaseSearch, seen: SearchRound) -> bool:
        """Too many rows, or rounds of a crowd, or nothing gets better."""
        most_rounds = 80
        rounds, rows = search.counts.rounds - self.begun, len(seen.samples)
        if search.has_too_many(seen.samples, seen.pieces) or (self.most is not None and rows >= self.most):
            return True
        return rounds >= (CROWD_ROUNDS if search.is_crowded(seen.samples) else most_rounds)


def _searched(
    search: CreaseSearch, samples: Samples, rng: np.random.Generator, most: int | None, watch: Watch | None
) -> tuple[Samples, LinePlaces]:
    """All samples, and where something is left open; a few places of a crowd are begun afresh."""
    show: Show | None = None if watch is None else lambda known: watch(_scan_so_far(search, known))

    def begun(samples: Samples) -> tuple[Samples, LinePlaces]:
        return _rounds(search, _shown(samples, show), _EndTerms(most, search.counts.rounds, show))

    samples, left = begun(samples)
    for _ in range(FRESH_STARTS):
        if not 0 < len(left) < FEW_OPEN * len(search.pieces(samples)) or not search.is_crowded(samples):
            break
        samples, left = begun(start_afresh(search, samples, left, rng))
    return samples, left


def _rounds(search: CreaseSearch, samples: Samples, terms: _EndTerms) -> tuple[Samples, LinePlaces]:
    """Ask until nothing is open, or nothing gets better; then also where something is left open."""
    while True:
        seen = next_round(search, samples)
        if not seen.wanted:
            return seen.samples, seen.open
        if terms.are_over(search, seen):
            return seen.samples, seen.open + seen.wanted.places
        samples = _shown(seen.samples + search.ask_all(seen.wanted), terms.show)
        if little_is_open(search, seen):
            samples = _rounds_in_part(search, samples, seen, terms)


def _rounds_in_part(search: CreaseSearch, samples: Samples, seen: SearchRound, terms: _EndTerms) -> Samples:
    """All samples, after rounds around what is open."""
    stretches = Stretches.around(seen)
    inside, others = stretches.apart(samples)
    most = None if terms.most is None else terms.most - len(others)
    show = terms.show
    show_all: Show | None = None if show is None else lambda known: show(stretches.together(known, others))
    inside, _ = _rounds(stretches.search(search, seen), inside, replace(terms, most=most, show=show_all))
    return stretches.together(inside, others)


def _shown(samples: Samples, show: Show | None) -> Samples:
    if show is not None:
        show(samples)
    return samples


def _scan_so_far(search: CreaseSearch, s: Samples) -> Scan:
    """What is known in the middle of the search: pieces, and the creases that are certified by now."""
    pieces = search.pieces(s)
    left = before_creases(s, pieces)
    left = left[pieces.first[left + 1] - pieces.last[left] <= 1]
    left = left[Meetings.of(s, pieces, left, search.sd).certified & bends(pieces, left)]
    return Scan(s, pieces, creases_after(s, pieces, left), np.zeros(len(search.lines), dtype=int))


def _ended_scan(search: CreaseSearch, s: Samples, left: LinePlaces) -> Scan:
    """What is known at the end: every piece but the last of a line is followed by a crease."""
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
        """Those around all that is wanted, from the end of a piece to that of another, or of the line."""
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
        """The same search, asked about stretches."""
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
        """The round after which each crease was certain: it was looked at from both sides, between two pieces."""
        after = np.clip(np.searchsorted(self.t, self.creases), 1, len(self.t) - 1)
        piece = self._pieces()
        order = np.lexsort([self.round, piece])
        sizes = np.bincount(piece, minlength=len(self.creases) + 1)
        third = np.cumsum(sizes) - sizes + np.minimum(sizes, MAKES_A_PIECE) - 1
        settled = self.round[order][third]
        return np.maximum.reduce([self.round[after], self.round[after - 1], settled[:-1], settled[1:]])

    def at(self, round_: int) -> LineSearch:
        """The search as it stood after this round, told from where it ended."""
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
