"""Give up on a target that hangs."""

from __future__ import annotations

import queue
import threading

from reluctant.errors import TargetTimeout
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Oracle, Wrapper

__all__ = ["Timed"]


class Timed(Wrapper):
    """Waits at most `seconds` for each call.

    The call runs in a thread that cannot be stopped from outside; a hung one is left behind and does
    not keep the program from ending.
    """

    transparent = True

    def __init__(self, inner: Oracle, seconds: float) -> None:
        super().__init__(inner)
        self.seconds = seconds

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on in a thread of its own; raise what it raises."""
        outbox: queue.SimpleQueue[FloatArray | BaseException] = queue.SimpleQueue()
        threading.Thread(target=self._answer_into, args=(outbox, rows), daemon=True).start()
        try:
            outcome = outbox.get(timeout=min(self.seconds, threading.TIMEOUT_MAX))
        except queue.Empty:
            raise TargetTimeout(
                f"target: no answer to {len(rows)} rows within {self.seconds:g} s. "
                "Raise timeout, ask smaller batches, or check that the target is alive."
            ) from None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _answer_into(self, outbox: queue.SimpleQueue[FloatArray | BaseException], rows: FloatArray) -> None:
        try:
            outbox.put(self.inner.answer(rows))
        except BaseException as error:  # handed to the caller's thread, whatever it is
            outbox.put(error)
