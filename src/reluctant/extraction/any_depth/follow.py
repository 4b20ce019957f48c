"""Walks along a crease, until every incoming weight of its neuron is determined.

Walks go over the part of the crease that is already known, without queries, to its walls: hinges behind which it
bends by one unknown number. That number is found on a short line close behind the hinge and parallel to it, short
compared with the distance of other creases and long compared with any likely bend. It is believed when the crease
it predicts is there, farther away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from reluctant.extraction.any_depth.crease_equations import Crease, IncomingWeights, solve_crease
from reluctant.extraction.any_depth.features import FeaturesAround, KnownLayers
from reluctant.extraction.any_depth.kinks import Asker
from reluctant.extraction.method import StageFailed
from reluctant.geometry.lines import Batch, BoolArray, IntArray
from reluctant.numerics import FloatArray


@dataclass(frozen=True)
class Walls(Batch):
    """Places (n, d) where the crease meets a hinge behind which it is unknown.

    direction: along the crease towards the hinge. normal: unit normal of the crease before it. hinge: number of the
    known neuron. slope: its unit gradient. gap: from this hinge to the next along the direction.
    """

    place: FloatArray
    direction: FloatArray
    normal: FloatArray
    hinge: IntArray
    slope: FloatArray
    gap: FloatArray

    @classmethod
    def joined(cls, parts: list[Walls]) -> Walls:
        """All walls of several lists."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))

    def clearance(self) -> FloatArray:
        """How much room a wall offers: behind it, and by the angle at which the crease meets it."""
        across = np.abs((self.slope * self.direction).sum(axis=1))
        parallel = np.sqrt(np.maximum(1 - (self.slope * self.normal).sum(axis=1) ** 2, 0))
        return self.gap * across * parallel


def tangents(directions: FloatArray, normals: FloatArray) -> FloatArray:
    """Unit directions (n, d) made orthogonal to unit normals."""
    along = directions - (directions * normals).sum(axis=1)[:, None] * normals
    length = np.linalg.norm(along, axis=1, keepdims=True)
    return np.asarray(along / np.where(length > 0, length, 1.0))


def find_walls(
    known: KnownLayers,
    incoming: IncomingWeights,
    starts: FloatArray,
    steps: int,
    scale: float,
    rng: np.random.Generator,
    enough: Callable[[IntArray], bool] | None = None,
) -> tuple[Walls, FloatArray]:
    """Walk from each start on the known part of the crease and collect the walls met; also where the walks end.

    enough: True if walls at these hinges are; then the walks end early.
    """
    found, x, met = [], starts, np.empty(0, dtype=np.intp)
    for _ in range(steps):
        step = _WalkStep.aim(known, incoming, x, scale, rng)
        walls, x = step.go(known, incoming, x, scale, rng)
        found.append(walls)
        met = np.concatenate([met, walls.hinge])
        if enough is not None and enough(met):
            break
    return Walls.joined(found), x


