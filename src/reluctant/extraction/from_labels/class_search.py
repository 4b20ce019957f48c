"""A model of several classes in a flat: walks, neurons from their bends, a fit, and labels that say where to walk next.

Once hyperplanes are known, the outputs of all classes are linear in what boundary points say: F_a − F_b = 0 between the
labels a and b. Numbers that no point shows, a neuron that bends no boundary of a class, stay near zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from reluctant.extraction.from_labels.bend_matches import Creases, creases_of
from reluctant.extraction.from_labels.bent_model import BoundaryPoints
from reluctant.extraction.from_labels.class_model import ClassModel
from reluctant.extraction.from_labels.flat import Flat
from reluctant.extraction.from_labels.joint_polish import SOME_UNSEEN, Certainty, LocatedPoints, polished, triangle
from reluctant.extraction.from_labels.missed_creases import refuse_curves
from reluctant.extraction.from_labels.walks import Facets, Walks
from reluctant.extraction.method import StageFailed
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray
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
            better, off = polished(model, self.located + new, damping=SOME_UNSEEN)
            if off.max(initial=0.0) > EXACT:
                return model, (at.points - NEAR * self.size * at.across, at.points + NEAR * self.size * at.across)
            self.located += new
            model = better
        return model, (first, second)

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
            model, _ = polished(model, self.located, damping=SOME_UNSEEN)
            distance = np.abs(model.equations(facets.located)[0]).reshape(facets.tol.shape) / facets.tol
            good = np.asarray((distance < EXACT).all(axis=1))
            if good.all():
                return model, True
        return model, float(good.mean()) > MOST

    def tested(self, model: ClassModel, offset: float) -> tuple[BoundaryPoints, BoolArray]:
        """Points of the model's boundary, and whether they hold."""
        count = 160
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
            better, left = polished(model, self.located + new, damping=SOME_UNSEEN)
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
