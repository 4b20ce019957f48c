"""Last stages of depth two: output weights, biases, and neurons whose creases nearly touch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from reluctant.extraction.depth_two.main_pass import BaseGradients
from reluctant.extraction.method import StageFailed
from reluctant.fitting.least_squares import (
    Design,
    Linearisation,
    StepRules,
    design_matrix,
    least_squares,
    normal_solver,
)
from reluctant.geometry import DistanceNoise, FramedNetwork
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, MANY_NEURONS, Array, Arrays, FloatArray
from reluctant.oracles import Counting
from reluctant.verification import HeldOutRows


def assemble(
    known: FramedNetwork, measured: BaseGradients, outputs: FloatArray | None = None
) -> tuple[ReLUNetwork, FloatArray]:
    """Solve for all weights, then for all biases; also the standard error of a weight of each neuron.

    With other `outputs` (m, h) than were known when the gradients were measured, if they are given.
    """
    arrays, h = measured.base.design.arrays, known.neurons
    active, design = measured.base.active, measured.base.design
    if outputs is None:
        outputs = known.network.weights[1]
    else:
        design = Design.of(active, outputs, arrays)
    solution, points = design.solution(measured.weights), arrays.put(measured.points)
    found = arrays.get(solution @ measured.gradients)
    errors = arrays.get(arrays.xp.sqrt(((solution / arrays.put(measured.weights)) ** 2).sum(axis=1)))[:h]
    w, skip = found[:h], found[h:]
    of_neurons = (active * (points @ arrays.put(w).T)) @ arrays.put(outputs).T
    rest = measured.answers - arrays.get(of_neurons) - measured.points @ skip.T
    constants = arrays.get(solution @ arrays.put(rest.reshape(-1)))
    return ReLUNetwork([w, outputs], [constants[:h], constants[h:]], skip), errors


def refine_outputs(oracle: Counting, network: ReLUNetwork, measured: BaseGradients) -> tuple[FloatArray, HeldOutRows]:
    """Directions (m, h) of the output weights, from the change of slope across each crease.

    From the base point with the best view each neuron's crease is met head on. On the near side the slope is
    known from the main pass; on the far side it is measured, half way to the next crease. The answers on the
    creases are kept to verify the network. Cost: 2 rows a neuron, a third where no base point has a clear view.
    """
    half_way = 0.5  # to the next crease
    views = _crease_views(network, measured.points)
    near_side = np.sign(views.values)[:, None] * network.hyperplanes()[0]
    length = half_way * views.room[:, None]
    hidden = np.flatnonzero(~views.clear)
    rows = [views.feet - length * near_side, views.feet, (views.feet + length * near_side)[hidden]]
    count = len(views.feet)
    with oracle.stage("outputs", expected=2 * count + len(hidden)):
        far, on, near = np.split(oracle.query(np.concatenate(rows)), [count, 2 * count])
    gradients = oracle.arrays.get(measured.gradients).reshape(len(measured.points), oracle.outputs, oracle.dim)
    near_slope = np.einsum("hmd,hd->hm", gradients[views.base], near_side)
    near_slope[hidden] = (near - on[hidden]) / length[hidden]
    bend = near_slope - (on - far) / length  # along a neuron's outputs, whichever side is the active one
    sizes = np.linalg.norm(bend, axis=1, keepdims=True)
    if not (sizes > 0).all():
        straight = int((~(sizes > 0)).sum())
        raise StageFailed("outputs", "neurons that bend nothing", number=straight, limit=0, partial=network)
    return (bend / sizes).T, HeldOutRows(views.feet, on)


@dataclass(frozen=True)
class _CreaseViews:
    """How each neuron's crease is seen from a base point.

    feet: the point of the crease below the base point. room: distance from there to the next crease, straight
    across. clear: no other crease lies between the base point and its foot. values: at the base point.
    """

    feet: FloatArray
    room: FloatArray
    base: IntArray
    clear: BoolArray
    values: FloatArray


def _crease_views(network: ReLUNetwork, points: FloatArray) -> _CreaseViews:
    """For each neuron the base point with the clearest and widest view of its crease."""
    w = network.weights[0]
    gram, values = w @ w.T, network.preactivations(points)[0]
    lengths, each = np.sqrt(np.diag(gram)), np.arange(len(w))
    room = np.array([_room_at_feet(z, gram, lengths) for z in values])  # (n, h)
    clear = room > np.abs(values) / lengths
    base = np.lexsort([room, clear], axis=0)[-1]
    chosen = values[base, each]
    limit = np.linalg.norm(points, axis=1).max()
    feet = points[base] - (chosen / lengths**2)[:, None] * w
    return _CreaseViews(feet, np.minimum(room[base, each], limit), base, clear[base, each], chosen)


def _room_at_feet(z: FloatArray, gram: FloatArray, lengths: FloatArray) -> FloatArray:
    """Below one base point: distance from each neuron's crease to the next, straight across."""
    at_foot = z[None, :] - (z / lengths**2)[:, None] * gram
    with np.errstate(divide="ignore"):
        distance = np.abs(at_foot) / (np.abs(gram) / lengths[:, None])
    np.fill_diagonal(distance, np.inf)
    return np.asarray(distance.min(axis=1))


