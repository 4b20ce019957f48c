"""First stages of depth three: first-layer hyperplanes in a random subspace, and their active sides.

A line tells how many there are; gradients on the two sides of each crease, along the directions of the subspace
alone, give its normal there. All is found when a long step orthogonal to every normal changes nothing. Every
gradient is a combination of the active neurons' weights: written in the basis of all normals it has no part along
an inactive neuron, so the gradients that were measured decide the sides without a query. Assumes no more first-
layer neurons than inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reluctant.extraction.crease_depth import CreaseMeetings, CreasePlanes, LineInPlane, ends_in_cells, look_along
from reluctant.extraction.method import Handover, OrientedHyperplanes, Shows, StageFailed
from reluctant.geometry import DistanceNoise, Frame, Lines, Question, gradients
from reluctant.geometry.gradients import cross
from reluctant.geometry.lines import BoolArray, IntArray, orthogonal_moves
from reluctant.geometry.row_space import value_changes
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting

ONE_EACH = ("normals", "offsets", "errors", "sides", "on")  # arrays with a row for each hyperplane


@dataclass(frozen=True)
class FramedHyperplanes:
    """Hyperplanes normals @ y + offsets = 0 in the coordinates y of a frame, and gradients at points of it."""

    frame: Frame
    scale: float  # typical size of an input
    spread: float  # typical distance of a crease
    normals: FloatArray  # (n, k), of norm one
    offsets: FloatArray  # (n,)
    errors: FloatArray  # (n,) of the normals
    sides: IntArray  # (n, 2): the points with gradients before and after each hyperplane
    on: FloatArray  # (n, k): a point of each
    points: FloatArray  # (p, k) at which gradients were measured
    slopes: FloatArray  # (p, m, k)
    slope_sd: FloatArray  # (p,); infinite where a gradient is not known
    line: LineInPlane | None = None  # the first one that was looked along

    @classmethod
    def none(cls, frame: Frame, scale: float, spread: float, outputs: int) -> FramedHyperplanes:
        """No hyperplanes and no gradients yet."""
        k, nothing = len(frame.basis), np.empty(0)
        rows, sides = np.empty((0, k)), np.empty((0, 2), dtype=np.intp)
        slopes = np.empty((0, outputs, k))
        return cls(frame, scale, spread, rows, nothing, nothing, sides, rows, rows, slopes, nothing)

    def __len__(self) -> int:
        return len(self.normals)

    @property
    def planes(self) -> CreasePlanes:
        """The hyperplanes alone."""
        return CreasePlanes(self.normals, self.offsets, self.errors, self.on)

    @property
    def condition(self) -> float:
        """Condition number of the normals; infinite if there are more of them than dimensions."""
        singular = np.linalg.svd(self.normals, compute_uv=False)
        full = len(singular) == len(self) and (len(self) == 0 or singular[-1] > 0)
        return float(singular[0] / singular[-1]) if full and len(self) else float(1 if full else np.inf)

    def independent(self, order: IntArray, least: float) -> BoolArray:
        """The first hyperplanes in this order whose normals are independent: each keeps `least` of its length."""
        basis, keep = np.empty((0, self.normals.shape[1])), np.zeros(len(self), dtype=bool)
        for i in order:
            rest = self.normals[i] - (self.normals[i] @ basis.T) @ basis
            rest -= (rest @ basis.T) @ basis
            keep[i] = np.linalg.norm(rest) > least * max(len(self), 1) and len(basis) < basis.shape[1]
            basis = np.concatenate([basis, rest[None] / np.linalg.norm(rest)]) if keep[i] else basis
        return keep

    def parallel(self) -> int:
        """How many of them are parallel to one before."""
        same_direction = 1e-10  # by which a cosine may be off
        return int(np.triu(np.abs(self.normals @ self.normals.T) > 1 - same_direction, 1).any(axis=0).sum())

    def is_narrower(self, other: FramedHyperplanes) -> bool:
        """True if the other one has more directions in its frame."""
        return self.normals.shape[1] < other.normals.shape[1]

    def chosen(self, keep: BoolArray | IntArray) -> FramedHyperplanes:
        """These hyperplanes only; the gradients stay."""
        return replace(self, **{name: getattr(self, name)[keep] for name in ONE_EACH})

    def with_gradients(self, points: FloatArray, slopes: FloatArray, slope_sd: FloatArray) -> FramedHyperplanes:
        """More points with gradients."""
        return replace(
            self,
            points=np.concatenate([self.points, points]),
            slopes=np.concatenate([self.slopes, slopes]),
            slope_sd=np.concatenate([self.slope_sd, slope_sd]),
        )

    def between(self, sides: IntArray, on: FloatArray) -> FramedHyperplanes:
        """The hyperplanes through points `on` (n, k) between points with gradients, and only these."""
        k = len(self.frame.basis)
        if not len(sides):
            return replace(self, normals=np.empty((0, k)), offsets=np.empty(0), errors=np.empty(0), sides=sides, on=on)
        jumps = self.slopes[sides[:, 1]] - self.slopes[sides[:, 0]]
        _, sizes, right = np.linalg.svd(jumps, full_matrices=False)
        noise = np.hypot(*self.slope_sd[sides].T) * np.sqrt(k)
        second = sizes[:, 1] if sizes.shape[1] > 1 else 0.0  # at one crease all outputs jump along one normal
        errors = np.maximum(noise, second) / np.maximum(sizes[:, 0], DOUBLE.tiny)
        normals = right[:, 0]
        return replace(self, normals=normals, offsets=-(normals * on).sum(axis=1), errors=errors, sides=sides, on=on)

    def widened(self, new: FloatArray, slopes: FloatArray, slope_sd: FloatArray) -> FramedHyperplanes:
        """The same in a frame with more directions (j, d), along which gradients are `slopes` (p, m, j)."""
        more = [(0, 0), (0, len(new))]
        wider = replace(
            self,
            frame=self.frame.extended(new),
            points=np.pad(self.points, more),
            slopes=np.concatenate([self.slopes, slopes], axis=2),
            slope_sd=np.maximum(self.slope_sd, slope_sd),
        )
        return wider.between(self.sides, np.pad(self.on, more))

    def joined(self, new: FramedHyperplanes) -> FramedHyperplanes:
        """With the hyperplanes of another that are not among these."""
        found = self
        for i in range(len(new)):
            one = new.only(i)
            if not found._same(one).any():
                found = found.and_also(one)
        return found

    def only(self, i: int) -> FramedHyperplanes:
        """One of them."""
        return self.chosen(np.arange(len(self)) == i)

    def without(self, i: int) -> FramedHyperplanes:
        """All but one of them."""
        return self.chosen(np.arange(len(self)) != i)

    def and_also(self, one: FramedHyperplanes) -> FramedHyperplanes:
        """With hyperplanes of another; the gradients stay."""
        both: dict[str, Any] = {name: np.concatenate([getattr(self, name), getattr(one, name)]) for name in ONE_EACH}
        return replace(self, **both)

    def _same(self, one: FramedHyperplanes) -> BoolArray:
        same_hyperplane = 1e-4  # normals and offsets closer than this are one hyperplane
        sign = np.sign(self.normals @ one.normals[0])
        apart = np.linalg.norm(self.normals - sign[:, None] * one.normals, axis=1)
        offset = np.abs(self.offsets - sign * one.offsets) / (self.scale + np.abs(self.offsets))
        return np.asarray((apart < same_hyperplane) & (offset < same_hyperplane))


LARGEST_MARGIN = 1e-4  # right ones stay below 1e-7, wrong ones are above 0.1


def side_sizes(planes: FramedHyperplanes) -> FloatArray:
    """Largest part (n, 2) of any gradient along each neuron, on the negative and on the positive side."""
    explained = 1e-6  # of a gradient may be beside all normals: more is of a neuron that few places show
    inverse = np.linalg.pinv(planes.normals)
    beside = planes.slopes - planes.slopes @ inverse @ planes.normals
    sizes = np.linalg.norm(planes.slopes, axis=(1, 2))
    known = np.isfinite(planes.slope_sd) & (np.linalg.norm(beside, axis=(1, 2)) <= explained * sizes)
    parts = planes.slopes[known] @ inverse  # (p, m, n)
    sizes = np.sqrt((parts**2).sum(axis=1))
    positive = planes.points[known] @ planes.normals.T + planes.offsets > 0
    sides = [np.where(positive, 0, sizes), np.where(positive, sizes, 0)]
    return np.column_stack([side.max(axis=0, initial=0) for side in sides])


def sign_margins(planes: FramedHyperplanes) -> FloatArray:
    """How clear each sign is: part on the inactive side over that on the other."""
    sizes = side_sizes(planes)
    return np.asarray(sizes.min(axis=1) / np.maximum(sizes.max(axis=1), DOUBLE.tiny))


def orient_hyperplanes(
    planes: FramedHyperplanes, mirrored: BoolArray | None = None
) -> tuple[FramedHyperplanes, FloatArray]:
    """Normals that point to the active sides, and the margin of each; those that are mirrored are active on both."""
    sizes, margins = side_sizes(planes), sign_margins(planes)
    doubted = margins if mirrored is None else margins[~mirrored]
    if not doubted.max(initial=0) < LARGEST_MARGIN:
        raise StageFailed(
            "signs", "a neuron is active on both sides: a false hyperplane, or more neurons than inputs",
            number=float(doubted.max()), limit=LARGEST_MARGIN, certain=True,
        )  # fmt: skip
    signs = np.where(sizes[:, 1] > sizes[:, 0], 1.0, -1.0)
    oriented = replace(planes, normals=planes.normals * signs[:, None], offsets=planes.offsets * signs)
    return oriented, margins


def check_depth(
    oracle: Counting, planes: FramedHyperplanes, mirrored: BoolArray, noise: DistanceNoise, rng: np.random.Generator
) -> None:
    """Raise StageFailed if creases of a line bend at others than those of the first layer. `planes` are oriented.

    Cost: 128 rows, fewer where a line has few creases.
    """
    if planes.line is None or mirrored.any():  # creases above two neurons of one hyperplane are rarer than this costs
        return
    first = OrientedHyperplanes(planes.frame, planes.normals, planes.offsets)
    with oracle.stage("straight"):
        ended = ends_in_cells(oracle.query, planes.line, first, noise, rng)
    if ended:
        reason = "creases that bend: there is another hidden layer"
        raise StageFailed(
            "straight", reason, number=ended, limit=0, certain=True, shows=Shows.BENT_CREASES,
            handover=Handover(first=first),
        )  # fmt: skip


WORST_NORMAL = 1e-6  # error of a normal that is still of use
DEPENDENT = 1e-7  # smallest singular value of the normals over the largest, at which they are not independent
LOOKS, NEARLY_ALL = 12, 10  # at far points of a hyperplane
ANSWER_CHANGED = 1e-5  # of the spread of the answers


def find_hyperplanes(oracle: Counting, noise: DistanceNoise, rng: np.random.Generator) -> FramedHyperplanes:
    """Find all first-layer hyperplanes; raises StageFailed if some stay hidden or there are more than inputs.

    Cost: about 15 rows for each crease of a line, and two gradients in the subspace for each hyperplane.
    """
    most_lines, generous = 24, 3  # after so many lines neurons that are hard to see are looked for too
    blind_lines = 6  # without any neuron: lines that cost much show nothing later either
    if oracle.dim < 2:
        raise StageFailed("hyperplanes", "one input: layers look alike", number=oracle.dim, limit=2, certain=True)
    search, found, doubted = _HyperplaneSearch(oracle, noise, rng), None, False
    quiet, quiet_lines = 0, 2  # lines in a row without a new hyperplane: others show in part of space
    fruitless, most_fruitless = 0, 4  # looks for those in a row
    steps, careful_steps = 12, 96  # that tell if all are found; more if some show in part of space alone
    others: FramedHyperplanes | None = None  # that depend on those found, and go on everywhere as well
    fewest_rows, rows_each = 5000, 100  # the latter for each weight of as many neurons as inputs: a tenth is usual
    most_rows, before_all = fewest_rows + rows_each * oracle.dim * (oracle.dim + 2), oracle.ledger.total.asked
    with oracle.stage("hyperplanes"):
        for looked in range(most_lines):
            if oracle.ledger.total.asked - before_all > most_rows:
                break
            line = search.first_line() if found is None else search.next_line(found)
            creases = line.first(generous=looked >= generous)
            if found is None and not len(creases):
                if looked == blind_lines:
                    break
                continue
            before = 0 if found is None else len(found)
            found = search.add(search.room_for(line) if found is None else found, line, creases)
            found, dependent = search.checked(found)
            quiet = 0 if len(found) > before else quiet + 1
            if quiet >= quiet_lines and not (len(found) and search.is_complete(found, steps)):
                found, steps = search.with_hidden(found), careful_steps
                fruitless = 0 if len(found) > before else fruitless + 1
                if fruitless == most_fruitless:
                    break
            others = dependent if others is None or others.is_narrower(found) else others.joined(dependent)
            if len(found) and search.is_complete(found, steps):
                found = exchanged(found, others)
                unclear = sign_margins(found) >= LARGEST_MARGIN
                if not unclear.any() or looked + 1 == most_lines:
                    return found  # with a false one among them, the signs will say so
                if len(others):
                    reason, smallest = "first-layer weights depend on each other", 1 / found.and_also(others).condition
                    raise StageFailed("hyperplanes", reason, number=smallest, limit=DEPENDENT, certain=True)
                bent = search.bending(found, found)
                if bent.any():
                    found = found.chosen(~bent)
                    continue
                seen = search.looks(found)
                if (unclear.sum() == 1 or doubted) and (seen[unclear] >= NEARLY_ALL).all():
                    return found  # these have a neuron on either side, as the signs will say
                doubted = True
                found = found.without(int(np.argmin(seen)))  # in the place of a hidden one
    count = 0 if found is None else len(found)
    reason = "first-layer neurons that no line shows"
    raise StageFailed("hyperplanes", reason, number=count, limit=count + 1, certain=True)


def exchanged(found: FramedHyperplanes, others: FramedHyperplanes) -> FramedHyperplanes:
    """With other hyperplanes in place of dependent ones, as long as the sides of more neurons become clear.

    A neuron of the second layer that reads one of the first alone has a crease parallel to that one's. Of parallel
    ones the neuron of the first layer is the one with nothing on its inactive side. No queries.
    """
    takes_part = 1e-6  # in a sum of normals
    unclear, tried = _unclear(found), 0
    while tried < len(others):
        one, tried = others.only(tried), tried + 1
        for i in np.flatnonzero(np.abs(one.normals[0] @ np.linalg.pinv(found.normals)) > takes_part):
            trial = found.without(int(i)).and_also(one)
            left = _unclear(trial)
            if left < unclear or (left == unclear and _on_inactive_side(found, int(i), one)):
                others = others.without(tried - 1).and_also(found.only(int(i)))
                found, unclear, tried = trial, left, 0
                break
    return found


def _unclear(planes: FramedHyperplanes) -> int:
    return int((sign_margins(planes) >= LARGEST_MARGIN).sum())


def _on_inactive_side(found: FramedHyperplanes, i: int, one: FramedHyperplanes) -> bool:
    """True if a hyperplane is parallel to one of those found, and on its inactive side: there nothing may bend."""
    before, after = side_sizes(found)[i]
    apart = found.normals[i] @ one.on[0] + found.offsets[i]
    return found.only(i).and_also(one).parallel() == 1 and bool(apart * (after - before) < 0)


def mirrored_hyperplanes(
    oracle: Counting, planes: FramedHyperplanes, noise: DistanceNoise, rng: np.random.Generator
) -> BoolArray:
    """Which hyperplanes (n,) have a neuron on either side: their sides are not clear, and they are there far away.

    Cost: 48 rows for each whose sides are not clear.
    """
    mirrored = sign_margins(planes) >= LARGEST_MARGIN
    with oracle.stage("hyperplanes"):
        mirrored[mirrored] = _HyperplaneSearch(oracle, noise, rng).looks(planes.chosen(mirrored)) >= NEARLY_ALL
    return mirrored


@dataclass(frozen=True)
class _HyperplaneSearch:
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

    def next_line(self, found: FramedHyperplanes) -> LineInPlane:
        """A random line in the frame; known hyperplanes that cross it cost no further query."""
        k = len(found.frame.basis)
        start, axes = self.rng.standard_normal(k), np.linalg.qr(self.rng.standard_normal((k, 2)))[0].T
        plane = Frame(found.frame.points(start[None])[0], axes @ found.frame.basis)
        known = -(found.normals @ start + found.offsets) / (found.normals @ axes[0])
        lines = Lines.random(self.rng, 1, self.oracle.dim)
        most_rows = 100 * (50 + len(found))  # where noise is more than it seems, creases have no end
        return look_along(self.oracle.query, plane, lines, known, self.noise, self.rng, most_rows=most_rows)

    def room_for(self, line: LineInPlane) -> FramedHyperplanes:
        """No hyperplanes yet, in a frame that has room for as many as this line shows."""
        # Dimensions of the subspace beyond the number of first-layer creases on the first line.
        slack_share, slack = 0.25, 4
        expected = int(np.ceil((1 + slack_share) * len(line.first(generous=True)))) + slack
        new = line.plane.new_directions(min(self.oracle.dim, max(expected, 2)) - 2, self.rng)
        scale = float(np.sqrt(self.oracle.dim))
        none = FramedHyperplanes.none(line.plane.extended(new), scale, line.spread, self.oracle.outputs)
        return replace(none, line=line)

    def add(self, found: FramedHyperplanes, line: LineInPlane, creases: IntArray) -> FramedHyperplanes:
        """With the hyperplanes of these creases of a line, those that are not sure after another look."""
        if not len(creases):
            return found
        found, new, creases = self.measured(found, line, creases)
        return found.joined(self.confirmed(new, line.sure[creases]))

    def with_hidden(self, found: FramedHyperplanes) -> FramedHyperplanes:
        """With hyperplanes that show in part of space alone, as long as there are some.

        Along steps orthogonal to all normals the known neurons do not change. Where such a step changes an answer, the
        line it is on has creases of missing neurons, and of those above that these switch; the latter bend where they
        meet hyperplanes of the first layer. Behind them the missing neuron shows where it begins. Cost: for each about
        100 rows, and for each of 6 to 18 lines five a crease, two gradients in the subspace and 64 where it meets
        others.
        """
        found = found.chosen(~self.bending(found, found))
        while 0 < len(found) < len(found.frame.basis):
            before = len(found)
            found, new = self.hidden(found)
            found = self.widened(found.joined(new))
            found = found.chosen(~self.bending(found, found.chosen(np.arange(len(found)) >= before)))
            found = found.chosen(found.independent(np.arange(len(found)), DEPENDENT))
            if len(found) <= before:
                break
        return found

    def hidden(self, found: FramedHyperplanes) -> tuple[FramedHyperplanes, FramedHyperplanes]:
        """With gradients at more places, and hyperplanes that are missing, where some are seen."""
        rounds = 2
        places = self.changing_places(found)
        new = found.chosen(np.zeros(len(found), dtype=bool))
        for _ in range(rounds):
            behind = list[tuple[FloatArray, FloatArray]]()
            for start, direction in places:
                line = self.line_through(found, start, direction)
                if line.followed.any():
                    found, here, creases = self.measured(found, line, np.flatnonzero(line.followed))
                    new = new.and_also(here)
                    behind += self.places_behind(here, line.sides(creases), direction)
            new = new.chosen(~self.bending(new, found.and_also(new)))
            if len(new):
                break
            places = behind
        return found, self.well_seen(new)

    def places_behind(
        self, new: FramedHyperplanes, sides: FloatArray, direction: FloatArray
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Points behind those creases that begin to change answers, away from the line along their normals."""
        farther = (1.0, 6.0)  # in typical inputs
        found = []
        for normal, on, side in zip(new.normals, new.on, sides, strict=True):
            away = normal - (normal @ direction) * direction
            length, turn = float(np.linalg.norm(away)), side * np.sign(normal @ direction)
            found += [(on + far * new.scale * turn * away / length, direction) for far in farther if length and turn]
        return found

    def bending(self, some: FramedHyperplanes, known: FramedHyperplanes) -> BoolArray:
        """Which hyperplanes belong to neurons of a layer above; see `CreaseMeetings.bending`."""
        return CreaseMeetings(self.in_frame(known.frame), self.noise, known.scale).bending(some.planes, known.planes)

    def changing_places(self, found: FramedHyperplanes) -> list[tuple[FloatArray, FloatArray]]:
        """Points (k,) and unit directions orthogonal to all normals along which answers change, the most first."""
        tried, most = 48, 6
        sizes, reach = (0.5, 2.0, 8.0), 10.0  # of the points, and of the steps in typical inputs
        basis = np.linalg.qr(found.normals.T)[0].T
        starts = self.rng.standard_normal((tried, basis.shape[1])) * self.rng.choice(sizes, (tried, 1))
        moves = orthogonal_moves(basis, tried, 1.0, self.rng)
        change, answers = value_changes(self.in_frame(found.frame), starts, reach * found.scale * moves)
        changed = np.flatnonzero(change > ANSWER_CHANGED * float(answers.std(axis=0).max()))
        return [(starts[i], moves[i]) for i in changed[:most]]

    def line_through(self, found: FramedHyperplanes, start: FloatArray, direction: FloatArray) -> LineInPlane:
        """A line through a point of the frame, and a direction across it; few neurons change along it."""
        most, most_rows = 12, 500  # creases; where steps change what they should not, by rounding, there is no end
        axes = np.vstack([direction, orthogonal_moves(direction[None], 1, 1.0, self.rng)])
        plane = Frame(found.frame.points(start[None])[0], axes @ found.frame.basis)
        lines = Lines.random(self.rng, 1, self.oracle.dim)
        return look_along(
            self.oracle.query, plane, lines, np.empty(0), self.noise, self.rng, most=most, most_rows=most_rows
        )

    def well_seen(self, new: FramedHyperplanes) -> FramedHyperplanes:
        """Each hyperplane that several lines or far points show, once; the most often seen first."""
        fewest = 2
        if not len(new):
            return new
        seen = np.array([new._same(new.only(i)).sum() for i in range(len(new))]) + self.looks(new)
        order = np.argsort(-seen, kind="stable")
        none = new.chosen(np.zeros(len(new), dtype=bool))
        return none.joined(new.chosen(order[seen[order] >= fewest]))

    def measured(
        self, found: FramedHyperplanes, line: LineInPlane, creases: IntArray
    ) -> tuple[FramedHyperplanes, FramedHyperplanes, IntArray]:
        """With gradients beside these creases; the hyperplanes of the sharp ones, and which of them are sharp."""
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
        return found, new.chosen(sharp), creases[sharp]

    def slopes(
        self, found: FramedHyperplanes, line: LineInPlane, pieces: IntArray, points: FloatArray, axes: FloatArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Gradients (p, m, k) in the frame: two directions are known from the line, the others are measured."""
        gradient_step = 0.03  # of a gradient, in lengths of the piece
        steps = gradient_step * np.minimum(line.length[pieces], found.scale + np.abs(line.middle[pieces]))
        slopes = np.einsum("pma,ak->pmk", line.slope[pieces], axes)
        known = np.isfinite(slopes).all(axis=(1, 2))
        if axes.shape[1] == len(axes):
            return slopes, np.sqrt(2) * self.noise.at(np.linalg.norm(points, axis=1)) / steps, known
        others = np.linalg.qr(axes.T, mode="complete")[0].T[len(axes) :]
        ask = self.in_frame(found.frame)
        measured = gradients(ask, points, others, steps, self.noise, self.rng)
        slopes += np.einsum("pma,ak->pmk", measured.slope, others)
        return slopes, measured.sd, measured.good & known

    def in_frame(self, frame: Frame) -> Question:
        """The target as a function of the coordinates of a frame."""
        return Question.of(self.oracle).within(frame)

    def confirmed(self, new: FramedHyperplanes, sure: BoolArray) -> FramedHyperplanes:
        """Without unsure hyperplanes that do not show at far random points of theirs."""
        enough_looks = 4
        keep = sure.copy()
        keep[~sure] = self.looks(new.chosen(~sure)) >= enough_looks
        return new.chosen(keep)

    def looks(self, planes: FramedHyperplanes) -> IntArray:
        """At how many of 12 far random points each hyperplane is seen. Cost: 48 rows each."""
        far_look = 4.0  # how far out an unsure hyperplane is crossed again, in distances of creases
        crossing, off_course = 1e-5, 20.0  # of a crossing there, as for the first look
        if not len(planes):
            return np.empty(0, dtype=np.intp)
        each = np.repeat(np.arange(len(planes)), LOOKS)
        normals, on = planes.normals[each], planes.on[each]
        away = self.rng.standard_normal(normals.shape)
        away -= (away * normals).sum(axis=1, keepdims=True) * normals
        distance = far_look * (planes.spread + np.linalg.norm(on, axis=1))
        away *= (distance / np.linalg.norm(away, axis=1))[:, None]
        reach = distance * np.maximum(crossing, off_course * planes.errors[each])
        seen = cross(self.in_frame(planes.frame), on + away, normals, reach, self.noise).critical
        return np.asarray(seen.reshape(-1, LOOKS).sum(axis=1))

    def checked(self, found: FramedHyperplanes) -> tuple[FramedHyperplanes, FramedHyperplanes]:
        """In a frame with room to spare and independent: deeper creases are combinations of first-layer ones.

        Also those left out that are seen at all far points. Raises StageFailed if more are seen nearly everywhere than
        there are inputs.
        """
        found = self.widened(found)
        none = np.zeros(len(found), dtype=bool)
        if found.condition < 1 / DEPENDENT:
            return found, found.chosen(none)
        seen = self.looks(found)
        everywhere = int((seen >= NEARLY_ALL).sum()) - found.parallel()
        if everywhere > self.oracle.dim:
            reason = "more first-layer neurons than inputs: the first layer cannot be inverted"
            raise StageFailed("hyperplanes", reason, number=everywhere, limit=self.oracle.dim, certain=True)
        independent = found.independent(np.argsort(-seen, kind="stable"), DEPENDENT)
        return found.chosen(independent), found.chosen(~independent & (seen == LOOKS))

    def widened(self, found: FramedHyperplanes) -> FramedHyperplanes:
        """More directions while the hyperplanes fill the frame: the gradients are continued along them."""
        dim = self.oracle.dim
        while len(found) >= len(found.frame.basis) and len(found.frame.basis) < dim:
            k = len(found.frame.basis)
            new = found.frame.new_directions(min(dim - k, k), self.rng)
            steps = np.sqrt(2) * self.noise.at(np.linalg.norm(found.points, axis=1)) / found.slope_sd
            rows = found.frame.points(found.points)
            measured = gradients(Question.of(self.oracle), rows, new, steps, self.noise, self.rng)
            found = found.widened(new, measured.slope, np.where(measured.good, measured.sd, np.inf))
            found = found.chosen(found.errors < WORST_NORMAL)
        return found

    def is_complete(self, found: FramedHyperplanes, test_steps: int = 12) -> bool:
        """True if no step orthogonal to all normals changes the answers, of so many. Cost: two rows each."""
        test_starts = (0.5, 2.0, 8.0)  # sizes of the points they start from
        test_reach = 10.0  # their length, in typical inputs
        n, k = found.normals.shape
        if n == k:
            return True
        basis = np.linalg.qr(found.normals.T)[0].T
        starts = self.rng.standard_normal((test_steps, k)) * self.rng.choice(test_starts, (test_steps, 1))
        moves = orthogonal_moves(basis, test_steps, test_reach * found.scale, self.rng)
        change, answers = value_changes(self.in_frame(found.frame), starts, moves)
        return bool(change.max() <= ANSWER_CHANGED * float(answers.std(axis=0).max()))
