"""What span recovery gives back: the subspace, how it ended, what it cost, how clear its rank is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from reluctant.errors import NotRecovered
from reluctant.numerics import FloatArray
from reluctant.oracles.ledger import Rows
from reluctant.results import Outcome
from reluctant.span.subspace import Subspace

__all__ = ["Span"]

GOOD = (Outcome.SPAN_RECOVERED, Outcome.FULL_RANK)


@dataclass(frozen=True)
class Span:
    """Outcome of `recover_span`.

    subspace: what was found; partial unless `ok`. margin: what counted as nothing over the weakest that counted as a
    direction: the rank is clear if it is far below 1, not known if it is infinite. angle: how far the directions are
    from true ones, as measured by long steps along the others (none where nothing is invisible). stage: where the run
    ended. evidence: the numbers that decided. rows: counts by stage.
    """

    outcome: Outcome
    subspace: Subspace
    rows: Mapping[str, Rows]
    margin: float = float("inf")
    angle: float = float("nan")
    stage: str = ""
    evidence: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def ok(self) -> bool:
        """True only if nothing more was seen along the directions left out."""
        return self.outcome in GOOD

    @property
    def rank(self) -> int:
        """Number of directions found."""
        return self.subspace.rank

    @property
    def basis(self) -> FloatArray:
        """Orthonormal rows (rank, d)."""
        return self.subspace.basis

    @property
    def queries(self) -> int:
        """Rows that reached the target in this call, verification included."""
        return sum(self.rows.values(), Rows()).queries

    def raise_for_status(self) -> Self:
        """Return self if ok, else raise `NotRecovered` with the same information."""
        if self.ok:
            return self
        where = f" (stage: {self.stage})" if self.stage else ""
        raise NotRecovered(f"{self.outcome}{where} {self.queries} queries were spent.", result=self)

    def save(self, path: str | Path) -> None:
        """Write the subspace as `.npz`."""
        self.subspace.save(path)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the basis itself is left to `save`."""
        evidence = {
            name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in self.evidence.items()
        }
        return {
            "outcome": self.outcome.slug,
            "text": str(self.outcome),
            "ok": self.ok,
            "stage": self.stage,
            "queries": self.queries,
            "rank": self.rank,
            "inputs": self.subspace.dim,
            "invisible share": self.subspace.invisible_share,
            "margin": self.margin,
            "angle": self.angle,
            "evidence": evidence,
        }

    def __repr__(self) -> str:
        return f"Span({self.outcome.slug}, rank {self.rank} of {self.subspace.dim}, queries={self.queries})"
