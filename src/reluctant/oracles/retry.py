"""`Retrying`: failed calls asked again, after growing pauses or the wait the server names (429, 503).

The logger of this module reports every wait, from the second failure of a call on. A target that answers other rows
meanwhile is not down, so long pauses gain nothing. `AnsweredSizes` keeps how large the inputs of answered and of
failed calls were. Once size tells them apart, calls that are expected to fail are repeated once and no more, and
the error names a range that was answered.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from math import ceil, floor, inf, log10

import numpy as np

from reluctant.errors import TargetBusy, TargetError, TargetRefused, TargetUnavailable
from reluctant.messages import Diagnosis, Remedy
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Oracle, Wrapper, layers

LOG = logging.getLogger(__name__)
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
LONGEST_WAIT_SECONDS = 600.0  # a server that asks for more is given up: a person should decide
WARN_AT_ONCE_SECONDS = 5.0  # a wait that a person would wonder about
REASONS_IN_FULL = 2  # failures of a call, whose error appears in full
PROBE_AFTER = 3  # failures of a call, before a row that was answered is asked again
RETRIES_IF_THE_SAME = 3  # retries of the first call of all, if every reply says the same
RETRIES_IF_EXPECTED = 1  # retries of a call that is expected to fail


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
        self.sizes = AnsweredSizes()
        self._sleep = sleep

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, again and again if need be."""
        tried, before = 1, ""
        while True:
            try:
                answers = self.inner.answer(rows)
            except TargetUnavailable as error:
                tries = 1 + self._retries(rows, error, same=str(error) == before)
                before = str(error)
                if tried >= tries or _wanted_seconds(error) > LONGEST_WAIT_SECONDS:
                    self._give_up(rows, error, f"Tried {tried} times" if tried > 1 else "Tried once")
                    raise
                self._wait(rows, error, tried, tries)
                tried += 1
            except TargetRefused as error:
                if error.these_rows and self.sizes.example is not None:
                    self._give_up(rows, error, "Asked")
                raise
            else:
                self.sizes.answered(rows)
                return answers

    def _retries(self, rows: FloatArray, error: TargetUnavailable, *, same: bool) -> int:
        """Fewer where a target that has answered nothing yet says the same again: a wrong question, not a bad hour."""
        if not isinstance(error, TargetBusy) and self.sizes.expects_failure(rows):
            return min(self.retries, RETRIES_IF_EXPECTED)
        never = same and error.replied and self.sizes.example is None
        return min(self.retries, RETRIES_IF_THE_SAME) if never else self.retries

    def _wait(self, rows: FloatArray, error: TargetUnavailable, tried: int, tries: int) -> None:
        pause = max(self._pause(rows, error, tried), _wanted_seconds(error))
        if tried > 1 or pause >= WARN_AT_ONCE_SECONDS:
            why = f" {error}" if tried <= REASONS_IN_FULL else ""
            LOG.warning("Try %d of %d failed, next in %.3g s: %s.%s", tried, tries, pause, self.sizes.beside(rows), why)
        self._sleep(pause)

    def _pause(self, rows: FloatArray, error: TargetUnavailable, tried: int) -> float:
        """Twice as long each time; short where the target answers other rows, and is not only busy."""
        is_busy = isinstance(error, TargetBusy) or self.sizes.may_be_too_many(rows)
        if tried >= PROBE_AFTER and not is_busy and self._answers_others():
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

    def _give_up(self, rows: FloatArray, error: TargetError, asked: str) -> None:
        """Put into the error what was asked, and how often; and the range that was answered if that may help."""
        beside, advice = self.sizes.beside(rows), None
        if not isinstance(error, TargetBusy):
            self.sizes.given_up(rows)
            advice = self.sizes.diagnosis
        error.advised(f"{asked}: {beside}.", *([] if advice is None else [advice]))


def answered_sizes(oracle: Oracle) -> AnsweredSizes | None:
    """What became of calls to an opened target, where they are repeated; None where they are not."""
    return next((layer.sizes for layer in layers(oracle) if isinstance(layer, Retrying)), None)


def _wanted_seconds(error: TargetUnavailable) -> float:
    """Seconds that the target asks for."""
    return error.retry_after if isinstance(error, TargetBusy) else 0.0


BOUND_DIGITS = 3  # of a bound that is named: rounded inwards, it stays inside what was answered


def largest_size(rows: FloatArray) -> float:
    """The largest number of the rows, whatever its sign."""
    return float(np.abs(rows).max())


class AnsweredSizes:
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
        """Note rows that were answered."""
        low, high = float(rows.min()), float(rows.max())
        with self._lock:
            self.low, self.high = min(self.low, low), max(self.high, high)
            self.most_rows = max(self.most_rows, len(rows))
            self.example = rows[0].copy() if self.example is None else self.example

    def given_up(self, rows: FloatArray) -> None:
        """Note rows that were not answered, however often they were asked."""
        with self._lock:
            self.failed, self.failed_rows = min(self.failed, largest_size(rows)), min(self.failed_rows, len(rows))

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
        return never_answered or (self.tell_apart and largest_size(rows) >= self.failed)

    def may_be_too_many(self, rows: FloatArray) -> bool:
        """True of more rows than were answered at once, with no larger numbers: one row alone tells nothing of them."""
        return len(rows) > self.most_rows and largest_size(rows) <= self.largest

    def beside(self, rows: FloatArray) -> str:
        """How large these rows are, beside those that were answered."""
        known = "nothing was answered yet" if self.example is None else f"answered so far: up to {self.largest:.3g}"
        asked = f"{len(rows)} rows" if len(rows) > 1 else "1 row"
        return f"{asked} with numbers up to {largest_size(rows):.3g} in size ({known})"

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The range to give where size tells failures from answers, in few digits; None where it does not."""
        if not self.tell_apart:
            return None
        low, high = _rounded_inwards(self.low, ceil), _rounded_inwards(self.high, floor)
        inside = Remedy("answered-range", "open", {"domain": (low, high) if low < high else None})
        fewer = [Remedy("fewer-rows", "open", {"batch": self.most_rows})] if self.failed_rows > self.most_rows else []
        return Diagnosis("answered-range", {"failed": self.failed, "largest": self.largest}, (inside, *fewer))


def _rounded_inwards(bound: float, rounded: Callable[[float], int]) -> float:
    unit = 10.0 ** (floor(log10(abs(bound))) - BOUND_DIGITS + 1) if bound else 1.0
    return float(f"{rounded(bound / unit) * unit:g}")
