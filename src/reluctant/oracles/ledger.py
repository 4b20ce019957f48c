"""What was asked and what was paid, by stage: the ledger of an opened target, and `Counting`, the oracle that keeps
it.

`Counting` is the outermost oracle, which `open_oracle` returns: every row that a method asks for passes through it.
Rows sent to the target are entered next to the target, by `Metered`. There is one ledger for each opened target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from reluctant.domains import Domain
from reluctant.numerics import FloatArray, Rng, seed_signature
from reluctant.oracles.base import Facts, Oracle, Wrapper
from reluctant.oracles.moves import Moves

__all__ = ["Counting", "Ledger", "Rows"]


@dataclass(frozen=True)
class Rows:
    """Row counts that add up.

    asked: rows a method asked for. sent: rows that went to the target, every attempt counted.
    replayed: rows whose answer was paid for in an earlier sitting of the same transcript.
    """

    asked: int = 0
    sent: int = 0
    replayed: int = 0

    def __add__(self, other: Rows) -> Rows:
        return Rows(self.asked + other.asked, self.sent + other.sent, self.replayed + other.replayed)

    def __sub__(self, other: Rows) -> Rows:
        return Rows(self.asked - other.asked, self.sent - other.sent, self.replayed - other.replayed)

    @property
    def queries(self) -> int:
        """Rows that reached the target, in this sitting or an earlier one."""
        return self.sent + self.replayed


@dataclass
class Ledger:
    """Running account of an opened target.

    listener: told of every change, for a progress bar. views: what stages show of their work, the last of each.
    viewer: shown every view as it comes.
    """

    stages: dict[str, Rows] = field(default_factory=dict)
    stage: str = "open"
    last_stage: str = "open"
    expected: int | None = None
    listener: Callable[[Ledger], None] | None = None
    views: dict[str, Any] = field(default_factory=dict)
    viewer: Callable[[Any], None] | None = None

    def enter(self, rows: Rows) -> None:
        """Add rows to the current stage."""
        self.stages[self.stage] = self.stages.get(self.stage, Rows()) + rows
        if self.listener is not None:
            self.listener(self)

    def show(self, view: Any) -> None:
        """Keep a view of the current stage and show it to whoever watches."""
        self.views[self.stage] = view
        if self.viewer is not None:
            self.viewer(view)

    @property
    def total(self) -> Rows:
        """Sum over all stages."""
        return sum(self.stages.values(), Rows())

    def since(self, before: Mapping[str, Rows]) -> dict[str, Rows]:
        """Rows entered since `stages` was this, by stage; stages without any are left out."""
        difference = {stage: rows - before.get(stage, Rows()) for stage, rows in self.stages.items()}
        return {stage: rows for stage, rows in difference.items() if rows != Rows()}

    @contextmanager
    def during(self, stage: str, expected: int | None = None) -> Iterator[None]:
        """Enter rows under this stage; `expected` rows, if known, let a progress bar show its end."""
        before = self.stage, self.expected
        self.stage, self.last_stage, self.expected = stage, stage, expected
        try:
            yield
        finally:
            self.stage, self.expected = before


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
