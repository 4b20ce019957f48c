"""A model of several classes in a flat: walks, neurons from their bends, a fit, and labels that say where to walk next.

Once hyperplanes are known, the outputs of all classes are linear in what boundary points say: F_a − F_b = 0 between the
labels a and b. Numbers that no point shows, a neuron that bends no boundary of a class, stay near zero.

In the whole space the model of a flat is extended. A flat shows few of the coefficients, one for each class and neuron.
With hyperplanes known they are linear: boundary points that fix them best are located, and real ones where labels say
that the model is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from reluctant.extraction.from_labels.averages import averaged
from reluctant.extraction.from_labels.bent_model import BoundaryPoints, Points, row_norms
from reluctant.extraction.from_labels.class_model import ClassModel
from reluctant.extraction.from_labels.extension import Extension
from reluctant.extraction.from_labels.first_facet import refuse_curves
from reluctant.extraction.from_labels.flat import Flat
from reluctant.extraction.from_labels.joint_polish import (
    FEW_SEEN,
    SOME_UNSEEN,
    Certainty,
    LocatedPoints,
    polished,
    triangle,
)
from reluctant.extraction.from_labels.walks import Creases, Facets, Walks, creases_of
from reluctant.extraction.method import StageFailed
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.ledger import check_time

IDLE = 4  # rounds of walks without a new neuron, at most
FEW = 1 / 4  # of the bends that may lie on no known hyperplane before a model is fitted
NEAR = 0.01  # of a typical input: the ends of a segment across the boundary
DOUBTS = 8.0  # standard errors that a point of the model's boundary may be off
EXACT = 30.0  # tolerances that a located point may be off
CLEAR = 1e-3  # of a typical input: points nearer to a crease or a third class are not located
MOST = 0.95  # of the facets that a model must fit
ABSENT = -1e6  # value of a class that no boundary showed


@dataclass
class ClassSearch:
    """The search for a model of several classes in one flat."""

    flat: Flat
    classes: int
    located: LocatedPoints
    walks: Walks

    @classmethod
    def of(cls, flat: Flat, classes: int) -> ClassSearch:
        """Nothing found yet."""
        return cls(flat, classes, LocatedPoints.none(flat.dim), Walks.none(flat))

    @property
    def size(self) -> float:
        """Norm of a typical input."""
        return self.flat.typical

    @property
    def absent(self) -> BoolArray:
        """Classes (m,) that no facet borders."""
        return ~np.isin(np.arange(self.classes), self.walks.facets.pairs)

    def run(self, offset: float) -> ClassModel:
        """A model whose boundary labels agree with, this far to both sides, in typical inputs."""
        starts, steps, idle, width = 16, 6, 0, 0
        first, second = self.flat.draw(starts), self.flat.draw(starts)
        while idle < IDLE:
            check_time()
            self.walks.go(first, second, steps)
            if len(self.walks.bends) < starts:
                refuse_curves(self.flat)
            creases, owners = creases_of(self.walks.facets, self.walks.bends, self.size)
            idle, width = (0, len(creases.offsets)) if len(creases.offsets) > width else (idle + 1, width)
            first, second = self.flat.draw(starts), self.flat.draw(starts)
            if (owners < 0).sum() > FEW * len(owners):
                continue
            model, fits = self.polished(class_fit(creases, self.walks.facets, self.classes, self.size))
            if fits:
                model, wrong = self.completed(model, offset)
                if wrong is None:
                    return model
                first, second = wrong
        raise StageFailed(
            "creases", "bends that no neuron explains", number=int((owners < 0).sum()), limit=FEW * len(owners)
        )

    def completed(self, model: ClassModel, offset: float) -> tuple[ClassModel, tuple[FloatArray, FloatArray] | None]:
        """The model with coefficients that facets did not show, from boundary points where it is wrong.

        Its hyperplanes are known. Where points do not fit a neuron is missing: segments across them come back.
        """
        rounds, most = 12, 48
        for _ in range(rounds):
            points, held = self.tested(model, offset)
            if held.all():
                return model, None
            first, second = self.beside(points[~held][:most])
            at = self.walks.crossings_between(first, second)
            new = self.flat.located(at.points, at.pairs)
            better, off = self.fitted(model, self.located + new)
            if off.max(initial=0.0) > EXACT:
                return model, (at.points - NEAR * self.size * at.across, at.points + NEAR * self.size * at.across)
            self.located += new
            model = better
        return model, (first, second)

    def fitted(self, model: ClassModel, located: LocatedPoints) -> tuple[ClassModel, FloatArray]:
        """The model that fits these points best, and the residuals (n,), in their tolerances.

        With few digits little damping lets outputs shrink wherever points are, and grow where none is.
        """
        return polished(model, located, damping=FEW_SEEN if self.flat.few_digits else SOME_UNSEEN)

    def beside(self, points: BoundaryPoints) -> tuple[FloatArray, FloatArray]:
        """Points on both sides of wrong boundary points, whose labels may differ."""
        far = self.flat.rng.uniform(0.05, 0.5, len(points))[:, None] * self.size * points.across
        return points.points - far, points.points + far

    def polished(self, model: ClassModel) -> tuple[ClassModel, bool]:
        """The model fitted to the points of all facets, and whether it fits all but a few."""
        facets = self.walks.facets
        good: BoolArray = np.ones(len(facets), dtype=bool)
        for _ in range(2):
            self.located = facets[good].located
            if len(self.located) < model.width + self.flat.dim:
                return model, False
            model, _ = self.fitted(model, self.located)
            distance = np.abs(model.equations(facets.located)[0]).reshape(facets.tol.shape) / facets.tol
            good = np.asarray((distance < EXACT).all(axis=1))
            if good.all():
                return model, True
        return model, float(good.mean()) > MOST

    def tested(self, model: ClassModel, offset: float) -> tuple[BoundaryPoints, BoolArray]:
        """Points of the model's boundary, and whether they hold."""
        count = max(160, 2 * model.numbers) if self.flat.few_digits else 160
        points = model.clear(model.boundary_points(self.flat.draw, 2 * count), CLEAR * self.size)
        points = points[self.flat.rng.permutation(len(points))[:count]]
        off = np.maximum(offset * self.size, DOUBTS * Certainty.of(model, self.located).errors(points))
        return points, self.flat.holds(points, np.minimum(off, CLEAR * self.size))

    def sharpened(self, model: ClassModel, wanted: float, rounds: int = 3) -> ClassModel:
        """The model fitted to points of its boundary that it knows least, until all are known as well as wanted."""
        for _ in range(rounds):
            check_time()
            points = model.clear(model.boundary_points(self.flat.draw, 6 * model.numbers), CLEAR * self.size)
            rows = Certainty.of(model, self.located).whitened(points)
            error = np.linalg.norm(rows, axis=1)
            order = qr(rows.T, pivoting=True, mode="r")[1][: model.numbers] if len(rows) else np.empty(0, dtype=int)
            order = order[DOUBTS * error[order] > wanted]
            if not len(order):
                break
            lines, error = points[order], error[order]
            new = self.flat.located_on(lines, np.maximum(error, 2 * self.flat.finest), 4 * DOUBTS * error)
            better, left = self.fitted(model, self.located + new)
            if left.max() > EXACT:
                break
            self.located += new
            model = better
        return model


