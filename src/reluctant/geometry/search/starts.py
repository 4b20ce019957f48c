"""The first samples of a search: pairs spread evenly, single ones where little is expected, a fresh start in places."""

from __future__ import annotations

import numpy as np

from reluctant.geometry.samples import Samples
from reluctant.geometry.search.asking import Places, Search, Wanted
from reluctant.numerics import FloatArray

__all__ = ["PAIR_WIDTH", "look_at", "start", "start_afresh", "start_with_few"]

FIRST_PAIRS = 6  # pieces looked for at the start, evenly in angle
FEW_SAMPLES = 3  # between the ends, where few creases are expected
JITTER = 0.2  # of a cell: how far from its middle the first samples are, at most
PAIR_WIDTH = 0.06  # of the interval a new pair is put into
AROUND = 2  # pieces on either side of a place that is begun afresh


def start(search: Search, rng: np.random.Generator) -> Samples:
    """Pairs evenly spread in angle on every line, and one at each of its ends."""
    lines, n = search.lines, len(search.lines)
    first, last, cell = _cells(search, FIRST_PAIRS)
    middles = first[:, None] + (np.arange(FIRST_PAIRS) + 0.5) * cell[:, None]
    angles = middles + rng.uniform(-JITTER, JITTER, (n, FIRST_PAIRS)) * cell[:, None]
    width = PAIR_WIDTH * cell
    after_low, before_high = lines.position(first + width), lines.position(last - width)
    # Far out, where angles are coarse, no farther inside than half the distance.
    after_low = np.where(lines.low < 0, np.minimum(after_low, lines.low / 2), after_low)
    before_high = np.where(lines.high > 0, np.maximum(before_high, lines.high / 2), before_high)
    left = np.column_stack([lines.low, lines.position(angles), before_high])
    right = np.column_stack([after_low, lines.position(angles + width[:, None]), lines.high])
    wanted, line, pair = Wanted(), np.repeat(np.arange(n), FIRST_PAIRS + 2), search.new_numbers(left.size)
    wanted.add(line, left.reshape(-1), pair)
    wanted.add(line, right.reshape(-1), pair)
    return _in_order(search.ask_all(wanted))


def start_with_few(search: Search, rng: np.random.Generator) -> Samples:
    """Single samples: enough where a line is expected to be straight."""
    lines, n, wanted = search.lines, len(search.lines), Wanted()
    first, _, cell = _cells(search, FEW_SAMPLES + 1)
    inner = np.arange(1, FEW_SAMPLES + 1) + rng.uniform(-JITTER, JITTER, (n, FEW_SAMPLES))
    t = np.column_stack([lines.low, lines.position(first[:, None] + inner * cell[:, None]), lines.high])
    wanted.add(np.repeat(np.arange(n), t.shape[1]), t.reshape(-1))
    return _in_order(search.ask_all(wanted))


def look_at(search: Search, positions: FloatArray) -> Samples:
    """Single samples at the same positions of every line; each gets a partner when it needs one."""
    wanted, n = Wanted(), len(search.lines)
    wanted.add(np.repeat(np.arange(n), len(positions)), np.tile(positions, n))
    return search.ask_all(wanted)


def start_afresh(search: Search, s: Samples, places: Places, rng: np.random.Generator) -> Samples:
    """Forget the samples around these places and look there again, with pairs at random.

    Where samples are where they happen to mislead, more of them only add to the crowd.
    """
    pieces, wanted, keep = search.pieces(s), Wanted(), np.ones(len(s), dtype=bool)
    middle = (s.t[pieces.first] + s.t[pieces.last]) / 2
    for line in np.unique(places.line):
        own = np.flatnonzero(s.line[pieces.first] == line)
        at = np.searchsorted(s.t[pieces.last[own]], places.t[places.line == line])
        low, high = (own[np.clip(at + side, 0, len(own) - 1)] for side in (-AROUND, AROUND))
        for begin, end in _joined(middle[low], middle[high]):
            keep &= (s.line != line) | (s.t <= begin) | (s.t >= end)
            _add_pairs(search, line, begin, end, rng, wanted)
    return s.chosen(np.flatnonzero(keep)) + search.ask_all(wanted)


def _add_pairs(search: Search, line: int, begin: float, end: float, rng: np.random.Generator, wanted: Wanted) -> None:
    """Pairs all over a stretch of one line, each at random in a part of its own."""
    cell = (end - begin) / FIRST_PAIRS
    first = begin + (np.arange(FIRST_PAIRS) + rng.uniform(JITTER, 1 - JITTER, FIRST_PAIRS)) * cell
    which, pair = np.full(FIRST_PAIRS, line), search.new_numbers(FIRST_PAIRS)
    wanted.add(which, first, pair)
    wanted.add(which, first + PAIR_WIDTH * cell, pair)


def _joined(low: FloatArray, high: FloatArray) -> list[tuple[float, float]]:
    """Stretches that overlap as one."""
    joined: list[tuple[float, float]] = []
    for start, stop in sorted(zip(low.tolist(), high.tolist(), strict=True)):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((start, stop))
    return joined


def _cells(search: Search, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """First and last angle of each line, and its part for each of so many cells."""
    lines = search.lines
    first, last = lines.angle(lines.low), lines.angle(lines.high)
    return first, last, (last - first) / count


def _in_order(s: Samples) -> Samples:
    """Sorted by line and position, as sums of samples are."""
    return s + s.without_any()
