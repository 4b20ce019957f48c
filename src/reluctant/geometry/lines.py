"""Lines through input space: x(t) = origin + t · direction, many at once, whole or from limit to limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluctant.numerics import FloatArray

__all__ = ["FAR", "Lines"]

FAR = 1e6  # whole lines end here, in units of the scale: creases beyond are not found


@dataclass(frozen=True)
class Lines:
    """Origins (n, d), unit directions (n, d), and the positions between which a line may be asked.

    `scale` is the typical size of an input, the unit of t.
    """

    origins: FloatArray
    directions: FloatArray
    scale: float
    low: FloatArray  # (n,)
    high: FloatArray

    @classmethod
    def random(cls, rng: np.random.Generator, n: int, dim: int, scale: float = 1.0) -> Lines:
        """Whole lines through Gaussian points of this scale, in random directions."""
        directions = rng.standard_normal((n, dim))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        size = scale * float(np.sqrt(dim))
        far = np.full(n, 2 * FAR * size)
        return cls(scale * rng.standard_normal((n, dim)), directions, size, -far, far)

    @classmethod
    def between(cls, start: FloatArray, stop: FloatArray, scale: float) -> Lines:
        """Segments from each point of `start` to the one of `stop`; t is the distance from the first."""
        directions = stop - start
        lengths = np.linalg.norm(directions, axis=1)
        return cls(start, directions / lengths[:, None], scale, np.zeros(len(start)), lengths)

    def __len__(self) -> int:
        return len(self.origins)

    def points(self, line: NDArray[np.intp], t: FloatArray) -> FloatArray:
        """Rows (len(t), d) at positions t on the lines of these indices."""
        return self.origins[line] + t[:, None] * self.directions[line]

    def angle(self, t: FloatArray) -> FloatArray:
        """Position as an angle: creases of random neurons are spread evenly in it."""
        return np.arctan(t / self.scale)

    def position(self, angle: FloatArray) -> FloatArray:
        """Inverse of `angle`."""
        return self.scale * np.tan(angle)
