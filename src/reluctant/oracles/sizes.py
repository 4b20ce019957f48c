"""How large the inputs were that a target answered, and those it failed on: whether their size may be why."""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import ceil, floor, inf, log10

import numpy as np

from reluctant.numerics import FloatArray

__all__ = ["Sizes", "size_of"]

DIGITS = 3  # of a bound that is named: rounded inwards, it stays inside what was answered


def size_of(rows: FloatArray) -> float:
    """The largest number of the rows, whatever its sign."""
    return float(np.abs(rows).max())


class Sizes:
    """What became of the calls to a target; several threads may tell.

    low, high: bounds of all numbers that were answered. example: a row that was. most_rows: the most in one answered
    call. failed, failed_rows: size and rows of the smallest and of the shortest call that was given up.
    """

    def __init__(self) -> None:
        self.low, self.high, self.most_rows = inf, -inf, 0
        self.failed, self.failed_rows = inf, inf
        self.example: FloatArray | None = None
        self._lock = threading.Lock()

    def answered(self, rows: FloatArray) -> None:
        """These were answered."""
        low, high = float(rows.min()), float(rows.max())
        with self._lock:
            self.low, self.high = min(self.low, low), max(self.high, high)
            self.most_rows = max(self.most_rows, len(rows))
            self.example = rows[0].copy() if self.example is None else self.example

    def given_up(self, rows: FloatArray) -> None:
        """These were not, however often they were asked."""
        with self._lock:
            self.failed, self.failed_rows = min(self.failed, size_of(rows)), min(self.failed_rows, len(rows))

    @property
    def largest(self) -> float:
        """Size of the largest inputs that were answered; below 0 if none were."""
        return max(-self.low, self.high)

    @property
    def tell_apart(self) -> bool:
        """True if all calls that failed have larger inputs than all that were answered, of which there are some."""
        return self.example is not None and self.largest < self.failed < inf

    def expects_failure(self, rows: FloatArray) -> bool:
        """True if inputs no larger than these were given up, and none as large were answered; or none at all were."""
        never_answered = self.example is None and self.failed < inf
        return never_answered or (self.tell_apart and size_of(rows) >= self.failed)

    def may_be_too_many(self, rows: FloatArray) -> bool:
        """True of more rows than were answered at once, with no larger numbers: one row alone tells nothing of them."""
        return len(rows) > self.most_rows and size_of(rows) <= self.largest

    def beside(self, rows: FloatArray) -> str:
        """How large these rows are, beside those that were answered."""
        known = "nothing was answered yet" if self.example is None else f"answered so far: up to {self.largest:.3g}"
        return f"{_counted(len(rows))} with numbers up to {size_of(rows):.3g} in size ({known})"

    def _named(self) -> tuple[str, str]:
        """Bounds that were answered, in few digits; by name alone where there is nothing between them."""
        low, high = _inwards(self.low, ceil), _inwards(self.high, floor)
        return (f"{low:g}", f"{high:g}") if low < high else ("LOW", "HIGH")

    def advice(self) -> str:
        """The range to give where size tells failures from answers; empty where it does not."""
        if not self.tell_apart:
            return ""
        low, high = self._named()
        more = f" They had more rows too: at most {self.most_rows} were answered at once (batch=, --batch)."
        return (
            f"All that failed have larger numbers (from {self.failed:.3g} in size) than all that was answered (up to "
            f"{self.largest:.3g}). If it takes no larger ones, give a range that was answered: domain=({low}, {high}) "
            f"(--domain={low},{high}).{more if self.failed_rows > self.most_rows else ''}"
        )


def _inwards(bound: float, rounded: Callable[[float], int]) -> float:
    unit = 10.0 ** (floor(log10(abs(bound))) - DIGITS + 1) if bound else 1.0
    return rounded(bound / unit) * unit


def _counted(rows: int) -> str:
    return f"{rows} rows" if rows > 1 else "1 row"
