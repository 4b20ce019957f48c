"""The target as a method for few digits sees it: from a chosen distance, its outputs in units of their noise.

Rows are rounded to float32 before they are asked, and the rounded row is the one that counts: a float32 target
would round it anyway, and any other answers it all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry import DistanceNoise
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["View"]


@dataclass(frozen=True)
class View:
    """A function g(x) = f(scale · x) / (scale · units), answered with noise of the same size for every output.

    units: (m,) of mean one; noise: standard deviation of an answer by the distance from the origin of the frame.
    """

    oracle: Counting
    scale: float
    units: FloatArray
    noise: DistanceNoise
    rounded: bool = True  # rows to float32

    @property
    def dim(self) -> int:
        """Number of inputs."""
        return self.oracle.dim

    @property
    def outputs(self) -> int:
        """Number of outputs."""
        return self.oracle.outputs

    @property
    def size(self) -> float:
        """Length of a typical input."""
        return float(np.sqrt(self.dim))

    def ask(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows that were really asked, and the answers to them."""
        asked = self.scale * rows
        if self.rounded:
            asked = asked.astype(np.float32).astype(np.float64)
        return asked / self.scale, self.oracle.query(asked) / (self.scale * self.units)

    def with_noise(self, factor: float) -> View:
        """The same view where noise has turned out to be this many times as large."""
        return replace(self, noise=DistanceNoise(factor * self.noise.near, factor * self.noise.growth))