def class_fit(creases: Creases, facets: Facets, classes: int, size: float) -> ClassModel:
    """The outputs of all classes that fit measured facets best, hyperplanes given.

    Each facet's two classes differ by nothing at its points, and by about one unit along its normal: that tells apart
    what exact equations leave open.
    """
    rough, small = 1e-5, 1e-2  # how well hyperplanes are known, of a typical input; what keeps unseen numbers small
    k, (f, r) = len(creases.offsets), facets.points.shape
    lower, upper = facets.pairs.T.astype(int)
    each = np.arange(f)
    sign = np.zeros((f, classes))
    sign[each, upper] += 1.0
    sign[each, lower] -= 1.0

    def rows(y: FloatArray, which: np.ndarray) -> FloatArray:
        z = np.abs(y @ creases.directions.T + creases.offsets) / size
        parts = np.column_stack([z, y / size, np.ones(len(y))])
        return (sign[which][:, :, None] * parts[:, None, :]).reshape(len(y), -1)

    located = facets.located
    equal = rows(located.points, np.repeat(each, r)) / rough
    side = np.sign(facets.points @ creases.directions.T + creases.offsets)
    along = np.column_stack([side * (facets.normals @ creases.directions.T), facets.normals, np.zeros(f)])
    steep = (sign[:, :, None] * along[:, None, :]).reshape(f, -1)
    usual = np.ones(f)
    weight = np.ones(f)
    for _ in range(6):
        whole = np.concatenate([
            equal * np.repeat(weight / usual, r)[:, None], steep / usual[:, None], small * np.eye(equal.shape[1])
        ])  # fmt: skip
        wanted = np.concatenate([np.zeros(len(equal)), np.ones(f), np.zeros(equal.shape[1])])
        factor = triangle(np.column_stack([whole, wanted]))
        solution = np.linalg.solve(factor[:-1, :-1], factor[:-1, -1])
        left = np.abs(equal @ solution).reshape(f, r).max(axis=1)
        slope = np.maximum(np.abs(steep @ solution), 1e-6)
        usual = np.clip(slope, 1e-2, 1e2)
        left = left / slope
        weight = 1 / (1 + left / max(3 * float(np.median(left)), 1.0))
    parts = solution.reshape(classes, k + r + 1)
    parts = parts - parts.mean(axis=0)
    seen = np.abs(sign).any(axis=0)
    levels = np.where(seen, parts[:, -1], ABSENT) * size
    common = float(np.linalg.norm(parts[:, k : k + r])) or 1.0
    return ClassModel(
        creases.directions, creases.offsets, parts[:, :k] / common, parts[:, k : k + r] / common, levels / common
    )


