"""Lines through input space: x(t) = origin + t · direction, many at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluctant.numerics import FloatArray

__all__ = ["Lines"]


@dataclass(frozen=True)
class Lines:
    """Origins (n, d) and unit directions (n, d); `scale` is the typical size of an input, the unit of t."""

    origins: FloatArray
    directions: FloatArray
    scale: float

    @classmethod
    def random(cls, rng: np.random.Generator, n: int, dim: int, scale: float = 1.0) -> Lines:
        """Lines through Gaussian points of this scale, in random directions."""
        directions = rng.standard_normal((n, dim))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return cls(scale * rng.standard_normal((n, dim)), directions, scale * float(np.sqrt(dim)))

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
