"""Shares of a budget: one part of a run may ask so many rows, or compute so long, and no more."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from reluctant.errors import BudgetExhausted, ReluctantError, TimeExhausted
from reluctant.oracles import Counting
from reluctant.oracles.limits import guarded

__all__ = ["Allowance", "Clock", "ShareExhausted"]

HANDING_OVER = ("reluctant.audit", "contextlib")  # modules in which a result is on its way, and nothing is computed
RING_AGAIN = 0.05  # seconds: a ring that came at a bad moment is not the last
SHORTEST = 1e-6  # seconds that a timer can tell from none


class ShareExhausted(BudgetExhausted):
    """The next rows would pass what one part of a run may ask, which is not the budget that its user gave."""

    def __init__(self, *, share: int, spent: int, asked: int, part: str = "this part") -> None:
        ReluctantError.__init__(
            self,
            f"The share of the budget for {part} is {share:,} rows, {spent:,} of them spent: {asked:,} more were not "
            "sent. Raise the budget (--budget), which all steps share.",
        )
        self.budget, self.spent, self.asked = share, spent, asked


@dataclass
class Allowance:
    """So many rows, and so many seconds of processor time; None is no limit. part: whose they are, in words.

    passed: rows that went through, refused ones not counted; answered: those of them that came to an answer. time_up:
    the time was over before the rows were.
    The clock runs inside `with allowance.running():`. A method that computes without asking is stopped too, where the
    system has a timer for that; never while a question is under way, so that no answer is lost.
    """

    rows: int | None = None
    seconds: float | None = None
    part: str = "this part"
    passed: int = field(default=0, init=False)
    answered: int = field(default=0, init=False)
    time_up: bool = field(default=False, init=False)
    _asking: bool = field(default=False, init=False)
    _deadline: float = field(default=float("inf"), init=False)

    def of(self, oracle: Counting) -> Counting:
        """The same target, within this allowance."""
        return guarded(oracle, self.question)

    @contextmanager
    def question(self, passed: int, asked: int) -> Iterator[None]:
        """Raise if the next rows are more than allowed; else let them through."""
        if self.rows is not None and passed + asked > self.rows:
            raise ShareExhausted(share=self.rows, spent=passed, asked=asked, part=self.part)
        if time.process_time() > self._deadline:
            self.stop(asked)
        self.passed, self._asking = passed + asked, True
        try:
            yield
            self.answered += asked
        finally:
            self._asking = False

    @property
    def in_vain(self) -> bool:
        """True if questions were asked, and not one was answered."""
        return self.passed > 0 and not self.answered

    def stop(self, asked: int = 0) -> None:
        """The time is over."""
        self.time_up = True
        raise TimeExhausted(seconds=self.seconds or 0.0, spent=self.passed, asked=asked)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start the clock."""
        if self.seconds is None:
            yield
            return
        self._deadline = time.process_time() + self.seconds
        with _timer(self.seconds, self._ring):
            yield

    def _ring(self, _: int, frame: FrameType | None) -> None:
        if not (self._asking or self.time_up or _handing_over(frame)):  # else the next question is refused
            self.stop()


class Clock:
    """Processor time that several parts share: each gets its part of what is left, so that all keep to the whole."""

    def __init__(self, seconds: float | None, parts: int) -> None:
        self.deadline = None if seconds is None else time.process_time() + seconds
        self.parts = max(parts, 1)

    @property
    def left(self) -> float | None:
        """Seconds until the end, None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.process_time())

    def share(self, most: float = 1.0) -> float | None:
        """Seconds of the next part, `most` times its equal share where that much is left."""
        left, parts = self.left, self.parts
        self.parts = max(parts - 1, 1)
        return None if left is None else min(left, most * left / parts)


def _handing_over(frame: FrameType | None) -> bool:
    """True if the method has returned, or is beside its work for a moment: what it has found must not be lost."""
    name = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    return name.startswith(HANDING_OVER)


@contextmanager
def _timer(seconds: float, ring: Any) -> Iterator[None]:
    """Ring after so much processor time, and go on ringing; not at all off the main thread or without such timers."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, max(seconds, SHORTEST), RING_AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
