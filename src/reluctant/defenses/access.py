"""Less to ask: a limit on the rows that are answered, and inputs clipped to the range of honest ones."""

from __future__ import annotations

import threading
from copy import deepcopy
from typing import Self

import numpy as np

from reluctant.defenses.base import Defense
from reluctant.errors import InvalidInput, TargetRefused
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Oracle

__all__ = ["ClippedInputs", "QueryLimit"]


class QueryLimit(Defense):
    """Answers so many rows and no more; a batch that would pass the limit is refused whole."""

    def __init__(self, inner: Oracle, rows: int) -> None:
        super().__init__(inner)
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise InvalidInput.about("limit", got=repr(rows), expected="a whole number of rows, at least 1")
        self.rows, self.answered = rows, 0
        self._lock = threading.Lock()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """A copy counts for itself, from where this one is."""
        again = type(self)(deepcopy(self.inner, memo), self.rows)
        again.title, again.answered = self.title, self.answered
        return again

    def answer(self, rows: FloatArray) -> FloatArray:
        """Refuse, or count and pass on."""
        with self._lock:
            if self.answered + len(rows) > self.rows:
                raise TargetRefused(
                    f"target: refused {len(rows)} rows after {self.answered}: its limit is {self.rows} rows. "
                    "Ask with fewer, or wait until the owner raises it."
                )
            self.answered += len(rows)
        return self.inner.answer(rows)


class ClippedInputs(Defense):
    """Every coordinate is moved into [low, high] before the target sees it."""

    def __init__(self, inner: Oracle, low: float, high: float) -> None:
        super().__init__(inner)
        if not low < high:
            raise InvalidInput.about("clip", got=f"{low}:{high}", expected="bounds low:high with low below high")
        self.low, self.high = low, high

    def answer(self, rows: FloatArray) -> FloatArray:
        """Clip, then pass on."""
        return self.inner.answer(np.clip(rows, self.low, self.high))
