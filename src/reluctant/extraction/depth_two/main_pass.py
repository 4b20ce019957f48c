"""The main pass of depth two: base points far from creases, and one step along every coordinate from each.

Base points are climbed to, so that a step crosses no crease and each neuron is active at some point and inactive at
another. Elimination picks the points; one row a coordinate and point is the whole cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import erfcinv, gammaincinv

from reluctant.extraction.depth_two.scaffold import CROWD, Regions
from reluctant.extraction.method import Shows, StageFailed
from reluctant.fitting.least_squares import Design, design_matrix
from reluctant.geometry import DistanceNoise, FramedNetwork
from reluctant.geometry.lines import BoolArray, IntArray, climb
from reluctant.numerics import DOUBLE, HOST, MANY_NEURONS, Array, Arrays, FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.base import Fans
from reluctant.oracles.ledger import check_time

SingleArray: TypeAlias = NDArray[np.float32]

MOST_EXTRA = 4  # points added one by one while some neuron is not determined


@dataclass(frozen=True)
class BasePoints:
    """Points of the frame: coordinates (n, k), their design, and the neurons' values (n, h) before the ReLU.

    `values` and `active`, which neurons are on, are kept where large arrays are. `witnesses` are a few points besides,
    which the values learnt at the others must explain.
    """

    y: FloatArray
    design: Design
    values: Array
    witnesses: BasePoints | None = None

    @property
    def active(self) -> Array:
        """Which neurons are on (n, h)."""
        return self.values > 0

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class _Candidates:
    """Points to choose from: coordinates, values of the neurons, and how much a measurement there weighs."""

    y: FloatArray
    values: Array
    weight: FloatArray  # of the median one
    outputs: FloatArray
    arrays: Arrays

    def designs(self, which: IntArray) -> Array:
        """Weighted rows (n, m, unknowns) of these points."""
        arrays, m = self.arrays, len(self.outputs)
        rows = design_matrix(self.values[arrays.put(which)] > 0, self.outputs, arrays)
        return rows.reshape(len(which), m, -1) * arrays.put(self.weight[which])[:, None, None]

    def chosen(self, which: IntArray) -> BasePoints:
        """These points, and as witnesses those with most room of the others."""
        witnesses = 16
        others = np.argsort(-self.weight, kind="stable")
        others = others[~np.isin(others, which)][:witnesses]
        return replace(self._points(which), witnesses=self._points(others) if len(others) else None)

    def _points(self, which: IntArray) -> BasePoints:
        values = self.values[self.arrays.put(which)]
        return BasePoints(self.y[which], Design.of(values > 0, self.outputs, self.arrays), values)


def choose_base_points(
    known: FramedNetwork, regions: Regions, noise: DistanceNoise, rng: np.random.Generator, arrays: Arrays = HOST
) -> BasePoints:
    """Points whose patterns determine all neurons, with room around them."""
    pool = 4.0  # candidates for each point needed
    pool_for_many = 3.0
    fewest_candidates = 200
    most_for_pivots = 2000  # neurons: for more, looking at every pivot takes minutes
    m, h = known.network.outputs, known.neurons
    needed, many = points_needed(h, m), m == 1 and h >= MANY_NEURONS
    count = max(int((pool_for_many if many else pool) * needed), fewest_candidates)
    candidates = _candidates(known, regions, noise, climb(known, regions.scale, count, rng, arrays), arrays)
    found = _by_elimination(candidates, needed) if many else None
    if found is None and h <= most_for_pivots:
        found = _by_pivots(candidates, needed)
    if found is not None:
        return found
    reason = "neurons that no point tells apart"
    raise StageFailed("base points", reason, number=needed + MOST_EXTRA, limit=needed, partial=known)


def _candidates(
    known: FramedNetwork, regions: Regions, noise: DistanceNoise, climbed: FloatArray, arrays: Arrays
) -> _Candidates:
    """Points that were climbed to, and the middles of the line's regions, where there is room for a step."""
    too_close = 1e-11  # of the typical weight of a point: its steps would be too short to measure anything
    sure_of_its_side = 5.0  # errors of a neuron's value that it must be from zero
    # These show every neuron in both states, should the climb miss one.
    on_line = np.zeros((len(regions), climbed.shape[1]))
    on_line[:, 0] = regions.middle
    y = np.concatenate([climbed, on_line])
    (g, outputs), (z, _) = known.network.weights, known.network.biases
    values = arrays.put(y) @ arrays.put(g.T) + arrays.put(z)
    sizes = arrays.put(known.weight_sizes(known.reach(regions.scale)))
    room = arrays.get(arrays.xp.amin(arrays.xp.abs(values) / sizes, axis=1))
    weight = room / noise.at(np.linalg.norm(y, axis=1) + regions.scale)
    fit = weight > too_close * np.median(weight[: len(climbed)])
    if len(z) >= MANY_NEURONS:  # among fewer, an unsure one is a pair of neurons that only a sliver tells apart
        fit &= _surety(known, y, values, arrays) > sure_of_its_side
    usable = np.flatnonzero(fit)
    needed = points_needed(len(z), len(outputs))
    if len(usable) < needed:
        reason = "points at which every neuron's state is sure"
        raise StageFailed("base points", reason, number=len(usable), limit=needed, partial=known)
    weight = weight[usable]
    return _Candidates(y[usable], values[arrays.put(usable)], weight / np.median(weight), outputs, arrays)


