"""`recover_inside`: depth two on a bounded domain (first line and anchor, exploration, fit).

Points where target and model differ have an unknown crease before them. The difference is searched along the ray
from the anchor, and gradients between its creases give the neurons, where they are precise. Points that the model
explains cost one row each; it ends after 512 of them in a row. Neurons that do not bend the target inside are left
out. Some of the first creases are looked for elsewhere in the domain: those of deeper layers bend, and no such model
fits them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.bounded.anchor import (
    BEFORE,
    AnchorModel,
    Bounded,
    BoundedTarget,
    CreaseGroup,
    Factors,
    Ray,
    axis_points,
    end_of_ray,
    exploration_points,
    factorise,
    far_corners,
    halves,
    plan_groups,
)
from reluctant.extraction.method import Candidate, Certificate, Shows, StageFailed, remember
from reluctant.fitting.network_fit import MOST_PARAMETERS, polish
from reluctant.geometry import DistanceNoise, Gradients, Lines, scan_lines
from reluctant.geometry.gradients import cross
from reluctant.geometry.lines import BoolArray, IntArray, answer_roundings
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting

STRAIGHT = "straight"  # the stage that tells one hidden layer from several


def recover_inside(
    oracle: Counting,
    noise: DistanceNoise,
    rng: np.random.Generator,
    keep: Callable[[ReLUNetwork], None],
    settings: Bounded,
) -> Candidate:
    """One attempt; the network equals the target on the domain, neurons that do not bend it there are left out.

    Cost: about d + 10 rows a neuron with one output, and some 500 to explore.
    """
    remembering, memory = remember(oracle)
    inside, known, rays = first_line(BoundedTarget.of(remembering, noise, rng, settings))
    keep(known.network())
    with oracle.stage("first neurons", expected=sum(map(len, rays)) * (oracle.dim + 2)):
        for ray in rays:
            known = neurons_on_a_ray(inside, known, ray, settings.neuron_error) if len(ray) else known
    keep(known.network())
    check_straight(inside, known)
    known = explore(inside, known, keep)
    network, parameters = known.network(), known.neurons * (oracle.dim + 1 + oracle.outputs)
    if 0 < parameters <= MOST_PARAMETERS:
        rows, answers = memory.everything()
        network = polish(network, rows, answers, noise, lost=inside.lost(rows, answers))
    resolution = DOUBLE.bend * float(np.median(known.sd)) if known.neurons else 0.0
    return Candidate(network, certificate=Certificate(known.sd, resolution, radius=np.inf))


def first_line(inside: BoundedTarget) -> tuple[BoundedTarget, AnchorModel, list[Ray]]:
    """A segment through the domain; the middle of its longest piece becomes the anchor.

    Cost: d + 18 rows and 5 a crease.
    """
    anchor_step = 0.02  # of the longest piece of the first line
    ends = inside.domain.sample(inside.rng, 2, inside.oracle.dim)
    line = Lines.between(ends[:1], ends[1:], inside.scale)
    with inside.oracle.stage("first line"):
        scan = scan_lines(inside.ask, line, inside.noise, inside.rng, lost=inside.lost)
        if scan.open.any() or np.any(np.diff(scan.creases.t) <= 0):
            raise StageFailed("first line", "creases too close to each other", number=scan.open.sum(), limit=0)
        stops = np.concatenate([line.low, scan.creases.t, line.high])
        longest = int(np.argmax(np.diff(stops)))
        at, length = stops[longest : longest + 2].mean(), np.diff(stops)[longest : longest + 1]
        anchor = line.points(np.zeros(1, dtype=int), np.array([at]))
        found = inside.gradients(anchor, None, anchor_step * length)
    if not found.good.all():
        raise StageFailed("first line", "not affine anywhere near the anchor", number=1, limit=0)
    known = AnchorModel.affine(anchor[0], found.value[0], found.slope[0], float(found.sd[0]))
    spread, largest = float(scan.samples.f.std(axis=0).max()), np.abs(scan.samples.f).max()
    # The difference to a model is small, but no better than a few roundings of the answer it comes from.
    noise = DistanceNoise(max(inside.noise.near, float(answer_roundings(largest))), inside.noise.growth)
    rays = halves(scan, float(at), line.directions[0], (float(line.low[0]), float(line.high[0])))
    return replace(inside, noise=noise, spread=spread or 1.0), known, rays


def check_straight(inside: BoundedTarget, known: AnchorModel) -> None:
    """Look for some neurons' creases elsewhere in the domain; raises StageFailed. Cost: 32 rows."""
    crossing_reach = 1e-4  # of a crossing, in lengths of the domain
    chosen = inside.rng.permutation(known.neurons)[: inside.settings.tested_neurons]
    places = [_place_on_hyperplane(inside, known, neuron) for neuron in chosen]
    neurons = [neuron for neuron, place in zip(chosen, places, strict=True) if place is not None]
    if not neurons:
        return
    points = np.array([place for place in places if place is not None])
    normals = known.weights[neurons] / np.linalg.norm(known.weights[neurons], axis=1, keepdims=True)
    reach = np.full(len(points), crossing_reach * inside.scale)
    with inside.oracle.stage(STRAIGHT, expected=4 * len(points)):
        seen = cross(inside.ask, points, normals, reach, inside.noise)
    missing = int((~seen.critical).sum())
    if missing > inside.settings.missing:
        raise StageFailed(
            STRAIGHT, "creases that bend: there is another hidden layer", number=missing,
            limit=inside.settings.missing, partial=known.network(), shows=Shows.BENT_CREASES,
        )  # fmt: skip


