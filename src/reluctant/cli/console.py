"""Words and progress on standard error; results alone go to standard output."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from reluctant.errors import ReluctantError
from reluctant.geometry import LineSearch
from reluctant.oracles import Counting, Ledger, Rows
from reluctant.oracles.retry import LOG
from reluctant.report.film import TerminalFilm

__all__ = ["Watch", "note", "progress", "say_error", "waits_told"]

# What is watched, how many parts of it are done, of how many, and which one begins.
Watch = Callable[[str, int, int, str], None]

COLUMNS = (
    TextColumn("{task.description:<14}"),
    BarColumn(),
    MofNCompleteColumn(),
    TextColumn("{task.fields[unit]}"),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)


def note(text: str) -> None:
    """Say something to the person at the terminal."""
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(text)


def say_error(error: ReluctantError) -> None:
    """Say what went wrong, quiet or not, with the name under which the messages explain it."""
    note(f"error: {error} [{error.slug}]")


@contextmanager
def waits_told(quiet: bool) -> Iterator[None]:
    """Say why and how long a target is waited for; nothing when quiet."""
    teller = logging.NullHandler() if quiet else _Note()
    LOG.addHandler(teller)
    spread, LOG.propagate = LOG.propagate, False
    try:
        yield
    finally:
        LOG.removeHandler(teller)
        LOG.propagate = spread


class _Note(logging.Handler):
    """Says what is logged to the person at the terminal."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


@contextmanager
def progress(oracle: Counting, quiet: bool, *, pause: float = 0.0, console: Console | None = None) -> Iterator[Watch]:
    """Show a bar for each stage while rows come in, and the search for creases as a picture.

    Nothing when quiet or not at a terminal. Every picture stays for `pause` seconds at least. Gives a function that
    is told of parts of a longer run; away from a terminal it says them line by line.
    """
    console = console or Console(stderr=True)
    if quiet or not console.is_terminal:
        yield _nothing if quiet else _say_part
        return
    with _Screen(*COLUMNS, console=console) as screen:
        bars = oracle.ledger.listener = _Bars(screen)
        oracle.ledger.viewer = lambda view: screen.show(view, pause)
        try:
            yield bars.part
        finally:
            oracle.ledger.listener = oracle.ledger.viewer = None


class _Screen(Progress):
    """Bars, and above them the last picture that was shown."""

    picture: RenderableType | None = None

    def show(self, view: Any, pause: float) -> None:
        """Draw a view, if there is a picture of it."""
        if isinstance(view, LineSearch):
            self.picture = TerminalFilm(view)
            self.refresh()
            time.sleep(pause)

    def get_renderables(self) -> Iterable[RenderableType]:
        """The picture, then the bars."""
        if self.picture is not None:
            yield self.picture
        yield from super().get_renderables()


class _Bars:
    """One bar per stage, moved by the ledger."""

    def __init__(self, bars: Progress) -> None:
        self.bars = bars
        self.tasks: dict[str, TaskID] = {}

    def __call__(self, ledger: Ledger) -> None:
        stage = ledger.stage
        if stage not in self.tasks:
            self.tasks[stage] = self.bars.add_task(stage, total=ledger.expected, unit="rows")
        done = ledger.stages.get(stage, Rows()).queries
        total = max(ledger.expected or 0, done) or None
        self.bars.update(self.tasks[stage], completed=done, total=total)

    def part(self, what: str, done: int, of: int, doing: str) -> None:
        """Move the bar of a longer run."""
        if what not in self.tasks:
            self.tasks[what] = self.bars.add_task(what, total=of, unit="parts")
        self.bars.update(self.tasks[what], completed=done, total=of, description=f"{what}: {doing}" if doing else what)


def _nothing(what: str, done: int, of: int, doing: str) -> None:
    pass


def _say_part(what: str, done: int, of: int, doing: str) -> None:
    if doing:
        note(f"{what} {done + 1}/{of}: {doing}")
