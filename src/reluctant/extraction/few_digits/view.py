"""The target as a method for few digits sees it: from a chosen distance, its outputs in units of their noise.

Rows are rounded to float32 before they are asked, and the rounded row is the one that counts: a float32 target
would round it anyway, and any other answers it all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from reluctant.geometry import DistanceNoise, Frame
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.verification.precision import Precision

__all__ = ["FARTHEST", "View"]

FARTHEST = 3e4  # in units of the size of an input: creases beyond are not looked for


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

    @property
    def in_single(self) -> bool:
        """True if rows that were asked are numbers of float32 in the coordinates of the view too."""
        return self.rounded

    @property
    def precision(self) -> Precision:
        """The noise of the target as a verification is told it."""
        return Precision(self.noise.near * self.units, self.noise.growth * self.units)

    @property
    def farthest(self) -> float:
        """How far out creases are looked for."""
        return FARTHEST * self.size

    def ask(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows that were really asked, and the answers to them."""
        asked = self.scale * rows
        if self.rounded:
            asked = asked.astype(np.float32).astype(np.float64)
        return asked / self.scale, self.oracle.query(asked) / (self.scale * self.units)

    def with_noise(self, factor: float) -> Self:
        """The same view where noise has turned out to be this many times as large."""
        return replace(self, noise=DistanceNoise(factor * self.noise.near, factor * self.noise.growth))

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Inputs (n, d) as they are in use."""
        return rng.standard_normal((n, self.dim))

    def noise_at_use(self, rows: FloatArray) -> FloatArray:
        """Noise (n,) of answers at such inputs."""
        return np.full(len(rows), self.noise.near)

    def pulled_in(self, frame: Frame, y: FloatArray) -> FloatArray:
        """Coordinates of a frame, moved towards its origin where the target may not be asked."""
        return y

    def steps_inside(self, points: FloatArray, directions: FloatArray, steps: FloatArray) -> FloatArray:
        """Steps (D, n) from each of n points into each of D directions, shorter where the target may not be asked."""
        return np.broadcast_to(steps, (len(directions), len(points)))

    def lifted(self, network: ReLUNetwork) -> ReLUNetwork:
        """A network of the view as one of the target."""
        (w, a), (b, c), skip = network.weights, network.biases, network.skip
        units = self.units[:, None]
        skip = None if skip is None else units * skip
        return ReLUNetwork([w, units * a], [self.scale * b, self.scale * self.units * c], skip)
