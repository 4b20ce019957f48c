"""First stage: the hyperplanes of the first layer, in a random subspace a little larger than their number.

A line tells how many there are; gradients on the two sides of each crease, along the directions of the
subspace alone, give its normal there. All is found when a long step orthogonal to every normal changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.depth_three.hyperplanes import Hyperplanes
from reluctant.extraction.depth_three.signs import LARGEST_MARGIN, sign_margins
from reluctant.extraction.failures import StageFailed
from reluctant.extraction.planes import LineInPlane, look_along
from reluctant.geometry import DistanceNoise, Frame, Lines, gradients
from reluctant.geometry.crossings import cross
from reluctant.geometry.row_space import orthogonal_moves, value_changes
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["find_hyperplanes"]

MOST_LINES, GENEROUS = 24, 3  # after so many lines neurons that are hard to see are looked for too
SLACK_SHARE, SLACK = 0.25, 4  # dimensions of the subspace beyond the number of first-layer creases on the first line
STEP = 0.03  # of a gradient, in lengths of the piece
WORST_NORMAL = 1e-6  # error of a normal that is still of use
DEPENDENT = 1e-7  # smallest singular value of the normals over the largest, at which they are not independent
FAR = 4.0  # at which a hyperplane that is not sure is looked at again, in distances of creases
LOOKS, ENOUGH, EVERYWHERE = 12, 4, 10  # so many of these must show it; so many are nearly all
CROSSING, OFF_COURSE, MEETING = 1e-5, 20.0, 0.05  # of a crossing there, as for the first look
TESTS = 12  # steps along which nothing may change
STARTS = (0.5, 2.0, 8.0)  # sizes of the points they start from
REACH = 10.0  # their length, in typical inputs
CHANGED = 1e-5  # of the spread of the answers


def find_hyperplanes(oracle: Counting, noise: DistanceNoise, rng: np.random.Generator) -> Hyperplanes:
    """Find all first-layer hyperplanes; raises StageFailed if some stay hidden or there are more than inputs.

    Cost: about 15 rows for each crease of a line, and two gradients in the subspace for each hyperplane.
    """
    if oracle.dim < 2:
        raise StageFailed("hyperplanes", "one input: layers cannot be told apart", number=oracle.dim, limit=2)
    search, found = _Search(oracle, noise, rng), None
    with oracle.stage("hyperplanes"):
        for looked in range(MOST_LINES):
            line = search.first_line() if found is None else search.next_line(found)
            creases = line.first(generous=looked >= GENEROUS)
            if found is None and not len(creases):
                continue
            found = search.checked(search.add(search.room_for(line) if found is None else found, line, creases))
            if search.is_complete(found):
                if sign_margins(found).max() < LARGEST_MARGIN or looked + 1 == MOST_LINES:
                    return found  # with a false one among them, the signs will say so
                found = search.without_least_seen(found)
    count = 0 if found is None else len(found)
    raise StageFailed("hyperplanes", "first-layer neurons that no line shows", number=count, limit=count + 1)


@dataclass(frozen=True)
class _Search:
    """Everything that asks; what has been found travels as a value."""

    oracle: Counting
    noise: DistanceNoise
    rng: np.random.Generator

    def first_line(self) -> LineInPlane:
        """A random line, and a direction across it."""
        lines = Lines.random(self.rng, 1, self.oracle.dim)
        line = Frame(lines.origins[0], lines.directions)
        plane = line.extended(line.new_directions(1, self.rng))
        return look_along(self.oracle.query, plane, lines, np.empty(0), self.noise, self.rng)

    def next_line(self, found: Hyperplanes) -> LineInPlane:
        """A random line in the frame; what is known to cross it is not looked at again."""
        k = len(found.frame.basis)
        start, axes = self.rng.standard_normal(k), np.linalg.qr(self.rng.standard_normal((k, 2)))[0].T
        plane = Frame(found.frame.points(start[None])[0], axes @ found.frame.basis)
        known = -(found.normals @ start + found.offsets) / (found.normals @ axes[0])
        lines = Lines.random(self.rng, 1, self.oracle.dim)
        return look_along(self.oracle.query, plane, lines, known, self.noise, self.rng)

    def room_for(self, line: LineInPlane) -> Hyperplanes:
        """No hyperplanes yet, in a frame that has room for as many as this line shows."""
        expected = int(np.ceil((1 + SLACK_SHARE) * len(line.first(generous=True)))) + SLACK
        new = line.plane.new_directions(min(self.oracle.dim, max(expected, 2)) - 2, self.rng)
        scale = float(np.sqrt(self.oracle.dim))
        return Hyperplanes.none(line.plane.extended(new), scale, line.spread, self.oracle.outputs)

    def add(self, found: Hyperplanes, line: LineInPlane, creases: IntArray) -> Hyperplanes:
        """With the hyperplanes of these creases of a line, those that are not sure after another look."""
        if not len(creases):
            return found
        start, axes = line.seen_in(found.frame)
        pieces = np.unique(np.concatenate([creases, creases + 1]))
        points = start + line.middle[pieces, None] * axes[0]
        slopes, sd, good = self.slopes(found, line, pieces, points, axes)
        before = np.searchsorted(pieces, creases)
        creases, before = (part[good[before] & good[before + 1]] for part in (creases, before))
        number = len(found.points) + np.cumsum(good) - 1  # of a piece among those that are kept
        found = found.with_gradients(points[good], slopes[good], sd[good])
        sides = number[np.column_stack([before, before + 1])]
        new = found.between(sides, start + line.t[creases, None] * axes[0])
        sharp = new.errors < WORST_NORMAL
        return found.joined(self.confirmed(new.chosen(sharp), line.sure[creases[sharp]]))

    def slopes(
        self, found: Hyperplanes, line: LineInPlane, pieces: IntArray, points: FloatArray, axes: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Gradients (p, m, k) in the frame: two directions are known from the line, the others are measured."""
        steps = STEP * np.minimum(line.length[pieces], found.scale + np.abs(line.middle[pieces]))
        slopes = np.einsum("pma,ak->pmk", line.slope[pieces], axes)
        known = np.isfinite(slopes).all(axis=(1, 2))
        if axes.shape[1] == len(axes):
            return slopes, np.sqrt(2) * self.noise.at(np.linalg.norm(points, axis=1)) / steps, known
        others = np.linalg.qr(axes.T, mode="complete")[0].T[len(axes) :]
        ask = self.in_frame(found.frame)
        measured = gradients(ask, points, others, steps, self.noise, self.rng)
        slopes += np.einsum("pma,ak->pmk", measured.slope, others)
        return slopes, measured.sd, measured.good & known

    def in_frame(self, frame: Frame) -> _Ask:
        """The target as a function of the coordinates of a frame."""
        return _Ask(self.oracle, frame)

    def confirmed(self, new: Hyperplanes, sure: BoolArray) -> Hyperplanes:
        """Without those that are not sure and that far random points of theirs do not show."""
        keep = sure.copy()
        keep[~sure] = self.looks(new.chosen(~sure)) >= ENOUGH
        return new.chosen(keep)

    def looks(self, planes: Hyperplanes) -> IntArray:
        """At how many of 12 far random points each hyperplane is seen. Cost: 48 rows each."""
        if not len(planes):
            return np.empty(0, dtype=np.intp)
        each = np.repeat(np.arange(len(planes)), LOOKS)
        normals, on = planes.normals[each], planes.on[each]
        away = self.rng.standard_normal(normals.shape)
        away -= (away * normals).sum(axis=1, keepdims=True) * normals
        distance = FAR * (planes.spread + np.linalg.norm(on, axis=1))
        away *= (distance / np.linalg.norm(away, axis=1))[:, None]
        reach = distance * np.maximum(CROSSING, OFF_COURSE * planes.errors[each])
        seen = cross(self.in_frame(planes.frame), on + away, normals, reach, MEETING * reach, self.noise).critical
        return np.asarray(seen.reshape(-1, LOOKS).sum(axis=1))

    def checked(self, found: Hyperplanes) -> Hyperplanes:
        """In a frame with room to spare and independent: deeper creases are combinations of first-layer ones.

        Raises StageFailed if more are seen nearly everywhere than there are inputs.
        """
        found = self.widened(found)
        if found.condition < 1 / DEPENDENT:
            return found
        seen = self.looks(found)
        if (seen >= EVERYWHERE).sum() > self.oracle.dim:
            reason = "more first-layer neurons than inputs: the first layer cannot be inverted"
            raise StageFailed("hyperplanes", reason, number=int((seen >= EVERYWHERE).sum()), limit=self.oracle.dim)
        independent = found.independent(np.argsort(-seen, kind="stable"), DEPENDENT)
        if seen[~independent].max(initial=0) == LOOKS:
            reason = "first-layer weights depend on each other"
            raise StageFailed("hyperplanes", reason, number=1 / found.condition, limit=DEPENDENT)
        return found.chosen(independent)

    def without_least_seen(self, found: Hyperplanes) -> Hyperplanes:
        """Without the hyperplane that is seen at the fewest far points: it stands in the place of a hidden one."""
        seen = self.looks(found)
        return found.chosen(np.arange(len(found)) != int(np.argmin(seen)))

    def widened(self, found: Hyperplanes) -> Hyperplanes:
        """More directions while the hyperplanes fill the frame: the gradients are continued along them."""
        dim = self.oracle.dim
        while len(found) >= len(found.frame.basis) and len(found.frame.basis) < dim:
            k = len(found.frame.basis)
            new = found.frame.new_directions(min(dim - k, k), self.rng)
            steps = np.sqrt(2) * self.noise.at(np.linalg.norm(found.points, axis=1)) / found.slope_sd
            rows = found.frame.points(found.points)
            measured = gradients(self.oracle.query, rows, new, steps, self.noise, self.rng)
            found = found.widened(new, measured.slope, np.where(measured.good, measured.sd, np.inf))
            found = found.chosen(found.errors < WORST_NORMAL)
        return found

    def is_complete(self, found: Hyperplanes) -> bool:
        """True if no step orthogonal to all normals changes the answers. Cost: 24 rows."""
        n, k = found.normals.shape
        if n == k:
            return True
        basis = np.linalg.qr(found.normals.T)[0].T
        starts = self.rng.standard_normal((TESTS, k)) * self.rng.choice(STARTS, (TESTS, 1))
        moves = orthogonal_moves(basis, TESTS, REACH * found.scale, self.rng)
        change, answers = value_changes(self.in_frame(found.frame), starts, moves)
        return bool(change.max() <= CHANGED * float(answers.std(axis=0).max()))


@dataclass(frozen=True)
class _Ask:
    """A target at points given by their coordinates in a frame."""

    oracle: Counting
    frame: Frame

    def __call__(self, y: FloatArray) -> FloatArray:
        return self.oracle.query(self.frame.points(y))