@dataclass(frozen=True)
class _WalkStep:
    """One step of every walk: along `direction`, over the hinge at `reach`, `gap` before the next."""

    around: FeaturesAround
    normal: FloatArray
    direction: FloatArray
    hinge: IntArray
    reach: FloatArray
    gap: FloatArray

    @classmethod
    def aim(
        cls, known: KnownLayers, incoming: IncomingWeights, x: FloatArray, scale: float, rng: np.random.Generator
    ) -> _WalkStep:
        widest_gap = 0.5  # in units of the scale
        around = known.around(x)
        normal = around.feature_gradients(np.broadcast_to(incoming.weights, around.features.shape))
        size = np.linalg.norm(normal, axis=1, keepdims=True)
        normal /= np.where(size > 0, size, 1.0)
        direction = tangents(_aims(known, incoming, around, x.shape[1], rng), normal)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = -around.values / around.hinge_slopes(direction)
        reach = np.where((reach > 0) & np.isfinite(reach), reach, np.inf)
        order = np.argsort(reach, axis=1)[:, :2]
        first, second = np.take_along_axis(reach, order, axis=1).T if reach.shape[1] > 1 else (reach[:, 0], np.inf)
        with np.errstate(invalid="ignore"):
            gap = np.minimum(second - first, widest_gap * scale)
        return cls(around, normal, direction, order[:, 0], first, gap)

    def go(
        self, known: KnownLayers, incoming: IncomingWeights, x: FloatArray, scale: float, rng: np.random.Generator
    ) -> tuple[Walls, FloatArray]:
        behind_hinge = 0.4  # of the way from one hinge to the next: where a step lands behind a hinge
        stray = 20.0  # how far out walks may go, in units of the scale
        part_of_the_way = (0.2, 0.8)  # to a wall: where a walk goes on that met it
        usable = np.asarray(np.isfinite(self.reach) & np.isfinite(self.gap))
        reach, gap = np.where(usable, self.reach, 0.0), np.where(usable, self.gap, 0.0)
        landing = x + (reach + behind_hinge * gap)[:, None] * self.direction
        behind = known.around(landing)
        each = np.arange(len(x))
        expected = self.around.values > 0
        expected[each, self.hinge] ^= True
        usable &= np.asarray(np.equal(behind.values > 0, expected).all(axis=1))
        usable &= (np.linalg.norm(landing, axis=1) < stray * scale) & known.domain.inside(landing)
        predicted = incoming.flat(behind)
        wall = np.flatnonzero(usable & ~predicted)
        on_crease, landed = _land(known, incoming, landing, behind)
        part = rng.uniform(*part_of_the_way, len(x)) * reach
        moved = np.where((usable & ~predicted)[:, None], x + part[:, None] * self.direction, x)
        moved = np.where((usable & predicted & landed)[:, None], on_crease, moved)
        slope = self.around.hinge_gradients(self.hinge)
        slope = slope / np.linalg.norm(slope, axis=1, keepdims=True)
        place = x + reach[:, None] * self.direction
        walls = Walls(place, self.direction, self.normal, self.hinge, slope, gap)
        return walls.chosen(wall), moved


def _aims(
    known: KnownLayers, incoming: IncomingWeights, around: FeaturesAround, dim: int, rng: np.random.Generator
) -> FloatArray:
    """Directions towards hinges whose coefficient is open and that are not yet active; else random ones."""
    targeted_share = 0.7  # share of steps that aim at a hinge whose coefficient is open
    wander = (0.1, 0.5, 1.0)  # random part of an aimed step
    n = len(around.values)
    aims = rng.standard_normal((n, dim)) / np.sqrt(dim)
    wanted = _open_hinges(known, incoming) & (around.values < 0)
    chance = np.where(wanted, rng.random(wanted.shape), -1.0)
    aimed = np.asarray(wanted.any(axis=1)) & (rng.random(n) < targeted_share)
    towards = around.hinge_gradients(chance.argmax(axis=1))
    size = np.linalg.norm(towards, axis=1, keepdims=True)
    towards = towards / np.where(size > 0, size, 1.0)
    return np.where(aimed[:, None], towards + rng.choice(wander, n)[:, None] * aims, aims)


def _open_hinges(known: KnownLayers, incoming: IncomingWeights) -> BoolArray:
    """Hinges (H,) whose feature has an open coefficient."""
    open_ = incoming.open_features()
    hinges = np.zeros(known.hinge_count, dtype=bool)
    stop, start = known.hinge_count, 0
    for layer in known.layers[::-1]:  # a layer beside which everything goes on is followed by the one below it
        hinges[stop - len(layer) : stop] = open_[start : start + len(layer)]
        stop, start = stop - len(layer), start + len(layer)
        if not layer.undecided.all():
            break
    return hinges


def _land(
    known: KnownLayers, incoming: IncomingWeights, landing: FloatArray, behind: FeaturesAround
) -> tuple[FloatArray, BoolArray]:
    """Drop points onto the crease of their cells; True where they stay in the cell."""
    flat_normal = 1e-16  # square of a normal, relative: a neuron does not change in this cell
    normal = behind.feature_gradients(np.broadcast_to(incoming.weights, behind.features.shape))
    square = (normal**2).sum(axis=1)
    moves = square > flat_normal * (incoming.weights**2).sum()
    on_crease = landing - (incoming.values(behind.features) / np.where(moves, square, np.inf))[:, None] * normal
    values = known.around(on_crease).values
    return on_crease, np.equal(values > 0, behind.values > 0).all(axis=1) & moves & known.domain.inside(on_crease)


CHECKS = 3  # places where a predicted crease is looked for
INCONSISTENT = 1e-5  # residual of a linear system that cannot be one neuron's


