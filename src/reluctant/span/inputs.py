"""Where a target is asked: all over its domain, and around inputs that the user has.

A neuron may sleep on all inputs drawn at random and work on every photograph. Inside a box several kinds are drawn, so
that brightness, sparseness and smoothness vary; nothing of that is as good as inputs of the kind the target was made
for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from reluctant.domains import Domain
from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray

__all__ = ["KINDS", "Ask", "Inputs"]

Ask = Callable[[FloatArray], FloatArray]

TO_CORNERS = 0.4  # both parameters of a beta distribution: most of its mass lies beside the bounds
BESIDE_BOUNDS = 0.02  # of the width of a box: room that is left
AROUND = 0.25  # of a level, how far coordinates of one row are from it
KNOTS = (2, 12)  # between which a smooth row is interpolated: fewest, most
MIXED = 0.3  # largest share of a second input of the user's in a first one


@dataclass(frozen=True)
class Inputs:
    """All of a domain, and rows (n, d) of the user's around which every second input is drawn."""

    domain: Domain
    dim: int
    given: FloatArray | None = None

    @classmethod
    def of(cls, domain: Domain, dim: int, given: ArrayLike | None) -> Inputs:
        """Check what the user gave."""
        if given is None:
            return cls(domain, dim)
        try:
            rows = np.array(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput.about("inputs", got=type(given).__name__, expected=f"numbers (n, {dim})") from error
        if rows.ndim != 2 or rows.shape[1] != dim or not len(rows) or not np.isfinite(rows).all():
            raise InvalidInput.about("inputs", got=f"shape {rows.shape}", expected=f"finite rows (n, {dim})")
        if not domain.contains(rows):
            raise InvalidInput.about("inputs", got="rows outside the domain", expected=f"rows in {domain.describe()}")
        return cls(domain, dim, rows)

    def within(self, domain: Domain) -> Inputs:
        """The same inside another domain, with those of the user's rows that lie there."""
        rows = None if self.given is None else self.given[[domain.contains(row) for row in self.given]]
        return Inputs(domain, self.dim, rows if rows is not None and len(rows) else None)

    @property
    def unit(self) -> float:
        """Scale of a coordinate that the first draws have: that of the user's inputs, else 1."""
        size = 0.0 if self.given is None else float(np.sqrt((self.given**2).mean()))
        return size if size > 0 else 1.0

    def draw(self, n: int, scale: float, rng: np.random.Generator) -> FloatArray:
        """Inputs (n, d), Gaussian of this scale in all of space; every sixth has room on all sides."""
        points = self.domain.interior(rng, n, self.dim, scale)
        if self.domain.is_box:
            points = np.where(np.arange(n)[:, None] % len(KINDS) == 0, points, self._in_box(n, rng))
        if self.given is not None:
            points[1::2] = self._like_given(len(points[1::2]), scale, rng)
        return points

    def until_answers_differ(
        self, ask: Ask, blocks: tuple[tuple[int, float], ...], rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, float]:
        """Inputs of one scale with their answers, block after block of (rows, how far out) until two are different."""
        seen: dict[float, list[tuple[FloatArray, FloatArray]]] = {}
        for size, farther in blocks:
            scale = farther * self.unit
            points = self.draw(size, scale, rng)
            seen.setdefault(scale, []).append((points, ask(points)))
            answers = np.concatenate([some for _, some in seen[scale]])
            if len(np.unique(answers, axis=0)) > 1:
                break
        return np.concatenate([rows for rows, _ in seen[scale]]), answers, scale

    def _in_box(self, n: int, rng: np.random.Generator) -> FloatArray:
        shares = np.choose(np.arange(n)[:, None] % len(KINDS), [kind(n, self.dim, rng) for kind in KINDS])
        return self._inside(shares)

    def _inside(self, shares: FloatArray) -> FloatArray:
        """Points of a box by their shares of its width, with some room left."""
        shares = BESIDE_BOUNDS + (1 - 2 * BESIDE_BOUNDS) * shares
        return np.asarray(self.domain.low + shares * np.subtract(self.domain.high, self.domain.low))

    def _like_given(self, n: int, scale: float, rng: np.random.Generator) -> FloatArray:
        """One of the user's inputs with a little of another."""
        assert self.given is not None
        first, second = self.given[rng.integers(len(self.given), size=(2, n))]
        rows = first + rng.uniform(0, MIXED, (n, 1)) * (second - first)
        if self.domain.is_box:
            return self._inside((rows - self.domain.low) / np.subtract(self.domain.high, self.domain.low))
        return np.asarray(rows * (scale / self.unit) if self.domain.is_space else rows)

    def scale_of(self, points: FloatArray, drawn: float) -> float:
        """Scale of a coordinate: that of the draw in all of space, else how far points are spread inside the bounds."""
        return drawn if self.domain.is_space else float(points.std(axis=0).mean())

    def describe(self, scale: float) -> str:
        """One phrase for what was drawn."""
        kinds = "of several kinds (even, near corners, sparse, of one level, smooth) " if self.domain.is_box else ""
        drawn = f"random inputs {kinds}in {self.domain.describe()}"
        drawn += "" if self.domain.is_box else f", {scale:.2g} in every coordinate"
        return drawn if self.given is None else f"{drawn}, and as many like the {len(self.given)} given"


# ---- kinds of inputs in a box, as shares (n, d) of its width


def _even(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    return rng.uniform(0, 1, (n, dim))


def _corners(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    return rng.beta(TO_CORNERS, TO_CORNERS, (n, dim))


def _sparse(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Most coordinates at one bound."""
    shares = np.where(rng.uniform(0, 1, (n, dim)) < rng.uniform(0, HALF, (n, 1)), rng.uniform(0, 1, (n, dim)), 0.0)
    return np.where(rng.random((n, 1)) < HALF, shares, 1 - shares)


def _levels(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Rows that are dark or bright as a whole."""
    return np.clip(rng.uniform(0, 1, (n, 1)) + AROUND * rng.uniform(-1, 1, (n, dim)), 0, 1)


def _smooth(n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Rows whose neighbouring coordinates are alike."""
    at = np.linspace(0, 1, dim)
    counts = rng.integers(KNOTS[0], KNOTS[1] + 1, size=n)
    return np.array([np.interp(at, np.linspace(0, 1, k), rng.beta(TO_CORNERS, TO_CORNERS, k)) for k in counts])


HALF = 0.5
KINDS = (_even, _even, _corners, _sparse, _levels, _smooth)  # the first is drawn with room on all sides
