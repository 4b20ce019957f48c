"""Ways between two inputs, halved again and again towards where the answer changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.numerics import FloatArray

__all__ = ["Ask", "Ways"]

Ask = Callable[[FloatArray], FloatArray]


@dataclass
class Ways:
    """Rows (n, d) at both ends of n ways, and the answers (n, m) to them."""

    start: FloatArray
    at_start: FloatArray
    end: FloatArray
    at_end: FloatArray

    @property
    def apart(self) -> FloatArray:
        """How far apart the answers (n,) are at both ends."""
        return np.asarray(np.abs(self.at_start - self.at_end).max(axis=1))

    def halve(self, ask: Ask, least: float = 0.0) -> None:
        """Keep the half of each way that changes more; ways that change by less than `least` stay as they are."""
        on = np.flatnonzero((self.apart >= least) & (self.apart > 0))
        if not len(on):
            return
        middle = (self.start[on] + self.end[on]) / 2
        at = ask(middle)
        to_start, to_end = (np.abs(at - side[on]).max(axis=1) for side in (self.at_start, self.at_end))
        first = to_start >= to_end
        self.end[on[first]], self.at_end[on[first]] = middle[first], at[first]
        self.start[on[~first]], self.at_start[on[~first]] = middle[~first], at[~first]
