"""What the theorem would ask of a target like the one that was learned, beside what was really spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reluctant.learning.theory import Constants, TheoremParameters, beside, table, theorem
from reluctant.networks import ReLUNetwork

__all__ = ["Asked", "asked_by_theorem"]

DELTA = 0.01  # probability with which the theorem's algorithm may fail


@dataclass(frozen=True)
class Asked:
    """The theorem's parameters for the network that was found, and those that were really used."""

    asked: TheoremParameters
    used: Mapping[str, float]

    def __str__(self) -> str:
        return f"The theorem asks {self.asked.queries} queries for such a network; fewer were spent, without its proof."

    def table(self) -> str:
        """All parameters side by side, as a Markdown table."""
        return table(beside(self.asked, self.used))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: sizes as text, for many do not fit a number."""
        rows = beside(self.asked, self.used)
        return {row.name: {"symbol": row.symbol, "theorem": str(row.theorem), "used": row.used} for row in rows}


def asked_by_theorem(network: ReLUNetwork, square_error: float, used: Mapping[str, float]) -> Asked | None:
    """None for what the theorem does not speak of: several outputs, no neuron, no error allowed."""
    if network.depth != 2 or network.outputs != 1 or not network.weights[1].any() or not square_error > 0:
        return None
    return Asked(theorem(Constants.of(network, square_error, DELTA)), used)
