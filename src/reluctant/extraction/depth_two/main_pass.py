"""Fourth stage of depth two, nearly all of the cost: one step along every coordinate from every base point.

The steps are as long as the margins allow. A step that crossed a crease is found without further questions: the
weights it gives predict the crossing, or disagree with what the subspace already showed. Only the coordinates
concerned are asked again, with shorter steps. In a crowd a neuron that is unknown, or taken for off where it is on,
would spoil the whole pass: what the first coordinates give must explain a few more points, the witnesses, before
the others are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcinv, gammaincinv

from reluctant.arrays import Array, Arrays
from reluctant.extraction.depth_two.base_points import BasePoints
from reluctant.extraction.depth_two.line import CROWD
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise, FramedNetwork
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.moves import Fans

__all__ = ["MAIN_PASS", "WITNESS_CHECK", "BaseGradients", "measure_gradients"]

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
        unlucky = 0.1  # chance that the size of any one neuron's weights is taken for too small by that
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
            reason = "points that what is known does not explain"
            raise StageFailed(WITNESS_CHECK, reason, number=int(surprised.sum()), limit=0, partial=self.known)

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