def _place_on_hyperplane(inside: BoundedTarget, known: AnchorModel, neuron: int) -> FloatArray | None:
    """A point of a neuron's hyperplane between two points of the domain; None if it passes between none."""
    crossed_between = 64  # between which hyperplanes are crossed
    points = inside.domain.interior(inside.rng, crossed_between, inside.oracle.dim)
    values = known.values(points)[:, neuron]
    low, high = np.flatnonzero(values < 0), np.flatnonzero(values > 0)
    if not len(low) or not len(high):
        return None
    i, j = inside.rng.choice(low), inside.rng.choice(high)
    share = values[i] / (values[i] - values[j])
    return np.asarray(points[i] + share * (points[j] - points[i]))


SHORT_STEP = 0.02  # of a stretch without creases: a step that hardly ever leaves it


def neurons_on_a_ray(inside: BoundedTarget, known: AnchorModel, ray: Ray, gate: float) -> AnchorModel:
    """The model with those neurons behind a ray's creases that can be had with an error below `gate`.

    The error of a neuron is that of its output over the length of the domain, in units of the spread. Cost: d + 2
    rows a crease with one output, with m outputs down to that for every 0.6·m creases.
    """
    stretches = _Stretches.of(known, ray)
    noise = inside.noise_of(stretches.points, known(stretches.points))
    error = noise / (SHORT_STEP * stretches.length) * inside.scale / inside.spread
    groups = plan_groups(ray, stretches.length, error < gate)
    if not groups:
        return known
    found = stretches.measure(inside, known, groups)
    groups = [group for group in groups if found.good[found.bounds(group)].all()]
    if not groups:
        return known
    factors = factorise(groups, *found.changes(groups, known, None), ray)
    factors = factors.chosen(_fits_bends(factors, ray))
    return known.with_neurons(factors, known.anchor + ray.t[factors.creases, None] * ray.direction)


def _fits_bends(factors: Factors, ray: Ray) -> BoolArray:
    """True for neurons whose weights along the ray are the bends that were seen there."""
    bend, bend_sd = np.linalg.norm(ray.jump, axis=1)[factors.creases], ray.jump_sd[factors.creases]
    off = np.abs(bend - factors.weights @ ray.direction)
    return off <= DOUBLE.in_line * (np.hypot(factors.weight_sd, bend_sd) + factors.output_sd * bend)


