"""A target that keeps account of its own CPU time, to be compared with that of the whole run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from reluctant.numerics import FloatArray

__all__ = ["Timed"]


@dataclass
class Timed:
    """Answers as `answer` does; `seconds` is the CPU time it has used so far."""

    answer: Callable[[FloatArray], FloatArray]
    seconds: float = field(default=0.0)

    def __call__(self, x: FloatArray) -> FloatArray:
        """Answers to rows (n, d)."""
        start = time.process_time()
        answers = self.answer(x)
        self.seconds += time.process_time() - start
        return answers
