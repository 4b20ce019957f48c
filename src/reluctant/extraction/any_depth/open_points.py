"""Where a neuron with open coefficients would switch, if it does: points to ask before anything is said of them.

A feature h of the layer below was never on where the neuron k was seen to switch, so its coefficient ν is not known.
Where h is on the value is z + ν h with z known, of the other sign if ν is beyond -z/h. The points with the most
extreme ratios z/h leave the least room to values of ν that would make k switch: they are found among random points,
and moved on as far as they get. No queries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.crease import Incoming
from reluctant.extraction.any_depth.known import Known
from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["undetermined_points"]

POOL = 10_000  # random points from which they are taken
DISTANCES = (0.3, 1.0, 3.0, 10.0)  # from the origin, in units of the scale of use
FOR_EACH = 12  # points for every neuron, at every distance, on either side
STEPS, STEP = 25, 0.2  # the first step, of the distance from the origin
SHORTER = 0.5  # after a step that did not help


def undetermined_points(known: Known, incomings: Iterable[Incoming], rng: np.random.Generator) -> FloatArray:
    """Points (n, d) at which a neuron on top of `known` depends on coefficients that are open, some for each."""
    chosen, pool = [np.empty((0, known.dim))], rng.standard_normal((POOL, known.dim))
    for incoming in incomings:
        if not incoming.closed:
            open_ = _Open(known, incoming, _direction(known, incoming, pool, rng))
            chosen += [open_.extremes(distance * pool, side) for distance in DISTANCES for side in (-1.0, 1.0)]
    return np.concatenate(chosen)


def _direction(known: Known, incoming: Incoming, pool: FloatArray, rng: np.random.Generator) -> FloatArray:
    """A combination (k,) of the open features, not negative where it is not zero at most points."""
    direction = incoming.open @ rng.standard_normal(incoming.open.shape[1])
    sign = np.sign(((known.features(pool) - incoming.start) @ direction).sum()) or 1.0
    return np.asarray(sign * direction / np.linalg.norm(direction))


@dataclass(frozen=True)
class _Open:
    """A neuron, and a direction of its features along which its weights are open."""

    known: Known
    incoming: Incoming
    direction: FloatArray

    def ratios(self, points: FloatArray) -> tuple[FloatArray, BoolArray]:
        """z/h (n,), and where h is on."""
        features = self.known.features(points)
        on = (features - self.incoming.start) @ self.direction
        usable = (on > 0) & ~self.incoming.determined(features)
        return self.incoming.values(features) / np.where(usable, on, 1.0), usable

    def extremes(self, pool: FloatArray, side: float) -> FloatArray:
        """Points with the largest ratios, or the smallest, as far from the origin as those of the pool."""
        ratio, usable = self.ratios(pool)
        there = np.flatnonzero(usable)
        points = pool[there[np.argsort(-side * ratio[there])[:FOR_EACH]]]
        size, step = np.linalg.norm(points, axis=1, keepdims=True), np.full((len(points), 1), STEP)
        ratio, _ = self.ratios(points)
        for _ in range(STEPS):
            moved = points + step * size * self.uphill(points, side, ratio)
            moved *= size / np.linalg.norm(moved, axis=1, keepdims=True)
            after, usable = self.ratios(moved)
            better = usable & (side * after > side * ratio)
            points, ratio = np.where(better[:, None], moved, points), np.where(better, after, ratio)
            step = np.where(better[:, None], step, SHORTER * step)
        return points

    def uphill(self, points: FloatArray, side: float, ratio: FloatArray) -> FloatArray:
        """Unit directions (n, d) in which the ratio changes most."""
        rows = side * (self.incoming.weights - ratio[:, None] * self.direction)
        slope = self.known.around(points).feature_gradients(rows)
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        return np.asarray(slope / np.where(length > 0, length, 1.0))
