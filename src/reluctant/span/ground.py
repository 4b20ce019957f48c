"""What every stage of span recovery needs to know of a target, and steps that stay where it may be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.geometry import DistanceNoise
from reluctant.geometry.row_space import orthogonal_moves
from reluctant.numerics import FloatArray

__all__ = ["Ground", "as_long_as_allowed", "batches", "moves_outside"]

Ask = Callable[[FloatArray], FloatArray]

BATCH_BYTES = 2**24  # rows built and asked together
WITHIN = 0.9  # of the way to a bound


@dataclass(frozen=True)
class Ground:
    """How to ask, where, at which scale, and how good the answers are there."""

    ask: Ask
    dim: int
    domain: Domain
    noise: DistanceNoise
    scale: float = 1.0  # of a typical input, one coordinate

    @property
    def typical(self) -> float:
        """Norm of a typical input."""
        return self.scale * float(np.sqrt(self.dim))

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Typical inputs (n, d) with room around them."""
        return self.domain.interior(rng, n, self.dim, self.scale)

    def sd(self, points: FloatArray) -> FloatArray:
        """Noise (n,) of answers at these points."""
        return self.noise.at(np.linalg.norm(points, axis=-1))


def as_long_as_allowed(domain: Domain, points: FloatArray, moves: FloatArray) -> FloatArray:
    """The moves (n, d) made shorter where they would leave the domain."""
    return moves * np.minimum(1.0, WITHIN * domain.room(points, moves))[..., None]


def moves_outside(
    basis: FloatArray, points: FloatArray, length: float | FloatArray, domain: Domain, rng: np.random.Generator
) -> FloatArray:
    """Random moves (n, d) orthogonal to a basis, of this length or as long as the domain allows."""
    moves = orthogonal_moves(basis, len(points), 1.0, rng) * np.reshape(length, (-1, 1))
    return as_long_as_allowed(domain, points, moves)


def batches(n: int, rows_each: int, dim: int) -> list[slice]:
    """Parts of n things of so many rows each that are asked together."""
    size = max(1, BATCH_BYTES // (8 * max(rows_each, 1) * dim))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
