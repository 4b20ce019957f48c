"""The screen of a running command: a progress bar for each stage."""

from __future__ import annotations

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

from reluctant.oracles import Ledger, Rows

COLUMNS = (
    TextColumn("{task.description:<14}"),
    BarColumn(),
    MofNCompleteColumn(),
    TextColumn("{task.fields[unit]}"),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)


class Screen(Progress):
    """One bar per stage."""

    def __init__(self, console: Console) -> None:
        self.bars: dict[str, TaskID] = {}
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

    def _bar(self, name: str, total: int | None, unit: str) -> TaskID:
        if name not in self.bars:
            self.bars[name] = self.add_task(name, total=total, unit=unit)
        return self.bars[name]
