"""Candidates for a gradient: points with room around them, and how much is new there.

A candidate costs three rows: its value and a step to both sides, which shows whether the function is straight there.
As the span grows, one more row tells whether it still has something new: a step orthogonal to all that is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry.samples import TOLERANCE, BoolArray, IntArray
from reluctant.health.noise import SECOND_DIFFERENCE_GAIN
from reluctant.numerics import FloatArray
from reluctant.span.ground import Ground, moves_outside

__all__ = ["Pool", "tested"]

FADED = 0.1  # of the news before: less is no chance of the step, what was new there has been taken


@dataclass(frozen=True)
class Pool:
    """Points with their values, how far the function is straight along a random step, and what is new there.

    news: size of the gradient orthogonal to the span so far, as random steps show it.
    """

    points: FloatArray  # (n, d)
    values: FloatArray  # (n, m)
    straight: FloatArray  # (n,)
    news: FloatArray  # (n,)

    @classmethod
    def empty(cls, dim: int, outputs: int) -> Pool:
        """No candidate."""
        return cls(np.empty((0, dim)), np.empty((0, outputs)), np.empty(0), np.empty(0))

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, which: BoolArray | IntArray | list[int]) -> Pool:
        return Pool(self.points[which], self.values[which], self.straight[which], self.news[which])

    def __add__(self, other: Pool) -> Pool:
        pairs = [(getattr(self, name), getattr(other, name)) for name in ("points", "values", "straight", "news")]
        return Pool(*(np.concatenate(pair) for pair in pairs))

    def without(self, index: int) -> Pool:
        """All but one."""
        return self[np.arange(len(self)) != index]

    def best(self, n: int) -> Pool:
        """The n with most news."""
        return self[np.argsort(-self.news, kind="stable")[:n]]

    def retested(self, ground: Ground, basis: FloatArray, least: float, rng: np.random.Generator) -> Pool:
        """Those that still have news beside a larger span. Cost: 1 row each."""
        if not len(self):
            return self
        moves = moves_outside(basis, self.points, self.straight, ground.domain, rng)
        change = np.linalg.norm(ground.ask(self.points + moves) - self.values, axis=1)
        fresh = change / np.linalg.norm(moves, axis=1) * np.sqrt(ground.dim - len(basis))
        news = np.where(fresh < FADED * self.news, fresh, np.sqrt((self.news**2 + fresh**2) / 2))
        return replace(self, news=news)[fresh > least]


def tested(
    ground: Ground, basis: FloatArray, points: FloatArray, values: FloatArray, step: float, rng: np.random.Generator
) -> tuple[Pool, BoolArray]:
    """Candidates at these points, and which of them are straight within the step. Cost: 2 rows a point."""
    moves = moves_outside(basis, points, step, ground.domain, rng, both=True)
    ahead, behind = np.split(ground.ask(np.concatenate([points + moves, points - moves])), 2)
    bent = np.abs(ahead + behind - 2 * values).max(axis=1)
    straight = bent <= TOLERANCE * SECOND_DIFFERENCE_GAIN * ground.sd(points)
    length = np.linalg.norm(moves, axis=1)
    with np.errstate(over="ignore"):  # answers close to the largest number
        slope = np.linalg.norm(ahead - behind, axis=1) / (2 * length)
    news = slope * np.sqrt(ground.dim - len(basis))
    return Pool(points, values, length, news), straight
