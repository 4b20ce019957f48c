"""`Domain`: the inputs that a target may be asked at, as bounds (all of space, a box, an orthant)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reluctant.errors import InvalidInput
from reluctant.numerics import FloatArray

__all__ = ["Domain"]

HALF = 0.5  # of the way to the bounds, or of the scale away from one: room for steps to both sides


@dataclass(frozen=True)
class Domain:
    """The set low ≤ x ≤ high, coordinate by coordinate; infinite bounds are allowed.

    Domain(0, 1) is a box for images, Domain(0, inf) the positive orthant, Domain() all of space.
    """

    low: float | FloatArray = -np.inf
    high: float | FloatArray = np.inf

    def __post_init__(self) -> None:
        low, high = np.asarray(self.low, float), np.asarray(self.high, float)
        if np.isnan(low).any() or np.isnan(high).any() or not np.all(low < high):
            raise InvalidInput.about("domain", got=f"({self.low}, {self.high})", expected="(low, high) with low < high")

    @classmethod
    def of(cls, bounds: Domain | tuple[object, object] | None) -> Domain:
        """Accept the keyword `domain` as a user writes it: None, (low, high) or a Domain."""
        if bounds is None:
            return cls()
        if isinstance(bounds, Domain):
            return bounds
        try:
            low, high = (_bound(side) for side in bounds)
        except (TypeError, ValueError) as error:
            raise InvalidInput.about(
                "domain", got=repr(bounds), expected="None or a pair (low, high) of numbers or arrays"
            ) from error
        return cls(low, high)

    def fits(self, dim: int) -> bool:
        """True if the bounds are numbers or arrays of this many."""
        return all(np.shape(bound) in ((), (dim,)) for bound in (self.low, self.high))

    def intersected(self, other: Domain) -> Domain:
        """Points inside both."""
        if other.is_space:
            return self
        return Domain(_bound(np.maximum(self.low, other.low)), _bound(np.minimum(self.high, other.high)))

    @cached_property
    def is_space(self) -> bool:
        """True if nothing is bounded."""
        return bool(np.all(np.isneginf(self.low)) and np.all(np.isposinf(self.high)))

    @property
    def is_box(self) -> bool:
        """True if every coordinate is bounded on both sides."""
        return bool(np.all(np.isfinite(self.low)) and np.all(np.isfinite(self.high)))

    def contains(self, rows: FloatArray) -> bool:
        """True if every row lies inside, the boundary included."""
        return self.is_space or bool((rows >= self.low).all() and (rows <= self.high).all())

    def inside(self, rows: FloatArray) -> NDArray[np.bool_]:
        """Which rows (n,) lie inside, the boundary included."""
        return np.asarray(((rows >= self.low) & (rows <= self.high)).all(axis=-1))

    def nearest(self, rows: FloatArray) -> FloatArray:
        """The nearest rows inside: rounding may have put some of these a hair outside."""
        return rows if self.is_space else np.clip(rows, self.low, self.high)

    def room(self, points: FloatArray, moves: FloatArray) -> FloatArray:
        """How often (n,) each move (n, d) may be made from its point without leaving; infinite in all of space."""
        if self.is_space:
            return np.full(np.broadcast_shapes(points.shape, moves.shape)[:-1], np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            towards = np.where(moves > 0, np.asarray(self.high) - points, np.asarray(self.low) - points)
            times = np.where(moves == 0, np.inf, towards / moves)
        return np.asarray(np.maximum(times.min(axis=-1), 0.0))

    def within_rounding(self, scale: float) -> Domain:
        """Bounds that rows of this size do not cross by rounding."""
        if self.is_space:
            return self
        margin = np.sqrt(np.finfo(float).eps) * 1e-2 * scale
        return Domain(np.asarray(self.low) + margin, np.asarray(self.high) - margin)

    def away(self, rows: FloatArray, margin: float) -> FloatArray:
        """Rows moved so far from the bounds, or to the middle between them, that a step of this length stays inside."""
        if self.is_space:
            return rows
        margins = np.minimum(margin, (np.asarray(self.high) - self.low) / 2)
        return np.clip(rows, self.low + margins, self.high - margins)

    def sample(self, rng: np.random.Generator, n: int, dim: int, scale: float = 1.0) -> FloatArray:
        """Draw n points: uniform in a box, else Gaussian of this scale folded into the domain.

        In a box, scale < 1 shrinks the sample about the centre; scale > 1 means the whole box.
        """
        if self.is_box:
            centre, half = (np.add(self.low, self.high)) / 2, np.subtract(self.high, self.low) / 2
            return np.asarray(centre + half * min(scale, 1.0) * rng.uniform(-1, 1, (n, dim)))
        return self.fold(scale * rng.standard_normal((n, dim)))

    def interior(self, rng: np.random.Generator, n: int, dim: int, scale: float = 1.0) -> FloatArray:
        """Draw n points with room on all sides: like `sample`, but kept away from the bounds."""
        if self.is_box:
            return self.sample(rng, n, dim, min(scale, HALF))
        points = scale * rng.standard_normal((n, dim))
        if self.is_space:
            return points
        inward = scale * HALF + np.abs(points)
        low, high = np.broadcast_to(self.low, points.shape), np.broadcast_to(self.high, points.shape)
        has_low, has_high = np.isfinite(low), np.isfinite(high)
        with np.errstate(invalid="ignore"):  # infinite bounds are not chosen
            inside = (low + high) / 2 + HALF * (high - low) / 2 * rng.uniform(-1, 1, points.shape)
        choices = [has_low & has_high, has_low, has_high]
        return np.select(choices, [inside, low + inward, high - inward], points)

    def fold(self, rows: FloatArray) -> FloatArray:
        """Mirror points at a one-sided bound; points of all space stay as they are."""
        if self.is_space:
            return rows
        folded = np.where(rows < self.low, 2 * np.asarray(self.low) - rows, rows)
        folded = np.where(folded > self.high, 2 * np.asarray(self.high) - folded, folded)
        return self.nearest(folded)

    def in_single(self, rows: FloatArray) -> FloatArray:
        """The rows rounded to float32, and not out of the domain."""
        rounded = rows.astype(np.float32)
        given = rounded.astype(np.float64)  # compared in double: single would round the bounds as well
        rounded = np.where(given < self.low, np.nextafter(rounded, np.float32(np.inf)), rounded)
        rounded = np.where(given > self.high, np.nextafter(rounded, np.float32(-np.inf)), rounded)
        return rounded.astype(np.float64)

    def describe(self) -> str:
        """One phrase for a message or a report."""
        if self.is_space:
            return "all of space"
        if np.ndim(self.low) == 0 and np.ndim(self.high) == 0:
            return f"[{self.low:g}, {self.high:g}] in every coordinate"
        return "a box with bounds of its own for each coordinate"


def _bound(side: object) -> float | FloatArray:
    bound = np.asarray(side, dtype=np.float64)
    return float(bound) if bound.ndim == 0 else bound
