"""What every stage needs to know of a target of labels: how to ask it, where, and how sharp its boundary is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.numerics import FloatArray
from reluctant.span.ground import WITHIN
from reluctant.span.labels.crossings import Lines, crossings

__all__ = ["Field"]

COARSE = 1e-9  # resolution, of a typical input, from which curvature shows within a step it can resolve


@dataclass(frozen=True)
class Field:
    """A target of labels. resolution: how well a crossing can be placed near typical inputs; 0 until it is known."""

    ask: Callable[[FloatArray], FloatArray]
    dim: int
    domain: Domain
    scale: float = 1.0
    resolution: float = 0.0
    reach: float = 3.0  # of long steps, in typical inputs

    @property
    def typical(self) -> float:
        """Norm of a typical input."""
        return self.scale * float(np.sqrt(self.dim))

    @property
    def coarse(self) -> bool:
        """True if curvature has to be cancelled rather than out-resolved: float32, or labels that flicker."""
        return self.resolution > COARSE * self.typical

    def step(self, finest: float) -> float:
        """A step aside for a normal: the finest, if crossings can be placed well, else what balances the curvature."""
        return self.scale * (float(np.cbrt(self.resolution / self.scale)) if self.coarse else finest)

    def crossings(
        self,
        lines: Lines,
        guess: FloatArray | float,
        scale: FloatArray | float,
        tol: FloatArray | float,
        limit: FloatArray | float,
    ) -> FloatArray:
        """Positions where the label changes, looked for inside the domain alone."""
        limit = limit if self.domain.is_space else np.minimum(limit, WITHIN * self.room(lines))
        return crossings(self.ask, lines, guess, scale, tol, limit)

    def room(self, lines: Lines) -> FloatArray:
        """How far (n,) lines may be followed to both sides."""
        if self.domain.is_space:
            return np.full(len(lines), np.inf)
        return np.minimum(self.domain.room(lines.starts, lines.along), self.domain.room(lines.starts, -lines.along))
