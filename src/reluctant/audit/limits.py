"""Shares of a budget: one part of a run may ask so many rows, or compute so long, and no more."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from reluctant.errors import BudgetExhausted, TimeExhausted
from reluctant.oracles import Counting
from reluctant.oracles.guard import guarded

__all__ = ["Allowance"]


@dataclass
class Allowance:
    """So many rows, and so many seconds of processor time, from now on; None is no limit.

    passed: rows that went through, refused ones not counted. time_up: the time was over before the rows were.
    """

    rows: int | None = None
    seconds: float | None = None
    passed: int = field(default=0, init=False)
    time_up: bool = field(default=False, init=False)
    start: float = field(default_factory=time.process_time, init=False)

    def __call__(self, passed: int, asked: int) -> None:
        """Raise if the next rows are more than allowed."""
        if self.rows is not None and passed + asked > self.rows:
            raise BudgetExhausted(budget=self.rows, spent=passed, asked=asked)
        if self.seconds is not None and time.process_time() - self.start > self.seconds:
            self.time_up = True
            raise TimeExhausted(seconds=self.seconds, spent=passed, asked=asked)
        self.passed = passed + asked

    def of(self, oracle: Counting) -> Counting:
        """The same target, within this allowance."""
        return guarded(oracle, self)