def refit_biases(
    oracle: Counting,
    network: ReLUNetwork,
    rng: np.random.Generator,
    share: float,
    *,
    also: FloatArray | None = None,
) -> ReLUNetwork:
    """Fit biases anew at random inputs of the scale of use, and rows besides: far creases lose digits in theirs.

    Cost: `share` rows for every m unknowns, and 10; and a row of `also` each.
    """
    h, m = network.widths[1], network.outputs
    count, domain = refit_rows(h, m, share), oracle.facts.domain
    if domain.is_space:
        rows = oracle.arrays.get(oracle.arrays.normals(rng, (count, oracle.dim)))
    else:
        rows = domain.sample(rng, count, oracle.dim)
    rows = rows if also is None else np.concatenate([rows, also])
    with oracle.stage("biases", expected=count):
        answers = oracle.query(rows)
    return _BiasFit(network, rows, answers, oracle.arrays).run()


def refit_rows(h: int, m: int, share: float) -> int:
    """Rows that a fit of the biases of h neurons and m outputs asks."""
    refit_extra = 10
    return int(share * (h + m) / m) + refit_extra


@dataclass(frozen=True)
class _Biases:
    """Biases (h,) and (m,), which neurons are on at each row, and how many the last step switched.

    solve: the solver of the state before, where no neuron was switched since.
    """

    b: FloatArray
    c: FloatArray
    active: Array
    switched: float = np.inf
    solve: Callable[[FloatArray], FloatArray] | None = None


class _BiasFit:
    """Gauss–Newton on the biases alone: what the weights make of the rows is worked out once."""

    def __init__(self, network: ReLUNetwork, rows: FloatArray, answers: FloatArray, arrays: Arrays) -> None:
        self.network, self.arrays = network, arrays
        (w, self.outputs), skip = network.weights, network.skip
        self.products = arrays.put(rows) @ arrays.put(w).T
        self.answers = answers if skip is None else answers - rows @ skip.T

    def run(self) -> ReLUNetwork:
        """The network with the biases that fit best."""
        refit_steps = 4
        (b, c), network = self.network.biases, self.network
        start = _Biases(b, c, self.products + self.arrays.put(b) > 0)
        rules = StepRules(
            refit_steps, accept=lambda *_: True, enough=lambda before, after: before < np.inf and not after
        )
        found = least_squares(start, self.linearised, rules).state
        return ReLUNetwork(network.weights, [found.b, found.c], network.skip)

    def linearised(self, at: _Biases) -> Linearisation[_Biases, FloatArray]:
        """Equations with these neurons on; what a state leaves is the number of neurons that its step switched."""
        solve, h = at.solve or self.solver(at.active), self.network.widths[1]

        def move(change: FloatArray) -> tuple[_Biases, float]:
            b, c = at.b + change[:h], at.c + change[h:]
            active = self.products + self.arrays.put(b) > 0
            switched = float((active != at.active).sum())
            return _Biases(b, c, active, switched, None if switched else solve), switched

        return Linearisation(at, at.switched, lambda _: solve(self.residual(at.b, at.c)), move)

    def residual(self, b: FloatArray, c: FloatArray) -> FloatArray:
        """What biases (h,) and (m,) leave of the answers."""
        hidden = self.arrays.xp.clip(self.products + self.arrays.put(b), 0, None)
        predicted = self.arrays.get(hidden @ self.arrays.put(self.outputs).T) + c
        return np.asarray(self.answers - predicted).reshape(-1)

    def solver(self, active: Array) -> Callable[[FloatArray], FloatArray]:
        """From a residual to the change of the biases that explains it, these neurons being on."""
        bias_rank = 1e-10  # relative; a neuron that no input activates keeps the bias it has
        arrays, design = self.arrays, design_matrix(active, self.outputs, self.arrays)
        if design.shape[1] >= MANY_NEURONS:
            solve = normal_solver(design, arrays)
            return lambda residual: arrays.get(solve(arrays.put(residual)))
        rows = arrays.get(design)
        return lambda residual: scipy.linalg.lstsq(
            rows, residual, cond=bias_rank, lapack_driver="gelsy", check_finite=False
        )[0]


