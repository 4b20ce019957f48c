"""Ask again when the target drops a call, with growing pauses, and not before the time it names."""

from __future__ import annotations

import time
from collections.abc import Callable

from reluctant.errors import TargetBusy, TargetUnavailable
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Oracle, Wrapper

__all__ = ["Retrying"]

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
LONGEST_WAIT_SECONDS = 600.0  # a server that asks for more is given up: a person should decide


class Retrying(Wrapper):
    """Repeats a call that failed with `TargetUnavailable`, at most `retries` times.

    Wrong answers are not retried: a target that answers nonsense once is not to be trusted the second time.
    """

    transparent = True

    def __init__(self, inner: Oracle, retries: int, sleep: Callable[[float], object] = time.sleep) -> None:
        super().__init__(inner)
        self.retries = retries
        self._sleep = sleep

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, again and again if need be."""
        pause = FIRST_PAUSE_SECONDS
        for _ in range(self.retries):
            try:
                return self.inner.answer(rows)
            except TargetUnavailable as error:
                wanted = error.retry_after if isinstance(error, TargetBusy) else 0.0
                if wanted > LONGEST_WAIT_SECONDS:
                    raise
                self._sleep(max(pause, wanted))
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        return self.inner.answer(rows)
