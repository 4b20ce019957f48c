"""When the next request may go: a rate limit, and the time a server asks for, over all connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Pace"]


class Pace:
    """Spaces requests out so that at most `rate` rows a second are sent, whoever sends them."""

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.rate = rate
        self._clock, self._sleep = clock, sleep
        self._free_at = clock()
        self._lock = threading.Lock()

    def wait(self, rows: int) -> None:
        """Wait for the turn of a request of so many rows."""
        with self._lock:
            now = self._clock()
            turn = max(self._free_at, now)
            self._free_at = turn + (rows / self.rate if self.rate else 0.0)
        if turn > now:
            self._sleep(turn - now)

    def hold(self, seconds: float) -> None:
        """Let nothing go for so long: the server asked for it."""
        with self._lock:
            self._free_at = max(self._free_at, self._clock() + seconds)
