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
        self.done: dict[str, int] = {}  # rows of each stage
        self.stage, self.before = "", 0  # under way, and its rows when it was entered
        super().__init__(*COLUMNS, console=console)

    def count(self, ledger: Ledger) -> None:
        """Move the bar of the stage under way."""
        done = ledger.stages.get(ledger.stage, Rows()).queries
        if ledger.stage != self.stage:
            self._end(self.stage)
            self._enter_again(ledger.stage)
            self.stage, self.before = ledger.stage, self.done.get(ledger.stage, 0)
        self.done[ledger.stage] = done
        bar = self._bar(ledger.stage, ledger.expected, "rows")
        expected = None if ledger.expected is None else max(self.before + ledger.expected, done)
        self.update(bar, completed=done, total=expected)

    def _end(self, stage: str) -> None:
        """A stage that is over is whole, however many rows it took, and its clock stops."""
        if stage in self.bars:
            self.update(self.bars[stage], total=self.done[stage])
            self.stop_task(self.bars[stage])

    def _enter_again(self, stage: str) -> None:
        """A stage that is entered again is not whole any more, and its clock goes on where it stopped."""
        if stage in self.bars:
            task = self._tasks[self.bars[stage]]
            task.start_time = self.get_time() - (task.elapsed or 0.0)
            task.total = task.stop_time = task.finished_time = None

    def part(self, name: str, done: int, of: int, part: str) -> None:
        """Move the bar of a longer run."""
        bar = self._bar(name, of, "parts")
        self.update(bar, completed=done, total=of, description=f"{name}: {part}" if part else name)

    def _bar(self, name: str, total: int | None, unit: str) -> TaskID:
        if name not in self.bars:
            self.bars[name] = self.add_task(name, total=total, unit=unit)
        return self.bars[name]
