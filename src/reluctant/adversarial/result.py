"""What a flip gives back: the flipped input, how small the change was, what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.oracles import Rows
from reluctant.results import Ended, Outcome

__all__ = ["TYPICAL", "Flip"]

TYPICAL = 0.6745  # median of |N(0, 1)|: the step of a random linear function, times √d


@dataclass(frozen=True)
class Flip(Ended):
    """What one step did.

    x is the flipped input, as close to the boundary as the search came, None if there is none. `classes` are the
    winning classes before and after (None where the sign of one output is meant), `margins` the smallest margin of
    the first one before and after.
    """

    outcome: Outcome
    start: FloatArray
    x: FloatArray | None = None
    classes: tuple[int, int] | None = None
    margins: tuple[float, float] | None = None
    rows: Mapping[str, Rows] = field(default_factory=lambda: MappingProxyType({}))
    evidence: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    stage: str = ""

    @property
    def ok(self) -> bool:
        """True only if the flipped input was seen to be flipped."""
        return self.outcome is Outcome.FLIPPED

    @property
    def size(self) -> float:
        """Norm of the change; NaN if there is none."""
        return float("nan") if self.x is None else float(np.linalg.norm(self.x - self.start))

    @property
    def relative_size(self) -> float:
        """Size over the norm of the input."""
        norm = float(np.linalg.norm(self.start))
        return self.size / norm if norm > 0 else float("inf") if self.x is not None else float("nan")

    @property
    def scaled_size(self) -> float:
        """Relative size times √d: of order one in a random network, by Theorem 1.1."""
        return self.relative_size * float(np.sqrt(len(self.start)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            **self.ending(),
            "size": self.size,
            "relative size": self.relative_size,
            "relative size times root of inputs": self.scaled_size,
            "classes": self.classes,
            "margins": self.margins,
        }

    def _sign(self) -> str:
        """What happens to one output; evidence["threshold"] is where it changes side, if that is not at 0."""
        threshold = self.evidence.get("threshold")
        return "The sign changes" if threshold is None else f"The answer crosses {threshold:g}"

    def __str__(self) -> str:
        if not self.ok:
            return str(self.outcome)
        change = self._sign() if self.classes is None else "Class {} becomes class {}".format(*self.classes)
        if not np.isfinite(self.relative_size):  # from the origin
            return f"{self.outcome.happened} {change} with a step of {self.size:.3g}."
        return (
            f"{self.outcome.happened} {change} with {self.relative_size:.2%} of the input's norm, which is "
            f"{self.scaled_size:.2f}/√d; random networks flip at about {TYPICAL:.2f}/√d."
        )
