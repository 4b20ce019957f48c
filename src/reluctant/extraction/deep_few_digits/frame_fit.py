"""The whole network in the frame of the first layer: outputs, all parameters, missing neurons; and its noise.

Noise of every answer is carried through the network found: errors of float32 differ 13-fold between inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reluctant.extraction.deep_few_digits.asked import Asked
from reluctant.extraction.deep_few_digits.first_hyperplanes import FirstLayer
from reluctant.extraction.deep_few_digits.missing_neurons import EXPLAINED, find_missing, with_missing
from reluctant.extraction.deep_few_digits.orthant import SecondRow
from reluctant.extraction.deep_few_digits.two_layers import (
    TwoLayers,
    Weighed,
    fit_two_layers,
    without_past_term,
)
from reluctant.extraction.method import StageFailed
from reluctant.geometry import Frame
from reluctant.numerics import FloatArray
from reluctant.verification.precision import rounding_sizes

SURPRISE = 15.0  # deviations, that no answer may be off by
SPREAD = 0.5  # of the sizes of random inputs, in the logarithm
WILD, ROBUST = 1e3, 8.0  # Huber's limits, in deviations: with a neuron missing, and without


@dataclass(frozen=True)
class CarriedNoise:
    """Noise of answers: `factor` times the roundings that a network carries to its outputs, or as it was measured."""

    factor: float | None = None

    def times(self, more: float) -> CarriedNoise:
        """So many times what is carried, where answers have shown more of it than short lines."""
        return self if self.factor is None else CarriedNoise(self.factor * max(more, 1.0))

    def at(self, asked: Asked, network: TwoLayers, y: FloatArray, rows: FloatArray) -> FloatArray:
        """Deviations (n, m) of answers at coordinates y, which are these rows."""
        quietest = 0.05  # of the median
        if self.factor is None:
            return np.repeat(asked.sd(rows)[:, None], asked.outputs, axis=1)
        sizes = self.factor * rounding_sizes(network.network(), y)
        return np.maximum(sizes, quietest * np.median(sizes, axis=0))


def measured_noise(asked: Asked, frame: Frame, network: TwoLayers, calibration: float) -> CarriedNoise:
    """From short lines in the frame. Cost: 256 rows where noise grows with the answers, else none."""
    lines, points, spacing = 32, 8, 1e-3
    if not asked.grows:
        return CarriedNoise()
    rng, k = asked.rng, len(frame.basis)
    centres = random_coordinates(asked, frame, lines)
    ways = rng.standard_normal((lines, k)) * np.sqrt(asked.view.dim / k)
    places = spacing * (np.arange(points) + rng.uniform(-0.3, 0.3, (lines, points)))
    y = (centres[:, None] + places[:, :, None] * ways[:, None]).reshape(-1, k)
    with asked.view.oracle.stage("noise"):
        rows, answers = asked.fresh(frame.points(y))
    y = ((rows - frame.origin) @ frame.basis.T).reshape(lines, points, k)
    t = (y - centres[:, None]) @ ways[:, :, None] / (ways**2).sum(axis=1)[:, None, None]
    f = (answers / asked.unit).reshape(lines, points, -1)
    t, f = t - t.mean(axis=1, keepdims=True), f - f.mean(axis=1, keepdims=True)
    left = f - t * (t * f).sum(axis=1, keepdims=True) / (t**2).sum(axis=1, keepdims=True)
    sd = np.sqrt((left**2).sum(axis=1) / (points - 2))
    return CarriedNoise(calibration * float(np.median(sd / rounding_sizes(network.network(), centres))))


def random_coordinates(asked: Asked, frame: Frame, n: int, spread: float = SPREAD) -> FloatArray:
    """Coordinates (n, k) as far from the origin as typical inputs are, and of sizes about that."""
    k = len(frame.basis)
    sizes = np.exp(spread * asked.rng.standard_normal((n, 1)) - spread**2 / 2)
    return np.asarray(asked.rng.standard_normal((n, k)) * np.sqrt(asked.view.dim / k) * sizes)


def across_creases(asked: Asked, network: TwoLayers, y: FloatArray, layer: int) -> FloatArray:
    """Coordinates (n, k) moved to the crease of a random neuron of a layer, and a little beside it; some are lost."""
    newton_steps, farthest = 8, 5.0
    rng, n = asked.rng, len(y)
    neurons = rng.integers(len(network.b) if layer == 0 else len(network.c), size=n)
    sizes, on = np.linalg.norm(y, axis=1), y
    for _ in range(newton_steps):
        values = network.states(on)
        z = values[layer][np.arange(n), neurons]
        normals = network.w[neurons] if layer == 0 else (network.v[neurons] * (values[0] > 0)) @ network.w
        on = on - (z / np.maximum((normals**2).sum(axis=1), 1e-12))[:, None] * normals
    near = np.linalg.norm(on, axis=1) < farthest * sizes
    beside = 10.0 ** rng.uniform(-5, -1, (n, 1)) * sizes[:, None] / np.sqrt(y.shape[1])
    return np.asarray((on + beside * rng.standard_normal(y.shape))[near])


@dataclass(frozen=True)
class FittedFrame:
    """The network in a frame, and the noise that it carries."""

    frame: Frame
    network: TwoLayers
    noise: CarriedNoise

    def answers(self, asked: Asked) -> Weighed:
        """All answers in the frame, with their noise."""
        y, f, rows = asked.in_frame(self.frame)
        return Weighed(y, f, self.noise.at(asked, self.network, y, rows))


FIT_ROUNDS = 8
FIT_CHI = 3.0  # root mean square of what is left, in deviations: above, the structure is wrong


def fit_in_frame(asked: Asked, layer: FirstLayer, rows: list[SecondRow], calibration: float) -> FittedFrame:
    """Outputs by least squares, then all parameters; neurons that answers lack are added. Cost: 1.5 rows a parameter.

    calibration: noise over the length of a piece, over that of short lines.
    """
    past_gone = 0.02
    frame, rng, m = layer.frame, asked.rng, asked.outputs
    with asked.view.oracle.stage("frame"):
        parameters = layer.w.size + len(rows) * (len(layer.b) + m)
        random = int(1.5 * parameters / m) + 200
        asked.ask(frame.points(random_coordinates(asked, frame, random)))
    fitted = FittedFrame(frame, _with_outputs(asked, layer, rows), CarriedNoise())
    chi = np.inf
    for turn in range(FIT_ROUNDS):
        answers = fitted.answers(asked)
        some = answers.chosen(_some(len(answers), random, int(3 * fitted.network.parameters / m) + 600, rng))
        network = fit_two_layers(fitted.network, some, rng, huber=WILD, steps=20, damping=1e-3, enough=3.0)
        network = fit_two_layers(network, some, rng, huber=ROBUST, steps=14, damping=1e-5)
        if network.s is not None:
            turned, left = without_past_term(network)
            if left < past_gone:
                network = fit_two_layers(replace(turned, s=None), some, rng, huber=ROBUST, steps=8, damping=1e-6)
        fitted = FittedFrame(frame, network, measured_noise(asked, frame, network, calibration))
        answers = fitted.answers(asked)
        left_over = answers.left_by(network)
        chi = float(np.sqrt(np.mean(left_over**2)))
        largest = np.abs(left_over).max(axis=1)
        if chi < 2 and not (largest > SURPRISE).any():
            surprises = _surprises(asked, fitted)
            if not surprises:
                return fitted
            answers = fitted.answers(asked)
            largest = np.abs(answers.left_by(network)).max(axis=1)
            if surprises < 4:  # a rare crease that is placed badly: fit again
                continue
        hopeless = np.median(np.abs(left_over)) > 20  # not a neuron that is missing
        if hopeless or turn + 1 == FIT_ROUNDS:
            break
        missing = find_missing(asked, frame, network, answers)
        if missing:
            explained = answers.y[largest < EXPLAINED + 1]
            fitted = replace(fitted, network=with_missing(network, missing, explained))
    if chi < FIT_CHI:
        return fitted
    raise StageFailed("frame", "answers are not explained", number=chi, limit=FIT_CHI)


def _with_outputs(asked: Asked, layer: FirstLayer, rows: list[SecondRow]) -> TwoLayers:
    """Both layers as they were found, with outputs and the term past the second layer by least squares."""
    y, f, asked_rows = asked.in_frame(layer.frame)
    sd = asked.sd(asked_rows)[:, None]
    v, c = np.array([row.v for row in rows]), np.array([row.c for row in rows])
    hidden = np.maximum(y @ layer.w.T + layer.b, 0)
    features = np.column_stack([np.maximum(hidden @ v.T + c, 0), hidden, np.ones(len(y))]) / sd
    scale = np.linalg.norm(features, axis=0)
    scale[scale == 0] = 1.0
    found = np.linalg.lstsq(features / scale, f / sd, rcond=1e-10)[0] / scale[:, None]
    a, s, e = found[: len(c)].T, found[len(c) : -1].T, found[-1]
    return TwoLayers(layer.w, layer.b, v, c, a, e, s)


def _some(n: int, newest: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """The newest answers, and some of the others."""
    if n <= most:
        return np.arange(n)
    newest = min(newest, most)
    older = rng.permutation(n - newest)[: most - newest]
    return np.sort(np.concatenate([older, np.arange(n - newest, n)]))


def _surprises(asked: Asked, fitted: FittedFrame) -> int:
    """How many fresh answers in the frame, half of them across creases, are off by too much. Cost: up to 1000 rows."""
    frame, before = fitted.frame, len(asked.in_frame(fitted.frame)[0])
    count = int(np.clip(fitted.network.parameters / asked.outputs, 400, 1000))
    with asked.view.oracle.stage("frame"):
        asked.ask(frame.points(random_coordinates(asked, frame, count // 2, 0.7)))
        for layer in (0, 1):
            y = random_coordinates(asked, frame, count // 4)
            asked.ask(frame.points(across_creases(asked, fitted.network, y, layer)))
    answers = fitted.answers(asked)
    fresh = answers.chosen(np.arange(before, len(answers)))
    return int((np.abs(fresh.left_by(fitted.network)).max(axis=1) > SURPRISE).sum())
