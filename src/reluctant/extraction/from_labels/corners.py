"""Corners: where the creases of two neurons meet on the boundary, which gives the unknown scale of a new facet.

Behind a new crease and a known one the target is the model plus t(y) = λ n·(y − p) − A(y), and 0 on the boundary: one
point of it gives λ. The first two creases have no known one; points behind both give both numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from reluctant.extraction.from_labels.bent_model import BentModel, BoundaryPoints, row_norms
from reluctant.extraction.from_labels.flat import Flat
from reluctant.extraction.from_labels.joint_polish import LocatedPoints
from reluctant.extraction.from_labels.new_facets import EXACT_SCALE, FACET_BITS, NewFacets
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray

CORNER_BITS = 14  # of a step: how well a corner is located, at least


@dataclass(frozen=True)
class Corners:
    """The search for corners of new facets with the creases of a model, or with each other."""

    flat: Flat
    model: BentModel
    offset: float  # within which the model is right

    def scaled(self, facets: NewFacets) -> NewFacets:
        """With λ where it is unknown and corners with known creases show it; without those whose corners disagree.

        Cost: about 30 rows a corner.
        """
        wanted, alike = 2, 1e-3
        owner, parts = [], []
        for i in np.flatnonzero(np.isnan(facets.scale)).tolist():
            rays = self.rays(facets, i)
            owner += [i] * len(rays[0])
            parts.append(rays)
        if not owner:
            return facets
        along, first, second = (np.concatenate(part) for part in zip(*parts, strict=True))
        mine, which = facets[np.array(owner)], np.array(owner)
        aside = np.minimum(np.minimum(mine.reach, second - first), first) / 4
        steps = first[:, None] * along, aside[:, None] * along, aside[:, None] * mine.outward
        # Both facets must reach the corner: no other crease lies before it.
        before = mine.crease + steps[0] - steps[1]
        there = self.flat.holds(BoundaryPoints(before - steps[2], mine.unit), self.offset)
        behind = before + steps[2] - mine.plane(before + steps[2])[:, None] * mine.unit
        off = self.offset + 1e-5 * first
        there[there] = self.flat.holds(BoundaryPoints(behind, mine.unit)[there], off[there])
        rank = np.array([(there & (which == i))[: o + 1].sum() for o, i in enumerate(which)])
        use = np.flatnonzero(there & (rank <= wanted))
        mine, which, aside = mine[use], which[use], aside[use]
        y = mine.crease + (steps[0] + steps[1] + steps[2])[use]
        apart = np.abs(mine.piece(y) - self.model(y)) / row_norms(mine.normal)
        rough = np.maximum(np.minimum(aside * 2.0**-CORNER_BITS, EXACT_SCALE * apart), self.flat.finest)
        t = self.flat.crossings(BoundaryPoints(y, mine.unit), aside / 8, rough, 4 * aside)
        y = y + t[:, None] * mine.unit
        values, doubtful = mine.scale_at(y, self.model), []
        for i in np.unique(which):
            agree = _agreeing(values[which == i], alike)
            if agree.sum() > 1:
                best = np.flatnonzero(which == i)[agree][0]
                facets = facets.scaled(i, values[best], y[best], rough[best])
            elif len(agree) > 1 and (rough <= EXACT_SCALE * apart)[which == i].all():
                doubtful.append(i)
        return facets[np.setdiff1d(np.arange(len(facets)), doubtful)]

    def rays(self, facets: NewFacets, i: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Directions along a new crease, with the distances of the first and second known crease.

        First those that say most of λ: at a near crease, with a large bend. Those that meet different creases come
        before others.
        """
        directions, tried, farthest = 64, 6, 2.0
        along = self.flat.rng.standard_normal((directions, self.model.dim))
        plane = np.linalg.qr(np.stack([facets.unit[i], facets.slope[i]], axis=1))[0]
        along -= (along @ plane) @ plane.T
        along /= row_norms(along)[:, None]
        creases = self.model.first_creases(np.broadcast_to(facets.crease[i], along.shape), along)
        met, order = creases.argmin(axis=1), np.sort(creases, axis=1)
        first, second = order[:, 0], order[:, 1] if self.model.width > 1 else np.full(directions, np.inf)
        with np.errstate(invalid="ignore", divide="ignore"):
            bend = np.abs(self.model.bends[met] * (along * self.model.directions[met]).sum(axis=1))
            nearest = np.argsort(first / (bend * np.minimum(np.minimum(facets.reach[i], second - first), first)))
        fresh = np.zeros(directions, dtype=bool)
        fresh[np.unique(met[nearest], return_index=True)[1]] = True
        nearest = np.concatenate([nearest[fresh], nearest[~fresh]])
        within = np.minimum(
            farthest * self.flat.typical, self.flat.room(np.broadcast_to(facets.crease[i], along.shape), along)
        )
        nearest = nearest[first[nearest] < within[nearest]][:tried]
        return along[nearest], first[nearest], second[nearest]

    def of_two(self, facets: NewFacets) -> tuple[NewFacets, LocatedPoints, NewFacets] | None:
        """Two facets behind one piece whose creases meet on it, with λ of both; the points that gave it; the others.

        None without any.

        Behind both creases λᵢ nᵢ·(y − pᵢ) + λⱼ nⱼ·(y − pⱼ) = A(y). Cost: 2 rows a pair, 25 for a point at a corner.
        """
        points, tries, unlike = 5, 4, 1e-4
        pairs = [np.array([i, j]) for i in range(len(facets)) for j in range(i)]
        corners = [corner_of_two(facets[pair]) for pair in pairs]
        meeting = [(pair, *corner) for pair, corner in zip(pairs, corners, strict=True) if corner is not None]
        if not meeting:
            return None
        inside = np.array([corner - aside.sum(axis=0) / 2 for _, corner, aside in meeting])
        across = np.broadcast_to(facets.unit[0], inside.shape)
        held = np.flatnonzero(self.flat.holds(BoundaryPoints(inside, across), self.offset))
        for pair, corner, aside in [meeting[o] for o in held][:tries]:
            two, step = facets[pair], float(row_norms(aside).min())
            along = self.flat.rng.standard_normal((points, two.point.shape[1]))
            along *= step / np.sqrt(along.shape[1]) / 2
            plane = np.linalg.qr(np.vstack([two.slope, two.unit[:1]]).T)[0]
            y = corner + self.flat.rng.uniform(0.3, 1.0, (points, 2)) @ aside + along - (along @ plane) @ plane.T
            lines = BoundaryPoints(y, np.broadcast_to(facets.unit[0], y.shape))
            tol = max(step * 2.0 ** -FACET_BITS[1], self.flat.finest)
            t = self.flat.crossings(lines, step / 8, tol, 4 * step)
            y = (y + t[:, None] * lines.across)[np.isfinite(t)]
            rows = np.einsum("npr,pr->np", y[:, None] - two.point, two.slope)
            piece = (y - two.crease[0]) @ two.normal[0]
            scale = np.linalg.lstsq(rows, piece, rcond=None)[0]
            left = np.abs(rows @ scale - piece).max(initial=0.0)
            if len(y) > 3 and (scale > 0).all() and left < unlike * np.abs(rows * scale).max():
                others = np.setdiff1d(np.arange(len(facets)), pair)
                best = qr(rows.T, pivoting=True, mode="r")[1][:2]
                located = LocatedPoints(y, np.full(len(y), max(tol, self.flat.located_to)))
                return two.scaled(np.arange(2), scale, y[best], tol), located, facets[others]
        return None


def corner_of_two(two: NewFacets) -> tuple[FloatArray, FloatArray] | None:
    """Where two creases meet on one affine piece, and steps (2, r) on it that cross one of them each."""
    most_alike = 0.98
    out = two.outward
    if abs(out[0] @ out[1]) > most_alike:
        return None
    middle = two.crease.mean(axis=0)
    wanted = np.append(-two.plane(middle), two.unit[0] @ (two.crease[0] - middle))
    corner = middle + np.linalg.lstsq(np.vstack([two.slope, two.unit[:1]]), wanted, rcond=None)[0]
    return corner, np.linalg.pinv(out).T * float(two.reach.min()) / 2


def _agreeing(values: FloatArray, alike: float) -> BoolArray:
    """The largest set of values above 0 that agree."""
    with np.errstate(invalid="ignore"):
        close = (np.abs(values[:, None] - values) <= alike * values[:, None]) & (values > 0)
    return np.asarray(close[close.sum(axis=1).argmax()]) if len(values) else np.empty(0, dtype=bool)
