"""Peeling: neurons that a model of the boundary misses, one crease beyond where the model is right.

A model equals the target on one side of every neuron that it misses. Along its boundary a path from a point that
holds to one that does not crosses the first missing crease. Behind it lies a facet with another normal n:

    target = model + t(y),   t(y) = λ n·(y − p) − A(y),

where A is the model's affine piece before the crease, p a point of the facet and λ > 0 one unknown number. A boundary
point behind the new crease and a known one gives λ. The first two creases have no known one: a corner where they meet
gives both numbers. Then boundary points far apart give all digits of t.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from reluctant.extraction.from_labels.bent_model import BentModel, BoundaryPoints, Terms, row_norms
from reluctant.extraction.from_labels.flat import Flat, facet_slopes
from reluctant.extraction.from_labels.joint_polish import Certainty, LocatedPoints, polished, solved_terms
from reluctant.extraction.method import StageFailed
from reluctant.geometry.lines import Batch, BoolArray
from reluctant.messages import Diagnosis
from reluctant.messages.catalogue import SPAN_FROM_LABELS, TRAIN
from reluctant.numerics import FloatArray
from reluctant.oracles.ledger import check_time
from reluctant.results import Outcome

ROUNDS, ROUNDS_A_NEURON = 10, 2  # of peeling, at most
LONELY = 5  # rounds after which a first crease counts as one that meets no other
NEAR = 0.01  # of a typical input: two boundary points of one bracket
CLEAR = 1e-4  # of a typical input: points nearer to a crease are not located
DOUBTS = 8.0  # standard errors that a point of the model's boundary may be off
ROUGH_BITS = 24  # of a step: finer than the slopes beside it, `NORMAL_BITS`
EXACT = 30.0  # tolerances that a located point may be off


@dataclass(frozen=True)
class Brackets(Batch):
    """Missing creases: model boundary points (q, r) before and behind each, near each other."""

    before: FloatArray
    behind: FloatArray

    def crossed(self, model: BentModel) -> BoolArray:
        """Which of the model's creases lie in each bracket (q, k): neurons that are wrong behind them."""
        crossed = np.sign(model.preactivations(self.before)) != np.sign(model.preactivations(self.behind))
        return np.asarray(crossed)

    def apart_from(self, model: BentModel, first: int, near: float) -> Brackets:
        """Those that do not lie on a crease of the neurons from `first` on."""
        distance = np.abs(model.preactivations(self.before)[:, first:])
        return self[np.flatnonzero((distance > near).all(axis=1))]


