"""`Flat`: an affine subspace of input space, or all of it, whose points are asked for their labels.

Labels are class numbers: of two labels 0 is below the boundary and 1 above it. Points of a flat are coordinates (n, r).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.from_labels.bent_model import FIRST_TWO, BoundaryPoints, Draw, row_norms
from reluctant.extraction.from_labels.joint_polish import LocatedPoints
from reluctant.geometry.boundary import WITHIN_BOUNDS, LabelLines, label_crossings
from reluctant.geometry.lines import BoolArray
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Ask

OUTSIDE = -1.0  # the label of points outside the domain, which are not asked
PULLED = (0.5, 0.99)  # of the way to the bounds: where points go that lie outside
FEW_DIGITS = 1e-10  # of a typical input
NORMAL_BITS = (7, 20)  # of a step aside: how well the crossings of a normal are located, one after the other
SCALES = (1.0, 1.0, 3.0)  # of random points, in typical inputs


@dataclass(frozen=True)
class Flat:
    """The points origin + y·basis, as far as they lie in the domain.

    typical: norm of a typical input, seen from the origin. finest: distance at which crossings are located best.
    inputs: draws random inputs (n, d) of the whole space, where these are not Gaussian.
    Points outside the domain are not asked: they have no label, and no crossing is looked for from there.
    """

    ask: Ask
    origin: FloatArray  # (d,)
    basis: FloatArray | None  # (r, d), orthonormal rows; None of the whole space
    typical: float
    finest: float
    rng: np.random.Generator
    domain: Domain = field(default_factory=Domain)
    inputs: Draw | None = None

    @property
    def dim(self) -> int:
        """Number of coordinates r."""
        return len(self.origin if self.basis is None else self.basis)

    def whole(self) -> Flat:
        """All of space, whose points are inputs as they are."""
        return replace(self, basis=None)

    @property
    def few_digits(self) -> bool:
        """True if crossings are located so badly that normals need long steps, as in float32."""
        return self.finest > FEW_DIGITS * self.typical

    @property
    def located_to(self) -> float:
        """How far a located point may be off: rounding on the way to the target is part of it."""
        return 4 * self.finest

    def located(self, y: FloatArray, pairs: np.ndarray = FIRST_TWO) -> LocatedPoints:
        """Boundary points (n, r) that were located best."""
        return LocatedPoints(y, np.full(len(y), self.located_to), pairs)

    def rows(self, y: FloatArray) -> FloatArray:
        """Inputs (n, d) of points (n, r)."""
        return y if self.basis is None else self.origin + y @ self.basis

    def along(self, directions: FloatArray) -> FloatArray:
        """Directions (n, d) of input space of those (n, r) of the flat."""
        return directions if self.basis is None else directions @ self.basis

    def labels(self, y: FloatArray) -> FloatArray:
        """Labels (n,) of points (n, r), OUTSIDE for those outside the domain. Cost: a row each."""
        if self.domain.is_space:
            return self.ask(self.rows(y))[:, 0] if len(y) else np.empty(0)
        rows, labels = self.rows(y), np.full(len(y), OUTSIDE)
        inside = self.domain.inside(rows)
        labels[inside] = self.ask(rows[inside])[:, 0] if inside.any() else np.empty(0)
        return labels

    def inside(self, y: FloatArray, room: float = 0.0) -> BoolArray:
        """Which points (n, r) lie in the domain, so far from its bounds."""
        if self.domain.is_space:
            return np.ones(len(y), dtype=bool)
        rows = self.rows(y)
        return self.domain.inside(rows - room) & self.domain.inside(rows + room)

    def room(self, y: FloatArray, directions: FloatArray) -> FloatArray:
        """How far (n,) points (n, r) may go along directions (n, r) inside the domain."""
        if self.domain.is_space:
            return np.full(len(y), np.inf)
        return self.domain.room(self.rows(y), self.along(directions))

    def draw(self, n: int) -> FloatArray:
        """Random points (n, r) whose inputs are as large as typical ones, or three times as large.

        Points outside the domain are moved towards the origin, until they lie inside.
        """
        if self.basis is None and self.inputs is not None:
            return self.inputs(n)
        # In a flat projected weights are smaller by √(r/d), so creases lie farther out by as much.
        sizes = self.typical / np.sqrt(self.dim) * self.rng.choice(SCALES, (n, 1))
        centre = self.origin if self.basis is None else np.zeros(self.dim)
        steps = sizes * self.rng.standard_normal((n, self.dim))
        if not self.domain.is_space:
            room = self.domain.room(np.broadcast_to(self.origin, (n, len(self.origin))), self.along(steps))
            steps *= np.minimum(1.0, room * self.rng.uniform(*PULLED, n))[:, None]
        return np.asarray(centre + steps)

    def crossings(
        self,
        lines: BoundaryPoints,
        scale: FloatArray | float,
        tol: FloatArray | float,
        limit: FloatArray | float,
        guess: FloatArray | float = 0.0,
    ) -> FloatArray:
        """Positions (n,) of the boundary along lines across it, NaN where there is none within the limit."""
        if not len(lines):
            return np.empty(0)
        whole = LabelLines(self.rows(lines.points), self.along(lines.across), lines.pairs[:, 0])
        tol = np.maximum(tol, self.finest)
        if self.domain.is_space:
            return label_crossings(self.ask, whole, guess, scale, tol, limit)
        given = guess, scale, tol, limit
        guess, scale, tol, limit = (np.broadcast_to(np.asarray(x, float), len(lines)) for x in given)
        starts = whole.starts + guess[:, None] * whole.along
        room = np.minimum(self.domain.room(starts, whole.along), self.domain.room(starts, -whole.along))
        some = np.flatnonzero(self.domain.inside(starts) & (room > 2 * tol))
        limit, t = np.minimum(limit, WITHIN_BOUNDS * room), np.full(len(lines), np.nan)
        t[some] = label_crossings(self.ask, whole[some], guess[some], scale[some], tol[some], limit[some])
        return t

    def located_on(self, lines: BoundaryPoints, scale: FloatArray, limit: FloatArray) -> LocatedPoints:
        """Boundary points on lines across it, where the same two labels meet as at the lines' own points."""
        t = self.crossings(lines, scale, self.finest, limit)
        found = np.isfinite(t)
        lines, points = lines[found], (lines.points + t[:, None] * lines.across)[found]
        same = self.labels(points + self.located_to * lines.across) == lines.pairs[:, 1]
        return self.located(points[same], lines.pairs[same])

    def holds(self, lines: BoundaryPoints, offset: FloatArray | float) -> BoolArray:
        """Whether the boundary passes within the offset of each point. Cost: two rows, one where the first says no."""
        offset = np.broadcast_to(np.asarray(offset, float), len(lines))[:, None]
        held = self.labels(lines.points + offset * lines.across) == lines.pairs[:, 1]
        some = np.flatnonzero(held)
        held[some] = self.labels((lines.points - offset * lines.across)[some]) == lines.pairs[some, 0]
        return np.asarray(held)


