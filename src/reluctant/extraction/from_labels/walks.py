"""Walks over the decision boundary of a flat: facets with their normals, and the bends between them.

A walk starts on a facet, follows it until labels say that it ends, and measures the facet behind. Between two labels
it ends at a crease: a bend. Where a third label begins three facets meet, and the walk goes on between two of them.
Walks need no model, so any number of classes will do. All of them advance together.

Two bends whose planes of normals meet in one direction lie on one crease. The normals n₁, n₂ beside a bend span a plane
that holds the neuron's direction u. Planes of two bends of one neuron meet in u, and u·(p₁ − p₂) = 0 for their places.
In five dimensions and more chance makes no such pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.from_labels.bent_model import BoundaryPoints, row_norms
from reluctant.extraction.from_labels.flat import NORMAL_BITS, Flat, facet_sides
from reluctant.extraction.from_labels.joint_polish import LocatedPoints
from reluctant.geometry.lines import Batch, BoolArray
from reluctant.numerics import FloatArray

FARTHEST = 5.0  # typical inputs from the middle: walks end there
SLOPE_ERROR = 2.0**-16  # of a measured normal: `facet_sides` gives 20 bits a coordinate
STEPS, LONG_STEPS = (3e-3, 4e-4), (0.03, 0.01, 3e-3)  # of a typical input, aside of a first facet; with few digits


@dataclass(frozen=True)
class Facets(Batch):
    """Measured facets of the boundary, a row for each."""

    points: FloatArray  # (f, r), on the facet
    normals: FloatArray  # (f, r), unit, towards the upper label
    pairs: np.ndarray  # (f, 2), lower and upper label
    beside: FloatArray  # (f, r, r): boundary points that gave the normals
    tol: FloatArray  # (f, r): how well these are located
    error: FloatArray  # (f,): how far the normals may be off

    @classmethod
    def none(cls, dim: int) -> Facets:
        """No facets."""
        rows = np.empty((0, dim))
        return cls(rows, rows, np.empty((0, 2), dtype=int), np.empty((0, dim, dim)), rows, np.empty(0))

    @property
    def located(self) -> LocatedPoints:
        """The boundary points that gave the normals."""
        r = self.points.shape[1]
        return LocatedPoints(self.beside.reshape(-1, r), self.tol.reshape(-1), np.repeat(self.pairs, r, axis=0))

    @classmethod
    def at(
        cls, flat: Flat, at: BoundaryPoints, step: FloatArray, wanted: BoolArray, bits: tuple[int, ...] = NORMAL_BITS
    ) -> tuple[Facets, BoolArray]:
        """Facets at boundary points, from steps aside; and which are flat there."""
        sides = facet_sides(flat, at, step, wanted, bits)
        error = np.maximum(SLOPE_ERROR, 2 * flat.finest / step)
        normals = sides.slope / row_norms(sides.slope)[:, None]
        return cls(at.points, normals, at.pairs, sides.located, sides.tol, error), sides.even


@dataclass(frozen=True)
class Bends(Batch):
    """Where two facets between the same two labels meet: points (q, r) of creases, and the facets' numbers (q, 2)."""

    points: FloatArray
    sides: np.ndarray


