"""Second and third stage of few digits: a line, or a star of lines, grows into a subspace.

Points go a little farther from the line with every pass. After each pass everything is fitted anew; a pass that the
fit does not explain is undone and the next one goes half as far. A line that missed a neuron, or took two for one,
gets stuck here. Planes of the line and one more direction each are joined: a neuron is known from plane to plane by
its crease on the line, and one that a plane had to add makes the planes before it grow anew. In the subspace
everything is fitted together, then held-out points question it.

Inside a box a line does not meet every crease, but of several lines through one point nearly always one does. A
neuron a max(w·y + b, 0) with outputs of norm one bends a line through the origin at t = -b / w·u by a |w·u|: bend
times distance is a |b|, the same on every line, so that it tells which bends belong to one neuron. Points that
growth leaves unexplained are a neuron that no line met, or two that a line took for one: another star may do
better.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from reluctant.extraction.few_digits.incomplete_lines import bent_share
from reluctant.extraction.few_digits.noisy_line import OnLine, read_stretch
from reluctant.extraction.few_digits.scaled_view import BoxView, View
from reluctant.extraction.few_digits.subspace_fit import (
    HUBER,
    WORTH_A_NEURON,
    Points,
    fit_to_points,
    misfit,
    settled_fit,
    with_missing_neurons,
    without_idle_neurons,
)
from reluctant.extraction.method import Shows, StageFailed
from reluctant.geometry import Frame, FramedNetwork
from reluctant.geometry.lines import IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

MISFIT, MISFITS = 6.0, 0.03  # deviations, and share of the points of a pass that may have more


def ask_in(view: View, frame: Frame, y: FloatArray) -> Points:
    """Answers at coordinates of a frame; the coordinates are those of the rows that were really asked."""
    rows, answers = view.ask(frame.points(y))
    y = (rows - frame.origin) @ frame.basis.T
    return Points(y, answers, 1 / view.noise.at(np.linalg.norm(y, axis=1)))


def line_points(line: OnLine, count: int, rng: np.random.Generator) -> Points:
    """Some of the line's samples, as points of a frame of one direction."""
    chosen = rng.permutation(len(line.data))[:count]
    return Points(line.data.t[chosen, None], line.data.f[chosen], line.data.weight[chosen])


@dataclass(frozen=True)
class _GrowthState:
    network: ReLUNetwork
    points: Points


@dataclass(frozen=True)
class _Pace:
    """How far the next pass goes: beside the line in distances to the nearest crease, then so many passes anywhere."""

    offset: float = 0.004
    anywhere: float = 0.0

    @property
    def near(self) -> bool:
        last_offset = 12.0
        return self.offset < last_offset

    @property
    def done(self) -> bool:
        passes_anywhere = 5.0
        return self.anywhere >= passes_anywhere

    def after(self, good: bool) -> _Pace:
        faster, back = 2.0, -0.5  # the factor of the next offset, and how far back a pass goes that was not explained
        if self.near:
            return _Pace(self.offset * (faster if good else 1 / faster))
        return _Pace(self.offset, self.anywhere + (1.0 if good else back))


