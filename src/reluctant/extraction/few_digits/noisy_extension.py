"""Fourth stage of few digits: weights along every other direction, each by a small least-squares fit.

In a new direction a neuron has one weight, and each output one: h + m unknowns. Short steps start where no crease
is near, in places whose activation patterns tell all neurons apart, and find these weights without crossing a
crease; eight times as long ones back, then steps as long as an input from anywhere, find their digits. Many
directions are solved together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.linalg

from reluctant.extraction.few_digits.scaled_view import View
from reluctant.extraction.method import StageFailed
from reluctant.geometry import Frame, FramedNetwork
from reluctant.geometry.lines import Batch, IntArray, climb, piece_ends
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray


@dataclass(frozen=True)
class StepBases:
    """Coordinates (n, k) of points for short steps, with room around them, and (n', k) of points for long ones."""

    roomy: FloatArray
    anywhere: FloatArray


def choose_bases(known: FramedNetwork, view: View, rng: np.random.Generator, long_steps: bool) -> StepBases:
    """Points whose patterns determine every neuron, those with the most room first."""
    pool, fewest_candidates = 4, 300
    (g, _), (z, c) = known.network.weights, known.network.biases
    h, m, k = len(z), len(c), g.shape[1]
    count, long = starting_points(h, m)
    long = long if long_steps else 0
    y = np.concatenate([climb(known, view.size, max(pool * count, fewest_candidates), rng), _line_middles(known, view)])
    y = view.pulled_in(known.frame, y)
    values = known.network.preactivations(y)[0]
    room = (np.abs(values) / np.linalg.norm(g, axis=1)).min(axis=1)
    weight = room / view.noise.at(np.linalg.norm(y, axis=1))
    patterns = np.column_stack([values > 0, np.ones(len(y))]) * (weight / np.median(weight))[:, None]
    order = scipy.linalg.qr(patterns.T, mode="r", pivoting=True, check_finite=False)[1][: min(count, h + 1)]
    rest = np.setdiff1d(np.argsort(-weight), order, assume_unique=True)
    by_room = rest[np.argsort(-weight[rest])]
    chosen = np.concatenate([order, by_room])[:count]
    anywhere = rng.standard_normal((long, k)) * view.size / np.sqrt(k)
    return StepBases(y[chosen], view.pulled_in(known.frame, anywhere))


def starting_points(h: int, m: int) -> tuple[int, int]:
    """How many points short steps start from, and how many long ones."""
    short_share, short_spare = 1.3, 6  # points for each unknown with one output, as many with several
    long_share, long_spare = 1.2, 6  # random points for each unknown; several outputs tell several at once
    counted_outputs = 4
    short = int(np.ceil(short_share * (h + 1))) + short_spare
    return short, int(np.ceil(long_share * (h + m) / min(m, counted_outputs))) + long_spare


def _line_middles(known: FramedNetwork, view: View) -> FloatArray:
    """Middles of the pieces of the first direction: they show every neuron in both states."""
    ends = piece_ends(np.sort(known.positions), view.size)
    middles = np.zeros((len(ends) - 1, known.network.dim))
    middles[:, 0] = (ends[1:] + ends[:-1]) / 2
    return middles


@dataclass(frozen=True)
class NoisyExtension(Batch):
    """Answers off the subspace, n for each of D directions, and the weights found.

    y: coordinates (D, n, k) in the subspace.
    s: offsets (D, n).
    f: answers (D, n, m).
    weight: one over the noise (D, n).
    weights: of the neurons (D, h).
    skip: of the affine term (D, m).
    directions: (D, d).
    chi: misfit (D,) of each direction.
    """

    directions: FloatArray
    y: FloatArray
    s: FloatArray
    f: FloatArray
    weight: FloatArray
    weights: FloatArray
    skip: FloatArray
    chi: FloatArray

    @property
    def answered(self) -> bool:
        """Whether answers are kept."""
        return self.s.shape[1] > 0

    def without_answers(self) -> NoisyExtension:
        """The weights alone."""
        none = {name: getattr(self, name)[:, :0] for name in ("y", "s", "f", "weight")}
        return replace(self, **none)

    def lifted(self, core: ReLUNetwork, frame: Frame) -> ReLUNetwork:
        """The network with this core in the frame and these weights off it, as a function of the input itself."""
        (g, a), (z, c) = core.weights, core.biases
        w = g @ frame.basis + self.weights.T @ self.directions
        z = z - w @ frame.origin
        if core.skip is None:
            return ReLUNetwork([w, a], [z, c])
        skip = core.skip @ frame.basis + self.skip.T @ self.directions
        return ReLUNetwork([w, a], [z, c - skip @ frame.origin], skip)

    def replaced(self, which: IntArray, better: NoisyExtension) -> NoisyExtension:
        """The same with these directions as found in another try."""
        parts = {name: getattr(self, name).copy() for name in self.__dataclass_fields__}
        for name, part in parts.items():
            part[which] = getattr(better, name)
        return NoisyExtension(**parts)


def extend(view: View, known: FramedNetwork, rng: np.random.Generator, *, long_steps: bool = True) -> NoisyExtension:
    """Measure all directions orthogonal to the frame. Cost: about four rows a neuron and direction, one output.

    long_steps: whether steps as long as an input are asked. Many random inputs find the same digits with fewer rows.
    """
    # A short step is the room over this: careful while sizes of weights are little known.
    careful_room, usual_room = 15.0, 5.5
    directions = known.frame.new_directions(view.dim - len(known.frame.basis), rng)
    bases = choose_bases(known, view, rng, long_steps)
    squares, seen = (known.network.weights[0] ** 2).sum(axis=1), len(known.frame.basis)
    found: NoisyExtension | None = None
    rows = len(directions) * (2 * len(bases.roomy) + len(bases.anywhere))
    with view.oracle.stage("extension", expected=rows):
        for start, stop in _direction_blocks(len(directions)):
            short = _room_of_bases(known, bases, np.sqrt(squares / seen)) / (careful_room if start == 0 else usual_room)
            part = _measured_block(view, known, bases, directions[start:stop], short, rng)
            squares, seen = squares + (part.weights**2).sum(axis=0), seen + len(part)
            found = part if found is None else found + part
    return _no_directions(view, known) if found is None else found


def _direction_blocks(count: int) -> list[tuple[int, int]]:
    first_block, block = 12, 24  # directions asked and solved together
    edges = [0, *range(min(first_block, count), count, block), count]
    return [(low, high) for low, high in pairwise(edges) if high > low]


def _room_of_bases(known: FramedNetwork, bases: StepBases, sizes: FloatArray) -> FloatArray:
    """How far from every crease each roomy point is, for weights of these sizes."""
    return np.asarray((np.abs(known.network.preactivations(bases.roomy)[0]) / sizes).min(axis=1))


def _measured_block(
    view: View,
    known: FramedNetwork,
    bases: StepBases,
    directions: FloatArray,
    short: FloatArray,
    rng: np.random.Generator,
) -> NoisyExtension:
    """Measure these directions with short steps, and shorter ones where answers are not explained."""
    shorter_step, block_attempts = 0.25, 3
    largest_direction_chi = 3.0
    found = _measured_directions(view, known, bases, directions, short, rng)
    for _ in range(block_attempts - 1):
        todo = np.flatnonzero(~(found.chi < largest_direction_chi))
        if not len(todo):
            return found
        short = shorter_step * short
        again = _measured_directions(view, known, bases, directions[todo], short, rng)
        better = ~(again.chi >= found.chi[todo])
        found = found.replaced(todo[better], again.chosen(better))
    worst = float(np.max(np.nan_to_num(found.chi, nan=np.inf)))
    if not worst < largest_direction_chi:
        reason = "answers off the subspace are not explained"
        raise StageFailed("extension", reason, number=worst, limit=largest_direction_chi, partial=known)
    return found


def _measured_directions(
    view: View,
    known: FramedNetwork,
    bases: StepBases,
    directions: FloatArray,
    short: FloatArray,
    rng: np.random.Generator,
) -> NoisyExtension:
    """Ask all steps in these directions and solve for the weights."""
    back_step = -8.0  # the second step, in short ones
    long_step = 0.8  # of the size of an input
    frame, count = known.frame, len(directions)
    y = np.concatenate([bases.roomy, bases.roomy, bases.anywhere])
    long = long_step * view.size * rng.choice([-1.0, 1.0], len(bases.anywhere))
    starts = frame.points(y)
    steps = view.steps_inside(starts, directions, np.concatenate([short, back_step * short, long]))
    rows = starts[None] + steps[:, :, None] * directions[:, None, :]
    asked, answers = view.ask(rows.reshape(-1, view.dim))
    away = asked.reshape(count, len(y), -1) - frame.origin
    s = np.einsum("dnx,dx->dn", away, directions)
    y_asked = away @ frame.basis.T
    weight = 1 / view.noise.at(np.sqrt((y_asked**2).sum(axis=2) + s**2))
    problem = _DirectionProblem(known.network, y_asked, s, answers.reshape(count, len(y), -1), weight)
    weights, skip, chi = problem.solve(len(short))
    return NoisyExtension(directions, y_asked, s, problem.f, weight, weights, skip, chi)


class _DirectionProblem:
    """Weights in several directions at once, given the network in the subspace."""

    def __init__(self, network: ReLUNetwork, y: FloatArray, s: FloatArray, f: FloatArray, weight: FloatArray) -> None:
        self.a, skip = network.weights[1], network.skip
        assert skip is not None
        self.s, self.f, self.weight = s, f, weight
        self.values = y @ network.weights[0].T + network.biases[0]
        self.left = f - y @ skip.T - network.biases[1]
        self.gram = self.a.T @ self.a

    def solve(self, short: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights (D, h), skip (D, m) and misfit (D,); the first `short` answers are short steps, then middle ones."""
        short_steps, middle_steps, all_steps = 1, 2, 9  # of Gauss–Newton, with short, middle and all answers
        enough_squares = 0.999  # of the sum of squares: a step that leaves more is the last
        count, h, m = len(self.s), self.a.shape[1], len(self.a)
        weights, skip = np.zeros((count, h)), np.zeros((count, m))
        for step in range(short_steps + middle_steps):
            used = slice(0, short if step < short_steps else 2 * short)
            weights, skip = self._step(weights, skip, used)[:2]
        everything = slice(None)
        best, least = (weights, skip), np.full(count, np.inf)
        for _ in range(all_steps):
            new_weights, new_skip, square = self._step(weights, skip, everything)
            better = square < least
            done = ~(square < enough_squares * least)
            kept = better[:, None]
            best = np.where(kept, weights, best[0]), np.where(kept, skip, best[1])
            least = np.where(better, square, least)
            weights, skip = new_weights, new_skip
            if done.all():
                break
        return best[0], best[1], np.sqrt(least / self.f[0].size)

    def _step(self, weights: FloatArray, skip: FloatArray, used: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """One step of Gauss–Newton, and the sum of squares (D,) before it."""
        s, weight = self.s[:, used], self.weight[:, used]
        values = self.values[:, used] + s[:, :, None] * weights[:, None, :]
        left = self.left[:, used] - np.maximum(values, 0) @ self.a.T - s[:, :, None] * skip[:, None, :]
        left *= weight[:, :, None]
        scaled = s * weight
        change = _solve_directions(self.a, self.gram, (values > 0) * scaled[:, :, None], scaled, left)
        h = self.a.shape[1]
        return weights + change[:, :h], skip + change[:, h:], (left**2).sum(axis=(1, 2))


def _solve_directions(
    a: FloatArray, gram: FloatArray, neurons: FloatArray, affine: FloatArray, left: FloatArray
) -> FloatArray:
    """Least-squares steps (D, h + m) for columns neurons (D, n, h) times outputs, and affine (D, n)."""
    ridge = 1e-10  # of columns of norm one
    m, h = a.shape
    across = np.swapaxes(neurons, 1, 2)
    normal = np.zeros((len(neurons), h + m, h + m))
    normal[:, :h, :h] = (across @ neurons) * gram
    normal[:, :h, h:] = (across @ affine[:, :, None]) * a.T
    normal[:, h:, :h] = np.swapaxes(normal[:, :h, h:], 1, 2)
    normal[:, h + np.arange(m), h + np.arange(m)] = (affine**2).sum(axis=1)[:, None]
    wanted = np.concatenate([((across @ left) * a.T).sum(axis=2), (affine[:, None, :] @ left)[:, 0]], axis=1)
    scale = 1 / np.sqrt(np.maximum(np.diagonal(normal, axis1=1, axis2=2), DOUBLE.tiny))
    normal *= scale[:, :, None] * scale[:, None, :]
    normal[:, np.arange(h + m), np.arange(h + m)] = 1 + ridge
    return np.asarray(scale * np.linalg.solve(normal, (scale * wanted)[:, :, None])[:, :, 0])


def _no_directions(view: View, known: FramedNetwork) -> NoisyExtension:
    h, m, k = known.neurons, view.outputs, len(known.frame.basis)
    shapes = ((0, view.dim), (0, 1, k), (0, 1), (0, 1, m), (0, 1), (0, h), (0, m), (0,))
    return NoisyExtension(*(np.empty(shape) for shape in shapes))
