"""Next to the target: counts every row sent and refuses, before sending, what the budget does not cover."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from reluctant.errors import BudgetExhausted, TargetBusy, TargetRefused
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Oracle, Wrapper
from reluctant.oracles.ledger import Ledger, Rows
from reluctant.oracles.moves import Moves

__all__ = ["Metered"]


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
            before = _reached(self.inner)
        try:
            return send()
        except (TargetBusy, TargetRefused):
            with self._lock:
                self.ledger.enter(Rows(sent=-count))
            raise
        except BudgetExhausted:
            with self._lock:
                self.ledger.enter(Rows(sent=_reached(self.inner) - before - count))
            raise


def _reached(oracle: Oracle | None) -> int:
    """Rows that reached the target by the count of an opened one below, 0 if there is none."""
    while oracle is not None:
        queries = getattr(oracle, "queries", None)
        if queries is not None:
            return int(queries)
        oracle = getattr(oracle, "inner", None)
    return 0
