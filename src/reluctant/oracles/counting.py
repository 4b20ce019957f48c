"""The outermost oracle: what `open_oracle` returns. Every row a method asks for passes through it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace

from reluctant.domains import Domain
from reluctant.numerics import FloatArray, Rng, seed_signature
from reluctant.oracles.base import Facts, Oracle, Wrapper
from reluctant.oracles.ledger import Ledger, Rows
from reluctant.oracles.moves import Moves

__all__ = ["Counting"]


class Counting(Wrapper):
    """Counts rows asked, by stage, and shows what was paid.

    Arguments:
        inner: the rest of the stack.
        ledger: shared with the object that counts rows sent, next to the target.
        domain: where the target may be asked; rows outside are refused before they are sent.
    """

    transparent = True

    def __init__(self, inner: Oracle, ledger: Ledger, domain: Domain | None = None) -> None:
        super().__init__(inner)
        self.ledger = ledger
        self._domain = domain

    @property
    def facts(self) -> Facts:
        """Facts of the target, with the domain it was opened with."""
        return self.inner.facts if self._domain is None else replace(self.inner.facts, domain=self._domain)

    def answer(self, rows: FloatArray) -> FloatArray:
        """Count, then pass on."""
        self.ledger.enter(Rows(asked=len(rows)))
        return self.inner.answer(rows)

    def answer_moves(self, moves: Moves) -> FloatArray:
        """Count, then pass on."""
        self.ledger.enter(Rows(asked=len(moves)))
        return self.inner.answer_moves(moves)

    @property
    def queries(self) -> int:
        """Rows that reached the target so far, those of earlier sittings of a transcript included."""
        return self.ledger.total.queries

    def stage(self, name: str, expected: int | None = None) -> AbstractContextManager[None]:
        """Enter the rows asked inside a `with` block under this name."""
        return self.ledger.during(name, expected)

    def begin(self, verb: str, rng: Rng) -> None:
        """Tell the stack which run starts; a transcript refuses one made with another seed."""
        self.ledger.views.clear()
        self.bind(verb, seed_signature(rng))
