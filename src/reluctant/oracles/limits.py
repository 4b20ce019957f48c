"""Wrappers that stop a run: a budget of rows, a guard on one part of a run, a time limit for each call.

`Metered` stands next to the target. It counts every row sent and refuses, before sending, what the budget does not
cover. A guard sees the count before rows are passed on, and raises to stop. `Timed` gives up on a target that
hangs.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from reluctant.errors import BudgetExhausted, TargetBusy, TargetRefused, TargetTimeout
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Oracle, Wrapper
from reluctant.oracles.ledger import Counting, Ledger, Rows
from reluctant.oracles.moves import Moves

__all__ = ["Guard", "Metered", "Timed", "guarded"]


class Metered(Wrapper):
    """Enters each row in the ledger as it goes out, every attempt of a retry included.

    Rows that come back without having been looked at (too busy, too many) are taken off again, and so is what an
    opened target below this one, behind a defense, did not send for its own budget.
    The budget covers what was paid in earlier sittings of a transcript too, so that a resumed run ends where an
    undisturbed one would. Several threads may ask at once.
    """

    transparent = True

    def __init__(self, inner: Oracle, ledger: Ledger, budget: int | None = None) -> None:
        super().__init__(inner)
        self.ledger = ledger
        self.budget = budget
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """A copy, on another machine perhaps, has a lock of its own."""
        return {**vars(self), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def answer(self, rows: FloatArray) -> FloatArray:
        """Refuse or count, then send."""
        return self._send(len(rows), lambda: self.inner.answer(rows))

    def answer_moves(self, moves: Moves) -> FloatArray:
        """Refuse or count, then send."""
        return self._send(len(moves), lambda: self.inner.answer_moves(moves))

    def _send(self, count: int, send: Callable[[], FloatArray]) -> FloatArray:
        with self._lock:
            spent = self.ledger.total.queries
            if self.budget is not None and spent + count > self.budget:
                raise BudgetExhausted(budget=self.budget, spent=spent, asked=count)
            self.ledger.enter(Rows(sent=count))
            before = _rows_below(self.inner)
        try:
            return send()
        except (TargetBusy, TargetRefused):
            with self._lock:
                self.ledger.enter(Rows(sent=-count))
            raise
        except BudgetExhausted:
            with self._lock:
                self.ledger.enter(Rows(sent=_rows_below(self.inner) - before - count))
            raise


def _rows_below(oracle: Oracle | None) -> int:
    """Rows that reached the target by the count of an opened one below, 0 if there is none."""
    while oracle is not None:
        queries = getattr(oracle, "queries", None)
        if queries is not None:
            return int(queries)
        oracle = getattr(oracle, "inner", None)
    return 0


# Told of the rows passed so far and of those of this call; what it gives is held until they are answered.
Guard = Callable[[int, int], AbstractContextManager[None]]


class _Guarded(Wrapper):
    """Asks the guard first. It counts rows asked, not sent: a replayed run is stopped where the first one was."""

    transparent = True

    def __init__(self, inner: Oracle, guard: Guard) -> None:
        super().__init__(inner)
        self.guard, self.rows = guard, 0

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, unless the guard raises."""
        with self.guard(self.rows, len(rows)):
            self.rows += len(rows)
            return self.inner.answer(rows)


def guarded(oracle: Counting, guard: Guard) -> Counting:
    """The same target and the same ledger, behind a guard."""
    return Counting(_Guarded(oracle.inner, guard), oracle.ledger, oracle.facts.domain)


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