@dataclass(frozen=True)
class _PieceGradients:
    """Gradients in pieces of a ray, along the coordinates or along a few axes."""

    pieces: IntArray
    found: Gradients

    @property
    def good(self) -> BoolArray:
        return self.found.good

    def bounds(self, group: CreaseGroup) -> IntArray:
        """Where the gradients at the ends of a group are; the one before all creases is not measured."""
        ends = [piece for piece in (group.after, group.upto) if piece != BEFORE]
        return np.searchsorted(self.pieces, ends)

    def changes(
        self, groups: list[CreaseGroup], known: AnchorModel, axes: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """How the unknown part of the gradient changes over each group, and the noise of that."""
        slopes = known.slopes(self.found.points)
        rest = self.found.slope - (slopes if axes is None else slopes @ axes.T)
        sd = np.hypot(self.found.sd, known.slope_error(self.found.points))
        change, noise = [], []
        for group in groups:
            ends = self.bounds(group)
            change.append(rest[ends[-1]] - (rest[ends[0]] if len(ends) > 1 else 0.0))
            noise.append(np.linalg.norm(sd[ends]))
        return np.array(change), np.array(noise)


@dataclass(frozen=True)
class _Stretches:
    """In each piece after a crease the longest stretch that no known neuron cuts: its middle and length."""

    ray: Ray
    points: FloatArray  # (n, d)
    middle: FloatArray  # (n,)
    length: FloatArray

    @classmethod
    def of(cls, known: AnchorModel, ray: Ray) -> _Stretches:
        at, along = known.values(known.anchor[None])[0], known.weights @ ray.direction
        with np.errstate(divide="ignore", invalid="ignore"):
            cuts = -at / along
        ends = np.append(ray.t, ray.end)
        parts = np.array([_longest_part(ends[i], ends[i + 1], cuts) for i in range(len(ray))])
        return cls(ray, known.anchor + parts[:, :1] * ray.direction, parts[:, 0], parts[:, 1])

    def measure(self, inside: BoundedTarget, known: AnchorModel, groups: list[CreaseGroup]) -> _PieceGradients:
        """Gradients in all pieces that the groups need; with many inputs the first few coordinates set the steps."""
        trial_coordinates = 16  # asked first with short steps, to learn how long the others may be
        worth_a_trial = 48  # inputs from which on that pays
        pieces = np.unique([piece for group in groups for piece in (group.after, group.upto) if piece != BEFORE])
        points, dim = self.points[pieces], self.points.shape[1]
        room = _room_of_known(known, points)
        steps = np.minimum(SHORT_STEP * self.length[pieces], room)
        if dim >= worth_a_trial and not inside.answers_gradients:
            axes = np.eye(dim)[inside.rng.choice(dim, trial_coordinates, replace=False)]
            trial = inside.gradients(points, axes, steps)
            factors = factorise(groups, *_PieceGradients(pieces, trial).changes(groups, known, axes), self.ray)
            steps = np.minimum(self._safe_steps(factors, pieces), room)
        found = inside.gradients(points, None, steps)
        return _PieceGradients(pieces, found)

    def _safe_steps(self, factors: Factors, pieces: IntArray) -> FloatArray:
        """Steps that hardly cross the ray's own creases, by the size their weights have along a few coordinates."""
        typical_weights = 5.0  # typical weights of a neuron that a step must not cross
        sizes = np.sqrt((factors.weights**2).mean(axis=1))
        away = np.abs(self.middle[pieces][:, None] - self.ray.t[factors.creases])
        values = away * np.linalg.norm(self.ray.jump, axis=1)[factors.creases]
        with np.errstate(divide="ignore"):
            safe = (values / (typical_weights * sizes)).min(axis=1)
        return np.minimum(safe, self.length[pieces])


def _room_of_known(known: AnchorModel, points: FloatArray) -> FloatArray:
    """Steps (n,) along coordinates that cross no known neuron's crease."""
    if not known.neurons:
        return np.full(len(points), np.inf)
    largest = np.abs(known.weights).max(axis=1)
    return np.asarray((np.abs(known.values(points)) / largest).min(axis=1) / 2)


def _longest_part(start: float, stop: float, cuts: FloatArray) -> tuple[float, float]:
    """Middle and length of the longest part of an interval between cuts."""
    ends = np.concatenate([[start], np.sort(cuts[(cuts > start) & (cuts < stop)]), [stop]])
    lengths = np.diff(ends)
    i = int(np.argmax(lengths))
    return float((ends[i] + ends[i + 1]) / 2), float(lengths[i])


def new_creases(inside: BoundedTarget, known: AnchorModel, point: FloatArray) -> Ray | None:
    """Creases of target minus model from the anchor to a point; None where they are too close to each other."""
    line = Lines.between(known.anchor[None], point[None], inside.scale)

    def difference(rows: FloatArray) -> FloatArray:
        return inside.ask(rows) - known(rows)

    def lost(rows: FloatArray, f: FloatArray) -> FloatArray:
        return inside.lost(rows, known(rows) + f)

    noise = known.noise_towards(point, inside.noise)
    scan = scan_lines(difference, line, noise, inside.rng, few=True, lost=lost)
    if scan.open.any() or np.any(np.diff(scan.creases.t) <= 0):
        return None
    found = scan.creases
    return Ray(line.directions[0], found.t, found.jump, found.jump_sd, float(line.high[0]))


def explore(inside: BoundedTarget, known: AnchorModel, keep: Callable[[ReLUNetwork], None]) -> AnchorModel:
    """Ask batches of points until they show no difference; learn the neurons before points that differ."""
    domain, dim, settings = inside.domain, inside.oracle.dim, inside.settings
    quiet, special = 0, np.concatenate([axis_points(domain, dim), far_corners(domain, known.slope)])
    while quiet < settings.quiet_batches:
        rows = np.concatenate([special, exploration_points(domain, inside.rng, settings.batch_points, dim)])
        before = known.neurons
        known = _PointBatch(inside, rows).explained_by(known)
        keep(known.network())
        quiet = 0 if known.neurons > before else quiet + 1
        special = far_corners(domain, known.weights[before:])
    return known


class _PointBatch:
    """Points with their answers: asked once, compared with the model as it grows."""

    def __init__(self, inside: BoundedTarget, rows: FloatArray) -> None:
        self.inside, self.rows = inside, rows
        with inside.oracle.stage("exploration", expected=len(rows)):
            self.answers = inside.ask(rows)
        self.noise = inside.noise_of(rows, self.answers)

    def explained_by(self, known: AnchorModel) -> AnchorModel:
        """The model with neurons added until it gives all answers of the batch."""
        # The next gate, when nothing passes the last one, and tolerance for differences without a crease.
        wider_gate = 10.0
        settings = self.inside.settings
        gate, in_vain = settings.neuron_error, 0
        for _ in range(settings.rays):
            unexplained = self.unexplained(known, gate / settings.neuron_error)
            if not len(unexplained):
                return known
            more = self.learn(known, self.rows[self.inside.rng.choice(unexplained)], gate)
            self.check_still_explained(known, more, unexplained)
            in_vain = in_vain + 1 if more.neurons == known.neurons else 0
            known = more
            if in_vain == settings.dull_rays:
                gate, in_vain = wider_gate * gate, 0
            if gate > settings.worst_error:
                break
        raise StageFailed(
            "exploration", "differences no crease explains", number=len(unexplained), limit=0, partial=known.network()
        )

    def check_still_explained(self, known: AnchorModel, more: AnchorModel, unexplained: IntArray) -> None:
        """Raise StageFailed if a new neuron changes points that were explained: its crease bends elsewhere."""
        off, most = self.off(more) / self.inside.spread, self.inside.settings.other_layer
        off[unexplained] = 0.0
        off[self.off(known) >= most * self.inside.spread] = 0.0  # with a wide gate such points count as explained
        if not off.max() < most:
            reason = "creases that bend: there is another hidden layer"
            raise StageFailed(
                "exploration", reason, number=float(off.max()), limit=most, partial=more.network(),
                shows=Shows.BENT_CREASES,
            )  # fmt: skip

    def off(self, known: AnchorModel) -> FloatArray:
        """How far (n,) the answers are from a model's."""
        return np.asarray(np.abs(self.answers - known(self.rows)).max(axis=1))

    def unexplained(self, known: AnchorModel, leniency: float) -> IntArray:
        """Points where target and model differ by more than noise."""
        return np.flatnonzero(
            self.off(known) > leniency * DOUBLE.in_line * np.hypot(self.noise, known.error(self.rows))
        )

    def learn(self, known: AnchorModel, point: FloatArray, gate: float) -> AnchorModel:
        """Neurons on the ray through a point, as far as the domain goes."""
        inside = self.inside
        stop = end_of_ray(inside.domain, known.anchor, point, inside.scale)
        with inside.oracle.stage("rays"):
            ray = new_creases(inside, known, stop)
            return known if ray is None or not len(ray) else neurons_on_a_ray(inside, known, ray, gate)
