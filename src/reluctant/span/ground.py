"""What every stage of span recovery needs to know of a target, and steps that stay where it may be asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.domains import Domain
from reluctant.geometry import DistanceNoise
from reluctant.geometry.row_space import orthogonal_moves
from reluctant.numerics import FloatArray
from reluctant.span.inputs import Ask, Inputs

__all__ = ["Ask", "Ground", "as_long_as_allowed", "guarded", "moves_outside"]

UNCLEAR_MARGIN = 1 / 3  # a rank whose margin is worse is not told
UNCLEAR_ANGLE = 0.1  # directions that may be off by more, as a sine, are not known
RULE_OF_THREE = 3.0  # nothing in n looks: with 95 % confidence its share is below 3 / n
WITHIN = 0.9  # of the way to a bound


@dataclass(frozen=True)
class Ground:
    """How to ask, where, at which scale, and how good the answers are there."""

    ask: Ask
    inputs: Inputs
    noise: DistanceNoise
    scale: float = 1.0  # of a typical input, one coordinate
    drawn: float = 1.0  # scale that inputs are drawn with
    reach: float = 3.0  # of long steps, in typical inputs

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.inputs.dim

    @property
    def domain(self) -> Domain:
        """Where it may be asked."""
        return self.inputs.domain

    @property
    def typical(self) -> float:
        """Norm of a typical input."""
        return self.scale * float(np.sqrt(self.dim))

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Inputs (n, d) all over the domain."""
        return self.inputs.draw(n, self.drawn, rng)

    def sd(self, points: FloatArray) -> FloatArray:
        """Noise (n,) of answers at these points."""
        return self.noise.at(np.linalg.norm(points, axis=-1))


def as_long_as_allowed(domain: Domain, points: FloatArray, moves: FloatArray, *, both: bool = False) -> FloatArray:
    """The moves (n, d) made shorter where they, or their opposites as well, would leave the domain."""
    if domain.is_space:
        return moves
    room = domain.room(points, moves)
    room = np.minimum(room, domain.room(points, -moves)) if both else room
    return np.asarray(moves * np.minimum(1.0, WITHIN * room)[..., None])


def moves_outside(
    basis: FloatArray,
    points: FloatArray,
    length: float | FloatArray,
    domain: Domain,
    rng: np.random.Generator,
    *,
    both: bool = False,
) -> FloatArray:
    """Random moves (n, d) orthogonal to a basis, of this length or as long as the domain allows."""
    moves = orthogonal_moves(basis, len(points), 1.0, rng) * np.reshape(length, (-1, 1))
    return as_long_as_allowed(domain, points, moves, both=both)


def guarded(ask: Ask, domain: Domain) -> Ask:
    """The same question with rows moved onto the domain where rounding put them beside it."""
    return ask if domain.is_space else lambda rows: ask(np.clip(rows, domain.low, domain.high))