@dataclass
class Walks:
    """Facets and bends found so far in one flat."""

    flat: Flat
    facets: Facets
    bends: Bends

    @classmethod
    def none(cls, flat: Flat) -> Walks:
        """Nothing found yet."""
        return cls(flat, Facets.none(flat.dim), Bends(np.empty((0, flat.dim)), np.empty((0, 2), dtype=int)))

    @property
    def size(self) -> float:
        """Norm of a typical input."""
        return self.flat.typical

    def go(self, first: FloatArray, second: FloatArray, steps: int) -> None:
        """Walk so many bends from boundary points between each two points (n, r) whose labels differ."""
        here = self.starts(self.crossings_between(first, second))
        way = self.flat.rng.standard_normal((len(here), self.flat.dim))
        for _ in range(steps):
            here, way = self.advanced(here, way)

    # ---- the first facets

    def crossings_between(self, first: FloatArray, second: FloatArray) -> BoundaryPoints:
        """One boundary point on each segment whose ends have different labels. Cost: about 50 rows each."""
        low, high = self.flat.labels(first), self.flat.labels(second)
        apart = np.flatnonzero(low != high)
        first, second = first[apart], second[apart]
        length = row_norms(second - first)
        across = (second - first) / length[:, None]
        pairs = np.stack([low[apart], high[apart]], axis=1)
        t = self.flat.crossings(
            BoundaryPoints(first, across, pairs), length / 2, self.flat.finest, length / 2, length / 2
        )
        found = np.isfinite(t)
        return self.relabelled(BoundaryPoints((first + t[:, None] * across)[found], across[found], pairs[found]))

    def relabelled(self, at: BoundaryPoints) -> BoundaryPoints:
        """With the label that is found just beyond each point. Cost: a row each."""
        beyond = self.flat.labels(at.points + 4 * self.flat.located_to * at.across)
        return BoundaryPoints(at.points, at.across, np.stack([at.pairs[:, 0], beyond], axis=1))

    def starts(self, at: BoundaryPoints) -> np.ndarray:
        """The facets at these points, by number. Cost: about 25·r rows each."""
        open_, numbers = np.arange(len(at)), []
        for step in LONG_STEPS if self.flat.few_digits else STEPS:
            found, even = Facets.at(
                self.flat, at[open_], np.full(len(open_), step * self.size), np.ones(len(open_), dtype=bool)
            )
            numbers.append(self.add(found[even]))
            open_ = open_[~even]
        return np.concatenate(numbers)

    def add(self, found: Facets) -> np.ndarray:
        """Keep facets; their numbers."""
        first = len(self.facets)
        self.facets += found
        return np.arange(first, len(self.facets))

    # ---- one bend further

    def advanced(self, here: np.ndarray, way: FloatArray) -> tuple[np.ndarray, FloatArray]:
        """Walks one facet further, those that have ended left out. Cost: about 25·r + 80 rows each."""
        tries, shorter, first_reach = 4, 4.0, 0.03
        at = self.facets[here]
        way = way - (way * at.normals).sum(axis=1)[:, None] * at.normals
        way /= row_norms(way)[:, None]
        low, high = self.ends(at, way)
        inside = np.flatnonzero(np.isfinite(high))
        here, way, low, high, at = here[inside], way[inside], low[inside], high[inside], at[inside]
        width = high - low
        reach = np.full(len(here), first_reach * self.size)
        next_, open_ = np.full(len(here), -1), np.arange(len(here))
        for _ in range(tries):
            open_ = open_[reach[open_] > 4 * width[open_]]
            if not len(open_):
                break
            some, far = at[open_], reach[open_]
            found, even = self.behind(some, some.points + (high[open_] + far)[:, None] * way[open_], far)
            with np.errstate(divide="ignore", invalid="ignore"):
                steep = (found.normals * way[open_]).sum(axis=1)
                meet = (found.normals * (found.points - some.points)).sum(axis=1) / steep
                alike = self.slack(some, high[open_]) / np.abs(steep)
                good = even & (meet > low[open_] - width[open_] - alike) & (meet < high[open_] + width[open_])
            numbers = self.add(found[good])
            next_[open_[good]] = numbers
            same = (found.pairs[good] == some.pairs[good]).all(axis=1)
            crease = some.points[good] + meet[good][:, None] * way[open_][good]
            sides = np.stack([here[open_[good]], numbers], axis=1)
            self.bends = Bends(
                np.concatenate([self.bends.points, crease[same]]), np.concatenate([self.bends.sides, sides[same]])
            )
            open_ = open_[~good]
            reach[open_] /= shorter
        there = np.flatnonzero(next_ >= 0)
        turn = self.flat.rng.standard_normal((len(there), self.flat.dim)) / np.sqrt(self.flat.dim)
        return next_[there], way[there] + turn / 2

    def slack(self, at: Facets, t: FloatArray) -> FloatArray:
        """How far planes of facets may be off (n,) at these distances."""
        return at.error * t + 8 * self.flat.finest

    def ends(self, at: Facets, way: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Distances along directions (n, r) until which facets last, and from which not; NaN where they go on."""
        first, faster, narrow = 0.01, 2.0, 1e-3
        low, high = np.zeros(len(at)), np.full(len(at), np.nan)

        def lasts(some: np.ndarray, t: FloatArray) -> BoolArray:
            points = at.points[some] + t[:, None] * way[some]
            return self.flat.holds(BoundaryPoints(points, at.normals[some], at.pairs[some]), self.slack(at[some], t))

        open_, t = np.arange(len(at)), np.full(len(at), first * self.size)
        while len(open_):
            held = lasts(open_, t[open_])
            low[open_[held]], high[open_[~held]] = t[open_[held]], t[open_[~held]]
            open_ = open_[held]
            t[open_] *= faster
            inside = np.linalg.norm(at.points[open_] + t[open_, None] * way[open_], axis=1) < FARTHEST * self.size
            open_ = open_[inside]
        open_ = np.flatnonzero(np.isfinite(high))
        while len(open_):
            middle = (low[open_] + high[open_]) / 2
            held = lasts(open_, middle)
            low[open_[held]], high[open_[~held]] = middle[held], middle[~held]
            open_ = open_[high[open_] - low[open_] > narrow * np.minimum(high[open_], self.size)]
        return low, high

    def behind(self, at: Facets, start: FloatArray, far: FloatArray) -> tuple[Facets, BoolArray]:
        """The facets a little way behind the ends of others, near start points (n, r) on their planes."""
        aside = 2 * far[:, None] * at.normals
        lower, upper = self.flat.labels(start - aside), self.flat.labels(start + aside)
        apart = lower != upper
        pairs = np.where(apart[:, None], np.stack([lower, upper], axis=1), at.pairs)
        lines = BoundaryPoints(start, at.normals, pairs)
        t = self.flat.crossings(lines, far / 8, self.flat.finest, 4 * far)
        there = self.relabelled(BoundaryPoints(start + np.nan_to_num(t)[:, None] * at.normals, at.normals, pairs))
        return Facets.at(self.flat, there, far / (2 if self.flat.few_digits else 8), np.isfinite(t))


# ---- neurons from bends


AGREES, APART = 4.0, 30.0  # errors of a plane within which planes meet, and from which they are not the same


@dataclass(frozen=True)
class Creases:
    """Hyperplanes directions·y + offsets = 0, with the number of bends on each."""

    directions: FloatArray  # (k, r), unit rows
    offsets: FloatArray  # (k,)
    bends: np.ndarray  # (k,)


def creases_of(facets: Facets, bends: Bends, size: float) -> tuple[Creases, np.ndarray]:
    """The hyperplanes that two bends and more lie on, and the hyperplane of each bend, -1 where there is none."""
    first, second = (facets.normals[bends.sides[:, i]] for i in (0, 1))
    side = second - (first * second).sum(axis=1)[:, None] * first
    slope_error = facets.error[bends.sides].max(axis=1)
    sine = np.maximum(np.linalg.norm(side, axis=1), slope_error**2)
    planes = np.stack([first, side / sine[:, None]], axis=2)  # (q, r, 2)
    error = slope_error / sine
    slack = 2 * AGREES * (error + slope_error)
    owner = np.full(len(bends), -1)
    i, j, u, offset = _matches(planes, bends, error, facets, size)
    found: list[tuple[FloatArray, float, int]] = []
    fits = _fitting(planes, bends, slack, u, offset, size)  # (candidates, q)
    alive = np.ones(len(bends), dtype=bool)
    while len(u):
        support = (fits & alive).sum(axis=1) * (alive[i] & alive[j])
        best = int(support.argmax())
        if support[best] < 2:
            break
        members = np.flatnonzero(fits[best] & alive)
        direction, level = _refitted(planes, bends, error, members, size)
        members = np.flatnonzero(_fitting(planes, bends, slack, direction[None], np.array([level]), size)[0] & alive)
        alive[fits[best]] = False
        alive[members] = False
        if len(members) > 1:
            owner[members] = len(found)
            found.append((direction, level, len(members)))
    r = facets.points.shape[1]
    if not found:
        return Creases(np.empty((0, r)), np.empty(0), np.empty(0, dtype=int)), owner
    directions, offsets, counts = zip(*found, strict=True)
    return Creases(np.array(directions), np.array(offsets), np.array(counts)), owner


def _matches(
    planes: FloatArray, bends: Bends, error: FloatArray, facets: Facets, size: float
) -> tuple[np.ndarray, np.ndarray, FloatArray, FloatArray]:
    """Pairs of bends (i, j) whose planes meet in one direction u at one offset."""
    i, j = np.triu_indices(len(bends), 1)
    shared = (bends.sides[i][:, :, None] == bends.sides[j][:, None, :]).any(axis=(1, 2))
    i, j = i[~shared], j[~shared]
    if not len(i):
        return i, j, np.empty((0, planes.shape[1])), np.empty(0)
    shared_part = np.swapaxes(planes[i], 1, 2) @ planes[j]
    left, _, right = np.linalg.svd(shared_part)
    sines = np.linalg.svd(planes[j] - planes[i] @ shared_part, compute_uv=False)[:, ::-1]
    both = error[i] + error[j]
    u = np.einsum("qrl,ql->qr", planes[i], left[:, :, 0]) + np.einsum("qrl,ql->qr", planes[j], right[:, 0, :])
    u /= np.linalg.norm(u, axis=1)[:, None]
    apart = bends.points[i] - bends.points[j]
    near = AGREES * both * (size + np.linalg.norm(apart, axis=1)) / np.maximum(sines[:, 1], both)
    normals = facets.normals[np.concatenate([bends.sides[i], bends.sides[j]], axis=1)]  # (q, 4, r)
    like_a_facet = np.sqrt(np.maximum(1 - np.einsum("qfr,qr->qf", normals, u) ** 2, 0)).min(axis=1) < APART * both
    good = (sines[:, 0] < AGREES * both) & (sines[:, 1] > APART * both) & (np.abs((apart * u).sum(axis=1)) < near)
    good &= ~like_a_facet
    i, j, u = i[good], j[good], u[good]
    return i, j, u, -((bends.points[i] + bends.points[j]) / 2 * u).sum(axis=1)


def _fitting(
    planes: FloatArray, bends: Bends, slack: FloatArray, u: FloatArray, offset: FloatArray, size: float
) -> np.ndarray:
    """Which bends lie on each hyperplane: (candidates, q)."""
    inside = np.einsum("qrl,cr->cql", planes, u)
    outside = np.linalg.norm(u[:, None] - np.einsum("qrl,cql->cqr", planes, inside), axis=2)
    near = np.abs(u @ bends.points.T + offset[:, None])
    far = size + np.linalg.norm(bends.points, axis=1)
    return np.asarray((outside < slack) & (near < slack * far))


def _refitted(
    planes: FloatArray, bends: Bends, error: FloatArray, members: np.ndarray, size: float
) -> tuple[FloatArray, float]:
    """The hyperplane that fits these bends best."""
    r = planes.shape[1]
    rows = []
    for one in members:
        outside = (np.eye(r) - planes[one] @ planes[one].T) / error[one]
        place = np.append(bends.points[one] / size, 1.0)[None] / error[one]
        rows += [np.column_stack([outside, np.zeros(r)]), place]
    solution = np.linalg.svd(np.concatenate(rows))[2][-1]
    length = float(np.linalg.norm(solution[:r]))
    return solution[:r] / length, float(solution[r]) * size / length
