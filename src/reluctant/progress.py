"""Progress of a verb called from Python: stage, rows and an estimate of the time left, in a terminal or a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any

from reluctant.errors import InvalidInput
from reluctant.oracles.base import Oracle
from reluctant.oracles.ledger import Counting, Ledger, Rows

__all__ = ["show_progress"]

BETWEEN = 0.1  # seconds between two updates
WIDTH = 78  # of the line in a terminal


@contextmanager
def show_progress(
    oracle: Oracle, to: Callable[[str, float | None, bool], None] | None = None, *,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[None]:  # fmt: skip
    """Show the progress of verbs on this oracle: a line in a terminal, a bar in a notebook.

    Each stage counts its rows. Where a stage knows how many it needs, the time left follows from its pace.

    Arguments:
        oracle: from `open_oracle`; verbs inside the block must use it.
        to: your own display, called up to ten times a second with a text, the share of the stage that is done (None
            where it is unknown), and True at the end. An exception that it raises ends the verb.
        clock: seconds, for tests.
    """
    if not isinstance(oracle, Counting):
        raise InvalidInput.about("oracle", got=type(oracle).__name__, expected="an oracle from rl.open_oracle(...)")
    shown, before = _Shown(to or _display(), clock), oracle.ledger.listener
    oracle.ledger.listener = shown.update
    try:
        yield
    finally:
        oracle.ledger.listener = before
        shown.end(oracle.ledger)


@dataclass
class _Shown:
    """The state of the screen: the stage, its first row and time, and when it was last drawn."""

    draw: Callable[[str, float | None, bool], None]
    clock: Callable[[], float]
    stage: str = ""
    rows: int = 0
    began: float = 0.0
    drawn: float = field(default=float("-inf"))

    def update(self, ledger: Ledger) -> None:
        """Rows came in."""
        now = self.clock()
        done = ledger.stages.get(ledger.stage, Rows()).queries
        if ledger.stage != self.stage:
            self.stage, self.rows, self.began = ledger.stage, done, now
            self.drawn = float("-inf")
        if now - self.drawn >= BETWEEN:
            self.drawn = now
            self.draw(*self._line(ledger, done, now), False)

    def end(self, ledger: Ledger) -> None:
        """The last state stays on the screen."""
        stages = ", ".join(f"{stage} {rows.queries:,}" for stage, rows in ledger.stages.items() if rows.queries)
        self.draw(f"{ledger.total.queries:,} rows: {stages}", 1.0, True)

    def _line(self, ledger: Ledger, done: int, now: float) -> tuple[str, float | None]:
        if not ledger.expected:
            return f"{ledger.stage}: {done:,} rows", None
        made, expected = done - self.rows, max(ledger.expected, done - self.rows)
        left = (now - self.began) * (expected - made) / made if made else None
        after = "" if left is None else f", about {_seconds(left)} left"
        return f"{ledger.stage}: {made:,} of {expected:,} rows{after}", made / expected


def _seconds(left: float) -> str:
    return f"{left:.0f} s" if left < 120 else f"{left / 60:.0f} min"


def _display() -> Callable[[str, float | None, bool], None]:
    """A bar in a notebook, a line in a terminal, one last line elsewhere."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is not None and hasattr(shell, "kernel"):
        handle = ipython.display.display(ipython.display.HTML(""), display_id=True)
        return lambda text, share, last: handle.update(ipython.display.HTML(_bar(text, share)))
    return _write_line if sys.stderr.isatty() else _write_last


def _bar(text: str, share: float | None) -> str:
    value = "" if share is None else f' value="{share:.3f}"'
    return f"<progress{value}></progress> {escape(text)}"


def _write_line(text: str, share: float | None, last: bool) -> None:
    print(f"\r{text[:WIDTH]:<{WIDTH}}", end="\n" if last else "", file=sys.stderr, flush=True)


def _write_last(text: str, share: float | None, last: bool) -> None:
    if last:
        print(text, file=sys.stderr)