def _surety(known: FramedNetwork, y: FloatArray, values: Array, arrays: Arrays) -> FloatArray:
    """How many errors of its value the least sure neuron is from zero at each point."""
    block = max(1, arrays.cells // known.neurons)
    parts = [slice(start, start + block) for start in range(0, len(y), block)]
    found = [arrays.xp.amin(arrays.xp.abs(values[part]) / known.sd_at(y[part], arrays), axis=1) for part in parts]
    return np.concatenate([arrays.get(part) for part in found])


def _by_elimination(candidates: _Candidates, needed: int) -> BasePoints | None:
    """Of the points with most room the ones whose rows elimination picks; else of all."""
    enough = 1.5  # for each point needed, of which elimination picks; more do not determine neurons better
    heaviest = np.argsort(-candidates.weight, kind="stable")
    for which in (_showing_all(candidates, heaviest[: int(enough * needed)]), heaviest):
        rows = candidates.arrays.single(candidates.designs(which)[:, 0])
        picked = which[candidates.arrays.row_pivots(rows, needed)]
        found = candidates.chosen(picked)
        if _tells_all_apart(found.design, candidates.weight[picked]):
            return found
    return None


def _showing_all(candidates: _Candidates, which: IntArray) -> IntArray:
    """These points, and those of the line too where some neuron is hardly ever on, or off: its crease is far out."""
    shown_at = 16  # of these, at which each neuron is on, and off, at least: of fewer elimination may leave out all
    on = candidates.arrays.get((candidates.values[candidates.arrays.put(which)] > 0).sum(axis=0))
    if np.minimum(on, len(which) - on).min() >= shown_at:
        return which
    return np.union1d(which, np.flatnonzero(~candidates.y[:, 1:].any(axis=1)))


def _tells_all_apart(design: Design, weight: FloatArray) -> bool:
    """True if the noise of the points makes no neuron's error much larger than it would be alone."""
    most_amplified = 1e3  # error of a neuron over that of a gradient at one point; usual is less than one
    arrays = design.arrays
    try:
        inverse = design.inverse / arrays.put(weight)
    except np.linalg.LinAlgError:
        return False
    errors = arrays.get(arrays.xp.linalg.norm(inverse, axis=1))  # in those of a point of median weight
    return bool(np.all(errors < most_amplified))  # NaN is none


def _by_pivots(candidates: _Candidates, needed: int) -> BasePoints | None:
    """Greedily the points whose rows span the most volume; a few more if these leave something open."""
    every = np.arange(len(candidates.y))
    design = candidates.arrays.get(candidates.designs(every))
    for number, precision, limit in _choices_to_try(needed):
        check_time()
        chosen = _pivots(design.astype(precision), number)
        rows = design[chosen].reshape(-1, design.shape[2])
        singular = scipy.linalg.svdvals(rows, check_finite=False)
        if len(rows) >= rows.shape[1] and singular[-1] > limit * np.median(singular):
            return candidates.chosen(chosen)  # no combination of neurons is left open
    return None


def points_needed(h: int, m: int) -> int:
    """Base points for h neurons and m outputs: as many as there are unknowns; each gives m equations."""
    spare_rows = 2  # with several outputs: what tells that a coordinate's gradients fit no weights
    return h + 1 if m == 1 else -(-(h + m + spare_rows) // m)


def _choices_to_try(needed: int) -> Iterator[tuple[int, type[np.floating[Any]], float]]:
    """How many points to choose, in which precision, and how well they must determine all neurons.

    Single precision chooses as well in a third of the time, unless some neurons are hard to tell apart.
    """
    well_determined = 1e-7  # of the median singular value: more digits than that are not to be lost in solving
    barely_determined = 1e-12  # where two neurons differ only between their creases, which are close together
    yield needed, np.float32, float(np.sqrt(np.finfo(np.float32).eps))
    for more in range(MOST_EXTRA):
        yield needed + more, np.float64, well_determined
    yield needed, np.float64, barely_determined


def _pivots(design: FloatArray | SingleArray, needed: int) -> IntArray:
    """Points whose rows span the most volume, greedily."""
    _, m, unknowns = design.shape
    if m == 1:
        columns = np.asfortranarray(design[:, 0].T)
        _, order = scipy.linalg.qr(columns, mode="r", pivoting=True, overwrite_a=True, check_finite=False)
        return np.asarray(order[:needed])
    chosen: list[int] = []
    rest = design.copy()
    for k in range(needed):
        check_time()
        free = min(m, max(unknowns - k * m, 1))  # directions still open for this point
        gram = np.einsum("nij,nkj->nik", rest, rest, optimize=True)
        singular = np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[:, ::-1], 0))  # of each block, largest first
        volumes = np.log(np.maximum(singular[:, :free], np.finfo(np.float32).tiny)).sum(axis=1)
        volumes[chosen] = -np.inf
        chosen.append(int(np.argmax(volumes)))
        taken = np.linalg.qr(rest[chosen[-1]].T)[0]
        rest = rest - (rest @ taken) @ taken.T
    return np.array(chosen)


