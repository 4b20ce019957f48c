"""The function on a searched line, so that the whole line fits into one picture.

Across goes the angle arctan(t / scale); up goes the answer less its trend, divided by the distance from the middle.
Straight pieces become gentle arcs that stay in sight however far out they are, and every crease is a kink.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry import LineSearch
from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["Heights"]


@dataclass(frozen=True)
class Heights:
    """Heights over the angle: all outputs between 0 and 1, in one common range."""

    search: LineSearch
    trend: FloatArray  # (2, m): what is subtracted, of the cosine and of the sine
    low: float
    high: float

    @classmethod
    def of(cls, search: LineSearch) -> Heights:
        """The trend is that of the first round alone, so that it stays while a search goes on."""
        first = search.round == 0
        basis, answers = _basis(search.angles), search.answers
        scaled = basis[:, :1] * answers
        trend = np.linalg.lstsq(basis[first], scaled[first], rcond=None)[0]
        heights = scaled - basis @ trend
        return cls(search, trend, float(heights.min()), float(heights.max()))

    def at(self, angles: FloatArray) -> FloatArray:
        """Heights (n, m) at these angles, straight in t between samples."""
        s = self.search
        t, basis = s.scale * np.tan(angles), _basis(angles)
        answers = np.column_stack([np.interp(t, s.t, output) for output in s.answers.T])
        room = self.high - self.low
        return (basis[:, :1] * answers - basis @ self.trend - self.low) / (room if room > 0 else 1.0)

    @staticmethod
    def known(search: LineSearch, angles: FloatArray) -> BoolArray:
        """Whether a search knows the function at these angles."""
        edge = np.searchsorted(search.t, search.scale * np.tan(angles), side="right") - 1
        return np.append(search.known, search.known[-1:])[np.clip(edge, 0, None)]


def _basis(angles: FloatArray) -> FloatArray:
    """An affine function of t, divided by the distance, is a combination of these."""
    return np.column_stack([np.cos(angles), np.sin(angles)])