# ---- in the whole space


# Coarse, fine, exact, known in the flat, wanted of the boundary in the whole space: of a typical input; in resolutions.
OFFSETS = ((1e-6, 64.0), (1e-8, 320.0), (4e-12, 1.0), (1e-10, 8.0), (1e-11, 320.0))
NOT_SHOWN, HARDLY_SHOWN = 1e-10, 1e-4  # of a column: what keeps numbers that no point shows; with few digits
FEW_CANDIDATES, MANY_CANDIDATES = 4000, 2**20  # points of the model's boundary; of the second, numbers in their rows


def class_model(labels: Counting, space: Flat, flat: Flat, classes: int) -> ClassModel:
    """A model of several classes in the whole space, whose boundary holds wherever it was asked."""
    resolution = space.finest / space.typical
    coarse, fine, exact, known, wanted = (max(least, times * resolution) for least, times in OFFSETS)
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
        found = ClassOutputs(space, whole, LocatedPoints.none(space.dim), wanted * size).completed(fine)
    with labels.stage("polish"):
        return averaged(space, found, fine * size, FEW_SEEN) if space.few_digits else found


@dataclass
class ClassOutputs:
    """The outputs of a model of the whole space, fitted again to boundary points everywhere; hyperplanes are known."""

    space: Flat
    model: ClassModel
    located: LocatedPoints
    wanted: float  # error of the boundary

    def completed(self, offset: float) -> ClassModel:
        """The model with coefficients that the flat did not show. Cost: about 20 rows a coefficient."""
        rounds, left, candidates = 12, 1.0, max(3 * self.unknown, FEW_CANDIDATES)
        for _ in range(rounds):
            check_time()
            points, error = self.to_test(candidates)
            held = self.space.holds(points, offset * self.size)
            left = 1 - float(held.mean()) if len(held) else 1.0
            open_ = held & (DOUBTS * error > self.wanted)
            if not (left or open_.any()):
                if candidates < MANY_CANDIDATES // self.unknown:  # a facet of few inputs may be all that shows a number
                    candidates = MANY_CANDIDATES // self.unknown
                    continue
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
            self.without_false_regions(np.concatenate([wrong.points - far, wrong.points + far]))
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

    def to_test(self, candidates: int) -> tuple[BoundaryPoints, FloatArray]:
        """Points of the model's boundary: those that fix its numbers best, and random ones; with standard errors."""
        some = 200
        points = self.model.boundary_points(self.space.draw, candidates)
        points = self.model.clear(points, CLEAR * self.size)
        points = points[self.space.rng.permutation(len(points))[:candidates]]
        known = np.concatenate([self.rows(self.located) / self.located.tol[:, None], np.eye(self.unknown)])
        rows = solve_triangular(np.linalg.qr(known, mode="r"), self.rows(points).T, trans="T").T
        error = np.linalg.norm(rows, axis=1)
        order = qr(rows.T, pivoting=True, mode="r")[1][: self.unknown]
        order = order[DOUBTS * error[order] > self.wanted]
        chosen = np.union1d(order, self.space.rng.choice(len(points), min(some, len(points)), replace=False))
        return points[chosen], error[chosen]

    def wrong_inputs(self) -> tuple[FloatArray, FloatArray]:
        """Segments from random inputs of another label than the model's to some of other labels."""
        inputs, segments = 1000, 4
        rows = self.space.draw(inputs)
        wrong = rows[self.space.labels(rows) != self.model.labels(rows)]
        first = np.repeat(wrong, segments, axis=0)
        return first, rows[self.space.rng.integers(inputs, size=len(first))]

    def without_false_regions(self, y: FloatArray) -> None:
        """Change numbers that no located point shows until points (n, d) have the labels of the target. Cost: n rows.

        Such a number may give a class a region where it has none: then no boundary point shows it, labels alone do.
        """
        shown = 1e-6  # of the largest singular value: rows below show nothing
        inside, claimed = self.space.labels(y).astype(int), self.model.labels(y)
        wrong = np.flatnonzero(inside != claimed)
        at = self.model.across(y[wrong], np.stack([claimed[wrong], inside[wrong]], axis=1))
        located = self.rows(self.located)
        columns = row_norms(np.concatenate([located, self.rows(at)]).T)
        _, singular, right = np.linalg.svd(triangle(np.concatenate([located / columns, np.zeros((self.unknown,) * 2)])))
        open_ = right[singular < shown * singular.max(initial=1.0)]
        rows = (self.rows(at) / columns) @ open_.T
        off = self.model.equations(at)[0]  # below 0: the class that it claims is larger
        change = np.linalg.lstsq(rows, -2 * off, rcond=1e-6)[0] @ open_ / columns
        self.model = self.model.moved(np.append(np.zeros(self.model.width * (self.model.dim + 1)), change))

    def fit(self, new: LocatedPoints) -> None:
        """The outputs that fit all located points, as near to those before as these allow."""
        rounds, small = 3, HARDLY_SHOWN if self.space.few_digits else NOT_SHOWN
        self.located += new
        for _ in range(rounds):
            off, rows = self.model.equations(self.located)[0], self.rows(self.located)
            columns = np.linalg.norm(rows, axis=0)
            columns[columns == 0] = 1.0
            scales = self.model.scale_rows()[self.model.width :, -self.unknown :] / columns
            factor = triangle(
                np.concatenate([
                    np.column_stack([rows / columns, -off]), np.pad(scales, ((0, 0), (0, 1))),
                    small * np.eye(self.unknown, self.unknown + 1),
                ])
            )  # fmt: skip
            step = (
                solve_triangular(factor[: self.unknown, : self.unknown], factor[: self.unknown, self.unknown]) / columns
            )
            self.model = self.model.moved(np.append(np.zeros(self.model.width * (self.model.dim + 1)), step))