def grow_plane(
    line: OnLine, start: ReLUNetwork, direction: FloatArray, rng: np.random.Generator
) -> tuple[ReLUNetwork, Points]:
    """The network in the plane of the line and one more direction, and the points off the line it was fitted to.

    start: network of one input, the line as it is known by now; neurons it lacks are added. Creases are
    checked for bends where points are not explained twice. Cost: about 35 rows a neuron, more where some are missing.
    """
    most_bad_in_a_row, most_bad_in_all = 3, 10
    trusted_passes = 1  # bad passes that count as too long a step; the next one counts as a missing neuron
    more_points = 3  # times as many points are asked to find it
    state, pace = _GrowthState(_beside_line(start), _kept_on_line(line, start, rng)), _Pace()
    bad_in_a_row = bad_in_all = 0
    kept, fewest = len(state.points), start.widths[1]
    frame = Frame(line.origin, np.stack([line.direction, direction]))
    while not pace.done:
        new = _ask_pass(line.view, frame, state.network, pace, 1, rng)
        after, misfits = _with_pass(state, new, kept)
        if misfits >= 1 and bad_in_all >= trusted_passes:
            new += _ask_pass(line.view, frame, state.network, pace, more_points, rng)
            after, misfits = _with_neurons(after, new, fewest, rng)
        good = misfits < 1
        if not good and bad_in_all == trusted_passes:
            refuse_bent_creases(line, direction)
        state = after if good else state
        bad_in_a_row, bad_in_all = (0, bad_in_all) if good else (bad_in_a_row + 1, bad_in_all + 1)
        if bad_in_a_row == most_bad_in_a_row or bad_in_all == most_bad_in_all:
            raise StageFailed("growth", "points off the line are not explained", number=misfits, limit=1)
        pace = pace.after(good)
    return _without_needless(state, fewest), state.points.chosen(slice(kept, None))


LAYERS = "layers"
BENT_SHARE = 0.22  # of the creases: with one hidden layer up to 0.2 of few look bent, with two a quarter and more


def refuse_bent_creases(line: OnLine, direction: FloatArray) -> None:
    """Raise StageFailed if creases beside the line bend as those of a second hidden layer do.

    Cost: three lines of about 7 rows a crease.
    """
    with line.view.oracle.stage(LAYERS):
        share = bent_share(line.view, line.origin, line.direction, direction)
    if share > BENT_SHARE:
        reason = "creases bend: one hidden layer is not enough"
        raise StageFailed(LAYERS, reason, number=share, limit=BENT_SHARE, shows=Shows.BENT_CREASES)


def _ask_pass(
    view: View, frame: Frame, network: ReLUNetwork, pace: _Pace, times: int, rng: np.random.Generator
) -> Points:
    if pace.near:
        y = [_points_near_line(network, pace.offset, view, rng) for _ in range(times)]
    else:
        y = [_points_anywhere(network.widths[1], pace.anywhere, view, rng) for _ in range(times)]
    return ask_in(view, frame, np.concatenate(y))


def _kept_on_line(line: OnLine, start: ReLUNetwork, rng: np.random.Generator) -> Points:
    kept_on_line, fewest_kept_on_line = 12, 600  # samples a neuron
    points = line_points(line, max(kept_on_line * start.widths[1], fewest_kept_on_line), rng)
    return Points(_beside(points.y), points.f, points.weight)


def _beside_line(start: ReLUNetwork) -> ReLUNetwork:
    (w, a), biases, skip = start.weights, start.biases, start.skip
    return ReLUNetwork([_beside(w), a], biases, None if skip is None else _beside(skip))


def _with_pass(state: _GrowthState, new: Points, on_line: int) -> tuple[_GrowthState, float]:
    """Everything fitted anew with these points, and the share of them that misfit all the same."""
    pass_steps, pass_damping, pass_enough = 6, 1e-8, 3e-2
    doubtful_pass = 0.25  # of the misfits that may be: the fit is given more steps
    kept_off_line = 14  # points a neuron; the oldest, nearest to the line, are let go
    points = state.points + new
    most = kept_off_line * state.network.widths[1]
    if len(points) - on_line > most:
        points = points.chosen(slice(None, on_line)) + points.chosen(slice(len(points) - most, None))
    network = fit_to_points(
        state.network, points, steps=pass_steps, damping=pass_damping, huber=HUBER, enough=pass_enough
    )
    misfits = _misfits(network, new)
    if misfits > doubtful_pass:
        network = settled_fit(network, points)
        misfits = _misfits(network, new)
    return _GrowthState(network, points), misfits


def _with_neurons(
    state: _GrowthState, new: Points, fewest: int, rng: np.random.Generator
) -> tuple[_GrowthState, float]:
    """The same with more points, and with neurons that explain their residuals."""
    most_added = 4  # neurons in one pass
    points = state.points + new
    network = with_missing_neurons(state.network, points, most_added, rng)
    state = _GrowthState(_without_needless(_GrowthState(network, points), fewest), points)
    return state, _misfits(state.network, new)


