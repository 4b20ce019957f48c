"""`scan_lines`: rounds of questions until nothing on any line is open, and what came of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from reluctant.geometry.creases import Scan, before_creases, bends, creases_after, merge_equal
from reluctant.geometry.lines import Lines
from reluctant.geometry.noise import DistanceNoise
from reluctant.geometry.samples import Samples
from reluctant.geometry.search.asking import AskAt, Places, Search
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
) -> Scan:
    """Find every crease on every line, from limit to limit; `watch` is shown what is known after every round.

    `ask` answers rows; `ask_at`, if given, positions t on lines of these indices: rows need not be written out here.

    Every line is also looked at in `places` (p,), positions where something narrow is known to be. After `most`
    rows the search ends as it stands, with intervals open. `close` creases, with little between them for their noise,
    are looked for as carefully as in a crowd.

    Cost: about five rows a crease, and 16 a line; 5 a line where `few` creases are expected.
    """
    with np.errstate(divide="ignore", invalid="ignore"):  # positions that rounding makes one give no slope
        search = Search(ask_at or _by_rows(ask, lines), lines, noise, crowded=close)
        samples = start_with_few(search, rng) if few else start(search, rng)
        if places is not None:
            samples = samples + look_at(search, places)
        samples, left = _searched(search, samples, rng, most, watch)
        return _ended(search, samples, left)


def _by_rows(ask: Ask, lines: Lines) -> AskAt:
    return lambda line, t: ask(lines.points(line, t))


def _searched(
    search: Search, samples: Samples, rng: np.random.Generator, most: int | None, watch: Watch | None
) -> tuple[Samples, Places]:
    """All samples, and where something is left open; a few places of a crowd are begun afresh."""
    show: Show | None = None if watch is None else lambda known: watch(_so_far(search, known))
    samples, left = _rounds(search, samples, most, show)
    for _ in range(FRESH_STARTS):
        if not 0 < len(left) < FEW_PLACES * len(search.pieces(samples)) or not search.is_crowded(samples):
            break
        samples, left = _rounds(search, start_afresh(search, samples, left, rng), most, show)
    return samples, left


def _rounds(
    search: Search, samples: Samples, most: int | None, show: Show | None, begun: int | None = None
) -> tuple[Samples, Places]:
    """Ask until nothing is open, or nothing gets better; then also where something is left open.

    Rounds are counted from `begun`, if that was before.
    """
    left, begun = Places.none(), search.rounds if begun is None else begun
    while search.rounds - begun < MOST_ROUNDS:
        if show is not None:
            show(samples)
        seen = next_round(search, samples)
        samples, left = seen.samples, seen.open
        if not seen.wanted:
            break
        left += seen.wanted.places
        too_many = search.has_too_many(samples, seen.pieces) or (most is not None and len(samples) >= most)
        if too_many or (search.rounds - begun >= CROWD_ROUNDS and search.is_crowded(samples)):
            break
        samples = samples + search.ask_all(seen.wanted)
        if little_is_open(search, seen):
            samples = _rounds_in_part(search, samples, seen, most, show, begun)
    return samples, left


def _rounds_in_part(
    search: Search, samples: Samples, seen: Round, most: int | None, show: Show | None, begun: int
) -> Samples:
    """All samples, after rounds around what is open."""
    stretches = Stretches.around(seen)
    inside, others = stretches.apart(samples)
    part = stretches.search(search, seen)
    show_all: Show | None = None if show is None else lambda known: show(stretches.together(known, others))
    inside, _ = _rounds(part, inside, None if most is None else most - len(others), show_all, begun)
    search.numbers, search.rounds = part.numbers, part.rounds
    return stretches.together(inside, others)


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