@dataclass(frozen=True)
class NewFacets(Batch):
    """Facets behind missing creases, a row for each.

    crease: a point of the model's boundary on the crease. normal: the model's gradient before it. point, slope: the
    facet is slope·(y − point) = 0, with slope 1 along the model's unit normal. reach: distance of the point from the
    crease. beside, tol: the boundary points that gave the slope, and how well they are located.
    """

    crease: FloatArray  # (q, r)
    normal: FloatArray  # (q, r)
    point: FloatArray  # (q, r)
    slope: FloatArray  # (q, r)
    reach: FloatArray  # (q,)
    beside: FloatArray  # (q, r, r)
    tol: FloatArray  # (q, r)

    @classmethod
    def none(cls, dim: int) -> NewFacets:
        """No facets."""
        rows = np.empty((0, dim))
        return cls(rows, rows, rows, rows, np.empty(0), np.empty((0, dim, dim)), rows)

    @property
    def unit(self) -> FloatArray:
        """Unit normals of the model before the creases."""
        return self.normal / row_norms(self.normal)[:, None]

    @property
    def outward(self) -> FloatArray:
        """Unit directions on the model's facet, orthogonal to the crease, towards the new facet."""
        inside = self.slope - self.unit
        side = np.sign((inside * (self.point - self.crease)).sum(axis=1))
        return inside * (side / row_norms(inside))[:, None]

    @property
    def located(self) -> LocatedPoints:
        """The boundary points that gave the slopes."""
        return LocatedPoints(self.beside.reshape(-1, self.beside.shape[-1]), self.tol.reshape(-1))

    def piece(self, y: FloatArray) -> FloatArray:
        """The model's affine piece of each facet at one point (q,)."""
        return np.asarray((self.normal * (y - self.crease)).sum(axis=1))

    def plane(self, y: FloatArray) -> FloatArray:
        """slope·(y − point) of each facet at one point (q,)."""
        return np.asarray((self.slope * (y - self.point)).sum(axis=1))

    def of_one_neuron(self, size: float) -> FloatArray:
        """λ (q,) of facets of one neuron behind different pieces of the model: t(y) is the same; NaN of all others."""
        alike, levels = 1e-4, (self.normal * self.crease).sum(axis=1) / size
        planes = np.column_stack([self.slope, -(self.slope * self.point).sum(axis=1) / size])
        pieces = np.column_stack([self.normal, -levels])
        scale = np.full(len(self), np.nan)
        for i in range(len(self)):
            for j in range(i):
                difference = pieces[i] - pieces[j]
                rows = np.stack([planes[i], -planes[j]], axis=1)
                found = np.linalg.lstsq(rows, difference, rcond=None)[0]
                left, apart = np.linalg.norm(rows @ found - difference), np.linalg.norm(difference)
                if (found > 0).all() and left < alike * apart and apart > alike:
                    scale[[i, j]] = found
        return scale

    def meet(self, model: BentModel, y: FloatArray, near: float) -> BoolArray:
        """Which boundary points (n, r) of the model lie on the crease of one of these, on the same affine piece."""
        gradients = model.gradients(y)
        met = np.zeros(len(y), dtype=bool)
        for normal, slope, point in zip(self.normal, self.slope, self.point, strict=True):
            same = np.linalg.norm(gradients - normal, axis=1) < 1e-6 * np.linalg.norm(normal)
            met |= same & (np.abs((y - point) @ slope) < near)
        return met

    def terms(self, scale: FloatArray) -> Terms:
        """t(y) for λ (q,)."""
        slopes = scale[:, None] * self.slope - self.normal
        levels = (self.normal * self.crease).sum(axis=1) - scale * (self.slope * self.point).sum(axis=1)
        return Terms(slopes, levels, self.point)


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
    together: int = 2  # creases that are crossed at the same time
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
            bad = points.points[~held][: 2 * self.together if left > 1 / 2 else 2]
            nearest = np.linalg.norm(bad[:, None] - good, axis=2).argmin(axis=1)
            brackets = self.brackets(model, good[nearest], bad)
            crossed = brackets.crossed(model)
            less = self.without_one(model, brackets, crossed)
            if less is not model:
                model = less
                continue
            model = self.with_neurons(model, brackets[np.flatnonzero(~crossed.any(axis=1))])
            if not model.width and rounds == LONELY and self.waiting:
                # A crease that meets no other leaves λ open: every value gives the same labels.
                one = self.waiting[:1]
                model = self.with_facets(model, one, row_norms(one.normal), LocatedPoints.none(model.dim))
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
        order = qr(rows.T, pivoting=True, mode="r")[1][: rows.shape[1]] if len(rows) else np.empty(0, dtype=int)
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
        """The model with the neurons behind these brackets, a few at a time."""
        while len(brackets):
            waiting = self.waiting or NewFacets.none(model.dim)
            brackets = brackets[~waiting.meet(model, brackets.before, CLEAR * self.size)]
            some, first = brackets[: self.together], model.width
            brackets = brackets[self.together :]
            facets = self.facets(model, some) + waiting
            self.waiting = None
            if not model.width and len(facets) > 1:
                model, facets = self.with_two(model, facets)
            model = self.with_scaled(model, facets) if model.width else self.later(model, facets)
            brackets = brackets.apart_from(model, first, NEAR * self.size)
        return model

    def with_scaled(self, model: BentModel, facets: NewFacets) -> BentModel:
        """The model with the neurons of those facets whose scale a corner shows; the others wait."""
        facets = facets[~self._explained(model, facets)]
        scale, corners = facets.of_one_neuron(self.size), LocatedPoints.none(model.dim)
        open_ = np.isnan(scale)
        scale[open_], corners = self.scales(model, facets[open_])
        known = np.flatnonzero(np.isfinite(scale))
        grown = self.with_facets(model, facets[known], scale[known], corners)
        if grown.width == model.width and len(known) > 1:
            for one in known:
                grown = self.with_facets(
                    grown, facets[one : one + 1], scale[one : one + 1], LocatedPoints.none(model.dim)
                )
        return self.later(grown, facets[np.isnan(scale)])

    def _explained(self, model: BentModel, facets: NewFacets) -> BoolArray:
        """Whether a model passes through the points of each facet already."""
        off = model(facets.point) / row_norms(model.gradients(facets.point))
        return np.asarray(np.abs(off) < self.offset * self.size)

    def later(self, model: BentModel, facets: NewFacets) -> BentModel:
        """Keep facets for when more creases are known."""
        self.waiting = facets
        return model

    def rough(self, step: FloatArray) -> FloatArray:
        """How well points (n,) are located that show where to look for others, so long a step away."""
        return np.asarray(np.maximum(step * 2.0**-ROUGH_BITS, self.flat.finest))

    # ---- where the model is wrong

    def brackets(self, model: BentModel, good: FloatArray, bad: FloatArray) -> Brackets:
        """Brackets of the first missing crease between good points (q, r) and bad ones. Cost: about 25 rows each."""
        halvings = 14
        low, high = np.zeros(len(good)), np.ones(len(good))
        before, behind, arrived = good.copy(), bad.copy(), np.ones(len(good), dtype=bool)
        for _ in range(halvings):
            middle = (low + high) / 2
            y, there = model.projected(good + middle[:, None] * (bad - good), self.flat.finest)
            right = there.copy()
            right[there] = self.flat.holds(model.across(y[there]), self.offsets(model, y[there]))
            low, high = np.where(right, middle, low), np.where(right, high, middle)
            before[right], behind[~right], arrived[~right] = y[right], y[~right], there[~right]
        near = np.linalg.norm(behind - before, axis=1) < NEAR * self.size
        return Brackets(before, behind)[arrived & near]

    # ---- the facet behind a crease

    def facets(self, model: BentModel, brackets: Brackets) -> NewFacets:
        """The facets behind. Cost: about 25·r rows each."""
        tries, shorter, first_reach = 5, 4.0, 0.03
        normal = model.gradients(brackets.before)
        unit = normal / row_norms(normal)[:, None]
        way = brackets.behind - brackets.before
        way -= (way * unit).sum(axis=1)[:, None] * unit
        width = row_norms(way)
        way = way / width[:, None]
        creases = model.first_creases(brackets.before, way).min(axis=1, initial=np.inf)
        reach = np.minimum(first_reach * self.size, np.minimum(creases, self.flat.room(brackets.before, way)) / 2)
        found, open_ = NewFacets.none(model.dim), np.arange(len(brackets))
        for _ in range(tries):
            open_ = open_[reach[open_] > 4 * width[open_]]
            before, far = brackets.before[open_], reach[open_]
            start = BoundaryPoints(before + far[:, None] * way[open_], unit[open_])
            rough = self.rough(far)
            t = self.flat.crossings(start, far / 8, rough, 4 * far)
            points = start.points + np.nan_to_num(t)[:, None] * start.across
            there = BoundaryPoints(points, unit[open_])
            aside = far / (2 if self.flat.few_digits else 8)
            slope, beside, tol, flat = facet_slopes(self.flat, there, aside, np.isfinite(t))
            tol[:, 0] = np.maximum(rough, self.flat.located_to)
            # Both facets must meet inside the bracket, or before it where labels do not tell them apart; else a short
            # facet lies between them.
            with np.errstate(divide="ignore", invalid="ignore"):
                steep = (slope * way[open_]).sum(axis=1)
                meet = (slope * (points - before)).sum(axis=1) / steep
                alike = 2 * self.offset * self.size / np.abs(steep)
                good = flat & (meet > -width[open_] - alike) & (meet < 2 * width[open_])
            crease = before + np.where(good, meet, 0.0)[:, None] * way[open_]
            found += NewFacets(crease, normal[open_], points, slope, far, beside, tol)[good]
            open_ = open_[~good]
            reach[open_] /= shorter
        return found

    # ---- the unknown scale of a facet

    def scales(self, model: BentModel, facets: NewFacets) -> tuple[FloatArray, LocatedPoints]:
        """λ (q,) from corners of new creases with known ones, NaN where none shows it, and the points that gave them.

        Cost: about 40 rows a corner.
        """
        wanted, alike = 2, 1e-3
        owner, parts = [], []
        for i in range(len(facets)):
            rays = self._corners(model, facets, i)
            owner += [i] * len(rays[0])
            parts.append(rays)
        scale, located = np.full(len(facets), np.nan), LocatedPoints.none(model.dim)
        if not owner:
            return scale, located
        along, first, second = (np.concatenate(part) for part in zip(*parts, strict=True))
        mine, which = facets[np.array(owner)], np.array(owner)
        aside = np.minimum(np.minimum(mine.reach, second - first), first) / 4
        steps = first[:, None] * along, aside[:, None] * along, aside[:, None] * mine.outward
        # Both facets must reach the corner: no other crease lies before it.
        before = mine.crease + steps[0] - steps[1]
        there = self.flat.holds(BoundaryPoints(before - steps[2], mine.unit), self.offset * self.size)
        behind = before + steps[2] - mine.plane(before + steps[2])[:, None] * mine.unit
        off = self.offset * self.size + 1e-5 * first
        there[there] = self.flat.holds(BoundaryPoints(behind, mine.unit)[there], off[there])
        rank = np.array([(there & (which == i))[: o + 1].sum() for o, i in enumerate(which)])
        use = np.flatnonzero(there & (rank <= wanted))
        mine, which, aside = mine[use], which[use], aside[use]
        y = mine.crease + (steps[0] + steps[1] + steps[2])[use]
        rough = self.rough(aside)
        t = self.flat.crossings(BoundaryPoints(y, mine.unit), aside / 8, rough, 4 * aside)
        y = y + t[:, None] * mine.unit
        with np.errstate(invalid="ignore", divide="ignore"):
            values = (mine.piece(y) - model(y)) / mine.plane(y)
        for i in np.unique(which):
            agree = _agreeing(values[which == i], alike)
            if agree.sum() > 1:
                scale[i] = np.median(values[which == i][agree])
                some = np.flatnonzero(which == i)[agree]
                located += LocatedPoints(y[some], np.maximum(rough[some], self.flat.located_to))
        return scale, located

    def _corners(self, model: BentModel, facets: NewFacets, i: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Directions along a new crease, with the distances of the first and second known crease; nearest first.

        Those that meet different creases come before others.
        """
        directions, tried, farthest = 64, 6, 2.0
        along = self.flat.rng.standard_normal((directions, model.dim))
        plane = np.linalg.qr(np.stack([facets.unit[i], facets.slope[i]], axis=1))[0]
        along -= (along @ plane) @ plane.T
        along /= row_norms(along)[:, None]
        creases = model.first_creases(np.broadcast_to(facets.crease[i], along.shape), along)
        met, order = creases.argmin(axis=1), np.sort(creases, axis=1)
        first, second = order[:, 0], order[:, 1] if model.width > 1 else np.full(directions, np.inf)
        nearest = np.argsort(first)
        fresh = np.zeros(directions, dtype=bool)
        fresh[np.unique(met[nearest], return_index=True)[1]] = True
        nearest = np.concatenate([nearest[fresh], nearest[~fresh]])
        within = np.minimum(farthest * self.size, self.flat.room(np.broadcast_to(facets.crease[i], along.shape), along))
        nearest = nearest[first[nearest] < within[nearest]][:tried]
        return along[nearest], first[nearest], second[nearest]

    def with_two(self, model: BentModel, facets: NewFacets) -> tuple[BentModel, NewFacets]:
        """An affine model with two of these facets whose creases meet on it, and the facets left over.

        Behind both creases λᵢ nᵢ·(y − pᵢ) + λⱼ nⱼ·(y − pⱼ) = A(y). Cost: 2 rows a pair, 40 for a point at a corner.
        """
        points, tries, unlike = 5, 4, 1e-4
        pairs = [np.array([i, j]) for i in range(len(facets)) for j in range(i)]
        corners = [self._corner(facets[pair]) for pair in pairs]
        meeting = [(pair, *corner) for pair, corner in zip(pairs, corners, strict=True) if corner is not None]
        if not meeting:
            return model, facets
        inside = np.array([corner - aside.sum(axis=0) / 2 for _, corner, aside in meeting])
        across = np.broadcast_to(facets.unit[0], inside.shape)
        held = np.flatnonzero(self.flat.holds(BoundaryPoints(inside, across), self.offset * self.size))
        for pair, corner, aside in [meeting[o] for o in held][:tries]:
            two, step = facets[pair], float(row_norms(aside).min())
            along = self.flat.rng.standard_normal((points, model.dim)) * step / np.sqrt(model.dim) / 2
            plane = np.linalg.qr(np.vstack([two.slope, two.unit[:1]]).T)[0]
            y = corner + self.flat.rng.uniform(0.3, 1.0, (points, 2)) @ aside + along - (along @ plane) @ plane.T
            lines = BoundaryPoints(y, np.broadcast_to(facets.unit[0], y.shape))
            t = self.flat.crossings(lines, step / 8, self.flat.finest, 4 * step)
            y = (y + t[:, None] * lines.across)[np.isfinite(t)]
            rows = np.einsum("npr,pr->np", y[:, None] - two.point, two.slope)
            piece = (y - two.crease[0]) @ two.normal[0]
            scale = np.linalg.lstsq(rows, piece, rcond=None)[0]
            left = np.abs(rows @ scale - piece).max(initial=0.0)
            if len(y) > 3 and (scale > 0).all() and left < unlike * np.abs(rows * scale).max():
                others = np.setdiff1d(np.arange(len(facets)), pair)
                return self.with_facets(model, two, scale, self.flat.located(y)), facets[others]
        return model, facets

    def _corner(self, two: NewFacets) -> tuple[FloatArray, FloatArray] | None:
        """Where two creases meet on one affine piece, and steps (2, r) on it that cross one of them each."""
        most_alike = 0.98
        out = two.outward
        if abs(out[0] @ out[1]) > most_alike:
            return None
        middle = two.crease.mean(axis=0)
        wanted = np.append(-two.plane(middle), two.unit[0] @ (two.crease[0] - middle))
        corner = middle + np.linalg.lstsq(np.vstack([two.slope, two.unit[:1]]), wanted, rcond=None)[0]
        return corner, np.linalg.pinv(out).T * float(two.reach.min()) / 2

    # ---- all digits

    def with_facets(self, model: BentModel, facets: NewFacets, scale: FloatArray, corners: LocatedPoints) -> BentModel:
        """The model with a neuron for each crease of these facets, fitted to boundary points far apart.

        The model as it was if the points do not fit. Cost: about (r + 4)·36 rows a neuron.
        """
        terms = facets.terms(scale)
        chosen = terms.different(self.size)
        if not len(chosen):
            return model
        far, counts = self.far_points(model, terms[chosen], facets.reach[chosen])
        if (counts <= model.dim // 2).any():
            some = chosen[counts > model.dim // 2]
            return self.with_facets(model, facets[some], scale[some], LocatedPoints.none(model.dim))
        new = facets.located + corners + far
        terms, left = solved_terms(model, terms[chosen], new, self.size)
        grown = terms.added_to(model)
        if self.whole:
            grown, left = polished(grown, self.located + new)
        if left.max() > EXACT:
            return model
        self.located += new
        return grown

    def far_points(self, model: BentModel, terms: Terms, reach: FloatArray) -> tuple[LocatedPoints, np.ndarray]:
        """Boundary points behind new creases, near and far, that fix their terms best; also how many (q,) for each."""
        scales, candidates, tested, spare, rough = (0.5, 1.0, 4.0, 16.0, 64.0), 16, 2, 1, 1e-4
        r, farthest = model.dim, 6 * self.size
        grown = terms.added_to(model)
        some, owner, offset = BoundaryPoints(*np.empty((2, 0, r))), [], []
        for i in range(len(terms)):
            steps = reach[i] * self.flat.rng.choice(scales, (candidates * (r + 1), 1)) / np.sqrt(r)
            y = terms.behind[i] + steps * self.flat.rng.standard_normal((len(steps), r))
            y, arrived = grown.projected(y, self.flat.finest)
            behind = (y @ terms.slopes[i] + terms.levels[i]) * (terms.behind[i] @ terms.slopes[i] + terms.levels[i]) > 0
            clear = (grown.room(y) > CLEAR * self.size) & (row_norms(y) < farthest)
            clear &= self.flat.inside(y, self.offset * self.size)
            y = y[arrived & behind & clear][: tested * (r + 1)]
            some += grown.across(y)
            owner += [i] * len(y)
            offset += list(rough * np.linalg.norm(y - terms.behind[i], axis=1) + self.offset * self.size)
        which, off = np.array(owner, dtype=int), np.array(offset)
        held = self.flat.holds(some, off)
        chosen: list[int] = []
        for i in range(len(terms)):
            mine = np.flatnonzero(held & (which == i))
            rows = np.column_stack([(some.points[mine] - terms.behind[i]) / self.size, np.ones(len(mine))])
            rows /= row_norms(grown.gradients(some.points[mine]))[:, None]
            order = qr(rows.T, pivoting=True, mode="r")[1][: r + 1] if len(mine) else np.empty(0, dtype=int)
            rest = self.flat.rng.permutation(np.setdiff1d(np.arange(len(mine)), order))[:spare]
            chosen += list(mine[np.append(order, rest).astype(int)])
        lines, off = some[np.array(chosen, dtype=int)], off[np.array(chosen, dtype=int)]
        t = self.flat.crossings(lines, off / 64, self.flat.finest, 2 * off)
        found = np.isfinite(t)
        counts = np.bincount(which[np.array(chosen, dtype=int)][found], minlength=len(terms))
        return self.flat.located((lines.points + t[:, None] * lines.across)[found]), counts


def _agreeing(values: FloatArray, alike: float) -> BoolArray:
    """The largest set of values above 0 that agree."""
    with np.errstate(invalid="ignore"):
        close = (np.abs(values[:, None] - values) <= alike * values[:, None]) & (values > 0)
    return np.asarray(close[close.sum(axis=1).argmax()]) if len(values) else np.empty(0, dtype=bool)


def boundary_point(flat: Flat, finest: float) -> BoundaryPoints | None:
    """A boundary point between two random points, with the line across it. Cost: 16 to 160 rows, and its bits."""
    draws, tries = 16, 10
    for _ in range(tries):
        y = flat.draw(draws)
        labels = flat.labels(y)
        names, counts = np.unique(labels, return_counts=True)
        if len(names) == 1:
            continue
        pair = np.sort(names[np.argsort(-counts, kind="stable")[:2]])
        low, high = (y[labels == name][0] for name in pair)
        length = float(np.linalg.norm(high - low))
        line = BoundaryPoints(low[None], (high - low)[None] / length, pair)
        t = flat.crossings(line, length / 2, finest, length / 2, length / 2)
        if np.isfinite(t).all():
            return BoundaryPoints(line.points + t[:, None] * line.across, line.across, pair)
    return None


def first_facet(flat: Flat) -> tuple[BentModel, LocatedPoints]:
    """The affine model of one facet, and the boundary points that gave it. Cost: about 40·r rows."""
    tries, steps = 4, (0.03, 0.01, 3e-3) if flat.few_digits else (3e-3, 4e-4, 5e-5)
    for _ in range(tries):
        found = boundary_point(flat, flat.finest)
        for step in steps if found is not None else ():
            assert found is not None
            length, wanted = np.array([step * flat.typical]), np.ones(1, dtype=bool)
            slope, beside, tol, is_flat = facet_slopes(flat, found, length, wanted)
            if is_flat[0]:
                slope = slope[0] / np.linalg.norm(slope[0])
                if along_one_input(flat, slope):
                    refuse_steps(flat)
                return BentModel.affine(slope, float(-slope @ found.points[0])), LocatedPoints(beside[0], tol[0])
            if step == steps[0]:
                refuse_curves(flat)
                refuse_steps(flat)
    raise StageFailed("facet", "no flat piece of the boundary was found", number=0.0, limit=1.0)


def refuse_curves(flat: Flat) -> None:
    """StageFailed if the boundary bends nearly everywhere with the square of a step. Cost: 1300 rows."""
    places, steps, most = 8, (1e-3, 1e-4), 1 / 2
    tol, noise, (least_ratio, most_ratio) = 1e-10 * flat.typical, 30.0, (40.0, 250.0)
    points = [found for found in (boundary_point(flat, tol) for _ in range(places)) if found is not None]
    if not points:
        return
    at = sum(points[1:], points[0])
    aside = flat.rng.standard_normal(at.points.shape)
    aside -= (aside * at.across).sum(axis=1)[:, None] * at.across
    aside /= row_norms(aside)[:, None]
    bends = []
    for step in steps:
        length = step * flat.typical
        there = [BoundaryPoints(at.points + sign * length * aside, at.across, at.pairs) for sign in (1, -1)]
        bends.append(np.abs(sum(flat.crossings(lines, length, tol, 32 * length) for lines in there)))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = bends[0] / bends[1]
        square = (bends[1] > noise * tol) & (ratio > least_ratio) & (ratio < most_ratio)
    if square.mean() > most:
        raise StageFailed(
            "facet", "the boundary is curved", number=square.mean(), limit=most,
            outcome=Outcome.NOT_PIECEWISE_LINEAR,
            diagnosis=Diagnosis("curved-boundary", remedies=(TRAIN, SPAN_FROM_LABELS)),
        )  # fmt: skip


def along_one_input(flat: Flat, slope: FloatArray) -> bool:
    """True if a unit normal (r,) of the flat may be one input's own direction: a step of a target with whole inputs."""
    alike = 1 - 1e-6
    inputs = flat.along(np.eye(flat.dim))  # (r, d)
    return bool((np.abs(slope @ inputs) / row_norms(inputs.T)).max() > alike)


def refuse_steps(flat: Flat) -> None:
    """StageFailed if the boundary is made of steps along different single inputs. Cost: about 500 rows.

    A target that rounds its inputs has such a boundary, and a tree. The crossing of a line along a then moves by
    -eᵢ/aᵢ for a step along e, with one and the same input i for every e.
    """
    places, most, alike, few = 6, 1 / 2, 0.01, 3
    step = max(1e-7 * flat.typical, 1e4 * flat.finest)
    points = [found for found in (boundary_point(flat, step / 1e3) for _ in range(places)) if found is not None]
    if len(points) < few:
        return
    at = sum(points[1:], points[0])
    across, sides = flat.along(at.across), flat.rng.standard_normal((2, *at.points.shape))
    fits: BoolArray = np.ones(across.shape, dtype=bool)
    for side in sides:
        moved = flat.crossings(
            BoundaryPoints(at.points + step * side, at.across, at.pairs), step, step / 1e3, 256 * step
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = -step * flat.along(side) / across
            fits &= np.abs(moved[:, None] - expected) < alike * (np.abs(expected) + step)
    single = np.asarray(fits.any(axis=1))
    if single.mean() <= most or len(np.unique(fits[single].argmax(axis=1))) == 1:
        return
    width = _step_width(flat, at[single], sides[0][single], fits[single].argmax(axis=1), step)
    raise StageFailed(
        "facet", "the boundary is made of steps along single inputs", number=single.mean(), limit=most,
        outcome=Outcome.LOW_PRECISION,
        diagnosis=Diagnosis("boundary-in-steps", {"resolution": width / flat.typical}, (TRAIN, SPAN_FROM_LABELS)),
    )  # fmt: skip


def _step_width(flat: Flat, at: BoundaryPoints, side: FloatArray, which: np.ndarray, step: float) -> float:
    """How far, along a side, most points stay on the same step."""
    each, longer, farthest = np.arange(len(at)), 2.0, flat.typical
    shift = (-flat.along(side)[each, which] / flat.along(at.across)[each, which])[:, None] * at.across
    way = side + shift
    while step < farthest:
        there = BoundaryPoints(at.points + step * way, at.across, at.pairs)
        if flat.holds(there, 0.02 * step * row_norms(way)).mean() < 1 / 2:
            break
        step *= longer
    return float(step * np.median(np.linalg.norm(way, axis=1)))


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