def _without_needless(state: _GrowthState, fewest: int) -> ReLUNetwork:
    """Without neurons that were added and are no longer needed."""
    return without_idle_neurons(state.network, state.points, huber=HUBER, least=WORTH_A_NEURON, fewest=fewest)


def _misfits(network: ReLUNetwork, points: Points) -> float:
    """Points that are not explained, in units of how many may be."""
    grave, grave_misfits = 15.0, 0.01  # deviations, and share of points: a fit that has not settled yet leaves less
    size = misfit(network, points)
    return float(max(np.mean(size > MISFIT) / MISFITS, np.mean(size > grave) / grave_misfits))


def _beside(column: FloatArray) -> FloatArray:
    return np.column_stack([column, np.zeros(len(column))])


def _points_near_line(network: ReLUNetwork, offset: float, view: View, rng: np.random.Generator) -> FloatArray:
    """Points in every piece of the line, beside it by a share of the distance to the nearest crease."""
    per_piece = 2  # points
    largest_offset = 0.5  # of the distance from the origin
    inside_piece = 0.1  # of a piece: points keep this far from its ends
    outermost = 2.0  # how far beyond the outermost crease, in its distance or the size of an input
    t = np.sort(-network.biases[0] / network.weights[0][:, 0])
    first, last = (outermost * (view.size + abs(end)) for end in (t[0], t[-1]))
    ends = np.concatenate([[t[0] - first], t, [t[-1] + last]])
    low, gap = np.repeat(ends[:-1], per_piece), np.repeat(np.diff(ends), per_piece)
    share = rng.uniform(inside_piece, 1 - inside_piece, len(low))
    along = low + share * gap
    room = np.minimum(share, 1 - share) * gap
    most = largest_offset * min(1.0, offset) * (view.size + np.abs(along))
    across = np.minimum(offset * room, most) * rng.uniform(0.5, 1, len(low)) * rng.choice([-1, 1], len(low))
    return np.column_stack([along, across])


def _points_anywhere(h: int, passes: float, view: View, rng: np.random.Generator) -> FloatArray:
    offset_anywhere, faster_anywhere = 0.02, 2.8  # offsets whatever the creases, of the size of an input
    steepest_angle = 1.45  # of points along the line
    per_unknown = 2  # points
    offset, n = offset_anywhere * faster_anywhere**passes, per_unknown * (h + view.outputs)
    along = view.size * np.tan(rng.uniform(-steepest_angle, steepest_angle, n))
    return np.column_stack([along, offset * np.hypot(view.size, along) * rng.standard_normal(n)])


def grow_planes(line: OnLine, frame: Frame, rng: np.random.Generator) -> tuple[ReLUNetwork, list[Points]]:
    """The planes of the line and each direction, joined; anew where one shows neurons that others did not."""
    most_planes = 3  # times each direction is grown into, should later ones show more neurons
    start, directions = line.network, range(1, len(frame.basis))
    planes: dict[int, tuple[ReLUNetwork, Points]] = {}
    for _ in range(most_planes * len(directions)):
        if len(planes) == len(directions):
            break
        k = next(k for k in directions if k not in planes)
        plane, points = grow_plane(line, start, frame.basis[k], rng)
        if plane.widths[1] != start.widths[1]:
            planes.clear()
        else:
            plane = _in_order(plane, start, line.view.size)
        planes[k], start = (plane, points), _plane_on_line(plane)
    else:
        raise StageFailed("growth", "planes that do not agree", number=len(planes), limit=len(directions))
    return _joined_planes(start, planes), [
        in_frame(points, [0, k], len(frame.basis)) for k, (_, points) in planes.items()
    ]