@dataclass
class FacetSides:
    """Boundary points beside points of it, a step aside in r − 1 directions, on parallel lines: a facet's normal.

    The first line of each goes through the point itself, which may be located no better than the lines beside it.
    """

    flat: Flat
    at: BoundaryPoints
    step: FloatArray  # (q,)
    even: BoolArray  # (q,): whether the boundary is flat there, as far as was asked
    sides: FloatArray  # (q, r, r): unit directions aside, the first is zero
    t: FloatArray  # (q, r): crossings along the lines
    known: FloatArray  # (q, r): how well they are located

    @classmethod
    def beside(
        cls, flat: Flat, at: BoundaryPoints, step: FloatArray, wanted: BoolArray, located: FloatArray | float = 0.0
    ) -> FacetSides:
        """Lines beside those points (q, r) that are wanted, located to within so much themselves. Asks nothing."""
        q, r = at.points.shape
        random = flat.rng.standard_normal((q, r, r - 1))
        sides = np.swapaxes(np.linalg.qr(np.concatenate([at.across[:, :, None], random], axis=2))[0], 1, 2)
        sides[:, 0] = 0.0
        known = np.repeat(step[:, None], r, axis=1)
        known[:, 0] = located
        return cls(flat, at, step, wanted.copy(), sides, np.zeros((q, r)), known)

    def locate(self, bits: float) -> None:
        """Locate all crossings to within so many bits of a step, and test whether the boundary is flat.

        At a random place on both sides it must be where the normal says, between the same labels.
        """
        farthest = 32.0
        flat, tol = self.flat, np.maximum(self.step * 2.0**-bits, self.flat.finest)
        facet, line = np.nonzero(self.even[:, None] & (self.known > tol[:, None]))
        known = self.known[facet, line]
        lines = self.at[facet]
        starts = BoundaryPoints(
            lines.points + self.step[facet, None] * self.sides[facet, line], lines.across, lines.pairs
        )
        self.t[facet, line] = flat.crossings(starts, known, tol[facet], farthest * known, self.t[facet, line])
        self.known[facet, line] = tol[facet]
        self.even &= np.isfinite(self.t).all(axis=1)
        some = np.flatnonzero(self.even)
        step, points, unit = self.step[some], self.points[some], self.at.across[some]
        mix = flat.rng.standard_normal((len(some), self.t.shape[1] - 1))
        mix /= row_norms(mix)[:, None]
        rise = (self.t[some, 1:] - self.t[some, :1]) / step[:, None]
        aside = step[:, None] * np.einsum("ql,qlr->qr", mix, self.sides[some, 1:])
        aside += (step * (mix * rise).sum(axis=1))[:, None] * unit
        off = 8 * (step * 2.0**-bits + flat.finest) * np.sqrt(1 + (rise**2).sum(axis=1))
        pairs = self.at.pairs[some]
        both = BoundaryPoints(points + aside, unit, pairs) + BoundaryPoints(points - aside, unit, pairs)
        self.even[some] = flat.holds(both, np.append(off, off)).reshape(2, -1).all(axis=0)

    @property
    def points(self) -> FloatArray:
        """The points (q, r) themselves."""
        return self.at.points + self.t[:, :1] * self.at.across

    @property
    def slope(self) -> FloatArray:
        """Normals (q, r), 1 along the directions across."""
        rise = (self.t[:, 1:] - self.t[:, :1]) / self.step[:, None]
        return self.at.across - np.einsum("ql,qlr->qr", rise, self.sides[:, 1:])

    @property
    def located(self) -> FloatArray:
        """The boundary points (q, r, r) on all lines."""
        return (
            self.at.points[:, None]
            + self.step[:, None, None] * self.sides
            + self.t[:, :, None] * self.at.across[:, None]
        )

    @property
    def tol(self) -> FloatArray:
        """How far these (q, r) may be off."""
        return np.maximum(self.known, self.flat.located_to)

    def __getitem__(self, which: np.ndarray) -> FacetSides:
        parts = (self.step, self.even, self.sides, self.t, self.known)
        return FacetSides(self.flat, self.at[which], *(part[which] for part in parts))


def facet_sides(
    flat: Flat, at: BoundaryPoints, step: FloatArray, wanted: BoolArray, bits: tuple[int, ...] = NORMAL_BITS
) -> FacetSides:
    """Normals of the boundary at points of it. Cost: about (last bits + 5)·r rows each."""
    sides = FacetSides.beside(flat, at, step, wanted)
    for bit in bits:
        sides.locate(bit)
    return sides
