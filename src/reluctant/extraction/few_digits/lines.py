"""Which lines are worth growing: on a crowded one a neuron is easily missed, and reading another costs little."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from reluctant.extraction.failures import StageFailed
from reluctant.extraction.few_digits.line import OnLine, read_line
from reluctant.extraction.few_digits.view import View

__all__ = ["promising_lines"]

CROWDED = 64  # neurons, from which on two of them are often taken for one
SPARE_SHARE = 0.1  # of the rows that all other directions will cost, for lines that are read to choose from
ROWS_A_WEIGHT = 4.0  # that other directions cost
MOST_SPARE = 6


def promising_lines(view: View, rng: np.random.Generator) -> Iterator[OnLine | StageFailed]:
    """Lines without end, those with the most neurons first; a line that could not be read is told as a failure."""
    while True:
        before = view.oracle.queries
        first = _read(view, rng)
        if isinstance(first, StageFailed):
            yield first
            continue
        spare = _spare_lines(first, view.oracle.queries - before)
        others = [_read(view, rng) for _ in range(spare)]
        lines = [first, *(line for line in others if isinstance(line, OnLine))]
        yield from sorted(lines, key=lambda line: -line.network.widths[1])


def _spare_lines(first: OnLine, rows: int) -> int:
    neurons = first.network.widths[1]
    if neurons < CROWDED:
        return 0
    return int(min(MOST_SPARE, SPARE_SHARE * ROWS_A_WEIGHT * neurons * first.view.dim / rows))


def _read(view: View, rng: np.random.Generator) -> OnLine | StageFailed:
    try:
        return read_line(view, rng)
    except StageFailed as failure:
        return failure
