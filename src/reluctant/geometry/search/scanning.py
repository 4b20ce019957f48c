"""`scan_lines`: rounds of questions until nothing on any line is open, and what came of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from reluctant.geometry.creases import Scan, before_creases, bends, creases_after, merge_equal
from reluctant.geometry.lines import Lines
from reluctant.geometry.noise import DistanceNoise, Lost
from reluctant.geometry.samples import Samples
from reluctant.geometry.search.asking import AskAt, LostAt, Places, Search
from reluctant.geometry.search.meetings import Meetings
from reluctant.geometry.search.rounds import Round, next_round
from reluctant.geometry.search.starts import look_at, start, start_afresh, start_with_few
from reluctant.geometry.search.stretches import Stretches, little_is_open
from reluctant.numerics import FloatArray

__all__ = ["scan_lines"]

Ask: TypeAlias = Callable[[FloatArray], FloatArray]
Watch: TypeAlias = Callable[[Scan], None]
Show: TypeAlias = Callable[[Samples], None]

MOST_ROUNDS = 80
CROWD_ROUNDS = 48  # in a crowd: what is open after that is begun afresh, so often, if it is a small part of the line
FRESH_STARTS, FEW_PLACES = 4, 0.02


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
    lost: Lost | None = None,
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
        search = Search(ask_at or _by_rows(ask, lines), lines, noise, crowded=close, lost_at=lost_at)
        samples = start_with_few(search, rng) if few else start(search, rng)
        if places is not None:
            samples = samples + look_at(search, places)
        samples, left = _searched(search, samples, rng, most, watch)
        return _ended(search, samples, left)


def _by_rows(ask: Ask, lines: Lines) -> AskAt:
    return lambda line, t: ask(lines.points(line, t))


def _lost_by_rows(lost: Lost, lines: Lines) -> LostAt:
    return lambda line, t, answers: lost(lines.points(line, t), answers)


@dataclass(frozen=True)
class _Terms:
    """Where a search ends though something is open, in rows and in rounds since it began; and who sees its samples."""

    most: int | None
    begun: int
    show: Show | None

    def are_over(self, search: Search, seen: Round) -> bool:
        """Too many rows, or rounds of a crowd, or nothing gets better."""
        rounds, rows = search.counts.rounds - self.begun, len(seen.samples)
        if search.has_too_many(seen.samples, seen.pieces) or (self.most is not None and rows >= self.most):
            return True
        return rounds >= (CROWD_ROUNDS if search.is_crowded(seen.samples) else MOST_ROUNDS)


def _searched(
    search: Search, samples: Samples, rng: np.random.Generator, most: int | None, watch: Watch | None
) -> tuple[Samples, Places]:
    """All samples, and where something is left open; a few places of a crowd are begun afresh."""
    show: Show | None = None if watch is None else lambda known: watch(_so_far(search, known))

    def begun(samples: Samples) -> tuple[Samples, Places]:
        return _rounds(search, _shown(samples, show), _Terms(most, search.counts.rounds, show))

    samples, left = begun(samples)
    for _ in range(FRESH_STARTS):
        if not 0 < len(left) < FEW_PLACES * len(search.pieces(samples)) or not search.is_crowded(samples):
            break
        samples, left = begun(start_afresh(search, samples, left, rng))
    return samples, left


def _rounds(search: Search, samples: Samples, terms: _Terms) -> tuple[Samples, Places]:
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


def _rounds_in_part(search: Search, samples: Samples, seen: Round, terms: _Terms) -> Samples:
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


def _so_far(search: Search, s: Samples) -> Scan:
    """What is known in the middle of the search: pieces, and the creases that are certified by now."""
    pieces = search.pieces(s)
    left = before_creases(s, pieces)
    left = left[pieces.first[left + 1] - pieces.last[left] <= 1]
    left = left[Meetings.of(s, pieces, left, search.sd).certified & bends(pieces, left)]
    return Scan(s, pieces, creases_after(s, pieces, left), np.zeros(len(search.lines), dtype=int))


def _ended(search: Search, s: Samples, left: Places) -> Scan:
    """What is known at the end: every piece but the last of a line is followed by a crease."""
    pieces = merge_equal(s, search.pieces(s), search.is_crowded(s))
    creases = creases_after(s, pieces, before_creases(s, pieces))
    return Scan(s, pieces, creases, np.bincount(left.line, minlength=len(search.lines)))
