"""Shares of a budget: one part of a run may ask so many rows, or so long, and no more."""

from __future__ import annotations

import time

from reluctant.errors import BudgetExhausted, TimeExhausted
from reluctant.oracles import Counting
from reluctant.oracles.guard import guarded

__all__ = ["allowed"]


def allowed(oracle: Counting, rows: int | None = None, seconds: float | None = None) -> Counting:
    """The same target, which answers this many rows from now on, for this many seconds."""
    deadline = None if seconds is None else time.monotonic() + seconds

    def check(passed: int, asked: int) -> None:
        if rows is not None and passed + asked > rows:
            raise BudgetExhausted(budget=rows, spent=passed, asked=asked)
        if seconds is not None and deadline is not None and time.monotonic() > deadline:
            raise TimeExhausted(seconds=seconds, spent=passed, asked=asked)

    return guarded(oracle, check)
