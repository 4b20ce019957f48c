"""Facets behind creases that a model misses: measured roughly, sorted by neuron, then measured well.

A facet with normal n and point p behind a piece A of the model says that the target there is the model plus
t(y) = λ n·(y − p) − A(y). Two facets of one neuron behind different pieces have the same t, which gives λ of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.from_labels.bent_model import BentModel, BoundaryPoints, Terms, row_norms
from reluctant.extraction.from_labels.first_facet import FIRST_REACH
from reluctant.extraction.from_labels.flat import FacetSides, Flat
from reluctant.extraction.from_labels.joint_polish import LocatedPoints
from reluctant.geometry.lines import Batch, BoolArray
from reluctant.numerics import FloatArray

SAME_PIECE = 1e-6  # of a gradient: the model's piece is the same
KIN = 4.0  # times the errors of two facets that pieces of the model before them differ
EXACT_SCALE = 1e-4  # of λ
FACET_BITS = (9, 20)  # of a step: slopes that tell neurons apart, and those that predict
ROUGHER = 3  # bits finer than the slopes beside it that a point is located at first
DOUBTS = 8.0  # standard errors that a point of the model's boundary may be off


@dataclass(frozen=True)
class Brackets(Batch):
    """Missing creases: model boundary points (q, r) before and behind each, near each other."""

    before: FloatArray
    behind: FloatArray

    def crossed(self, model: BentModel) -> BoolArray:
        """Which of the model's creases lie in each bracket (q, k): neurons that are wrong behind them."""
        crossed = np.sign(model.preactivations(self.before)) != np.sign(model.preactivations(self.behind))
        return np.asarray(crossed)


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
    scale: FloatArray  # (q,): λ, NaN where it is not known
    corner: FloatArray  # (q, r): the point behind it and behind another piece of the model that gave λ
    corner_tol: FloatArray  # (q,)

    @classmethod
    def none(cls, dim: int) -> NewFacets:
        """No facets."""
        rows = np.empty((0, dim))
        return cls(rows, rows, rows, rows, np.empty(0), np.empty((0, dim, dim)), rows, np.empty(0), rows, np.empty(0))

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

    def kin(self, error: float, size: float) -> np.ndarray:
        """The number (q,) of the first facet of the same neuron, for slopes that are off by so much.

        Behind one piece of the model it is the same facet; behind another t(y) is the same, for some λ of both.
        """
        first = np.arange(len(self))
        for i in range(len(self)):
            for j in np.unique(first[:i]):
                pair, here = self[np.array([i, j])], self.point[j]
                pieces = np.column_stack([pair.normal, pair.piece(here) / size])
                planes = np.column_stack([pair.slope, pair.plane(here) / size])
                off = error * (1 + np.linalg.norm(pair.point - here, axis=1) / size)
                rows, apart = planes.T * [1, -1], pieces[0] - pieces[1]
                found = np.linalg.lstsq(rows, apart, rcond=None)[0]
                if np.linalg.norm(apart) < SAME_PIECE * np.linalg.norm(pieces[0]):
                    alike = bool(np.linalg.norm(rows.sum(axis=1)) < off.sum())
                else:
                    left, slack = np.linalg.norm(rows @ found - apart), found @ off
                    alike = bool((found > 0).all() and left < slack < np.linalg.norm(apart) / KIN)
                if alike:
                    first[i] = j
                    break
        return first

    def meet(self, model: BentModel, y: FloatArray, near: float) -> BoolArray:
        """Which boundary points (n, r) of the model lie on the crease of one of these, on the same affine piece."""
        gradients = model.gradients(y)
        met = np.zeros(len(y), dtype=bool)
        for normal, slope, point in zip(self.normal, self.slope, self.point, strict=True):
            same = np.linalg.norm(gradients - normal, axis=1) < SAME_PIECE * np.linalg.norm(normal)
            met |= same & (np.abs((y - point) @ slope) < near)
        return met

    def scale_at(self, y: FloatArray, model: BentModel) -> FloatArray:
        """λ (q,) from a point of each (q, r) behind it and behind another piece of the model; NaN where it is none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            scale = (self.piece(y) - model(y)) / self.plane(y)
        return np.where(scale > 0, scale, np.nan)

    def scaled(self, which: np.ndarray, scale: FloatArray, corner: FloatArray, tol: FloatArray | float) -> NewFacets:
        """With λ of some of them, and the points that gave it."""
        changed = replace(self, scale=self.scale.copy(), corner=self.corner.copy(), corner_tol=self.corner_tol.copy())
        changed.scale[which], changed.corner[which], changed.corner_tol[which] = scale, corner, tol
        return changed

    @property
    def terms(self) -> Terms:
        """t(y) of each."""
        slopes = self.scale[:, None] * self.slope - self.normal
        levels = (self.normal * self.crease).sum(axis=1) - self.scale * (self.slope * self.point).sum(axis=1)
        return Terms(slopes, levels, self.point)


@dataclass
class FacetsBehind:
    """The measurement of the facets behind brackets of missing creases."""

    flat: Flat
    model: BentModel
    brackets: Brackets
    offset: float  # within which the model is right

    def __post_init__(self) -> None:
        before = self.brackets.before
        self.normal = self.model.gradients(before)
        self.unit = self.normal / row_norms(self.normal)[:, None]
        way = self.brackets.behind - before
        way -= (way * self.unit).sum(axis=1)[:, None] * self.unit
        self.width = row_norms(way)
        self.way = way / self.width[:, None]
        creases = self.model.first_creases(before, self.way).min(axis=1, initial=np.inf)
        room = np.minimum(creases, self.flat.room(before, self.way)) / 2
        self.reach = np.minimum(FIRST_REACH * self.flat.typical, room)

    def found(self, waiting: NewFacets) -> NewFacets:
        """The facets, one of each neuron, and those that wait for their scale, with the scale where it shows now.

        Cost: about 12·r rows each, and as many again if it is a new one.
        """
        tries, shorter, (rough, exact) = 5, 4.0, FACET_BITS
        found, open_ = NewFacets.none(self.model.dim), np.arange(len(self.brackets))
        for _ in range(tries):
            open_ = open_[self.reach[open_] > 4 * self.width[open_]]
            sides = self.sides(open_, rough + ROUGHER)
            facets, good = self.measured(open_, sides, rough)
            some = np.flatnonzero(good)
            known = waiting + facets[some]
            kin = known.kin(2.0**-rough, self.flat.typical)
            new = np.flatnonzero(kin[len(waiting) :] == np.arange(len(waiting), len(kin)))
            facets, exactly = self.measured(open_[some[new]], sides[some[new]], exact)
            first = np.append(np.arange(len(waiting)), len(waiting) + new[exactly])  # of each, among those known
            found = self.scaled(waiting + facets[exactly], first, known, kin)
            if len(found) > len(waiting):
                break
            open_ = open_[~good]
            self.reach[open_] /= shorter
        return found[np.r_[len(waiting) : len(found), : len(waiting)]]

    def sides(self, which: np.ndarray, bits: int) -> FacetSides:
        """Lines beside a point behind each bracket, which is located to within so many bits of a step aside."""
        far, unit = self.reach[which], self.unit[which]
        aside = far / (2 if self.flat.few_digits else 8)
        start = BoundaryPoints(self.brackets.before[which] + far[:, None] * self.way[which], unit)
        tol = np.maximum(aside * 2.0**-bits, self.flat.finest)
        t = self.flat.crossings(start, far / 8, tol, 4 * far)
        there = BoundaryPoints(start.points + np.nan_to_num(t)[:, None] * unit, unit)
        return FacetSides.beside(self.flat, there, aside, np.isfinite(t), tol)

    def measured(self, which: np.ndarray, sides: FacetSides, bits: int) -> tuple[NewFacets, BoolArray]:
        """The facets after so many bits, and which of them meet the model's before them inside their brackets.

        Or before it where labels do not tell them apart; else a short facet lies between them.
        """
        sides.locate(bits)
        before, slope, width, way = self.brackets.before[which], sides.slope, self.width[which], self.way[which]
        with np.errstate(divide="ignore", invalid="ignore"):
            steep = (slope * way).sum(axis=1)
            meet = (slope * (sides.points - before)).sum(axis=1) / steep
            slack = DOUBTS * self.reach[which] * 2.0**-bits / np.abs(steep)
            alike = 2 * self.offset / np.abs(steep) + slack
            good = sides.even & (meet > -width - alike) & (meet < 2 * width + slack)
        crease, unknown = before + np.where(good, meet, 0.0)[:, None] * way, np.full(len(which), np.nan)
        parts = sides.points, slope, self.reach[which], sides.located, sides.tol, unknown, sides.points, unknown
        return NewFacets(crease, self.normal[which], *parts), good

    def scaled(self, facets: NewFacets, first: np.ndarray, known: NewFacets, kin: np.ndarray) -> NewFacets:
        """With λ of facets from points of their kin: known[first] are the facets themselves, measured roughly."""
        for i in np.flatnonzero(kin != np.arange(len(kin))):
            which = np.flatnonzero(first == kin[i])
            mine, y, tol = facets[which], known.point[[i]], known.tol[i, 0]
            apart = np.abs(mine.piece(y[0]) - self.model(y)) / row_norms(mine.normal)
            which = which[2 * tol < EXACT_SCALE * apart]
            if len(which):
                facets = facets.scaled(which, mine.scale_at(y, self.model), y, tol)
        return facets
