"""Hyperplanes of first-layer neurons in a subspace, and the gradients that they come from. No queries.

The gradient jumps across a hyperplane along its normal; a point of the line on which it was found gives its
offset.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reluctant.geometry import Frame
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray

__all__ = ["Hyperplanes"]

SAME = 1e-4  # normals and offsets closer than this are one hyperplane
ONE_EACH = ("normals", "offsets", "errors", "sides", "on")  # arrays with a row for each hyperplane


@dataclass(frozen=True)
class Hyperplanes:
    """Hyperplanes normals @ y + offsets = 0 in the coordinates y of a frame, and gradients at points of it."""

    frame: Frame
    scale: float  # typical size of an input
    spread: float  # typical distance of a crease
    normals: FloatArray  # (n, k), of norm one
    offsets: FloatArray  # (n,)
    errors: FloatArray  # (n,) of the normals
    sides: IntArray  # (n, 2): the points with gradients before and after each hyperplane
    on: FloatArray  # (n, k): a point of each
    points: FloatArray  # (p, k) at which gradients were measured
    slopes: FloatArray  # (p, m, k)
    slope_sd: FloatArray  # (p,); infinite where a gradient is not known

    @classmethod
    def none(cls, frame: Frame, scale: float, spread: float, outputs: int) -> Hyperplanes:
        """No hyperplanes and no gradients yet."""
        k, nothing = len(frame.basis), np.empty(0)
        rows, sides = np.empty((0, k)), np.empty((0, 2), dtype=np.intp)
        slopes = np.empty((0, outputs, k))
        return cls(frame, scale, spread, rows, nothing, nothing, sides, rows, rows, slopes, nothing)

    def __len__(self) -> int:
        return len(self.normals)

    @property
    def condition(self) -> float:
        """Condition number of the normals; infinite if there are more of them than dimensions."""
        singular = np.linalg.svd(self.normals, compute_uv=False)
        full = len(singular) == len(self) and (len(self) == 0 or singular[-1] > 0)
        return float(singular[0] / singular[-1]) if full and len(self) else float(1 if full else np.inf)

    def independent(self, order: IntArray, least: float) -> BoolArray:
        """The first hyperplanes in this order whose normals are independent: each keeps `least` of its length."""
        basis, keep = np.empty((0, self.normals.shape[1])), np.zeros(len(self), dtype=bool)
        for i in order:
            rest = self.normals[i] - (self.normals[i] @ basis.T) @ basis
            rest -= (rest @ basis.T) @ basis
            keep[i] = np.linalg.norm(rest) > least * max(len(self), 1) and len(basis) < basis.shape[1]
            basis = np.concatenate([basis, rest[None] / np.linalg.norm(rest)]) if keep[i] else basis
        return keep

    def chosen(self, keep: BoolArray) -> Hyperplanes:
        """These hyperplanes only; the gradients stay."""
        return replace(self, **{name: getattr(self, name)[keep] for name in ONE_EACH})

    def with_gradients(self, points: FloatArray, slopes: FloatArray, slope_sd: FloatArray) -> Hyperplanes:
        """More points with gradients."""
        return replace(
            self,
            points=np.concatenate([self.points, points]),
            slopes=np.concatenate([self.slopes, slopes]),
            slope_sd=np.concatenate([self.slope_sd, slope_sd]),
        )

    def between(self, sides: IntArray, on: FloatArray) -> Hyperplanes:
        """The hyperplanes through points `on` (n, k) between points with gradients, and only these."""
        k = len(self.frame.basis)
        if not len(sides):
            return replace(self, normals=np.empty((0, k)), offsets=np.empty(0), errors=np.empty(0), sides=sides, on=on)
        jumps = self.slopes[sides[:, 1]] - self.slopes[sides[:, 0]]
        _, sizes, right = np.linalg.svd(jumps, full_matrices=False)
        noise = np.hypot(*self.slope_sd[sides].T) * np.sqrt(k)
        second = sizes[:, 1] if sizes.shape[1] > 1 else 0.0  # at one crease all outputs jump along one normal
        errors = np.maximum(noise, second) / np.maximum(sizes[:, 0], np.finfo(float).tiny)
        normals = right[:, 0]
        return replace(self, normals=normals, offsets=-(normals * on).sum(axis=1), errors=errors, sides=sides, on=on)

    def widened(self, new: FloatArray, slopes: FloatArray, slope_sd: FloatArray) -> Hyperplanes:
        """The same in a frame with more directions (j, d), along which gradients are `slopes` (p, m, j)."""
        more = [(0, 0), (0, len(new))]
        wider = replace(
            self,
            frame=self.frame.extended(new),
            points=np.pad(self.points, more),
            slopes=np.concatenate([self.slopes, slopes], axis=2),
            slope_sd=np.maximum(self.slope_sd, slope_sd),
        )
        return wider.between(self.sides, np.pad(self.on, more))

    def joined(self, new: Hyperplanes) -> Hyperplanes:
        """With the hyperplanes of another that are not among these."""
        found = self
        for i in range(len(new)):
            one = new.chosen(np.arange(len(new)) == i)
            if not found._same(one).any():
                found = found._and(one)
        return found

    def _and(self, one: Hyperplanes) -> Hyperplanes:
        both: dict[str, Any] = {name: np.concatenate([getattr(self, name), getattr(one, name)]) for name in ONE_EACH}
        return replace(self, **both)

    def _same(self, one: Hyperplanes) -> BoolArray:
        sign = np.sign(self.normals @ one.normals[0])
        apart = np.linalg.norm(self.normals - sign[:, None] * one.normals, axis=1)
        offset = np.abs(self.offsets - sign * one.offsets) / (self.scale + np.abs(self.offsets))
        return np.asarray((apart < SAME) & (offset < SAME))
