"""A request to end (SIGTERM, as a scheduler or container sends it) is treated like Ctrl-C: what is known is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

__all__ = ["INTERRUPTED", "TERMINATED", "Stop", "stoppable"]

INTERRUPTED = 130  # what a shell gives for Ctrl-C
TERMINATED = 143  # and for SIGTERM


@dataclass
class Stop:
    """Whether the end was asked for. armed: then the work under way is interrupted; else it is let finish."""

    asked: bool = False
    armed: bool = True

    @property
    def status(self) -> int:
        """The exit status of work that was stopped."""
        return TERMINATED if self.asked else INTERRUPTED

    def _ring(self, _: int, __: FrameType | None) -> None:
        first, self.asked = not self.asked, True
        if first and self.armed:
            raise KeyboardInterrupt


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Turn the first SIGTERM into `KeyboardInterrupt`, where signals can be caught: in the main thread.

    One that nobody has caught ends the command with its status.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGTERM, stop._ring)
    try:
        yield stop
    except KeyboardInterrupt:
        if stop.asked:
            raise SystemExit(TERMINATED) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
