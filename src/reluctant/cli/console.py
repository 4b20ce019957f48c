"""Words and progress on standard error; results alone go to standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from reluctant.oracles import Counting, Ledger, Rows

__all__ = ["note", "progress"]


def note(text: str) -> None:
    """Say something to the person at the terminal."""
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(text)


@contextmanager
def progress(oracle: Counting, quiet: bool) -> Iterator[None]:
    """Show a bar for each stage while rows come in; nothing when quiet or not at a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    columns = (
        TextColumn("{task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        oracle.ledger.listener = _Bars(bars)
        try:
            yield
        finally:
            oracle.ledger.listener = None


class _Bars:
    """One bar per stage, moved by the ledger."""

    def __init__(self, bars: Progress) -> None:
        self.bars = bars
        self.tasks: dict[str, TaskID] = {}

    def __call__(self, ledger: Ledger) -> None:
        stage = ledger.stage
        if stage not in self.tasks:
            self.tasks[stage] = self.bars.add_task(stage, total=ledger.expected)
        done = ledger.stages.get(stage, Rows()).queries
        total = max(ledger.expected or 0, done) or None
        self.bars.update(self.tasks[stage], completed=done, total=total)
