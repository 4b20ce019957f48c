"""Several classes in the whole space: the model of a flat extended, its outputs fitted to boundary points everywhere.

A flat shows few of the coefficients, one for each class and neuron. With hyperplanes known they are linear: boundary
points that fix them best are located, and real ones where labels say that the model is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from reluctant.extraction.from_labels.bent_model import BoundaryPoints, Points
from reluctant.extraction.from_labels.class_model import ClassModel
from reluctant.extraction.from_labels.class_search import CLEAR, DOUBTS, ClassSearch
from reluctant.extraction.from_labels.extension import Extension
from reluctant.extraction.from_labels.flat import Flat
from reluctant.extraction.from_labels.joint_polish import Certainty, LocatedPoints, triangle
from reluctant.extraction.from_labels.walks import Walks
from reluctant.extraction.method import StageFailed
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.ledger import check_time

WANTED = 1e-11  # of a typical input: the error of the boundary in the whole space


def class_model(labels: Counting, space: Flat, flat: Flat, classes: int) -> ClassModel:
    """A model of several classes in the whole space, whose boundary holds wherever it was asked."""
    coarse, fine, exact, known = 1e-6, 1e-8, 4e-12, 1e-10  # of a typical input
    search, size = ClassSearch.of(flat, classes), flat.typical
    with labels.stage("peel"):
        model = search.run(coarse)
    with labels.stage("polish"):
        model = search.sharpened(model, exact * size)
    if search.absent.any():
        raise StageFailed("classes", "classes without a boundary in the flat", number=search.absent.sum(), limit=0)
    certainty = Certainty.of(model, search.located)
    with labels.stage("extend"):
        whole = Extension.of(flat, model, lambda at: certainty.errors(at) < known * size).run()
    with labels.stage("hidden"):
        return ClassOutputs(space, whole, LocatedPoints.none(space.dim)).completed(fine)


@dataclass
class ClassOutputs:
    """The outputs of a model of the whole space, fitted again to boundary points everywhere; hyperplanes are known."""

    space: Flat
    model: ClassModel
    located: LocatedPoints

    def completed(self, offset: float) -> ClassModel:
        """The model with coefficients that the flat did not show. Cost: about 20 rows a coefficient."""
        rounds, left = 12, 1.0
        for _ in range(rounds):
            check_time()
            points, error = self.to_test()
            held = self.space.holds(points, offset * self.size)
            left = 1 - float(held.mean()) if len(held) else 1.0
            open_ = held & (DOUBTS * error > WANTED * self.size)
            if not (left or open_.any()):
                ends = self.wrong_inputs()
                if not len(ends[0]):
                    return self.model
                self.fit(self.between(*ends))
                continue
            expected = np.minimum(error[open_], offset * self.size / 8)
            known = self.space.located_on(points[open_], expected, np.full(len(expected), 2 * offset * self.size))
            wrong = points[~held]
            far = self.space.rng.uniform(0.02, 0.5, len(wrong))[:, None] * self.size * wrong.across
            self.fit(known + self.between(wrong.points - far, wrong.points + far))
        raise StageFailed("hidden", "the boundary bends where no neuron explains it", number=left, limit=0.0)

    @property
    def size(self) -> float:
        """Norm of a typical input."""
        return self.space.typical

    @property
    def unknown(self) -> int:
        """Numbers of the outputs."""
        return self.model.classes * (self.model.width + self.model.dim + 1)

    def between(self, first: FloatArray, second: FloatArray) -> LocatedPoints:
        """Boundary points between inputs of different labels."""
        found = Walks.none(self.space).crossings_between(first, second)
        return self.space.located(found.points, found.pairs)

    def rows(self, at: Points) -> FloatArray:
        """Derivatives (n, q) of the distance from the boundary by the numbers of the outputs."""
        return self.model.equations(at)[1][:, -self.unknown :]

    def to_test(self) -> tuple[BoundaryPoints, FloatArray]:
        """Points of the model's boundary: those that fix its numbers best, and random ones; with standard errors."""
        candidates, some = max(3 * self.unknown, 4000), 200  # many: a small facet may be all that shows a number
        points = self.model.boundary_points(self.space.draw, candidates)
        points = self.model.clear(points, CLEAR * self.size)
        points = points[self.space.rng.permutation(len(points))[:candidates]]
        known = np.concatenate([self.rows(self.located) / self.located.tol[:, None], np.eye(self.unknown)])
        rows = solve_triangular(np.linalg.qr(known, mode="r"), self.rows(points).T, trans="T").T
        error = np.linalg.norm(rows, axis=1)
        order = qr(rows.T, pivoting=True, mode="r")[1][: self.unknown]
        order = order[DOUBTS * error[order] > WANTED * self.size]
        chosen = np.union1d(order, self.space.rng.choice(len(points), min(some, len(points)), replace=False))
        return points[chosen], error[chosen]

    def wrong_inputs(self) -> tuple[FloatArray, FloatArray]:
        """Segments from random inputs of another label than the model's to some of other labels."""
        inputs, segments = 1000, 4
        rows = self.space.draw(inputs)
        wrong = rows[self.space.labels(rows) != self.model.labels(rows)]
        first = np.repeat(wrong, segments, axis=0)
        return first, rows[self.space.rng.integers(inputs, size=len(first))]

    def fit(self, new: LocatedPoints) -> None:
        """The outputs that fit all located points, as near to those before as these allow."""
        small, rounds = 1e-10, 3  # of a column: what keeps numbers that no point shows as they are
        self.located += new
        for _ in range(rounds):
            off, rows = self.model.equations(self.located)[0], self.rows(self.located)
            columns = np.linalg.norm(rows, axis=0)
            columns[columns == 0] = 1.0
            factor = triangle(
                np.concatenate(
                    [np.column_stack([rows / columns, -off]), small * np.eye(self.unknown, self.unknown + 1)]
                )
            )
            step = (
                solve_triangular(factor[: self.unknown, : self.unknown], factor[: self.unknown, self.unknown]) / columns
            )
            self.model = self.model.moved(np.append(np.zeros(self.model.width * (self.model.dim + 1)), step))