CLEAR = 8.0  # deviations of a crease's place that a point keeps from it


def refine_slivers(
    oracle: Counting,
    network: ReLUNetwork,
    errors: FloatArray,
    pairs: list[tuple[int, int]],
    measured: BaseGradients,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> tuple[ReLUNetwork, FloatArray]:
    """The network with its nearly parallel pairs separated. Cost: two or three times 1.25 d rows a pair."""
    errors = errors.copy()
    for first, second in pairs:
        between = np.flatnonzero(measured.base.active[:, first] != measured.base.active[:, second])
        if not len(between):
            continue
        sliver = _Sliver(first, second, measured.points[between[0]], float(errors[first]))
        with oracle.stage("slivers"):
            network, error = _refined(oracle.query, network, sliver, noise, rng)
        errors[[first, second]] = error
    return network, errors


def check_digits(network: ReLUNetwork, errors: FloatArray, largest: float) -> None:
    """Raise StageFailed if some neuron is known with too few digits to be verified by a few points.

    largest: error of a weight that is allowed, of the typical length of all neurons' weights.
    """
    worst = float((errors / np.median(np.linalg.norm(network.weights[0], axis=1))).max())
    if not worst < largest:
        raise StageFailed("slivers", "neurons too much alike to separate", number=worst, limit=largest, partial=network)


@dataclass(frozen=True)
class _Sliver:
    """A pair of neurons, a point between their creases, and the error of a weight of the first."""

    first: int
    second: int
    point: FloatArray
    error: float

    def length(self, network: ReLUNetwork) -> float:
        """Of the first neuron's weights."""
        return float(np.linalg.norm(network.weights[0][self.first]))


def close_pairs(network: ReLUNetwork, errors: FloatArray) -> list[tuple[int, int]]:
    """Neurons with few digits that are each other's nearest in direction."""
    imprecise = 100.0  # errors of a neuron's weights, in median ones, that no neuron has by bad luck
    parallel = 0.999  # cosine between two neurons that are one except in a sliver
    few = np.flatnonzero(errors > imprecise * np.median(errors))
    if len(few) < 2:
        return []
    normals = network.hyperplanes()[0][few]
    cosine = normals @ normals.T
    np.fill_diagonal(cosine, 0)
    nearest = cosine.argmax(axis=1)
    each = np.arange(len(few))
    pairs = each[(nearest[nearest] == each) & (each < nearest) & (cosine.max(axis=1) > parallel)]
    return [(int(few[i]), int(few[nearest[i]])) for i in pairs]


def _refined(
    ask: Callable[[FloatArray], FloatArray],
    network: ReLUNetwork,
    sliver: _Sliver,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> tuple[ReLUNetwork, float]:
    """Fit the first neuron's crease at points spread wider and wider."""
    share, extra = 1.25, 10  # answers for each unknown, and more
    shorter = 8.0
    most_rounds = 8
    amplified = 8.0  # noise of a fit to few more answers than unknowns, over theirs
    unexplained = 1e-2  # of the depth of the sliver: less is the error of the other neurons
    unseen = 1e-10  # of the answers' deviation: a sliver that shallow may be anything
    error, most = sliver.error, float(np.sqrt(network.dim))
    count = int(share * (network.dim + 1)) + extra
    reach = _reach(network, sliver, error, most)
    for _ in range(most_rounds):
        rows, half = _points_between(network, sliver, reach, error, count, rng)
        if len(rows) < count:
            reach /= shorter
            continue
        answers = ask(rows)
        moved = _moved(network, sliver, *_fit(network, sliver, rows, half, answers, reach))
        left, depth = np.abs(answers - moved(rows)).max(), np.median(np.abs(half)) * sliver.length(network)
        sd = float(noise.at(np.linalg.norm(rows, axis=1)).max())
        if left > max(
            unexplained * depth, DOUBLE.in_line * sd, unseen * answers.std()
        ):  # a point fell out of the sliver
            reach /= shorter
            continue
        network, error = moved, amplified * max(left, sd) / reach
        if reach >= most:
            return network, error
        reach = _reach(network, sliver, error, most)
    raise StageFailed("slivers", "neurons too much alike to separate", number=reach, limit=most, partial=network)


def _reach(network: ReLUNetwork, sliver: _Sliver, error: float, most: float) -> float:
    """How far from its point the sliver can be followed."""
    _, half = _across(network, sliver, sliver.point[None])
    return min(most, float(np.abs(half[0])) * sliver.length(network) / (CLEAR * error))


def _across(network: ReLUNetwork, sliver: _Sliver, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distance from each row to the middle of the sliver, and half its width there, < 0 where the second is on."""
    normals, offsets = network.hyperplanes()
    pair = [sliver.first, sliver.second]
    distance = rows @ normals[pair].T + offsets[pair]
    return distance.mean(axis=1), (distance[:, 0] - distance[:, 1]) / 2


def _points_between(
    network: ReLUNetwork, sliver: _Sliver, reach: float, error: float, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Points in the middle of the sliver within reach of its point, and half its width there."""
    candidates = 4  # points drawn for each one used
    normal = network.hyperplanes()[0][sliver.first]
    steps = rng.standard_normal((candidates * count, network.dim)) / np.sqrt(network.dim)
    rows = sliver.point + reach * steps
    rows = rows - _across(network, sliver, rows)[0][:, None] * normal
    half = _across(network, sliver, rows)[1]
    clear = np.flatnonzero(np.abs(half) > CLEAR / 2 * error * reach / sliver.length(network))[:count]
    return rows[clear], half[clear]


def _fit(
    network: ReLUNetwork, sliver: _Sliver, rows: FloatArray, half: FloatArray, answers: FloatArray, reach: float
) -> tuple[FloatArray, float]:
    """Change of the first neuron's weights and bias that explains the answers.

    Where the first neuron alone is on such a change adds to the answers, where the second is it takes away.
    """
    rank = 1e-5  # across the sliver nothing is learnt
    off = (answers - network(rows)) @ network.weights[1][:, sliver.first]  # outputs are of norm one
    design = np.sign(half)[:, None] * np.column_stack([(rows - sliver.point) / reach, np.ones(len(rows))])
    change = np.linalg.lstsq(design, off, rcond=rank)[0]
    weights = change[:-1] / reach
    return weights, float(change[-1] - weights @ sliver.point)


def _moved(network: ReLUNetwork, sliver: _Sliver, weights: FloatArray, bias: float) -> ReLUNetwork:
    """Change the first neuron, and the second such that their sum stays the same."""
    (w, a), (b, c) = ([part.copy() for part in parts] for parts in (network.weights, network.biases))
    first, second = sliver.first, sliver.second
    share = a[:, first] @ a[:, second]
    w[first], b[first] = w[first] + weights, b[first] + bias
    w[second], b[second] = w[second] - share * weights, b[second] - share * bias
    return ReLUNetwork([w, a], [b, c], network.skip)
