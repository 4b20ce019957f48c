"""`averaged`: a last fit of targets with few digits, to so many boundary points that errors of crossings cancel."""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np

from reluctant.extraction.from_labels.bent_model import BoundaryPoints, Draw
from reluctant.extraction.from_labels.flat import Flat
from reluctant.extraction.from_labels.joint_polish import ALL_SEEN, Fitted, polished
from reluctant.oracles.ledger import check_time

CLEAR = 1e-4  # of a typical input: points nearer to a crease or a third class are left out


class Predicting(Fitted, Protocol):
    """A model that predicts its boundary."""

    @property
    def numbers(self) -> int:
        """How many numbers it has, up to scales."""

    def boundary_points(self, draw: Draw, n: int) -> BoundaryPoints:
        """Boundary points between n random pairs of points."""

    def clear(self, at: BoundaryPoints, room: float) -> BoundaryPoints:
        """Those boundary points that lie on no crease, and at no third class."""


ModelT = TypeVar("ModelT", bound=Predicting)


def averaged(space: Flat, model: ModelT, off: float, damping: float = ALL_SEEN) -> ModelT:
    """The model fitted to many points of its boundary, which is off by so much at most: errors of crossings average.

    Cost: about four lines for each of its numbers, each as many rows as there are bits between `off` and the finest.
    """
    lines_a_number, rounds, outlier = 4, 2, 30.0
    for _ in range(rounds):
        check_time()
        points = model.boundary_points(space.draw, 4 * lines_a_number * model.numbers)
        points = model.clear(points, CLEAR * space.typical)
        points = points[space.inside(points.points)]
        points = points[space.rng.permutation(len(points))[: lines_a_number * model.numbers]]
        t = space.crossings(points, off / 8, space.finest, 4 * off)
        found = np.isfinite(t)
        located = space.located((points.points + t[:, None] * points.across)[found], points.pairs[found])
        for robust in (True, False):  # a neuron may be missing, and some points far off
            better, left = polished(model, located, robust=robust, damping=damping)
            located = located[left < max(outlier * float(np.median(left)), 1.0)]
        model, off = better, off / 4
    return model