MAIN_PASS, WITNESS_CHECK = "main pass", "witnesses"

SHORTER = 4.0


@dataclass(frozen=True)
class BaseGradients:
    """What the pass gives: base points with answers, gradients there, and how much each row of them weighs."""

    points: FloatArray  # (n, d)
    answers: FloatArray  # (n, m)
    gradients: Array  # (n·m, d), where large arrays are
    weights: FloatArray  # of the rows
    base: BasePoints


def measure_gradients(
    oracle: Counting,
    known: FramedNetwork,
    base: BasePoints,
    noise: DistanceNoise,
    rng: np.random.Generator,
    repairs: int,
) -> BaseGradients:
    """Gradients at all base points along all coordinates. Cost: (d + 1) rows a base point.

    In a crowd 80 rows more, for witnesses. repairs: how often steps that cross a crease are made shorter.
    """
    return _Pass(oracle, known, base, noise, rng, repairs).run()


class _Pass:
    """State of one pass: the gradients as they fill up."""

    def __init__(
        self,
        oracle: Counting,
        known: FramedNetwork,
        base: BasePoints,
        noise: DistanceNoise,
        rng: np.random.Generator,
        repairs: int,
    ) -> None:
        self.oracle, self.known, self.base, self.repairs = oracle, known, base, repairs
        self.points = known.frame.points(base.y)
        self.by_distance, self.noise = noise, noise.at(np.linalg.norm(self.points, axis=1))
        self.order = rng.permutation(oracle.dim)
        self.design, self.arrays = base.design, base.design.arrays
        n, m = len(base), oracle.outputs
        self.answers = np.empty((n, m))
        self.gradients = self.arrays.empty((n, m, oracle.dim))
        self.safety = _safety(known.neurons * oracle.dim * n)

    def run(self) -> BaseGradients:
        n, d = len(self.base), self.oracle.dim
        with self.oracle.stage(MAIN_PASS, expected=n * (d + 1)):
            self.answers[:] = self.oracle.query(self.points)
            steps = self._first_coordinates()
            self._repair(steps)
        rows = self.gradients.reshape(n * self.oracle.outputs, d)
        return BaseGradients(self.points, self.answers, rows, self._row_weights(steps), self.base)

    def _row_weights(self, steps: FloatArray) -> FloatArray:
        return np.repeat(steps / self.noise, self.oracle.outputs)

    def _first_coordinates(self) -> FloatArray:
        """Measure all coordinates in growing groups; each tells the next how long its steps may be."""
        groups = (4, 16, 64, 256)  # coordinates asked first, with shorter steps, to learn how large weights are
        sizes, done = (self.known.network.weights[0] ** 2).sum(axis=1), self.known.network.widths[0]
        room, start, solution = self._room(sizes, done), 0, None
        for stop in (*groups, self.oracle.dim):
            columns = self.order[start : min(stop, self.oracle.dim)]
            steps = room(self.base.values)
            self._measure(columns, steps)
            if stop >= self.oracle.dim:
                break
            # Steps of all points grow alike, so one solution will do to tell how large weights are.
            if solution is None:
                solution = self._solution(steps)
                self._ask_witnesses(columns, solution, room, steps)
            found = self.arrays.get((self._found(solution, columns) ** 2).sum(axis=1))
            sizes, done, start = sizes + found, done + len(columns), stop
            room = self._room(sizes, done)
        return steps

    def _room(self, sizes: FloatArray, seen: int) -> Callable[[Array], FloatArray]:
        """How far points with these values of the neurons may step.

        From the sums of squares of this many weights of each neuron.
        """
        unlucky = 0.1  # chance that this underestimates the weights of any one neuron
        safety = self.safety * _underestimate(seen, unlucky / self.known.neurons)
        xp, typical = self.arrays.xp, self.arrays.put(np.sqrt(sizes / seen))
        return lambda values: self.arrays.get(xp.amin(xp.abs(values) / typical, axis=1)) / safety

    def _ask_witnesses(
        self, columns: IntArray, solution: Array, room: Callable[[Array], FloatArray], steps: FloatArray
    ) -> None:
        """Raise StageFailed unless the first coordinates explain the gradients at the witnesses."""
        witnesses = self.base.witnesses
        if self.known.neurons < CROWD or self.oracle.outputs > 1 or witnesses is None:
            return
        points, long = self.known.frame.points(witnesses.y), room(witnesses.values)
        shorter = self._without_crossings(columns, solution, steps, witnesses.values, long)
        steps, long = steps / shorter, long / shorter
        made = points[:, columns] + long[:, None] - points[:, columns]
        moved = self.oracle.query_moves(Fans(points, long, columns)).reshape(len(points), len(columns))
        found = (moved - self.oracle.query(points)) / made
        mixed = witnesses.design.rows @ solution
        expected = self.arrays.get(mixed @ self.gradients[:, 0, self.arrays.put(columns)])
        expected_sd = self.arrays.get(self.arrays.xp.linalg.norm(mixed / self.arrays.put(steps / self.noise), axis=1))
        sd = np.hypot(self.by_distance.at(np.linalg.norm(points, axis=1)) / long, expected_sd)
        surprised = np.abs(found - expected).max(axis=1) > DOUBLE.in_line * sd
        if surprised.any():
            reason = "points that the known part does not explain"
            raise StageFailed(
                WITNESS_CHECK, reason, number=int(surprised.sum()), limit=0, partial=self.known, shows=Shows.WITNESSES
            )

    def _solution(self, steps: FloatArray) -> Array:
        """The matrix from gradients at all base points to weights."""
        return self.design.solution(self._row_weights(steps))

    def _found(self, solution: Array, columns: IntArray) -> Array:
        """Weights (h, columns) of the neurons along these coordinates."""
        rows = self.gradients.reshape(-1, self.oracle.dim)
        if len(columns) < self.oracle.dim:
            rows = rows[:, self.arrays.put(columns)]
        return solution[: self.known.neurons] @ rows

    def _measure(self, columns: IntArray, steps: FloatArray) -> None:
        """One step along each of these coordinates from every base point, a few points to a batch."""
        put, together = self.arrays.put, max(1, self.oracle.batch_rows // len(columns))
        along, answers_here = put(columns), put(self.answers)
        for start in range(0, len(self.base), together):
            batch = slice(start, start + together)
            points, step = self.points[batch], steps[batch]
            here = put(points[:, columns])
            made = here + put(step)[:, None] - here  # the steps that survived rounding
            if not made.all():
                raise StageFailed(MAIN_PASS, "no room for a step", number=steps.min(), limit=0)
            answers = put(self.oracle.query_moves(Fans(points, step, columns)))
            change = answers.reshape(len(points), len(columns), -1) - answers_here[batch, None]
            self.gradients[batch, :, along] = self.arrays.xp.swapaxes(change / made[:, :, None], 1, 2)

    def _without_crossings(
        self, columns: IntArray, solution: Array, steps: FloatArray, others: Array, long: FloatArray
    ) -> float:
        """How much shorter steps along these coordinates must be so that none crosses a crease, here or from others."""
        shorter = 1.0
        for _ in range(self.repairs):
            found = self._found(solution, columns)
            crosses = _crosses(found, self.base.values, steps / shorter, self.arrays)
            if not (crosses | _crosses(found, others, long / shorter, self.arrays)).any():
                break
            shorter *= SHORTER
            self._measure(columns, steps / shorter)
        return shorter

    def _repair(self, steps: FloatArray) -> None:
        """Ask coordinates again whose weights predict a crossing, with shorter and shorter steps."""
        suspects, shorter, solution = np.arange(self.oracle.dim), steps, self._solution(steps)
        for _ in range(self.repairs):
            found = self._found(solution, suspects)
            suspects = suspects[_crosses(found, self.base.values, shorter, self.arrays)]
            if not len(suspects):
                one = self.oracle.outputs == 1
                suspects = self._disagreeing(solution) if one else self._inconsistent(solution, steps)
                if not len(suspects):
                    return
            shorter = shorter / SHORTER
            self._measure(suspects, shorter)
        raise StageFailed(MAIN_PASS, "coordinates that always cross a crease", number=len(suspects), limit=0)

    def _disagreeing(self, solution: Array) -> IntArray:
        """Coordinates that explain a difference to the subspace, if there is one.

        A wrong column of the weights shows in the subspace as itself times its coordinate of the frame.
        """
        disagreement = 40.0  # deviations between weights and what the subspace showed of them
        basis = self.known.frame.basis
        along_frame = self.gradients.reshape(-1, self.oracle.dim) @ self.arrays.put(basis.T)
        found = self.arrays.get(solution[: self.known.neurons] @ along_frame)
        off = (found - self.known.network.weights[0]) / self.known.weight_sd[:, None]
        if np.abs(off).max() < disagreement:
            return np.empty(0, dtype=np.intp)
        _, sizes, directions = np.linalg.svd(off, full_matrices=False)
        rank = int(np.clip((sizes > disagreement * np.sqrt(len(off))).sum(), 1, len(basis) - 1))
        coordinates = basis.T / np.linalg.norm(basis.T, axis=1, keepdims=True)
        explained = ((coordinates @ directions[:rank].T) ** 2).sum(axis=1)
        return np.argsort(-explained)[: 2 * rank]

    def _inconsistent(self, solution: Array, steps: FloatArray) -> IntArray:
        """Coordinates whose gradients no weights explain: several outputs leave rows to spare."""
        inconsistent = 100.0  # residual of a coordinate over the median of all
        rows = self.gradients.reshape(-1, self.oracle.dim)
        residual = rows - self.design.rows @ (solution @ rows)
        weighted = self.arrays.xp.abs(residual * self.arrays.put(self._row_weights(steps))[:, None])
        size = self.arrays.get(self.arrays.xp.amax(weighted, axis=0))
        return np.flatnonzero(size > inconsistent * np.median(size))


def _crosses(found: Array, values: Array, steps: FloatArray, arrays: Arrays) -> BoolArray:
    """Coordinates along which some step would take some neuron over its crease, from points with these values."""
    xp, ratio = arrays.xp, values / arrays.put(steps)[:, None]
    low = xp.amin(xp.where(ratio > 0, ratio, np.inf), axis=0)
    high = xp.amin(xp.where(ratio <= 0, -ratio, np.inf), axis=0)
    return arrays.get(((found < -low[:, None]) | (found > high[:, None])).any(axis=0))


def _underestimate(seen: int, chance: float) -> float:
    """By which factor the rms of this many Gaussian weights is too small with this chance."""
    return float(1 / np.sqrt(gammaincinv(seen / 2, chance) * 2 / seen))


def _safety(steps: int) -> float:
    """How many typical weights a margin must hold so that Gaussian weights hardly ever cross."""
    expected_crossings = 0.01  # of steps over a crease in the whole pass, for Gaussian weights
    return float(np.sqrt(2) * erfcinv(expected_crossings / steps))
