"""What span recovery gives back: the subspace, how it ended, what it cost, how clear its rank is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from reluctant.domains import Domain
from reluctant.numerics import FloatArray
from reluctant.oracles import Rows
from reluctant.results import Ended, Outcome
from reluctant.span.subspace import Subspace

__all__ = ["Span"]

GOOD = (Outcome.SPAN_RECOVERED, Outcome.FULL_RANK)


@dataclass(frozen=True, eq=False)
class Span(Ended):
    """Outcome of `recover_span`.

    subspace: what was found; partial unless `ok`. margin: what counted as nothing over the weakest that counted as a
    direction: the rank is clear if it is far below 1, not known if it is infinite. angle: how far the directions are
    from true ones at most, as a sine: what long steps along the others show, over the weakest direction. stage: where
    the run ended. evidence: the numbers that decided. rows: counts by stage. followed: how
    far, as a norm, directions left out were followed, and domain: inside which.
    """

    outcome: Outcome
    subspace: Subspace
    rows: Mapping[str, Rows]
    margin: float = float("inf")
    angle: float = float("nan")
    stage: str = ""
    evidence: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    followed: float = float("inf")
    domain: Domain = field(default_factory=Domain)

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

    def save(self, path: str | Path) -> None:
        """Write the subspace as `.npz`."""
        self.subspace.save(path)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the basis itself is left to `save`."""
        return {
            **self.ending(),
            "rank": self.rank,
            "inputs": self.subspace.dim,
            "invisible share": self.subspace.invisible_share,
            "margin": self.margin,
            "angle": self.angle,
        }

    def __repr__(self) -> str:
        return f"Span({self.outcome.slug}, rank {self.rank} of {self.subspace.dim}, queries={self.queries})"
