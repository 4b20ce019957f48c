"""A limit of one part of a run: a guard looks at the count before rows are passed on, and raises to stop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from reluctant.numerics import FloatArray
from reluctant.oracles.base import Oracle, Wrapper
from reluctant.oracles.counting import Counting

__all__ = ["Guard", "guarded"]

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