def _in_order(plane: ReLUNetwork, start: ReLUNetwork, size: float) -> ReLUNetwork:
    """The neurons in the order of those they grew from: one that was lost and found again comes last."""
    place_angle = 1e-3  # angle on the line by which neurons differ as much as if one had no bend
    bends, places, outputs = (
        np.stack(pair) for pair in zip(_neuron_marks(plane, size), _neuron_marks(start, size), strict=True)
    )
    cost = np.abs(bends[0][:, None] - bends[1]) / np.maximum(bends[0][:, None], bends[1])
    cost += np.abs(places[0][:, None] - places[1]) / place_angle
    cost += 1 - outputs[0] @ outputs[1].T
    order = np.argsort(linear_sum_assignment(cost)[1])
    (w, a), (b, c) = plane.weights, plane.biases
    return ReLUNetwork([w[order], a[:, order]], [b[order], c], plane.skip)


def _neuron_marks(network: ReLUNetwork, size: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What a neuron is known by on the line: how much it bends (h,), where as an angle (h,), outputs (h, m)."""
    along = network.weights[0][:, 0]
    return np.abs(along), np.arctan2(-network.biases[0] / size * np.sign(along), np.abs(along)), network.weights[1].T


def _joined_planes(start: ReLUNetwork, planes: dict[int, tuple[ReLUNetwork, Points]]) -> ReLUNetwork:
    """One network in all directions: the latest on the line, and of each plane the part across.

    Outputs have norm one in all of them, so weights stay as they are; slopes could not where a neuron is
    hardly seen on the line.
    """
    across = [planes[k][0] for k in sorted(planes)]
    w = np.column_stack([start.weights[0], *(plane.weights[0][:, 1] for plane in across)])
    skip = np.column_stack([_skip_term(start), *(_skip_term(plane)[:, 1] for plane in across)])
    return ReLUNetwork([w, start.weights[1]], start.biases, skip)


def _skip_term(network: ReLUNetwork) -> FloatArray:
    assert network.skip is not None
    return network.skip


def _plane_on_line(plane: ReLUNetwork) -> ReLUNetwork:
    """What a network in a plane is on the line it grew from."""
    w, a = plane.weights
    return ReLUNetwork([w[:, :1], a], plane.biases, _skip_term(plane)[:, :1])


def in_frame(points: Points, axes: list[int], k: int) -> Points:
    """Points of a line or plane by these axes of a frame of k directions."""
    y = np.zeros((len(points), k))
    y[:, axes] = points.y
    return Points(y, points.f, points.weight)


SUBSPACE_STEPS = 8


@dataclass(frozen=True)
class KnownSubspace:
    """The network in a subspace, and the points it was fitted to."""

    framed: FramedNetwork
    points: Points


def grow_subspace(line: OnLine, directions: int, rng: np.random.Generator) -> KnownSubspace:
    """Grow the line into so many directions. Cost: about 35 rows a neuron and direction, and 30 a neuron in all."""
    frame = _subspace_frame(line, directions, rng)
    with line.view.oracle.stage("growth"):
        joined, grown = grow_planes(line, frame, rng)
    with line.view.oracle.stage("subspace"):
        return _fitted_together(line, frame, joined, grown, rng)


def _subspace_frame(line: OnLine, directions: int, rng: np.random.Generator) -> Frame:
    """The line, towards the origin, then random directions: off the subspace, the mean is zero at random inputs."""
    frame = Frame(line.origin, line.direction[None])
    if directions == 0:
        return frame
    inwards = -line.origin + (line.origin @ line.direction) * line.direction
    frame = frame.extended(inwards[None] / np.linalg.norm(inwards))
    return frame.extended(frame.new_directions(directions - 1, rng)) if directions > 1 else frame


def _fitted_together(
    line: OnLine, frame: Frame, network: ReLUNetwork, grown: list[Points], rng: np.random.Generator
) -> KnownSubspace:
    # Of all points: neurons weaker than planes can tell are looked for, so many.
    doubtful_chi, most_added_at_end = 1.3, 4
    k, h, view = len(frame.basis), network.widths[1], line.view
    points = _known_points(line, grown, k, h, rng)
    network = fit_to_points(network, points, steps=SUBSPACE_STEPS, huber=HUBER)
    points += random_points(view, frame, h, rng)
    network = fit_to_points(network, points, steps=SUBSPACE_STEPS, huber=HUBER)
    if _chi(misfit(network, points)) > doubtful_chi:
        network = with_missing_neurons(network, points, most_added_at_end, rng)
    return questioned(view, frame, network, points, rng)


def random_points(view: View, frame: Frame, neurons: int, rng: np.random.Generator) -> Points:
    """Points of many sizes all over the subspace."""
    random_per_unknown, counted_outputs = 6, 3  # random points for each weight and bias; more outputs tell no more
    size_spread = (-1.0, 1.2)  # of their logarithmic size
    k, per_point = len(frame.basis), min(view.outputs, counted_outputs)
    sizes = (
        np.exp(rng.uniform(*size_spread, (random_per_unknown * neurons * (k + 1) // per_point, 1)))
        * view.size
        / np.sqrt(k)
    )
    return ask_in(view, frame, view.pulled_in(frame, sizes * rng.standard_normal((len(sizes), k))))


def questioned(
    view: View, frame: Frame, network: ReLUNetwork, points: Points, rng: np.random.Generator
) -> KnownSubspace:
    """The network fitted to these points, if it explains others that are held out."""
    network = without_idle_neurons(fit_to_points(network, points, steps=SUBSPACE_STEPS), points)
    framed = FramedNetwork(frame, network, *np.zeros((2, network.widths[1])))
    return KnownSubspace(framed, points + _held_out(view, framed, rng))


def _known_points(line: OnLine, grown: list[Points], k: int, h: int, rng: np.random.Generator) -> Points:
    """Some of the answers that were paid for already."""
    fitted_on_line, fewest_fitted_on_line = 20, 1500  # samples of the line a neuron
    fitted_grown = 12  # points a neuron and direction
    size = line.view.size
    points = _near_points(
        in_frame(line_points(line, max(fitted_on_line * h, fewest_fitted_on_line), rng), [0], k), size
    )
    for part in grown:
        near = _near_points(part, size)
        points += near.chosen(rng.permutation(len(near))[: fitted_grown * h])
    return points


def _held_out(view: View, framed: FramedNetwork, rng: np.random.Generator) -> Points:
    """New points, all of which must be explained."""
    held_out = 200
    largest_held_out_chi, largest_misfit = 1.5, 12.0  # of held-out rows: missing neurons show as tens to thousands
    k = len(framed.frame.basis)
    at_use = view.pulled_in(framed.frame, rng.standard_normal((held_out, k)) * view.size / np.sqrt(k))
    points = ask_in(view, framed.frame, at_use)
    left = misfit(framed.network, points)
    for number, limit in ((_chi(left), largest_held_out_chi), (left.max(), largest_misfit)):
        if not number < limit:
            reason = "held-out points are not explained"
            raise StageFailed("subspace", reason, number=float(number), limit=limit, partial=framed)
    return points


def _chi(left: FloatArray) -> float:
    return float(np.sqrt(np.mean(left**2)))


def _near_points(points: Points, size: float) -> Points:
    too_far = 50.0  # sizes of an input: points that grew from far creases are left out
    return points.chosen(np.linalg.norm(points.y, axis=1) < too_far * size)


@dataclass(frozen=True)
class Star:
    """Lines along the axes of a frame, and the network that they show on its axes."""

    view: BoxView
    frame: Frame
    lines: list[OnLine]
    network: ReLUNetwork

    @property
    def neurons_a_kink(self) -> float:
        """Neurons of all lines together, for each kink of a line: one where every line meets every crease."""
        kinks = float(np.mean([line.network.widths[1] for line in self.lines]))
        return self.network.widths[1] / max(kinks, 1.0)

    @property
    def lone_share(self) -> float:
        """Part of all kinks that no other line shares.

        Inside a box a line may miss most creases of one hidden layer, but other lines meet those that it meets.
        """
        shown = np.count_nonzero(self.network.weights[0], axis=1)
        return float(np.sum(shown == 1)) / max(float(np.sum(shown)), 1.0)

    @property
    def shows_deeper(self) -> bool:
        """True if lines share too few bends for one hidden layer."""
        return self.neurons_a_kink > MOST_NEURONS and self.lone_share > MOST_ALONE

    @property
    def points(self) -> Points:
        """All samples of the lines, in coordinates of the frame."""
        y = np.zeros((sum(len(line.data) for line in self.lines), len(self.lines)))
        axis = np.repeat(np.arange(len(self.lines)), [len(line.data) for line in self.lines])
        y[np.arange(len(y)), axis] = np.concatenate([line.data.t for line in self.lines])
        answers = np.concatenate([line.data.f for line in self.lines])
        return Points(y, answers, 1 / self.view.noise.at(np.linalg.norm(y, axis=1)))


def read_star(view: BoxView, directions: int, rng: np.random.Generator) -> Star:
    """Scan so many lines through a point near the middle. Cost: 50 to 100 rows a neuron and line."""
    off_centre = 0.1  # of the box: neurons without a bias all meet in its middle
    frame = Frame(off_centre * view.sample(rng, 1)[0], view.directions(rng, directions))
    lines = [read_stretch(view, frame.origin, u, view.reach(frame.origin, u), rng) for u in frame.basis]
    noise = float(np.mean([line.view.noise.near for line in lines]))
    return Star(view.with_noise(noise / view.noise.near), frame, lines, _joined_lines(lines, noise))


@dataclass(frozen=True)
class _LineBends:
    """Creases of one line: positions (n,), bends (n, m), and bend times distance with its deviation."""

    t: FloatArray
    bend: FloatArray
    product: FloatArray
    sd: FloatArray

    @classmethod
    def of(cls, line: OnLine, noise: float) -> _LineBends:
        position_noises = 3.0  # deviations of an answer by which a crease, times its bend, may be off
        (w, a), b = line.network.weights, line.network.biases[0]
        t, bend = -b / w[:, 0], (a * w[:, 0]).T
        gaps = np.diff(np.concatenate([[line.data.t[0]], t, [line.data.t[-1]]]))
        slopes = noise / np.minimum(gaps[:-1], gaps[1:])
        return cls(t, bend, np.abs(t)[:, None] * bend, position_noises * noise + np.abs(t) * slopes)


def _joined_lines(lines: list[OnLine], noise: float) -> ReLUNetwork:
    """The neurons of all lines, each off at the common point; a weight along a line that does not show it is 0."""
    bends = [_LineBends.of(line, noise) for line in lines]
    neurons = _matched_bends(bends)
    weights = np.zeros((len(neurons), len(lines)))
    outputs, sizes = np.zeros((bends[0].bend.shape[1], len(neurons))), np.zeros(len(neurons))
    for j, places in enumerate(neurons):
        seen = np.flatnonzero(places >= 0)
        total = np.sum([bends[i].bend[places[i]] for i in seen], axis=0)
        outputs[:, j] = total / np.linalg.norm(total)
        sizes[j] = np.mean([np.linalg.norm(bends[i].product[places[i]]) for i in seen])
        weights[j, seen] = [np.sign(bends[i].t[places[i]]) * np.linalg.norm(bends[i].bend[places[i]]) for i in seen]
    at_origin = [line.network for line in lines]
    skip = np.column_stack([_slope_at_origin(network) for network in at_origin])
    return ReLUNetwork([weights, outputs], [-sizes, at_origin[0](np.zeros((1, 1)))[0]], skip)


def _slope_at_origin(network: ReLUNetwork) -> FloatArray:
    (w, a), b = network.weights, network.biases[0]
    assert network.skip is not None
    return np.asarray(network.skip[:, 0] + (a * w[:, 0]) @ (b > 0))


def _matched_bends(bends: list[_LineBends]) -> list[IntArray]:
    """For each neuron its place on every line, -1 where that line does not show it."""
    same_product = 30.0  # deviations within which two products of bend and distance are one
    neurons: list[IntArray] = []
    for axis, found in enumerate(bends):
        for k in range(len(found.t)):
            off = [_unlike(bends, neuron, found, k) if neuron[axis] < 0 else np.inf for neuron in neurons]
            best = int(np.argmin(off)) if off else -1
            if off and off[best] < same_product:
                neurons[best][axis] = k
            else:
                fresh = np.full(len(bends), -1, dtype=np.intp)
                fresh[axis] = k
                neurons.append(fresh)
    return neurons


def _unlike(bends: list[_LineBends], neuron: IntArray, found: _LineBends, k: int) -> float:
    """How far a bend is from those of a neuron, in deviations."""
    others = [(bends[axis].product[place], bends[axis].sd[place]) for axis, place in enumerate(neuron) if place >= 0]
    return max(float(np.linalg.norm(product - found.product[k]) / np.hypot(sd, found.sd[k])) for product, sd in others)


MOST_NEURONS = 2.0  # for each kink of a line of a star: with one hidden layer up to 2.3 in a small box, with two 3 to 5
MOST_ALONE = 0.25  # of the kinks of a star: with one hidden layer up to 0.19 in a small box, with two 0.34 to 0.8


def grow_star(view: BoxView, directions: int, rng: np.random.Generator) -> tuple[View, KnownSubspace]:
    """Read a star of so many lines, then the network in its subspace. Cost: about 70 rows a neuron, 80 a line more."""
    star = read_star(view, directions, rng)
    try:
        return star.view, _grown_star(star, rng)
    except StageFailed as stuck:
        if star.shows_deeper:
            reason = "bends that lines do not share: one hidden layer is not enough"
            raise StageFailed(
                LAYERS, reason, number=star.lone_share, limit=MOST_ALONE, shows=Shows.BENT_CREASES
            ) from stuck
        raise


def _grown_star(star: Star, rng: np.random.Generator) -> KnownSubspace:
    pass_offsets = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # from the lines, in sizes of an input
    star_steps, star_huber, star_damping, star_enough = 8, 5.0, 1e-8, 3e-2
    points, network = _some_samples(star, rng), star.network
    with star.view.oracle.stage("growth"):
        for offset in pass_offsets:
            new = ask_in(star.view, star.frame, _beside_lines(star, offset, rng))
            points += new
            network = fit_to_points(
                network, points, steps=star_steps, damping=star_damping, huber=star_huber, enough=star_enough
            )
            _check_pass(network, new)
    with star.view.oracle.stage("subspace"):
        points += random_points(star.view, star.frame, network.widths[1], rng)
        return questioned(star.view, star.frame, network, points, rng)


def _some_samples(star: Star, rng: np.random.Generator) -> Points:
    on_lines, fewest_on_lines = 16, 600  # samples a neuron and line
    points, h = star.points, star.network.widths[1]
    return points.chosen(rng.permutation(len(points))[: max(on_lines * h, fewest_on_lines) * len(star.lines)])


def _beside_lines(star: Star, offset: float, rng: np.random.Generator) -> FloatArray:
    """Points beside the lines, as far as this; the farthest are anywhere in the box."""
    points_per_neuron = 8  # points of a pass
    k, n = len(star.frame.basis), points_per_neuron * star.network.widths[1]
    axis, on = rng.integers(k, size=n), np.zeros((n, k))
    reaches = np.array([np.abs(line.data.t).max() for line in star.lines])
    on[np.arange(n), axis] = rng.uniform(-1, 1, n) * reaches[axis]
    return star.view.pulled_in(star.frame, on + offset * star.view.size * rng.standard_normal((n, k)))


def _check_pass(network: ReLUNetwork, new: Points) -> None:
    share = float(np.mean(misfit(network, new) > MISFIT))
    if share > MISFITS:
        raise StageFailed("growth", "points off the lines are not explained", number=share, limit=MISFITS)