def cross_walls(
    asker: Asker, known: KnownLayers, crease: Crease, incoming: IncomingWeights, walls: Walls, failed: IntArray
) -> tuple[list[FloatArray], BoolArray]:
    """Points (k, d) of the crease behind each wall, none where it was not found; `failed` (n,) earlier tries.

    Also where nothing could be seen: the function is constant, or there was no room to ask.

    Cost: 4 rows a wall, 8 or 12 more where a crease is found.
    """
    inner_part = 0.5  # of the half length: the crease must lie in the inner part
    places = [np.empty((0, known.dim)) for _ in range(len(walls))]
    search = _SearchLines.behind(asker, known, walls, failed)
    asked = np.flatnonzero(search.usable)
    reach = search.reach[asked]
    met = asker.cross(search.middle[asked], search.direction[asked], reach, inner_part * reach)
    trials = []
    for k, t, found in zip(asked, met.position, met.found, strict=True):
        if not found:
            continue
        point = search.middle[k] + t * search.direction[k]
        trial = _Trial.of(asker, known, crease, incoming, walls, int(k), point)
        if trial is not None:
            trials.append(trial)
    if trials:
        for trial, points in zip(trials, _confirmed_points(asker, trials), strict=True):
            places[trial.wall] = points
    blind = ~search.usable
    blind[asked] |= met.constant
    return places, blind


@dataclass(frozen=True)
class _SearchLines:
    """Short lines parallel to the hinges, close behind them."""

    middle: FloatArray
    direction: FloatArray
    reach: FloatArray
    usable: BoolArray

    @classmethod
    def behind(cls, asker: Asker, known: KnownLayers, walls: Walls, failed: IntArray) -> _SearchLines:
        line_length = 0.1  # half length of the search line, in typical distances of kinks
        shorter_line = 5.0  # each time a hinge is tried again
        line_distances = 30.0  # half length of the search line, in its distance from the hinge
        almost_there = 0.98  # of the way to the next hinge
        narrowest_line = 3.0  # a search line shorter than this, in its distance from the hinge, is not worth asking
        across = np.abs((walls.slope * walls.direction).sum(axis=1))
        half = line_length * asker.spacing * asker.unit(walls.place) / shorter_line**failed
        half = np.minimum(half, line_distances * walls.gap * across / 2)
        distance = half / line_distances
        base = walls.place + (distance / across)[:, None] * walls.direction
        direction = tangents(walls.normal, walls.slope)
        around = known.around(base)
        sides = [side * direction for side in (-1, 1)]
        room = [np.minimum(_reach_to_hinge(around, side, walls), known.domain.room(base, side)) for side in sides]
        room = [almost_there * each for each in room]
        low, high = -np.minimum(half, room[0]), np.minimum(half, room[1])
        usable = np.minimum(-low, high) > narrowest_line * distance
        middle = base + ((low + high) / 2)[:, None] * direction
        return cls(middle, direction, (high - low) / 2, usable)


