"""The coordinates that a network is trained in: with mean 0 and deviation 1, and those of a span where one is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Coordinates"]


@dataclass(frozen=True)
class Coordinates:
    """Inputs along directions (k, d), None for their own axes, less a mean and over a unit (k,) each."""

    directions: FloatArray | None
    mean: FloatArray
    unit: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, span: FloatArray | None) -> Coordinates:
        """Those in which these rows have mean 0 and deviation 1; a direction in which they do not differ stays."""
        along = rows if span is None else rows @ span.T
        deviation = along.std(axis=0)
        return cls(span, along.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Rows (n, d) as coordinates (n, k)."""
        along = rows if self.directions is None else rows @ self.directions.T
        return np.asarray((along - self.mean) / self.unit)

    def unfolded(self, network: ReLUNetwork) -> ReLUNetwork:
        """A network of coordinates as one of inputs."""
        first, *rest = network.weights
        scaled = first / self.unit
        weights = scaled if self.directions is None else scaled @ self.directions
        return ReLUNetwork([weights, *rest], [network.biases[0] - scaled @ self.mean, *network.biases[1:]])
