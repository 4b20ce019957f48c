"""Ask again when the target drops a call, with growing pauses, and not before the time it names.

Whoever waits is told: by the logger of this module, from the second failure of a call on. A target that answers other
rows meanwhile is not down, so nothing is gained by long pauses; and once the size of inputs tells those it fails on
from those it answers, such calls are repeated once and no more.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from reluctant.errors import TargetBusy, TargetError, TargetRefused, TargetUnavailable
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Oracle, Wrapper
from reluctant.oracles.sizes import Sizes

__all__ = ["LOG", "Retrying", "sizes_told"]

LOG = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
LONGEST_WAIT_SECONDS = 600.0  # a server that asks for more is given up: a person should decide
TOLD_AT_ONCE_SECONDS = 5.0  # a wait that a person would wonder about
TOLD_WHY = 2  # failures of a call, whose error is told in full
LOOKS_AFTER = 3  # failures of a call, before a row that was answered is asked again
IF_EXPECTED = 1  # retries of a call that is expected to fail


class Retrying(Wrapper):
    """Repeats a call that failed with `TargetUnavailable`, at most `retries` times.

    Wrong answers are not retried: a target that answers nonsense once is not to be trusted the second time. Nor are
    refusals, but the range that was answered is named in those of rows.
    Cost: the rows of every attempt, and one row before each from the fourth on, to see whether the target is down.
    """

    transparent = True

    def __init__(self, inner: Oracle, retries: int, sleep: Callable[[float], object] = time.sleep) -> None:
        super().__init__(inner)
        self.retries = retries
        self.sizes = Sizes()
        self._sleep = sleep

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, again and again if need be."""
        tried = 1
        while True:
            try:
                answers = self.inner.answer(rows)
            except TargetUnavailable as error:
                tries = 1 + self._retries(rows, error)
                if tried >= tries or _wanted(error) > LONGEST_WAIT_SECONDS:
                    self._give_up(rows, error, tried)
                    raise
                self._wait(rows, error, tried, tries)
                tried += 1
            except TargetRefused as error:
                self._told_of(rows, error)
                raise
            else:
                self.sizes.answered(rows)
                return answers

    def _retries(self, rows: FloatArray, error: TargetUnavailable) -> int:
        expected = not isinstance(error, TargetBusy) and self.sizes.expects_failure(rows)
        return min(self.retries, IF_EXPECTED) if expected else self.retries

    def _wait(self, rows: FloatArray, error: TargetUnavailable, tried: int, tries: int) -> None:
        pause = max(self._pause(rows, error, tried), _wanted(error))
        if tried > 1 or pause >= TOLD_AT_ONCE_SECONDS:
            why = f" {error}" if tried <= TOLD_WHY else ""
            LOG.warning("Try %d of %d failed, next in %.3g s: %s.%s", tried, tries, pause, self.sizes.beside(rows), why)
        self._sleep(pause)

    def _pause(self, rows: FloatArray, error: TargetUnavailable, tried: int) -> float:
        """Twice as long each time; short where the target answers other rows, and is not only busy."""
        is_busy = isinstance(error, TargetBusy) or self.sizes.may_be_too_many(rows)
        if tried >= LOOKS_AFTER and not is_busy and self._answers_others():
            return FIRST_PAUSE_SECONDS
        return float(min(FIRST_PAUSE_SECONDS * 2 ** (tried - 1), LONGEST_PAUSE_SECONDS))

    def _answers_others(self) -> bool:
        """True if a row that was answered before is answered now."""
        if self.sizes.example is None:
            return False
        try:
            self.inner.answer(self.sizes.example[None])
        except TargetError:
            return False
        return True

    def _give_up(self, rows: FloatArray, error: TargetUnavailable, tried: int) -> None:
        """Put into the error how often was asked for what, and the range that was answered if that may help."""
        beside = self.sizes.beside(rows)
        busy = isinstance(error, TargetBusy)
        if not busy:
            self.sizes.given_up(rows)
        advice = "" if busy else self.sizes.advice()
        often = f"Tried {tried} times" if tried > 1 else "Tried once"
        error.args = (" ".join(part for part in (str(error), f"{often}: {beside}.", advice) if part),)

    def _told_of(self, rows: FloatArray, error: TargetRefused) -> None:
        """Put the range that was answered into a refusal of these rows, if others were answered."""
        if not error.these_rows or self.sizes.example is None:
            return
        beside = self.sizes.beside(rows)
        self.sizes.given_up(rows)
        error.args = (" ".join(part for part in (str(error), f"Asked: {beside}.", self.sizes.advice()) if part),)


def sizes_told(oracle: Oracle | None) -> Sizes | None:
    """What became of calls to an opened target, where they are repeated; None where they are not."""
    while oracle is not None and not isinstance(oracle, Retrying):
        oracle = getattr(oracle, "inner", None)
    return None if oracle is None else oracle.sizes


def _wanted(error: TargetUnavailable) -> float:
    """Seconds that the target asks for."""
    return error.retry_after if isinstance(error, TargetBusy) else 0.0
