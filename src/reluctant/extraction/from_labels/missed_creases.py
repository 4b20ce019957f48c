"""Peeling: neurons that a model of the boundary misses, one crease beyond where the model is right.

A model equals the target on one side of every neuron that it misses. Along its boundary a path from a point that
holds to one that does not crosses the first missing crease. Behind it lies a facet with another normal n:

    target = model + t(y),   t(y) = λ n·(y − p) − A(y),

where A is the model's affine piece before the crease, p a point of the facet and λ > 0 one unknown number. Another
facet of the neuron or a corner of its crease with a known one gives λ. Then boundary points far apart give all digits
of t. Each round looks for several creases at the same time, in the same requests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.from_labels.bent_model import BentModel, BoundaryPoints, row_norms
from reluctant.extraction.from_labels.corners import Corners
from reluctant.extraction.from_labels.first_facet import CLEAR, EXACT, spread
from reluctant.extraction.from_labels.flat import Flat
from reluctant.extraction.from_labels.joint_polish import Certainty, LocatedPoints, most_telling, polished, solved_terms
from reluctant.extraction.from_labels.new_facets import DOUBTS, Brackets, FacetsBehind, NewFacets
from reluctant.extraction.method import StageFailed
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray
from reluctant.oracles.ledger import check_time

ROUNDS, ROUNDS_A_NEURON = 10, 2  # of peeling, at most
LONELY = 5  # rounds after which a first crease counts as one that meets no other
TOGETHER = 4  # points where the model is wrong that start a round
NEAR = 0.01  # of a typical input: two boundary points of one bracket


class NoCorner(StageFailed):
    """Creases around the first facet that do not meet on it: another facet may show more."""


@dataclass
class Peeling:
    """The search for missing neurons in one flat.

    offset: distance, in typical inputs, at which labels on both sides of a predicted boundary point must be right.
    whole: fit all neurons to all located points after each addition, and not the new ones alone.
    """

    flat: Flat
    located: LocatedPoints
    good: FloatArray  # boundary points (n, r) where the first model was right
    offset: float = 1e-6
    whole: bool = True
    together: int = TOGETHER
    elsewhere: bool = False  # NoCorner is raised where the creases of the first facet do not meet
    known: Certainty | None = None
    waiting: NewFacets | None = None  # facets whose scale no corner has shown yet

    @property
    def size(self) -> float:
        """Norm of a typical input."""
        return self.flat.typical

    # ---- rounds

    def peel(self, model: BentModel) -> BentModel:
        """The model with all neurons whose absence labels show; StageFailed where some stay unexplained."""
        rounds, most_rounds, left = 0, ROUNDS, 1.0
        while rounds < most_rounds:
            check_time()
            rounds += 1
            points, held = self.tested(model)
            if self.whole:
                model = self.sharpened(model, points[held], self.offset * self.size)
            left = 1 - float(held.mean()) if len(held) else 1.0
            if len(held) and not left:
                return model
            good = np.concatenate([self.good, points.points[held]])
            if not len(good):
                raise StageFailed("creases", "no point of the model's boundary holds", number=0, limit=1)
            bad = points[~held][: self.together if left > 1 / 2 else 2]
            nearest = np.linalg.norm(bad.points[:, None] - good, axis=2).argmin(axis=1)
            brackets = self.brackets(model, good[nearest], bad)
            crossed = brackets.crossed(model)
            fresh = ~crossed.any(axis=1)
            less = model if fresh.any() else self.without_one(model, brackets, crossed)
            if less is not model:
                model = less
                continue
            model = self.with_neurons(model, brackets[np.flatnonzero(fresh)])
            if not model.width and self.waiting and rounds == LONELY:
                if len(self.waiting) > 1 and self.elsewhere:
                    raise NoCorner("creases", "creases that do not meet", number=len(self.waiting), limit=1)
                # A crease that meets no other leaves λ open: every value gives the same labels.
                one = self.waiting[:1]
                model = self.with_facets(model, replace(one, scale=row_norms(one.normal)))
            most_rounds = max(most_rounds, ROUNDS + ROUNDS_A_NEURON * model.width)
        raise StageFailed("creases", "the boundary bends where no neuron explains it", number=left, limit=0.0)

    def tested(self, model: BentModel) -> tuple[BoundaryPoints, BoolArray]:
        """Points of the model's boundary, and whether they hold; more of them, and beside creases, if the first do."""
        first, more, beside = 24, 2000 if self.flat.inputs else 40, 5
        points = self.clear_points(model, model.boundary_points(self.flat.draw, 2 * first))[:first]
        held = self.flat.holds(points, self.offsets(model, points.points))
        if held.all():
            near, _ = model.points_beside_creases(self.flat.draw, beside, NEAR * self.size)
            others = self.clear_points(model, model.boundary_points(self.flat.draw, more)[:more] + near)
            points, held = points + others, np.append(held, self.flat.holds(others, self.offsets(model, others.points)))
        return points, held

    def clear_points(self, model: BentModel, points: BoundaryPoints) -> BoundaryPoints:
        """Those points inside the domain that do not lie on a crease, where the boundary has no normal."""
        clear = model.room(points.points) > CLEAR * self.size
        return points[clear & self.flat.inside(points.points, self.offset * self.size)]

    def offsets(self, model: BentModel, y: FloatArray) -> FloatArray:
        """Distances (n,) within which the model must be right: the offset, or what its own numbers leave open."""
        least = np.full(len(y), self.offset * self.size)
        if not self.whole:
            return least
        return np.maximum(least, DOUBTS * self.certainty(model).errors(model.across(y)))

    def certainty(self, model: BentModel) -> Certainty:
        """Standard errors of the model, by all located points."""
        if self.known is None or self.known.model is not model:
            self.known = Certainty.of(model, self.located)
        return self.known

    def sharpened(self, model: BentModel, points: BoundaryPoints, wanted: float) -> BentModel:
        """The model fitted to those of these points too that it knows less well than wanted, DOUBTS times over.

        Cost: at most a line for each number of the model, each as many rows as it has bits to add.
        """
        points = self.clear_points(model, points)
        rows = self.certainty(model).whitened(points)
        error = np.linalg.norm(rows, axis=1)
        order = most_telling(rows, 0.0 if self.flat.few_digits else wanted / DOUBTS)  # more lines, for errors average
        order = order[DOUBTS * error[order] > wanted]
        if not len(order):
            return model
        lines, error = points[order], error[order]
        t = self.flat.crossings(lines, np.maximum(error, 2 * self.flat.finest), self.flat.finest, 4 * DOUBTS * error)
        new = self.flat.located((lines.points + t[:, None] * lines.across)[np.isfinite(t)])
        better, left = polished(model, self.located + new)
        if left.max() > EXACT:
            return model
        self.located += new
        return better

    def without_one(self, model: BentModel, brackets: Brackets, crossed: BoolArray) -> BentModel:
        """The model without the first of its neurons from whose crease on it is wrong; as it was if there is none."""
        for bracket in np.flatnonzero(crossed.sum(axis=1) == 1):
            less = self.without(model, int(crossed[bracket].argmax()), brackets.before[bracket])
            if less is not model:
                return less
        return model

    def without(self, model: BentModel, neuron: int, kept: FloatArray) -> BentModel:
        """The model without a neuron, continued from the side of `kept`, and without the points behind its crease.

        The model as it was if hardly any located point fits then: another crease, not yet known, lies close by.
        """
        less = model.without(neuron, kept)
        gradients = row_norms(less.gradients(self.located.points))
        right = np.abs(less(self.located.points)) / gradients < EXACT**2 * self.located.tol
        if self.whole and right.sum() < model.dim:
            return model
        self.located = self.located[right]
        return less

    def with_neurons(self, model: BentModel, brackets: Brackets) -> BentModel:
        """The model with the neurons behind these brackets."""
        waiting = self.waiting or NewFacets.none(model.dim)
        brackets = brackets[~waiting.meet(model, brackets.before, CLEAR * self.size)]
        facets = FacetsBehind(self.flat, model, brackets, self.offset * self.size).found(waiting)
        corners = Corners(self.flat, model, self.offset * self.size)
        self.waiting = facets
        if not model.width:
            two = corners.of_two(facets)
            if two is None:
                return model
            model, self.waiting = self.with_facets(model, *two[:2]), two[2]
            if not model.width:
                return model
            corners, facets = replace(corners, model=model), self.waiting
        facets = corners.scaled(facets[~self._explained(model, facets)])
        known, self.waiting = facets[np.isfinite(facets.scale)], facets[np.isnan(facets.scale)]
        grown = self.with_facets(model, known)
        if grown.width == model.width and len(known) > 1:
            for one in range(len(known)):
                grown = self.with_facets(grown, known[one : one + 1])
        return grown

    def _explained(self, model: BentModel, facets: NewFacets) -> BoolArray:
        """Whether a model passes through the points of each facet already."""
        off = model(facets.point) / row_norms(model.gradients(facets.point))
        return np.asarray(np.abs(off) < self.offset * self.size)

    # ---- where the model is wrong

    def brackets(self, model: BentModel, good: FloatArray, bad: BoundaryPoints) -> Brackets:
        """Brackets of the first missing crease between good points (q, r) and bad ones. Cost: about 18 rows each.

        Behind the crease the boundary moves to one side, on which labels are wrong: those of the other say nothing.
        """
        halvings = 14

        def right(at: BoundaryPoints, side: FloatArray) -> BoolArray:
            off = self.offsets(model, at.points)
            labels = self.flat.labels(at.points + (side * off)[:, None] * at.across)
            return np.asarray(labels == np.where(side > 0, at.pairs[:, 1], at.pairs[:, 0]))

        side = np.where(right(bad, np.ones(len(bad))), -1.0, 1.0)
        low, high = np.zeros(len(good)), np.ones(len(good))
        before, behind, arrived = good.copy(), bad.points.copy(), np.ones(len(good), dtype=bool)
        for _ in range(halvings):
            middle = (low + high) / 2
            y, there = model.projected(good + middle[:, None] * (bad.points - good), self.flat.finest)
            held = there.copy()
            held[there] = right(model.across(y[there]), side[there])
            low, high = np.where(held, middle, low), np.where(held, high, middle)
            before[held], behind[~held], arrived[~held] = y[held], y[~held], there[~held]
        arrived &= np.linalg.norm(behind - before, axis=1) < NEAR * self.size
        arrived[arrived] = right(model.across(before[arrived]), -side[arrived])
        return Brackets(before, behind)[arrived]

    # ---- all digits

    def with_facets(self, model: BentModel, facets: NewFacets, corner: LocatedPoints | None = None) -> BentModel:
        """The model with a neuron for each crease of these facets, fitted to boundary points far apart.

        The model as it was if the points do not fit. Cost: about (r + 4)·36 rows a neuron.
        """
        facets = facets[facets.terms.different(self.size)]
        if not len(facets):
            return model
        far, owner = self.far_points(model, facets)
        enough = np.bincount(owner, minlength=len(facets)) > model.dim // 2
        facets, far = facets[enough], far[enough[owner]]
        if not len(facets):
            return model
        new = facets.located + far + (corner or LocatedPoints.none(model.dim))
        terms, left = solved_terms(model, facets.terms, new, self.size)
        grown = terms.added_to(model)
        if self.whole:
            grown, left = polished(grown, self.located + new)
        if left.max() > EXACT:
            return model
        self.located += new
        return grown

    def far_points(self, model: BentModel, facets: NewFacets) -> tuple[LocatedPoints, np.ndarray]:
        """Boundary points behind new creases, near and far, that fix their terms best; and the facet of each.

        They lie in the facet's plane and leave its λ open; the point that gave it is located as well as they are.
        """
        terms = facets.terms
        some, off, owner = spread(self.flat, terms.added_to(model), facets.reach, terms)
        known = np.flatnonzero(facets.corner_tol > self.flat.located_to)
        lines, tol = some + BoundaryPoints(facets.corner[known], facets.unit[known]), facets.corner_tol[known]
        t = self.flat.crossings(lines, np.append(off / 64, tol), self.flat.finest, np.append(2 * off, 64 * tol))
        found = np.isfinite(t)
        return self.flat.located((lines.points + t[:, None] * lines.across)[found]), np.append(owner, known)[found]


def sharpened(search: Peeling, model: BentModel, wanted: float, rounds: int = 3) -> BentModel:
    """The model fitted to points of its boundary that it knows least, until all are known as well as wanted."""
    for _ in range(rounds):
        check_time()
        points = model.boundary_points(search.flat.draw, 12 * model.numbers)
        points += model.points_beside_creases(search.flat.draw, 24, NEAR * search.size)[0]
        better = search.sharpened(model, points, wanted)
        if better is model:
            break
        model = better
    return model
