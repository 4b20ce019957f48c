"""Weights of first-layer neurons, from gradients where the other neurons do not change.

Where one neuron alone is active the gradient is a multiple of its weights, whatever the layers above do, over long
steps. Points with every neuron in a given state come from least distance programming, without queries. A neuron
that is not seen alone is crossed with others switched on, far inside their states, and measured on both sides of
its hyperplane: the gradients differ by its row. Rows that other neurons add to one gradient are known from the
subspace and subtracted. At the end weak rows are measured again where the whole network shows them best. That is the
state of the other neurons, of many random ones, whose steps show this neuron best. The same second-layer neurons must
be active on both sides of its hyperplane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.optimize

from reluctant.extraction.depth_three.hyperplanes import FramedHyperplanes
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise, Frame, Gradients, Question, gradients
from reluctant.geometry.gradients import cross
from reluctant.geometry.lines import Batch, BoolArray, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting

NNLS_STEPS = 10  # of the search for a point, for each neuron


def quiet_points(
    normals: FloatArray, offsets: FloatArray, which: IntArray, active: BoolArray, room: FloatArray
) -> FloatArray:
    """For each neuron of `which` the point of its hyperplane nearest to the origin of that kind.

    All others stay `room` (len(which),) inside the active side where `active` (len(which), n), else inside the other.
    """
    each = zip(which, active, room, strict=True)
    return np.array([_on_hyperplane(normals, offsets, int(j), states, float(least)) for j, states, least in each])


def points_in_states(normals: FloatArray, offsets: FloatArray, active: BoolArray, room: FloatArray) -> FloatArray:
    """The nearest points (p, k) with every neuron `room` (p, n) inside its state (p, n)."""
    sides = np.where(active, 1.0, -1.0)
    each = zip(sides, room, strict=True)
    return np.array([_nearest_point(side[:, None] * normals, least - side * offsets) for side, least in each])


def _on_hyperplane(normals: FloatArray, offsets: FloatArray, j: int, active: BoolArray, room: float) -> FloatArray:
    sides = np.where(active, 1.0, -1.0)
    others = np.arange(len(offsets)) != j
    rows = np.concatenate([(sides[:, None] * normals)[others], normals[[j]], -normals[[j]]])
    least = np.concatenate([(room - sides * offsets)[others], [-offsets[j]], [offsets[j]]])
    point = _nearest_point(rows, least)
    return np.asarray(point - (normals[j] @ point + offsets[j]) * normals[j])


def _nearest_point(rows: FloatArray, least: FloatArray) -> FloatArray:
    """The shortest y with rows @ y ≥ least (Lawson and Hanson's least distance programming)."""
    size = max(float(np.abs(least).max()), DOUBLE.tiny)
    columns = np.vstack([rows.T, least[None] / size])
    target = np.append(np.zeros(rows.shape[1]), 1.0)
    most = int(NNLS_STEPS * columns.shape[1])
    try:
        multipliers, _ = scipy.optimize.nnls(columns, target, maxiter=most)
    except RuntimeError as error:  # so it says that it was too many
        raise StageFailed("refine", "no point with these states was found", number=most, limit=most) from error
    residual = columns @ multipliers - target
    return np.asarray(-size * residual[:-1] / residual[-1])


@dataclass(frozen=True)
class HyperplaneViews(Batch):
    """Which neuron was crossed, where, over which reach, and what was seen."""

    neuron: IntArray
    on: FloatArray  # (v, k): the point of the crease, in coordinates of the frame
    reach: FloatArray
    bend: FloatArray  # size of the change of slope
    sd: FloatArray  # of an answer
    usable: BoolArray

    @property
    def blur(self) -> FloatArray:
        """Error of each position; infinite where nothing was seen."""
        with np.errstate(divide="ignore"):
            return np.where(self.usable, self.sd / self.bend, np.inf)

    def best(self, quality: FloatArray, n: int) -> IntArray:
        """Index of the best usable view of each of n neurons, -1 for none."""
        order = np.argsort(quality[self.usable])
        usable = np.flatnonzero(self.usable)[order]
        chosen = np.full(n, -1)
        chosen[self.neuron[usable]] = usable
        return chosen


def view_each(
    oracle: Counting, planes: FramedHyperplanes, noise: DistanceNoise, rng: np.random.Generator
) -> HyperplaneViews:
    """Views of all neurons, at least one usable one of each. Cost: 8 rows a neuron and background."""
    crossing_reaches = (1.0, 0.2)  # of a crossing, in typical inputs of one coordinate
    most_backgrounds = 20  # random states of the others, tried one after the other
    shorter_reaches = 4.0  # reaches, after every few of them
    sharp, sharper_backgrounds = 5e-14, 4  # error of a position for which a few more are tried
    n = len(planes)
    views = _cross_all(oracle, planes, np.arange(n), np.array(crossing_reaches), noise, rng)
    for tried in range(most_backgrounds):
        wanted = sharp if tried < sharper_backgrounds else np.inf
        blurred = np.setdiff1d(np.arange(n), views.neuron[views.blur < wanted])
        if not len(blurred):
            return views
        reaches = np.array(crossing_reaches) / shorter_reaches ** (tried // sharper_backgrounds)
        if tried == sharper_backgrounds:  # few states of the others show these: the one they were found in does
            views = views + _crossed(oracle, planes, blurred, planes.on[blurred], reaches, noise)
        views = views + _cross_all(oracle, planes, blurred, reaches, noise, rng)
    raise StageFailed("refine", "first-layer neurons not seen again", number=len(blurred), limit=0)


def view_more(
    oracle: Counting, planes: FramedHyperplanes, neurons: IntArray, noise: DistanceNoise, rng: np.random.Generator
) -> HyperplaneViews:
    """Some more views of these neurons, to choose the best from. Cost: 72 rows a neuron."""
    more_backgrounds, longer_reaches = 6, (4.0, 2.0, 0.7)  # for a neuron that has to be measured there
    return _cross_all(oracle, planes, np.repeat(neurons, more_backgrounds), np.array(longer_reaches), noise, rng)


def _cross_all(
    oracle: Counting,
    planes: FramedHyperplanes,
    neurons: IntArray,
    reaches: FloatArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> HyperplaneViews:
    """Cross the hyperplanes of these neurons over all reaches, with the others in random states."""
    least_room, most_room = 2.0, 8.0  # how far inside their states the other neurons are, at random
    share_on = 0.5  # of the other neurons
    states = rng.random((len(neurons), len(planes))) < share_on
    room = rng.uniform(least_room, most_room, len(neurons))
    starts = quiet_points(planes.normals, planes.offsets, neurons, states, room)
    return _crossed(oracle, planes, neurons, starts, reaches, noise)


def _crossed(
    oracle: Counting,
    planes: FramedHyperplanes,
    neurons: IntArray,
    starts: FloatArray,
    reaches: FloatArray,
    noise: DistanceNoise,
) -> HyperplaneViews:
    """Cross the hyperplanes of these neurons over all reaches, at points (n, k) of theirs."""
    off_course = 20.0  # errors of a hyperplane that a crease may be away from it; one farther off is another one
    uncertain = 1e-10  # at least, in typical inputs
    which, points = np.tile(neurons, len(reaches)), np.tile(starts, (len(reaches), 1))
    reach, normals = np.repeat(reaches, len(neurons)), planes.normals[which]
    away = np.linalg.norm(points - planes.on[which], axis=1)
    within = off_course * planes.errors[which] * away + uncertain * planes.scale
    seen = cross(lambda y: oracle.query(planes.frame.points(y)), points, normals, reach, noise, within)
    on = points + np.where(seen.critical, seen.position, 0.0)[:, None] * normals
    return HyperplaneViews(which, on, reach, seen.size, seen.sd, seen.critical)


@dataclass(frozen=True)
class MixedGradients:
    """Gradients at points where these neurons are active with others, one point for each."""

    neurons: IntArray  # (p,): rows that are not known
    slopes: FloatArray  # (p, m, d)
    sd: FloatArray  # (p,)
    active: BoolArray  # (p, n)


def solve_mixed(
    mixed: MixedGradients, rows: FloatArray, errors: FloatArray, normals: FloatArray, basis: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Unit rows (p, d) and their errors, from the other neurons' rows (n, d) and their errors (n,).

    `normals` (n, k): what the rows are in the subspace, those that are not known up to a factor.
    """
    unknown = mixed.neurons
    parts = [_combination(slope @ basis.T, normals, on) for slope, on in zip(mixed.slopes, mixed.active, strict=True)]
    combinations = np.stack([part for part, _ in parts])  # (p, m, n)
    blur = mixed.sd * np.array([spread for _, spread in parts])
    others = np.isin(np.arange(len(normals)), unknown, invert=True)
    rest = mixed.slopes - combinations[:, :, others] @ rows[others]
    inverse = np.linalg.pinv(combinations[:, :, unknown].reshape(-1, len(unknown)))  # (p, p·m)
    found = inverse @ rest.reshape(-1, rest.shape[2])
    sizes = np.linalg.norm(found, axis=1)
    m, d = mixed.slopes.shape[1:]
    borrowed = np.sqrt((combinations[:, :, others] ** 2 @ errors[others] ** 2).max(axis=1))
    noise = np.sqrt(d * mixed.sd**2 + (blur * max(1.0, float(sizes.max()))) ** 2 + borrowed**2)
    return found / sizes[:, None], np.sqrt(inverse**2 @ np.repeat(noise, m) ** 2) / sizes


def _combination(slope: FloatArray, normals: FloatArray, active: BoolArray) -> tuple[FloatArray, float]:
    """The parts (m, n) of a gradient (m, k) along the normals of active neurons, and how much noise grows in them."""
    inverse = np.linalg.pinv(normals[active])
    parts = np.zeros((len(slope), len(normals)))
    parts[:, active] = slope @ inverse
    return parts, float(np.linalg.norm(inverse))


ROW_STEP = 0.06  # of a gradient, in reaches: a coordinate weighs about 1/√k, and five times that is rare
SHORTER_STEP = 0.3  # of that, where others are on and so more creases around
WELL_SEEN = 1e12  # and of one for which nothing better is looked for
GOOD_ENOUGH = 1e-9  # error of a row that was found with the help of the subspace
NORMAL_AGREEMENT = 1e-4  # with the normal that was known in the subspace


@dataclass(frozen=True)
class RowPlaces:
    """Where the rows of neurons are measured: inside their active side, and outside too where not alone.

    mirrored: hyperplanes with a neuron on either side, of which one is active everywhere: nothing is alone then.
    """

    inside: FloatArray  # (n, k), coordinates of the frame
    outside: FloatArray  # (n, k)
    reach: FloatArray  # (n,)
    alone: BoolArray  # (n,)
    mirrored: BoolArray  # (n,)


def places_of(
    oracle: Counting,
    planes: FramedHyperplanes,
    views: HyperplaneViews,
    mirrored: BoolArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> RowPlaces:
    """For each neuron the better of alone and both sides. Cost: 12 rows a neuron, 72 or more if not seen alone."""
    more_views = 5  # of a neuron that is seen neither alone nor well with others
    n = len(planes)
    if mirrored.any():
        inside, reach, digits = np.zeros_like(planes.normals), np.zeros(n), np.zeros(n)
    else:
        inside, reach, digits = _seen_alone(oracle, planes, noise)
    alone = (digits > WELL_SEEN) | (digits > _digits_seen(views)[_best_views(views, n)])
    hidden = np.flatnonzero(~alone)
    outside = inside.copy()
    if len(hidden):
        for round_ in range(more_views):
            enough = WELL_SEEN if round_ else np.inf
            faint = hidden[_digits_seen(views)[_best_views(views, n)[hidden]] < enough]
            views = views + view_more(oracle, planes, faint, noise, rng) if len(faint) else views
        chosen = _best_views(views, n)[hidden]
        half = views.reach[chosen, None] / 2 * planes.normals[hidden]
        inside[hidden], outside[hidden] = views.on[chosen] + half, views.on[chosen] - half
        reach[hidden] = SHORTER_STEP * views.reach[chosen]
    return RowPlaces(inside, outside, reach, alone, mirrored)


def _digits_seen(views: HyperplaneViews) -> FloatArray:
    """What `_seen_alone` gives, for gradients on both sides."""
    return SHORTER_STEP / np.sqrt(2) * views.reach * views.bend / views.sd


def _best_views(views: HyperplaneViews, n: int) -> IntArray:
    return views.best(_digits_seen(views), n)


def _seen_alone(
    oracle: Counting, planes: FramedHyperplanes, noise: DistanceNoise
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each neuron a point (n, k) where it alone is active, its reach, and its change there over the noise.

    Of several reaches the one that gives the most digits; 0 where it is not seen alone.
    """
    seen_alone = 1e3 * DOUBLE.in_line  # change over a reach, in deviations, of a neuron that is seen
    bend_noise = np.sqrt(6.0)  # of a second difference, in deviations of an answer
    alone_places = np.array([0.5, 1.0, 1.5])  # of the reach: in between there is no crease of the layers above
    alone_reaches = (256.0, 32.0, 4.0, 0.5)  # how far inside a neuron is activated, in typical inputs of one coordinate
    others_room = 2.0  # of the reach: how far the other neurons are from becoming active
    n, count = len(planes), len(alone_reaches)
    off, each = np.zeros((n, n), dtype=bool), np.arange(n)
    reach = np.repeat(alone_reaches, n).reshape(count, n)
    starts = np.stack([quiet_points(planes.normals, planes.offsets, each, off, others_room * row) for row in reach])
    moves = (reach[:, :, None] * alone_places)[..., None] * planes.normals[None, :, None]
    rows = planes.frame.points((starts[:, :, None] + moves).reshape(-1, moves.shape[-1]))
    answers = oracle.query(rows).reshape(count, n, len(alone_places), -1)
    sd = noise.at(np.linalg.norm(rows, axis=1).reshape(count, n, len(alone_places)).max(axis=2))
    bend = np.abs(answers[:, :, 0] - 2 * answers[:, :, 1] + answers[:, :, 2]).max(axis=2)
    change = np.abs(answers[:, :, 2] - answers[:, :, 0]).max(axis=2)
    rounding = DOUBLE.rounding * np.abs(answers).max(axis=(2, 3))
    # Few neurons are active there, so that these answers have less noise than most.
    shown = np.minimum(sd, DOUBLE.safety * np.maximum(bend / bend_noise, rounding))
    alone = (bend <= DOUBLE.in_line * sd) & (change > seen_alone * sd) & (shown > 0)
    digits = np.where(alone, change / np.where(shown > 0, shown, 1.0), 0.0)
    best = np.argmax(digits, axis=0)
    points = starts[best, each] + reach[best, each, None] * planes.normals
    return points, reach[best, each], digits[best, each]


@dataclass(frozen=True)
class _RowGradients:
    """How gradients are measured at the places of neurons."""

    oracle: Counting
    frame: Frame  # of the places
    places: RowPlaces
    noise: DistanceNoise
    rng: np.random.Generator

    def at(self, points: FloatArray, neurons: IntArray, within: Frame | None) -> Gradients:
        """Gradients at the points of these neurons: in all of input space, or within a frame."""
        points, question = points[neurons], Question.of(self.oracle)
        steps = ROW_STEP * np.sqrt(points.shape[1]) * self.places.reach[neurons]
        if within is None:
            found = gradients(question, self.frame.points(points), None, steps, self.noise, self.rng)
        else:
            found = gradients(question.within(within), points, None, steps, self.noise, self.rng)
        if not found.good.all():
            raise StageFailed("refine", "points with a crease on every side", number=int((~found.good).sum()), limit=0)
        return found


def measure_rows(
    oracle: Counting,
    planes: FramedHyperplanes,
    places: RowPlaces,
    which: IntArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
    within: Frame | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Unit rows of these neurons and their errors: of all of input space, or within a frame.

    Cost: a gradient for each, two for one that is not seen alone; the second one in the subspace, where that will do.
    """
    cheap_subspace = 0.5  # of the inputs: dimensions of a subspace in which gradients save something
    two_sided = ~places.alone[which]
    both, normals, basis = which[two_sided], planes.normals[which], planes.frame.basis
    look = _RowGradients(oracle, planes.frame, places, noise, rng)
    inside = look.at(places.inside, which, within)
    if not len(both):
        return _row_directions(inside.slope, inside.shown_sd, normals, None if within else basis)
    if within is None and len(which) == len(planes) and len(basis) < cheap_subspace * oracle.dim:
        return _rows_by_subspace(planes, inside, look)
    outside = look.at(places.outside, both, within)
    slope, sd = inside.slope.copy(), inside.shown_sd
    slope[two_sided] -= outside.slope
    sd[two_sided] = np.hypot(sd[two_sided], outside.shown_sd)
    return _row_directions(slope, sd, normals, None if within else basis)


def _rows_by_subspace(
    planes: FramedHyperplanes, inside: Gradients, look: _RowGradients
) -> tuple[FloatArray, FloatArray]:
    """All rows and errors, from gradients inside and those outside of neurons that are not seen alone.

    Outside the subspace has to do, but for neurons whose rows would be poor that way, the poorest third first.
    """
    poorest_part = 3  # one in so many of the neurons left is measured in full, the poorest
    places, basis = look.places, planes.frame.basis
    left = np.flatnonzero(~places.alone)
    slope, sd = inside.slope.copy(), inside.shown_sd
    outside = look.at(places.outside, left, planes.frame)
    jumps, jump_sd = slope[left] @ basis.T - outside.slope, np.hypot(sd[left], outside.shown_sd)
    normals = np.zeros_like(planes.normals)
    normals[left], blur = _row_directions(jumps, jump_sd, planes.normals[left], None)
    rows, errors = np.zeros((len(planes), basis.shape[1])), np.zeros(len(planes))
    errors[left] = blur
    known = np.flatnonzero(places.alone)
    while True:
        rows[known], errors[known] = _row_directions(slope[known], sd[known], planes.normals[known], basis)
        normals[known] = rows[known] @ basis.T
        if not len(left):
            return rows, errors
        active = (places.inside[left] @ planes.normals.T + planes.offsets > 0) | places.mirrored
        mixed = MixedGradients(left, inside.slope[left], inside.shown_sd[left], active)
        rows[left], mixed_errors = solve_mixed(mixed, rows, errors, normals, basis)
        if mixed_errors.max(initial=0) < GOOD_ENOUGH:
            errors[left] = np.hypot(errors[left], mixed_errors)
            return rows, errors
        poorest = left[np.argsort(mixed_errors)[-max(1, len(left) // poorest_part) :]]
        full = look.at(places.outside, poorest, None)
        slope[poorest] -= full.slope
        sd[poorest] = np.hypot(sd[poorest], full.shown_sd)
        known, left = np.union1d(known, poorest), np.setdiff1d(left, poorest)


def _row_directions(
    slope: FloatArray, sd: FloatArray, normals: FloatArray, basis: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """The one direction of each neuron's slopes (n, m, d), pointing as its known normal does."""
    _, sizes, right = np.linalg.svd(slope, full_matrices=False)
    rows = right[:, 0]
    seen = rows if basis is None else rows @ basis.T
    seen = seen / np.linalg.norm(seen, axis=1, keepdims=True)
    signs = np.sign((seen * normals).sum(axis=1))
    off = float(np.linalg.norm(signs[:, None] * seen - normals, axis=1).max(initial=0.0))
    if not off < NORMAL_AGREEMENT:
        raise StageFailed("refine", "a row is not what the subspace showed", number=off, limit=NORMAL_AGREEMENT)
    return signs[:, None] * rows, sd * np.sqrt(slope.shape[2]) / sizes[:, 0]


ROW_AGREEMENT = 1e-6  # with the row that was known


@dataclass(frozen=True)
class TwoSidedPlaces(Batch):
    """Points on both sides of neurons' hyperplanes, steps of gradients there, and errors of rows to be expected."""

    neurons: IntArray
    inside: FloatArray  # (n, d)
    outside: FloatArray  # (n, d)
    steps: FloatArray  # (n,)
    errors: FloatArray  # (n,)


def remeasure_rows(
    oracle: Counting,
    network: ReLUNetwork,
    errors: FloatArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
    wanted: float,
) -> ReLUNetwork:
    """The network with better rows of the first layer, where errors (n,) are larger than wanted. Rows have norm one.

    Cost: 2 (d + 2) rows for each of these.
    """
    most_poor = 0.25  # of the neurons, the worst of them: it costs two gradients each
    worth_again = 0.5  # of the error there was: what a new place has to promise
    worst = np.argsort(-errors)[: int(np.ceil(most_poor * len(errors)))]
    poor = np.sort(worst[errors[worst] > wanted])
    if not len(poor) or network.depth != 3:
        return network
    places = best_places(network, poor, noise, rng)
    places = places.chosen(np.flatnonzero(places.errors < worth_again * errors[places.neurons]))
    if not len(places.neurons):
        return network
    with oracle.stage("rows again", expected=2 * len(places.neurons) * (oracle.dim + 2)):
        points, steps = np.concatenate([places.inside, places.outside]), np.tile(places.steps, 2)
        found = gradients(Question.of(oracle), points, None, steps, noise, rng)
    return _with_rows(network, errors, places.neurons, found)


def _with_rows(network: ReLUNetwork, errors: FloatArray, neurons: IntArray, found: Gradients) -> ReLUNetwork:
    """The network with those rows that are better than before."""
    n = len(neurons)
    _, sizes, right = np.linalg.svd(found.slope[:n] - found.slope[n:], full_matrices=False)
    weights, rows = network.weights[0].copy(), right[:, 0]
    rows *= np.sign((rows * weights[neurons]).sum(axis=1))[:, None]
    new = np.hypot(found.shown_sd[:n], found.shown_sd[n:]) * np.sqrt(network.dim) / sizes[:, 0]
    better = found.good[:n] & found.good[n:] & (new < errors[neurons])
    off = float(np.linalg.norm((rows - weights[neurons])[better], axis=1).max(initial=0))
    if not off < ROW_AGREEMENT:
        raise StageFailed("rows again", "a row is not what it was", number=off, limit=ROW_AGREEMENT, partial=network)
    weights[neurons[better]] = rows[better]
    return ReLUNetwork([weights, *network.weights[1:]], network.biases)


def best_places(
    network: ReLUNetwork, neurons: IntArray, noise: DistanceNoise, rng: np.random.Generator
) -> TwoSidedPlaces:
    """For each of these neurons the best of many places. No queries."""
    inverse = np.asarray(np.linalg.pinv(network.weights[0]), dtype=np.float64)
    each = [_PlaceSearch(network, inverse, int(neuron), noise, rng).best() for neuron in neurons]
    inside, outside, steps, errors = (np.array(part) for part in zip(*each, strict=True))
    return TwoSidedPlaces(neurons, inside, outside, steps, errors)


@dataclass(frozen=True)
class _PlaceSearch:
    """The search for one neuron's place; it goes on around the best of random places."""

    network: ReLUNetwork
    inverse: FloatArray
    neuron: int
    noise: DistanceNoise
    rng: np.random.Generator

    def best(self) -> tuple[FloatArray, FloatArray, float, float]:
        """Points inside and outside, the step and the error at the best place."""
        changes = np.geomspace(0.5, 0.05, 12)  # of the values, in a search around the best
        values = self.anywhere()
        best = values[np.argmin(self.judge(values)[3])]
        for change in changes:
            values = self.around(best, change)
            best = values[np.argmin(self.judge(values)[3])]
        inside, outside, steps, errors = self.judge(best[None])
        return inside[0], outside[0], float(steps[0]), float(errors[0])

    def anywhere(self) -> FloatArray:
        """What the neurons sum up (candidates, n): this one is on, the others in random states."""
        candidates = 512  # states of the other neurons that are compared
        share_on = (0.1, 0.7)  # of the other neurons
        sum_sizes = (1.0, 100.0)  # what neurons sum up, in typical inputs of one coordinate
        uneven = (0.5, 1.5)  # and of that, each
        n, rng = len(self.inverse.T), self.rng
        on = rng.random((candidates, n)) < rng.uniform(*share_on, (candidates, 1))
        on[:, self.neuron] = True
        least, most = np.log(sum_sizes)
        sizes = np.exp(rng.uniform(least, most, (candidates, 1))) * rng.uniform(*uneven, (candidates, n))
        return np.where(on, sizes, -sizes)

    def around(self, values: FloatArray, change: float) -> FloatArray:
        """These values first, then others nearby."""
        nearby = 64
        factors = np.exp(change * self.rng.standard_normal((nearby, len(values))))
        flipped = self.rng.random(factors.shape) < 1 / len(values)
        flipped[:, self.neuron] = False
        return np.concatenate([values[None], np.where(flipped, -1, 1) * factors * values])

    def judge(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Points inside and outside, steps, and errors of the row, by what the neurons sum up inside."""
        step_share = 0.4  # of the way to the nearest crease
        network, opposite = self.network, values.copy()
        opposite[:, self.neuron] *= -1
        inside, outside = ((side - network.biases[0]) @ self.inverse.T for side in (values, opposite))
        second, second_outside = (self.second(side) for side in (values, opposite))
        same = ((second > 0) == (second_outside > 0)).all(axis=1)
        seen = np.linalg.norm((second > 0) * network.weights[1][:, self.neuron] @ network.weights[2].T, axis=1)
        steps = step_share * np.minimum(
            _room_of_steps(network, values, second), _room_of_steps(network, opposite, second_outside)
        )
        sd = self.noise.at(np.maximum(*(np.linalg.norm(side, axis=1) for side in (inside, outside))))
        with np.errstate(divide="ignore"):
            errors = np.where(same, 2 * sd * np.sqrt(network.dim) / (steps * seen), np.inf)
        return inside, outside, steps, errors

    def second(self, values: FloatArray) -> FloatArray:
        """What second-layer neurons sum up, by what first-layer ones do."""
        return np.maximum(values, 0) @ self.network.weights[1].T + self.network.biases[1]


def _room_of_steps(network: ReLUNetwork, values: FloatArray, second: FloatArray) -> FloatArray:
    """How far (candidates,) steps along coordinates may go before a neuron of either layer changes its state."""
    peak_weight = 4.0  # largest weight of a row along a coordinate, in typical ones
    w, v = network.weights[:2]
    first = np.abs(values) / np.abs(w).max(axis=1)
    through = (values > 0)[:, None, :] * v  # (candidates, second, n)
    slopes = np.sqrt(np.einsum("ckn,nl,ckl->ck", through, w @ w.T, through, optimize=True) / network.dim)
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.where(slopes > 0, np.abs(second) / (peak_weight * slopes), np.inf)
    return np.minimum(first.min(axis=1), above.min(axis=1, initial=np.inf))
