"""What a search from values hands on: directions, where they were measured, how clear their number is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.numerics import FloatArray

__all__ = ["Found"]


@dataclass(frozen=True)
class Found:
    """Directions and the points whose gradients brought them.

    size: of a gradient; leak and limit are in this unit. margin: what counted as nothing over the weakest direction;
    infinite if more is there than could be measured. leak: what long steps still show outside. limit: what they may,
    and the weakest direction that could not have been overlooked.
    """

    basis: FloatArray  # (k, d)
    points: FloatArray  # (p, d)
    values: FloatArray  # (p, m): answers there
    steps: FloatArray  # (p,): within which the function is straight there
    size: float
    margin: float
    leak: float
    limit: float
    gradients: int
    kept: float = float("inf")  # part of a gradient that brought the weakest direction

    @property
    def angle(self) -> float:
        """How far directions are off at most: the error shows in gradients, times the part that the weakest has."""
        return min(self.leak / self.kept, 1.0) if np.isfinite(self.kept) and self.kept > 0 else float("nan")

    @property
    def rank(self) -> int:
        """Number of directions."""
        return len(self.basis)
