"""The coordinates that a network is trained in: with mean 0 and deviation 1, and those of a span where one is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Coordinates"]


@dataclass(frozen=True)
class Coordinates:
    """Input x as x @ maps.T - shift."""

    maps: FloatArray  # (k, d)
    shift: FloatArray  # (k,)

    @classmethod
    def of(cls, rows: FloatArray, span: FloatArray | None) -> Coordinates:
        """Those in which these rows have mean 0 and deviation 1; a direction in which they do not differ stays."""
        directions = np.eye(rows.shape[1]) if span is None else np.asarray(span, dtype=np.float64)
        along = rows @ directions.T
        deviation = along.std(axis=0)
        unit = np.where(deviation > 0, deviation, 1.0)
        return cls(directions / unit[:, None], along.mean(axis=0) / unit)

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Rows (n, d) as coordinates (n, k)."""
        return np.asarray(rows @ self.maps.T - self.shift)

    def unfolded(self, network: ReLUNetwork) -> ReLUNetwork:
        """A network of coordinates as one of inputs."""
        first, *rest = network.weights
        return ReLUNetwork([first @ self.maps, *rest], [network.biases[0] - first @ self.shift, *network.biases[1:]])
