"""The whole network in the frame of the first layer: outputs, all parameters, missing neurons; and its noise.

Noise of every answer is carried through the network found: errors of float32 differ 13-fold between inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from reluctant.extraction.deep_few_digits.layers_fit import (
    Layer,
    Layers,
    Weighed,
    fit_layers,
    without_past_term,
)
from reluctant.extraction.deep_few_digits.missing_neurons import (
    EXPLAINED,
    FEW_LEFT,
    UNEXPLAINED,
    find_missing,
    last_from_left,
    outstanding_size,
    with_missing,
)
from reluctant.extraction.deep_few_digits.orthant import SecondRow
from reluctant.extraction.deep_few_digits.residual_moments import neuron_from_moments
from reluctant.extraction.few_digits.answer_store import Asked, scatter
from reluctant.extraction.few_digits.scaled_view import LEAST_NOISE
from reluctant.extraction.method import StageFailed
from reluctant.geometry import Frame
from reluctant.geometry.lines import whole_space
from reluctant.numerics import FloatArray
from reluctant.verification.precision import rounding_sizes

SURPRISE = 15.0  # deviations, that no answer may be off by
SPREAD = 0.5  # of the sizes of random inputs, in the logarithm
WILD, ROBUST = 1e3, 8.0  # Huber's limits, in deviations: with a neuron missing, and without
CLOSER, CLOSER_LIMITS = 3.0, 2  # the limit between both, in usual residuals; and how often it is set anew
WILD_GAIN = 0.03  # of the sum of squares: with a neuron missing, steps that gain less lead nowhere
NEARLY_RIGHT = 10.0  # deviations, median: what few answers leave beside it is a rare neuron


@dataclass(frozen=True)
class CarriedNoise:
    """Noise of answers: `factor` times the roundings that a network carries to its outputs, or as it was measured."""

    factor: float | None = None

    def times(self, more: float) -> CarriedNoise:
        """So many times the carried amount, where answers have shown more of it than short lines."""
        return self if self.factor is None else CarriedNoise(self.factor * max(more, 1.0))

    def at(self, asked: Asked, network: Layers, y: FloatArray, rows: FloatArray) -> FloatArray:
        """Deviations (n, m) of answers at coordinates y, which are these rows."""
        quietest = 0.05  # of the median
        if self.factor is None:
            return np.repeat(asked.sd(rows)[:, None], asked.outputs, axis=1)
        sizes = self.factor * rounding_sizes(network.network(), y)
        return np.maximum(sizes, quietest * np.median(sizes, axis=0))


@dataclass(frozen=True)
class ShortLines:
    """Noise (n, m) of answers around short lines at coordinates (n, k) of a frame; none if noise does not grow."""

    centres: FloatArray
    sd: FloatArray

    @classmethod
    def in_frame(cls, asked: Asked, frame: Frame, calibration: float) -> ShortLines:
        """Cost: 256 rows where noise grows with the answers, else none."""
        lines = 32 if asked.grows else 0
        rng, k = asked.rng, len(frame.basis)
        if not lines:
            return cls(np.zeros((0, k)), np.zeros((0, asked.outputs)))
        centres = random_coordinates(asked, frame, lines)
        ways = rng.standard_normal((lines, k)) * asked.view.size / np.sqrt(k)
        return cls(centres, calibration * scatter(asked, frame.points(centres), ways @ frame.basis))

    def noise(self, network: Layers) -> CarriedNoise:
        """If it is of roundings that this network carries; lines on which answers are constant show none."""
        shown = self.sd > 0
        if not shown.any():
            return CarriedNoise()
        sizes = np.maximum(rounding_sizes(network.network(), self.centres), LEAST_NOISE)
        return CarriedNoise(float(np.median((self.sd / sizes)[shown])))


def random_coordinates(asked: Asked, frame: Frame, n: int, spread: float = SPREAD) -> FloatArray:
    """Coordinates (n, k) as far from the origin as typical inputs are, and of sizes about that."""
    k = len(frame.basis)
    sizes = np.exp(spread * asked.rng.standard_normal((n, 1)) - spread**2 / 2)
    return asked.view.pulled_in(frame, asked.rng.standard_normal((n, k)) * asked.view.size / np.sqrt(k) * sizes)


def across_creases(asked: Asked, frame: Frame, network: Layers, y: FloatArray, layer: int) -> FloatArray:
    """Coordinates (n, k) moved to the crease of a random neuron of a layer, and a little beside it; some are lost."""
    newton_steps, farthest = 8, 5.0
    rng, n = asked.rng, len(y)
    neurons = rng.integers(len(network.hidden[layer][1]), size=n)
    sizes, on = np.linalg.norm(y, axis=1), y
    for _ in range(newton_steps):
        values = network.states(on)
        z, normals = values[layer][np.arange(n), neurons], network.hidden[layer][0][neurons]
        for below in reversed(range(layer)):
            normals = (normals * (values[below] > 0)) @ network.hidden[below][0]
        on = on - (z / np.maximum((normals**2).sum(axis=1), 1e-12))[:, None] * normals
    near = np.linalg.norm(on, axis=1) < farthest * sizes
    beside = 10.0 ** rng.uniform(-5, -1, (n, 1)) * sizes[:, None] / np.sqrt(y.shape[1])
    found = np.asarray((on + beside * rng.standard_normal(y.shape))[near])
    return found[asked.view.inside(frame, found)]


@dataclass(frozen=True)
class FittedFrame:
    """The network in a frame, and the noise that it carries."""

    frame: Frame
    network: Layers
    noise: CarriedNoise

    def answers(self, asked: Asked) -> Weighed:
        """All answers in the frame, with their noise."""
        y, f, rows = asked.in_frame(self.frame)
        return Weighed(y, f, self.noise.at(asked, self.network, y, rows))

    def of_inputs(self) -> FittedFrame:
        """The same with inputs themselves as coordinates."""
        w = self.network.w @ self.frame.basis
        network = replace(self.network, w=w, b=self.network.b - w @ self.frame.origin)
        return replace(self, frame=whole_space(len(self.frame.origin)), network=network)


FIT_ROUNDS = 12
MOST_PRODUCTS = 4e6  # of rows and parameters, for several outputs: few rows would hold enough answers, and miss creases
FIT_CHI = 3.0  # root mean square of the residuals, in deviations: above, the structure is wrong


def fit_in_frame(
    asked: Asked, frame: Frame, below: list[Layer], rows: list[SecondRow], calibration: float
) -> FittedFrame:
    """Outputs by least squares, then all parameters; neurons that answers lack are added. Cost: 1.5 rows a parameter.

    below: hidden layers up to the last one, whose rows these are. calibration: noise over the length of a piece, over
    that of short lines.
    """
    past_gone, worse, most_placing, most_fruitless = 0.02, 2.0, 2, 1
    if not rows:
        raise StageFailed("last layer", "no neuron with kinks enough", number=0, limit=1)
    rng, m = asked.rng, asked.outputs
    with asked.view.oracle.stage("frame"):
        parameters = sum(w.size for w, _ in below) + len(rows) * (len(below[-1][1]) + m)
        random = int(1.5 * parameters / asked.answers_a_row) + 200
        earlier = len(asked.in_frame(frame)[0])
        typical = np.arange(earlier, earlier + random)
        asked.ask(frame.points(random_coordinates(asked, frame, random)))
    start = _with_outputs(asked, frame, below, rows)
    lines = ShortLines.in_frame(asked, frame, calibration)
    fitted = FittedFrame(frame, start, lines.noise(start))
    chi, known, placing, fruitless = np.inf, fitted, 0, 0
    for turn in range(FIT_ROUNDS):
        answers = fitted.answers(asked)
        parameters = fitted.network.parameters
        most = int(3 * parameters / asked.answers_a_row) + 600
        if m > 1:
            most = max(most, int(MOST_PRODUCTS / parameters))
        some = answers.chosen(_some(np.abs(answers.left_by(fitted.network)).max(axis=1), random, most, rng))
        enough = 0.0 if placing else 3.0
        network = fit_layers(
            fitted.network, some, rng, huber=WILD, steps=20, damping=1e-3, enough=enough, gain=WILD_GAIN
        )
        for _ in range(CLOSER_LIMITS):  # the few that a rare neuron leaves may outweigh all others
            usual = float(np.median(np.abs(some.left_by(network)).max(axis=1)))
            if not NEARLY_RIGHT < usual < WILD / CLOSER:
                break
            network = fit_layers(network, some, rng, huber=CLOSER * usual, steps=10, damping=1e-4)
        if np.median(np.abs(some.left_by(network))) < NEARLY_RIGHT:
            network = fit_layers(network, some, rng, huber=ROBUST, steps=14, damping=1e-5)
        if network.s is not None:
            turned, left = without_past_term(network)
            if left < past_gone:
                network = fit_layers(replace(turned, s=None), some, rng, huber=ROBUST, steps=8, damping=1e-6)
        fitted = replace(fitted, network=network)
        chi = _chi(asked, fitted)
        if not chi < FIT_CHI:  # a network that was far off before carries other roundings
            fitted = replace(fitted, noise=lines.noise(network))
            chi = _chi(asked, fitted)
        if chi < FIT_CHI:
            fitted = replace(fitted, noise=fitted.noise.times(_inner_size(asked, fitted)))
        if turn and chi > worse * (before := _chi(asked, known)):  # the neurons that were added led astray
            fitted, chi = known, before
        known, answers = fitted, fitted.answers(asked)
        left_over = answers.left_by(fitted.network)
        largest = np.abs(left_over).max(axis=1)
        if chi < 2 and not (largest > SURPRISE).any():
            if not _surprises(asked, fitted):
                return _without_idle(asked, fitted, len(rows))
            continue  # a rare crease that is placed badly: these answers place it
        if turn + 1 == FIT_ROUNDS or fruitless > most_fruitless:
            break
        few = (largest > UNEXPLAINED).mean() < FEW_LEFT and np.median(largest) < EXPLAINED and largest.max() < WILD
        if (chi < FIT_CHI or few) and placing < most_placing:  # as above: a neuron that is missing leaves far more
            placing += 1
            continue
        placing = 0
        answers = _with_more_left(asked, fitted, answers, largest)
        largest = np.abs(answers.left_by(fitted.network)).max(axis=1)
        more = last_from_left(fitted.network, answers, rng)
        if more is None and np.median(largest) > EXPLAINED:
            more = neuron_from_moments(fitted.network, answers.chosen(typical))
        if more is not None:
            fitted = replace(fitted, network=more)
            continue
        missing = find_missing(asked, frame, fitted.network, answers)
        fruitless = 0 if missing else fruitless + 1
        if missing:
            explained = answers.y[largest < EXPLAINED + 1]
            fitted = replace(fitted, network=with_missing(fitted.network, missing, explained))
    if chi < FIT_CHI:
        return _without_idle(asked, fitted, len(rows))
    raise StageFailed("frame", "answers are not explained", number=chi, limit=FIT_CHI)


def _with_more_left(asked: Asked, fitted: FittedFrame, answers: Weighed, left: FloatArray) -> Weighed:
    """More answers around those of a rare neuron, if the others are explained. Cost: up to 4 h rows."""
    enough, beside = 4 * len(fitted.network.b), 0.1  # answers; and how far from others, in their sizes
    bad = np.flatnonzero(left > outstanding_size(left))
    rare = (left > UNEXPLAINED).mean() < FEW_LEFT and np.median(left) < EXPLAINED
    if not len(bad) or len(bad) >= enough or not rare:
        return answers
    y = answers.y[asked.rng.choice(bad, enough)]
    sizes = np.linalg.norm(y, axis=1, keepdims=True) / np.sqrt(y.shape[1])
    y = asked.view.pulled_in(fitted.frame, y + beside * sizes * asked.rng.standard_normal(y.shape))
    with asked.view.oracle.stage("completion"):
        asked.ask(fitted.frame.points(y))
    return fitted.answers(asked)


def settled_fit(asked: Asked, fitted: FittedFrame) -> FittedFrame:
    """Fitted to all answers in the frame: whatever is wrong there would be in all directions."""
    answers = fitted.answers(asked)
    network = fit_layers(fitted.network, answers, asked.rng, huber=ROBUST, steps=10, damping=1e-7, gain=1e-4)
    return replace(fitted, network=network)


def _with_outputs(asked: Asked, frame: Frame, below: list[Layer], rows: list[SecondRow]) -> Layers:
    """Hidden layers as they were found, with outputs and the term past the last one by least squares."""
    y, f, asked_rows = asked.in_frame(frame)
    sd = asked.sd(asked_rows)[:, None]
    v, c = np.array([row.v for row in rows]), np.array([row.c for row in rows])
    hidden = y
    for weights, biases in below:
        hidden = np.maximum(hidden @ weights.T + biases, 0)
    features = np.column_stack([np.maximum(hidden @ v.T + c, 0), hidden, np.ones(len(y))]) / sd
    scale = np.linalg.norm(features, axis=0)
    scale[scale == 0] = 1.0
    found = np.linalg.lstsq(features / scale, f / sd, rcond=1e-10)[0] / scale[:, None]
    a, s, e = found[: len(c)].T, found[len(c) : -1].T, found[-1]
    return Layers.of([*below, (v, c)], a, e, s)


def _without_idle(asked: Asked, fitted: FittedFrame, measured: int) -> FittedFrame:
    """Without neurons of the last layer that the others can do without; the first so many were measured, and stay."""
    replaced, worse = 30.0, 1.1  # deviations that are left without one before the others are fitted, and chi after it
    kept = fitted
    for k in range(len(fitted.network.c) - 1, measured - 1, -1):
        network, answers = kept.network, kept.answers(asked)
        some = answers.chosen(asked.rng.permutation(len(answers))[: 2 * network.parameters + 1000])
        values = np.maximum(network.states(some.y)[-1], 0) / some.sd[:, :1]
        others = np.column_stack([np.delete(values, k, axis=1), 1 / some.sd[:, 0]])
        instead = np.linalg.lstsq(others, values[:, k], rcond=1e-9)[0]
        left = np.abs(network.a[:, k]).max() * np.sqrt(np.mean((others @ instead - values[:, k]) ** 2))
        if not left < replaced:
            continue
        a = np.delete(network.a, k, axis=1) + np.outer(network.a[:, k], instead[:-1])
        e = network.e + network.a[:, k] * instead[-1]
        fewer = replace(network, v=np.delete(network.v, k, axis=0), c=np.delete(network.c, k), a=a, e=e)
        fewer = fit_layers(fewer, some, asked.rng, huber=ROBUST, steps=10, damping=1e-4)
        without = replace(kept, network=fewer)
        if _chi(asked, without) < worse * max(_chi(asked, kept), 1.0):
            kept = without
    return kept


def _inner_size(asked: Asked, fitted: FittedFrame) -> float:
    """Root mean square of what explained answers leave: short lines measure too little of the noise."""
    left = fitted.answers(asked).left_by(fitted.network)
    return float(np.sqrt(np.mean(left[np.abs(left).max(axis=1) < UNEXPLAINED] ** 2)))


def _chi(asked: Asked, fitted: FittedFrame) -> float:
    """Root mean square of what all answers in the frame leave."""
    return float(np.sqrt(np.mean(fitted.answers(asked).left_by(fitted.network) ** 2)))


def _some(left: FloatArray, newest: int, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The newest answers, those that are not explained, and some of the others; left: (n,) the residual of each."""
    n, unexplained_share = len(left), 0.03  # more would lead astray where a neuron is missing
    if n <= most:
        return np.arange(n)
    first = n - min(newest, most)
    older = rng.permutation(first)
    bad = older[left[older] > UNEXPLAINED]
    if len(bad) > unexplained_share * n:
        bad = bad[: int(unexplained_share * most)]
    others = np.setdiff1d(older, bad, assume_unique=True)
    others = rng.permutation(others)[: max(most - (n - first) - len(bad), 0)]
    return np.sort(np.concatenate([bad, others, np.arange(first, n)]))


def _surprises(asked: Asked, fitted: FittedFrame) -> int:
    """How many fresh answers in the frame, half of them across creases, are off by too much. Cost: up to 1000 rows."""
    frame, before = fitted.frame, len(asked.in_frame(fitted.frame)[0])
    count = int(np.clip(fitted.network.parameters / asked.answers_a_row, 400, 1000))
    with asked.view.oracle.stage("frame"):
        asked.ask(frame.points(random_coordinates(asked, frame, count // 2, 0.7)))
        for layer in range(len(fitted.network.hidden)):
            y = random_coordinates(asked, frame, count // 4)
            asked.ask(frame.points(across_creases(asked, frame, fitted.network, y, layer)))
    answers = fitted.answers(asked)
    fresh = answers.chosen(np.arange(before, len(answers)))
    return int((np.abs(fresh.left_by(fitted.network)).max(axis=1) > SURPRISE).sum())
