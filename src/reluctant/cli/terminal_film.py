"""The screen of a running command: a bar for each stage, and the search for creases as a picture above them.

The picture is drawn anew after every round of the search. Braille dots, two across and four down in a character, make
the curve where the function is known; questions about the rest are single dots. Below it stands a mark for every crease
found, brighter if it is new.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.panel import Panel
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from reluctant.geometry import LineSearch
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Ledger, Rows
from reluctant.report.heights import Heights

__all__ = ["Film", "Screen"]

COLUMNS = (
    TextColumn("{task.description:<14}"),
    BarColumn(),
    MofNCompleteColumn(),
    TextColumn("{task.fields[unit]}"),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)

ROWS = 8
WIDEST = 100  # characters
NARROWEST = 40
ACROSS, DOWN = 2, 4  # dots of a braille character
BRAILLE = 0x2800
DOT_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
FRAME = 4  # characters of the panel's frame and padding
BLANK = (" ", "")
CURVE, QUESTION, FOUND, NEW = "cyan", "bright_black", "red", "bold bright_yellow"


class Screen(Progress):
    """One bar per stage, and above them the last picture that was shown."""

    def __init__(self, console: Console) -> None:
        self.bars: dict[str, TaskID] = {}
        self.picture: RenderableType | None = None
        super().__init__(*COLUMNS, console=console)

    def count(self, ledger: Ledger) -> None:
        """Move the bar of the stage under way."""
        done = ledger.stages.get(ledger.stage, Rows()).queries
        bar = self._bar(ledger.stage, ledger.expected, "rows")
        self.update(bar, completed=done, total=max(ledger.expected or 0, done) or None)

    def part(self, name: str, done: int, of: int, part: str) -> None:
        """Move the bar of a longer run."""
        bar = self._bar(name, of, "parts")
        self.update(bar, completed=done, total=of, description=f"{name}: {part}" if part else name)

    def show(self, view: Any, pause: float) -> None:
        """Draw a view, if there is a picture of it."""
        if isinstance(view, LineSearch):
            self.picture = Film(view)
            self.refresh()
            time.sleep(pause)

    def get_renderables(self) -> Iterable[RenderableType]:
        """The picture, then the bars."""
        if self.picture is not None:
            yield self.picture
        yield from super().get_renderables()

    def _bar(self, name: str, total: int | None, unit: str) -> TaskID:
        if name not in self.bars:
            self.bars[name] = self.add_task(name, total=total, unit=unit)
        return self.bars[name]


class Film:
    """One picture of a search: the first output where it is known, what was asked, the creases found."""

    def __init__(self, search: LineSearch) -> None:
        self.search = replace(search, answers=search.answers[:, :1])
        self.heights = Heights.of(self.search)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Nothing where braille cannot be shown or there is no room."""
        if options.ascii_only or options.max_width < NARROWEST:
            return
        width = min(options.max_width, WIDEST)
        yield Panel(self.picture(width - FRAME), title=self.title(), title_align="left", width=width, style="dim")

    def title(self) -> str:
        """The figures."""
        s = self.search
        return f"the function along a line: round {s.rounds}, {len(s.t)} rows, {len(s.creases)} creases"

    def picture(self, width: int) -> Text:
        """The curve, and below it the creases."""
        curve, questions = self.curve(width), self.questions(width)
        rows = zip(_characters(curve), _characters(questions & ~curve), strict=True)
        lines = [_line(map(_character, *row)) for row in rows]
        return Text("\n", style="not dim").join([*lines, self.creases(width)])

    def curve(self, width: int) -> BoolArray:
        """Dots of the first output where it is known, joined from column to column."""
        first, last = self.search.angles[[0, -1]]
        angles = np.linspace(first, last, width * ACROSS)
        rows, known = _dot_rows(self.heights.at(angles)[:, 0]), Heights.known(self.search, angles)
        before = np.where(np.append(False, known[:-1]), np.append(0, rows[:-1]), rows)
        down = np.arange(ROWS * DOWN)[:, None]
        return (down >= np.minimum(rows, before)) & (down <= np.maximum(rows, before)) & known

    def questions(self, width: int) -> BoolArray:
        """A dot for every question, at its answer."""
        dots = np.zeros((ROWS * DOWN, width * ACROSS), dtype=bool)
        heights = self.heights.at(self.search.angles)[:, 0]
        dots[_dot_rows(heights), self.columns(self.search.angles, width * ACROSS)] = True
        return dots

    def creases(self, width: int) -> Text:
        """A mark in every column with a crease, brighter if one of them was found in the last round."""
        columns = self.columns(np.arctan(self.search.creases / self.search.scale), width)
        new = columns[self.search.found_in == self.search.rounds - 1].tolist()
        marks = dict.fromkeys(columns.tolist(), ("▲", FOUND)) | dict.fromkeys(new, ("▲", NEW))
        return _line(marks.get(column, BLANK) for column in range(width))

    def columns(self, angles: FloatArray, count: int) -> IntArray:
        """Which of so many columns each angle falls into."""
        first, last = self.search.angles[[0, -1]]
        return np.clip(((angles - first) / (last - first) * count).astype(int), 0, count - 1)


def _character(curve: int, questions: int) -> tuple[str, str]:
    """A character and its style."""
    return (chr(BRAILLE + curve + questions), CURVE if curve else QUESTION) if curve or questions else BLANK


def _line(characters: Iterable[tuple[str, str]]) -> Text:
    """Characters of one style are written together."""
    runs = groupby(characters, key=itemgetter(1))
    return Text.assemble(*(("".join(character for character, _ in run), style) for style, run in runs))


def _dot_rows(heights: FloatArray) -> IntArray:
    """Heights as rows of dots, counted from the top."""
    return np.clip(np.rint((1 - heights) * (ROWS * DOWN - 1)), 0, ROWS * DOWN - 1).astype(int)


def _characters(dots: BoolArray) -> IntArray:
    """Braille patterns (ROWS, width), from dots."""
    cells = dots.reshape(ROWS, DOWN, -1, ACROSS)
    return np.asarray((cells * DOT_BITS[:, None, :]).sum(axis=(1, 3)))
