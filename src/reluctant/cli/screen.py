"""The screen of a running command: a progress bar for each stage, below a live picture of the search for creases."""

from __future__ import annotations

import time
from collections.abc import Iterable
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

from reluctant.geometry import LineSearch
from reluctant.oracles import Ledger, Rows
from reluctant.report.film import TerminalFilm

COLUMNS = (
    TextColumn("{task.description:<14}"),
    BarColumn(),
    MofNCompleteColumn(),
    TextColumn("{task.fields[unit]}"),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)


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
            self.picture = TerminalFilm(view)
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