def _reach_to_hinge(around: FeaturesAround, directions: FloatArray, walls: Walls) -> FloatArray:
    """Distance to the next hinge other than the wall's own."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = -around.values / around.hinge_slopes(directions)
    reach[np.arange(len(walls)), walls.hinge] = np.inf
    return np.where(reach > 0, reach, np.inf).min(axis=1)


@dataclass(frozen=True)
class _Trial:
    """A point that may be on the crease behind a wall, and where the crease would be seen again."""

    wall: int
    point: FloatArray
    checks: FloatArray  # (k, d)
    normal: FloatArray
    room: FloatArray

    @classmethod
    def of(
        cls,
        asker: Asker,
        known: KnownLayers,
        crease: Crease,
        incoming: IncomingWeights,
        walls: Walls,
        wall: int,
        point: FloatArray,
    ) -> _Trial | None:
        far_along = 0.7  # of the way through the cell: where it is looked for
        farthest_check = 0.5  # in units of the scale
        check_room = 1e-2  # of the way there: room left around it
        around = known.around(point[None])
        moved = incoming.through(around.features[0])
        if moved.residual > INCONSISTENT or moved.open.shape[1] >= incoming.open.shape[1]:
            return None
        if not moved.flat(around).all():
            return None
        normal = around.feature_gradients(moved.weights[None])[0]
        normal /= np.linalg.norm(normal)
        away = walls.slope[wall] * np.sign(walls.slope[wall] @ walls.direction[wall])
        wander = asker.rng.standard_normal((CHECKS, known.dim)) / np.sqrt(known.dim)
        directions = tangents(away + wander, np.repeat(normal[None], CHECKS, axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = -around.values / known.around(np.repeat(point[None], CHECKS, axis=0)).hinge_slopes(directions)
        reach[:, walls.hinge[wall]] = np.inf
        reach = np.minimum(np.where(reach > 0, reach, np.inf).min(axis=1), farthest_check * asker.scale)
        reach = np.minimum(reach, known.domain.room(np.repeat(point[None], CHECKS, axis=0), directions))
        return cls(wall, point, point + (far_along * reach)[:, None] * directions, normal, check_room * reach)


def _confirmed_points(asker: Asker, trials: list[_Trial]) -> list[FloatArray]:
    """For each trial the points that were found, none if too few checks agree.

    The last check is asked where the others do not decide.
    """
    enough_checks = 2  # of them
    seen: list[list[FloatArray]] = [[] for _ in trials]
    for check in range(CHECKS):
        open_ = [k for k, points in enumerate(seen) if len(points) < enough_checks <= len(points) + CHECKS - check]
        if not open_:
            break
        places = np.array([trials[k].checks[check] for k in open_])
        normals = np.array([trials[k].normal for k in open_])
        met = asker.test(places, normals, np.array([trials[k].room[check] for k in open_]))
        for k, place, normal, t, found in zip(open_, places, normals, met.position, met.found, strict=True):
            if found:
                seen[k].append(place + t * normal)
    return [
        np.array([trial.point, *points]) if len(points) >= enough_checks else trial.checks[:0]
        for trial, points in zip(trials, seen, strict=True)
    ]


def follow_crease(asker: Asker, known: KnownLayers, crease: Crease) -> Crease | None:
    """The crease with all points that were needed, None if it is not one of the next layer.

    Cost: about 12 rows for each coefficient that the start leaves open.
    """
    first_walls, most_walls = 4, 8  # asked in a round: few until one was crossed
    failures_first = 4  # walls not crossed before any is: a crease of a deeper layer, or one that cannot be seen
    failures_per_success = 0.5
    most_dry = 2  # walks in a row that find no new wall
    incoming = solve_crease(known, crease)
    failed = np.zeros(known.hinge_count, dtype=int)
    good = bad = dry = 0
    while not incoming.closed and dry < most_dry:
        if incoming.residual > INCONSISTENT:
            return None
        most = most_walls if good else first_walls
        walls = _roomiest_walls(_walk_to_walls(asker, known, crease, incoming, failed, most), failed, most)
        if not len(walls):
            dry += 1
            continue
        places, blind = cross_walls(asker, known, crease, incoming, walls, failed[walls.hinge])
        crossed = np.array([len(points) > 0 for points in places])
        np.add.at(failed, walls.hinge[~crossed], 1)
        good, bad = good + int(crossed.sum()), bad + int((~crossed & ~blind).sum())
        if bad > failures_first + failures_per_success * good or (not good and bad >= failures_first):
            return None
        crease = crease.with_points(np.concatenate(places))
        incoming = solve_crease(known, crease)
        dry = 0 if crossed.any() else dry
    return crease if incoming.residual <= INCONSISTENT else None


FAILURES_AT_A_HINGE = 3  # then it is let be


def _walk_to_walls(
    asker: Asker, known: KnownLayers, crease: Crease, incoming: IncomingWeights, failed: IntArray, most: int
) -> Walls:
    """Walls at more hinges than will be asked, so that there is a choice of roomy ones."""
    walks, walk_steps = 48, 16  # side by side, and how far each goes
    walls_each, many_walls = 4, 12  # for each that is asked: enough at so many hinges, or at however few
    starts = incoming.sure_points(known, crease)
    if not len(starts):
        raise StageFailed("creases", "no point of a crease is known well enough to walk from", number=0, limit=1)
    chosen = starts[asker.rng.integers(len(starts), size=walks)]

    def enough(hinges: IntArray) -> bool:
        usable = hinges[failed[hinges] < FAILURES_AT_A_HINGE]
        if len(usable) >= many_walls * most:
            return True
        return len(usable) >= walls_each * most and len(np.unique(usable)) >= most

    return find_walls(known, incoming, chosen, walk_steps, asker.scale, asker.rng, enough)[0]


def _roomiest_walls(walls: Walls, failed: IntArray, most: int) -> Walls:
    """The roomiest wall at each hinge, the roomiest of those first."""
    walls = walls.chosen(np.flatnonzero(failed[walls.hinge] < FAILURES_AT_A_HINGE))
    order = np.argsort(-walls.clearance())
    _, first = np.unique(walls.hinge[order], return_index=True)
    return walls.chosen(order[np.sort(first)][:most])
