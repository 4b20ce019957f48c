"""The layer that a crease belongs to: the first one's are straight, those of deeper neurons bend.

In a plane a first-layer neuron's crease is a whole straight line. One of a deeper neuron bends where it meets a
crease below it, so it lies in one convex cell and cannot be there far away on both sides. A derivative on each side
of a crease, across the line, tells in which direction to look. `look_along` serves the hyperplanes of depth three;
`look_for_layers` tells `extract` which method to try next.

`CreaseMeetings` looks where two creases meet: that of a neuron above ends at a hyperplane of the first layer, which
goes on there. This works where creases show in part of space alone. Visibility does not: a neuron of the first layer
is hidden where all that read it are off, and one above that reads few others goes straight on for long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from reluctant.extraction.method import OrientedHyperplanes
from reluctant.geometry import DistanceNoise, Frame, Lines, gradients, scan_lines
from reluctant.geometry.gradients import cross
from reluctant.geometry.lines import Batch, BoolArray, IntArray, piece_ends
from reluctant.messages import Diagnosis
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.base import Ask

HOPELESS = 0.5  # unresolved stretches for each crease of a line: it is not made of pieces


@dataclass(frozen=True)
class LineInPlane:
    """The creases on the first axis of a plane, the pieces between them, and which creases are first-layer ones.

    sure: seen far away on both sides. likely: seen on one side there, and nearer on both. possible: on one side.
    """

    plane: Frame
    t: FloatArray  # (c,)
    middle: FloatArray  # (c + 1,) of the pieces
    length: FloatArray  # (c + 1,)
    slope: FloatArray  # (c + 1, m, 2) along the line and across; NaN where it was not measured
    sure: BoolArray  # (c,)
    likely: BoolArray  # (c,)
    possible: BoolArray  # (c,)
    spread: float  # typical distance of a crease, or size of an input
    open: int  # intervals of the line that could not be resolved
    slope_sd: FloatArray  # (c + 1,) of slopes across; infinite where there is none

    def seen_in(self, frame: Frame) -> tuple[FloatArray, FloatArray]:
        """Origin (k,) and axes (2, k) of the plane in coordinates of a frame that contains it."""
        return (self.plane.origin - frame.origin) @ frame.basis.T, self.plane.basis @ frame.basis.T

    def first(self, generous: bool = False) -> IntArray:
        """Indices of the creases that are sure or likely; if `generous`, also of those that are possible."""
        return np.flatnonzero(self.sure | self.likely | (self.possible & generous))

    @property
    def followed(self) -> BoolArray:
        """Which creases (c,) have slopes measured on both sides."""
        measured: BoolArray = np.asarray(np.isfinite(self.slope).all(axis=(1, 2)))
        return np.asarray(measured[1:] & measured[:-1])

    def sides(self, creases: IntArray) -> FloatArray:
        """On which side of these creases, 1 or -1 along the line, answers change; 0 if on both."""
        still = 1e-9  # of the largest slope
        along = np.abs(self.slope[:, :, 0]).max(axis=1)
        changing = along > still * along.max(initial=0)
        return np.sign(changing[creases + 1].astype(float) - changing[creases])


def look_along(
    ask: Ask,
    plane: Frame,
    lines: Lines,
    known: FloatArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
    *,
    most: int | None = None,
    most_rows: int | None = None,
) -> LineInPlane:
    """Scan the first axis of a plane; positions `known` belong to hyperplanes that have been found before.

    Cost: about five rows a crease, `most_rows` at most, and 11 for each that is not known, or for as many of them as
    `most` says.
    """

    def ask_plane(y: FloatArray) -> FloatArray:
        return ask(plane.points(y))

    axis = replace(lines, origins=np.zeros((1, 2)), directions=np.eye(2)[:1])
    scan = scan_lines(ask_plane, axis, noise, rng, most=most_rows)
    t = scan.creases.t
    with np.errstate(invalid="ignore"):  # between creases that are nowhere there is no piece
        ends = piece_ends(t, lines.scale) if len(t) else lines.scale * np.array([-0.5, 0.5])
        middle, length = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    slope = np.full((*scan.pieces.slope.shape, 2), np.nan)
    slope[:, :, 0] = scan.pieces.slope
    spread = lines.scale + (float(np.median(np.abs(t))) if len(t) else 0.0)
    unmeasured = np.full(len(middle), np.inf)
    line = LineInPlane(plane, t, middle, length, slope, *_no_votes(len(t)), spread, int(scan.open.sum()), unmeasured)
    somewhere = np.isfinite(middle[:-1]) & np.isfinite(middle[1:])
    new = _new_creases(t, known, lines.scale) & somewhere
    if most_rows is not None and line.open > HOPELESS * len(t):
        return line
    if most is not None:
        new[rng.permutation(np.flatnonzero(new))[most:]] = False
    if not new.any():
        return line
    line = _look_across(ask_plane, line, new, lines.scale, noise, rng)
    return _vote(ask_plane, line, np.flatnonzero(new), noise)


def _look_across(
    ask: Ask, line: LineInPlane, new: BoolArray, scale: float, noise: DistanceNoise, rng: np.random.Generator
) -> LineInPlane:
    """With slopes across the line in the pieces beside new creases, and their noise."""
    across_step = 0.03  # step across the line, of the length of a piece
    beside = np.flatnonzero(np.append(new, False) | np.append(False, new))
    points = np.column_stack([line.middle[beside], np.zeros(len(beside))])
    steps = across_step * np.minimum(line.length[beside], scale + np.abs(line.middle[beside]))
    found = gradients(ask, points, np.eye(2)[1:], steps, noise, rng)
    slope, sd = line.slope.copy(), np.full(len(line.middle), np.inf)
    slope[beside, :, 1] = np.where(found.good[:, None], found.slope[:, :, 0], np.nan)
    sd[beside] = found.sd
    return replace(line, slope=slope, slope_sd=sd)


def _no_votes(n: int) -> tuple[BoolArray, BoolArray, BoolArray]:
    return np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)


def _new_creases(t: FloatArray, known: FloatArray, scale: float) -> BoolArray:
    same_place = 1e-6  # of the distance: a crease this close to a known one is that one
    if not len(known):
        return np.ones(len(t), dtype=bool)
    nearest = np.abs(t[:, None] - known[None]).min(axis=1)
    return np.asarray(nearest > same_place * (scale + np.abs(t)))


def _vote(ask: Ask, line: LineInPlane, which: IntArray, noise: DistanceNoise) -> LineInPlane:
    """Look for each crease far away on one side, then on the other; where they disagree, once more nearer."""
    far_along, near_along = 30.0, 1.5  # distances along a crease at which it is looked for, in distances of creases
    course = _Course.of(line, which)
    ahead = course.is_critical(ask, np.arange(len(which)), far_along, noise)
    behind = np.zeros(len(which), dtype=bool)
    behind[ahead] = course.is_critical(ask, np.flatnonzero(ahead), -far_along, noise)
    one_sided = ~behind
    behind[~ahead] = course.is_critical(ask, np.flatnonzero(~ahead), -far_along, noise)
    one_sided &= ahead | behind
    near = one_sided.copy()
    for distance in (near_along, -near_along):
        near[near] = course.is_critical(ask, np.flatnonzero(near), distance, noise)
    sure, likely, possible = _no_votes(len(line.t))
    sure[which], likely[which], possible[which] = ahead & behind, near, one_sided
    return replace(line, sure=sure, likely=likely, possible=possible)


@dataclass(frozen=True)
class _Course:
    """Where creases of a line go in its plane: start on the line, normal, and how well the course is known."""

    t: FloatArray
    normal: FloatArray  # (n, 2), of norm one; NaN where it is not known
    error: FloatArray  # of its angle
    size: FloatArray  # distance of the crease, and of others

    @classmethod
    def of(cls, line: LineInPlane, which: IntArray) -> _Course:
        jump = line.slope[which + 1] - line.slope[which]
        along = (jump[:, :, 0] ** 2).sum(axis=1)
        ratio = (jump[:, :, 0] * jump[:, :, 1]).sum(axis=1) / along
        normal = np.column_stack([np.ones(len(which)), ratio])
        sd = np.hypot(line.slope_sd[which], line.slope_sd[which + 1])
        return cls(
            line.t[which],
            normal / np.linalg.norm(normal, axis=1, keepdims=True),
            sd / np.sqrt(along),
            line.spread + np.abs(line.t[which]),
        )

    def to_lines(self, normals: FloatArray, offsets: FloatArray, side: float) -> FloatArray:
        """How many sizes along its course, on this side, each crease meets the first of these lines (n, 2).

        0 where that is too far, or where its course is not known well enough to look for it there.
        """
        farthest, narrow = 4.0, 0.02  # in sizes; of a typical distance between creases: what a crossing may take up
        tangent = side * np.column_stack([-self.normal[:, 1], self.normal[:, 0]])
        with np.errstate(divide="ignore", invalid="ignore"):
            away = -(self.t[:, None] * normals[:, 0] + offsets) / (tangent @ normals.T)
        away = np.minimum(np.where(away > 0, away, np.inf).min(axis=1, initial=np.inf) / self.size, farthest)
        known = np.isfinite(self.normal).all(axis=1) & (self.reach(away) < narrow * self.size / len(self.t))
        return np.asarray(np.where(known, side * away, 0.0))

    def reach(self, distance: FloatArray | float, which: IntArray | slice = slice(None)) -> FloatArray:
        """Length of a crossing so many sizes along: longer than the error of where the crease is expected."""
        shortest_crossing, off_course = 1e-5, 20.0  # of the distance; times that error
        size = self.size[which]
        return np.maximum(shortest_crossing * size, off_course * np.abs(distance) * size * self.error[which])

    def is_critical(self, ask: Ask, which: IntArray, distance: FloatArray | float, noise: DistanceNoise) -> BoolArray:
        """True where the crease is there, so many of its sizes along its course."""
        longest_crossing = 1e-3  # of the distance
        size, normal, reach = self.size[which], self.normal[which], self.reach(distance, which)
        seen = np.zeros(len(which), dtype=bool)
        usable = np.flatnonzero(np.isfinite(normal).all(axis=1) & (reach < longest_crossing * size))
        if not len(usable):
            return seen
        tangent = np.column_stack([-normal[:, 1], normal[:, 0]])
        points = np.column_stack([self.t[which], np.zeros(len(which))]) + (distance * size)[:, None] * tangent
        reach = reach[usable]
        seen[usable] = cross(ask, points[usable], normal[usable], reach, noise).critical
        return seen


def ends_in_cells(
    ask: Ask, line: LineInPlane, first: OrientedHyperplanes, noise: DistanceNoise, rng: np.random.Generator
) -> int:
    """How many creases of a line end before they meet a hyperplane of the first layer: those of a third one.

    A crease of the second layer goes on to the end of its cell. Cost: 8 rows for each of some creases, 16 more for
    one that ends.
    """
    looked_at, way = 16, (0.85, 0.7, 0.1)  # where it is gone, twice, and where it is still there
    start, axes = line.seen_in(first.frame)
    normals, offsets = first.normals @ axes.T, first.normals @ start + first.offsets
    with np.errstate(divide="ignore", invalid="ignore"):
        known = -offsets / normals[:, 0]
    bent = np.flatnonzero(_new_creases(line.t, known[np.isfinite(known)], line.spread))
    course = _Course.of(line, rng.permutation(bent)[:looked_at])
    ended = np.zeros(len(course.t), dtype=bool)

    def ask_plane(y: FloatArray) -> FloatArray:
        return ask(line.plane.points(y))

    for side in (1.0, -1.0):
        towards = course.to_lines(normals, offsets, side)
        gone = towards != 0
        for part, there in zip(way, (False, False, True), strict=True):
            which = np.flatnonzero(gone)
            gone[which] = course.is_critical(ask_plane, which, part * towards[which], noise) == there
        ended |= gone
    return int(ended.sum())


@dataclass(frozen=True)
class CreaseKinds:
    """Creases of a random line that were followed, and how many of them go straight on, far away on both sides."""

    creases: int
    straight: int
    unresolved: int  # stretches of the line in which creases are too close to each other
    met: int = 0  # creases of the line, also those that were not followed

    @property
    def hopeless(self) -> bool:
        """True if the line is not made of pieces that any exact method could work with."""
        return self.unresolved > HOPELESS * max(self.creases, self.met)

    @property
    def one_layer(self) -> bool:
        """True if none of them bends."""
        return self.creases > 0 and self.straight == self.creases

    @property
    def mostly_straight(self) -> bool:
        """True if so few bend that it may be one layer with creases close to each other."""
        mostly_straight = 0.9  # straight creases of all: the others may be pairs too close to each other
        return self.creases > 0 and self.straight >= mostly_straight * self.creases

    @property
    def may_be_deeper(self) -> bool:
        """True if some bend, or there are none, on a line of pieces that exact methods can work with."""
        return not self.hopeless and not self.one_layer

    @property
    def may_be_one_layer(self) -> bool:
        """True if few bend or none, on a line of pieces that exact methods can work with."""
        return not self.hopeless and self.mostly_straight

    def __str__(self) -> str:
        slug = "line-unresolved" if self.hopeless else "creases-followed"
        return str(Diagnosis(slug, self.to_dict() | {"one_layer": self.one_layer}))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def look_for_layers(oracle: Counting, noise: DistanceNoise, rng: np.random.Generator) -> CreaseKinds:
    """Follow some creases of a random line in a random plane, and all of another line if none of them bends.

    Cost: about 5 rows a crease and 11 for each that is followed.
    """
    followed_first = 12  # creases followed at first
    more_lines = 3  # scanned if a line has none, or few that lie apart
    curved = 100  # unresolved stretches: other lines would have as many
    with oracle.stage("layers"):
        kinds = _follow_some(oracle, noise, rng, followed_first)
        for _ in range(more_lines):
            if (kinds.creases and not kinds.hopeless) or kinds.unresolved > curved:
                break
            kinds = _follow_some(oracle, noise, rng, followed_first)
        return (
            _follow_some(oracle, noise, rng, None)
            if kinds.mostly_straight and kinds.creases == followed_first
            else kinds
        )


def _follow_some(oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, most: int | None) -> CreaseKinds:
    lines = Lines.random(rng, 1, oracle.dim)
    line = Frame(lines.origins[0], lines.directions)
    plane = line.extended(line.new_directions(1, rng))
    seen = look_along(oracle.query, plane, lines, np.empty(0), noise, rng, most=most)
    followed = len(seen.t) if most is None else min(most, len(seen.t))
    return CreaseKinds(followed, int(seen.sure.sum()), seen.open, len(seen.t))


@dataclass(frozen=True)
class CreasePlanes(Batch):
    """Hyperplanes normals @ y + offsets = 0 that creases lie on: normals of norm one, their errors, a point of each."""

    normals: FloatArray  # (n, k)
    offsets: FloatArray  # (n,)
    errors: FloatArray  # (n,)
    on: FloatArray  # (n, k), where the crease was seen

    def way_to(self, other: CreasePlanes, i: IntArray, j: IntArray) -> tuple[FloatArray, FloatArray]:
        """From the point of each hyperplane the direction (p, k) inside it to another, and how far (p,) that is.

        Infinite where the two are parallel.
        """
        parallel = 1e-4  # part of a normal that is not along the other
        normals, others = self.normals[i], other.normals[j]
        inside = others - (others * normals).sum(axis=1, keepdims=True) * normals
        length = np.linalg.norm(inside, axis=1)
        usable = length > parallel
        length = np.where(usable, length, 1.0)
        values = (self.on[i] * others).sum(axis=1) + other.offsets[j]
        return inside / length[:, None], np.where(usable, -values / length, np.inf)


@dataclass(frozen=True)
class CreaseMeetings:
    """Looks at places where creases meet, on a target of unit `scale`."""

    ask: Callable[[FloatArray], FloatArray]
    noise: DistanceNoise
    scale: float

    def bending(self, some: CreasePlanes, known: CreasePlanes) -> BoolArray:
        """Which hyperplanes end where they meet a known one that goes on there: they are of neurons of a layer above.

        Cost: 8 rows for each of the 8 nearest known ones, and of the 16 after these where it goes on at all of them.
        """
        together, rounds = 8, 3
        bent = np.zeros(len(some), dtype=bool)
        if not len(some) or not len(known):
            return bent
        pairs = np.indices((len(some), len(known))).reshape(2, -1)
        away = np.abs(some.way_to(known, *pairs)[1]).reshape(len(some), -1)
        order = np.argsort(away, axis=1)
        for start in range(0, together * rounds, together):
            near = order[~bent, start : start + together]
            i, j = np.repeat(np.flatnonzero(~bent), near.shape[1]), near.reshape(-1)
            i, j = (part[np.isfinite(away[i, j])] for part in (i, j))
            ends, _ = self.at(some, known, i, j)
            i, j = i[ends], j[ends]
            _, goes_on = self.at(known, some, j, i)
            bent[i[goes_on]] = True
        return bent

    def at(self, some: CreasePlanes, known: CreasePlanes, i: IntArray, j: IntArray) -> tuple[BoolArray, BoolArray]:
        """Whether each hyperplane is seen before it meets a known one and not after, and whether it is after too."""
        beside, reach = 1e-3, 2e-4  # of the way there: how far before and after it is looked for, and over which reach
        off_course = 20.0  # errors of a hyperplane that its crease may be away from it
        if not len(i):
            return np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)
        tangents, way = some.way_to(known, i, j)
        size = np.abs(way)
        within = off_course * some.errors[i] * size + DOUBLE.rounding * self.scale
        seen = []
        for side in (1 - beside, 1 + beside):
            points = some.on[i] + (side * way)[:, None] * tangents
            seen.append(cross(self.ask, points, some.normals[i], reach * size, self.noise, within).critical)
        before, after = seen
        return before & ~after, before & after
