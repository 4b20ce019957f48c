"""Which directions of a span move the decision boundary, and how much of a normal the weakest of them has.

Normals are measured coordinate by coordinate: a crease between two of these, as on the stairs that rounded answers make
of a boundary, gives a normal a part along a direction that moves nothing. So a weak direction is weighed by steps along
itself, and turned until the others explain no more of what moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray
from reluctant.span.ground import as_long_as_allowed
from reluctant.span.labels.boundary import Boundary
from reluctant.span.labels.field import Field
from reluctant.span.labels.normals import slopes
from reluctant.span.labels.stages import normals_inside

__all__ = ["Moving", "moving"]

NORMALS, SPARE = 2, 8  # for each direction and besides
BITS, STEP = 12.0, 1e-6  # how well normals are measured, and how far aside
LONGER_STEP = 1e-4  # along a direction that moves next to nothing
OTHER_STEP = 0.7  # of the step: normals measured again, to see how far they can be trusted
ASIDE, OFFSET = 2.0, 0.004  # a direction is silent if such a step along it leaves every point within the offset
WEAK = 0.02  # part of a normal that creases alone may make up
TURNS = 16  # times that a weak direction is turned at most
HELD = 0.9  # of its weight that a turn leaves at least, of a direction that the others do not explain
ROUNDINGS = 4.0  # of a crossing, over the step: a smaller weight is none


@dataclass(frozen=True)
class Moving:
    """Directions that move the boundary, the part of a normal that the weakest has, and what is only noise."""

    basis: FloatArray
    weakest: float = 0.0
    noise: float = np.inf


@dataclass(frozen=True)
class _Weighed:
    """Orthonormal directions (k, d), the weakest last, the unit normals (n, k) along them, how well these are known."""

    boundary: Boundary
    directions: FloatArray
    normals: FloatArray
    noise: float = 0.0

    @property
    def weight(self) -> float:
        """Part of a normal that the last direction has."""
        return float(np.linalg.norm(self.normals[:, -1]) / np.sqrt(len(self.normals))) if len(self.directions) else 0.0

    @property
    def across(self) -> FloatArray:
        """Part (n,) of the normals along the lines that cross the boundary."""
        return np.abs((self.normals @ self.directions * self.boundary.along).sum(axis=1))

    def without_the_last(self) -> _Weighed:
        """Of one direction less."""
        return _Weighed(self.boundary, self.directions[:-1], self.normals[:, :-1])

    def beside(self, boundary: Boundary, normals: FloatArray) -> _Weighed:
        """With the normals of more boundary points, along the same directions."""
        return replace(self, boundary=self.boundary + boundary, normals=np.concatenate([self.normals, normals]))

    def weakest_last(self) -> _Weighed:
        """Directions of the same span, by their weight."""
        turn = np.linalg.svd(self.normals, full_matrices=False)[2]
        return replace(self, directions=turn @ self.directions, normals=self.normals @ turn.T)

    def turned(self) -> _Weighed:
        """The same directions, the last without what the others explain of its weight."""
        others = self.normals[:, :-1]
        explained = np.linalg.lstsq(others, self.normals[:, -1], rcond=None)[0]
        last = np.append(-explained, 1.0)
        turn = np.linalg.qr(np.column_stack([last, np.eye(len(last))[:, :-1]]))[0].T
        turn = np.concatenate([turn[1:], turn[:1]])
        return replace(self, directions=turn @ self.directions, normals=self.normals @ turn.T)


def moving(field: Field, boundary: Boundary, basis: FloatArray) -> Moving:
    """The directions of a basis that move the boundary. Cost: about 13·k·(2·k + 8) rows, and 4 a boundary point."""
    some = min(len(boundary), NORMALS * len(basis) + SPARE)
    points, normals = _normals(field, boundary[:some], basis)
    if len(points) < len(basis):
        return Moving(basis)
    noise = _changes(field, points, basis, normals) if len(basis) == field.dim else 0.0
    left = _without_silent(field, boundary, _Weighed(points, basis, normals).weakest_last(), some)
    there = basis if len(left.directions) == len(basis) else left.directions
    return Moving(there, left.weight, max(noise, left.noise))


def _normals(field: Field, points: Boundary, basis: FloatArray, share: float = 1.0) -> tuple[Boundary, FloatArray]:
    """Normals by steps as short as crossings can be placed for them: a longer one meets more creases."""
    step = max(field.step(STEP), ROUNDINGS * 2.0**BITS * field.resolution)
    return normals_inside(field, points, basis, share * step, BITS)


def _changes(field: Field, points: Boundary, basis: FloatArray, normals: FloatArray) -> float:
    """How far normals are others when they are measured again, where no direction is left outside to tell it."""
    again, others = _normals(field, points, basis, OTHER_STEP)
    return float(np.linalg.norm(others - normals, 2) / np.sqrt(len(normals))) if len(again) == len(points) else np.inf


def _without_silent(field: Field, boundary: Boundary, weighed: _Weighed, seen: int) -> _Weighed:
    """Less the last directions that move nothing; normals were measured at the first points, so many.

    A weak direction may matter at the others: those that it moves are measured too.
    """
    rest = boundary[seen:]
    while len(weighed.directions):
        last = weighed.directions[-1]
        if not _moved(field, boundary, last).any():
            weighed = weighed.without_the_last()
        elif weighed.noise or weighed.weight > WEAK or len(weighed.directions) == 1:
            break
        elif (moved := _moved(field, rest, last)).any():
            more, rest = rest[np.flatnonzero(moved)[:SPARE]], rest[_after(moved, SPARE)]
            weighed = weighed.beside(*_normals(field, more, weighed.directions)).weakest_last()
        else:
            weighed = _weighed_alone(field, weighed)
    return weighed


def _after(which: BoolArray, n: int) -> BoolArray:
    """All but the first n of these."""
    return np.asarray(~which | (np.cumsum(which) > n))


def _weighed_alone(field: Field, weighed: _Weighed) -> _Weighed:
    """The last direction by steps along itself, turned as long as that takes weight away.

    What is still losing weight in the end is known no better than by this weight. Cost: 14 rows a normal, every turn.
    """
    step = field.step(LONGER_STEP)
    least = ROUNDINGS * field.resolution / step
    now = _measured_along_the_last(field, weighed, step, least)
    for _ in range(TURNS):
        if now.weight <= least:
            break
        before, now = now, _measured_along_the_last(field, now.turned(), step, least)
        if now.weight > HELD * before.weight:
            return replace(now, noise=least)
    return replace(now, noise=max(now.weight, least))


def _measured_along_the_last(field: Field, weighed: _Weighed, step: float, least: float) -> _Weighed:
    """The same with the normals' part along the last direction measured again; as it was where a crossing was lost."""
    last, expected = weighed.directions[-1:], max(weighed.weight, least)
    found = -slopes(field, weighed.boundary, last, step, BITS, expected=expected, symmetric=field.coarse)[:, 0]
    normals = weighed.normals.copy()
    normals[:, -1] = np.where(np.isfinite(found), found * weighed.across, normals[:, -1])
    return replace(weighed, normals=normals)


def _moved(field: Field, boundary: Boundary, direction: FloatArray) -> BoolArray:
    """Which boundary points a step along a direction leaves not where they were. Cost: 4 rows a point."""
    moves = np.tile(ASIDE * field.scale * direction, (len(boundary), 1))
    moves = as_long_as_allowed(field.domain, boundary.points, moves)
    before, after = _stays(field, boundary, np.zeros_like(moves)), _stays(field, boundary, moves)
    return np.asarray(before & ~after)


def _stays(field: Field, boundary: Boundary, moves: FloatArray) -> BoolArray:
    """Whether the boundary, moved aside, is within the offset of where it was."""
    lines, offset = boundary.lines(moves), np.full(len(boundary), OFFSET * field.scale)
    return np.asarray(lines.before(field.ask, -offset) & ~lines.before(field.ask, offset))
