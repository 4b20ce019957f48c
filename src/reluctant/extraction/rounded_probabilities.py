"""`RoundedProbabilities`: one hidden layer behind a softmax or sigmoid, from probabilities of a few decimals.

Log-ratios of rounded probabilities change in steps, so no line shows a crease. The probabilities themselves have a
known noise, the rounding; in float32 too it is the same everywhere, and that of log-ratios is not. All weights are
fitted to them at random inputs by damped least squares, from a layer that is wider than needed: such a fit seldom ends
in a wrong place. Neurons that explain less than noise are then left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from reluctant.extraction.method import ComparedCandidate, Keep, Method, StageFailed, check_settings
from reluctant.extraction.orientation import orient
from reluctant.fitting.least_squares import Damping, Linearisation, StepRules, least_squares
from reluctant.geometry import DistanceNoise
from reluctant.geometry.lines import around_lines
from reluctant.interface.noise import FITTED_DECIMALS, UNIFORM_SD, RawDigits, ask
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.oracles.links import raw_answers
from reluctant.verification.agreement import CONFIDENCE, GroupError, Verification
from reluctant.verification.points import crease_points, points_beside


@dataclass(frozen=True)
class RoundedProbabilities(Method):
    """Extraction of softmax(A max(W x + b, 0) + c) from rounded probabilities, to what their decimals allow.

    Arguments:
        widths: widths to fit, one after the other, until a fit succeeds.
        starts: random starts of each width.
        steps: most steps of a fit.
        patience: steps in a row that gain little, after which a fit ends.
        farthest: largest scale of inputs in a fit.
        answers_each: answers asked for each parameter of the widest fit so far.
        fewest_rows: least rows of the first fit.
        fit_error: largest root mean square of a fit, in deviations of the rounding.
        most_parameters: no wider layer is tried.
        least_widths: the method needs so many widths that are small enough.
        held_out: fresh inputs of each scale that the network is verified at.
        most_units: largest error of a probability there, in units of its last decimal.
    """

    few_digits: ClassVar[bool] = True
    reads_rounded: ClassVar[bool] = True

    widths: tuple[int, ...] = (6, 12, 24, 36)
    starts: int = 3
    steps: int = 120
    patience: int = 1
    farthest: float = 2.0
    answers_each: float = 4.0
    fewest_rows: int = 800
    fit_error: float = 1.1
    most_parameters: int = 900
    least_widths: int = 2
    held_out: int = 128
    most_units: float = 10.0

    def __post_init__(self) -> None:
        check_settings(self)

    def run(self, oracle: Counting, noise: DistanceNoise, rng: np.random.Generator, keep: Keep) -> ComparedCandidate:
        """One attempt; raises StageFailed where no fit explains the answers."""
        widths = [width for width in self.widths if _count(width, oracle) <= self.most_parameters]
        if len(widths) < min(self.least_widths, len(self.widths)):
            number = _count(self.widths[0], oracle)
            raise StageFailed("fit", "too many parameters for a fit", number=number, limit=self.most_parameters)
        unit = _last_digit(oracle, rng)
        place = _Place(oracle, rng, _scale(oracle, rng, unit, self.farthest))
        data, best = _Answers(np.empty((0, oracle.dim)), np.empty((0, 0)), UNIFORM_SD * unit), np.inf
        for width in widths:
            wanted = int(self.answers_each * _count(width, oracle) / oracle.outputs)
            data = place.more(data, max(wanted, self.fewest_rows))
            for _ in range(self.starts):
                found = self._fitted(_Layer.drawn(width, data.rows, oracle.outputs, rng), data)
                best = min(best, found.chi)
                if found.chi < self.fit_error:
                    return self._verified(self._smallest(found, data), data.sd, place, keep)
        raise StageFailed("fit", "no layer of these widths explains the answers", number=best, limit=self.fit_error)

    def _fitted(self, start: _Layer, data: _Answers) -> _Fit:
        slow = 0.998  # of the sum of squares: a step that leaves more gains little
        good, in_a_row = data.size * 1.01, 0

        def enough(before: float, after: float) -> bool:
            nonlocal in_a_row
            in_a_row = in_a_row + 1 if after > slow * before else 0
            return after < good or in_a_row >= self.patience

        damping = Damping(first=1e-2, least=1e-8, refused=1e-8, singular=1e-6, tries=8, factor=5.0)
        rules = StepRules(self.steps, damping, enough=enough)
        return least_squares(_Fit.of(start, data), lambda at: at.linearised(data), rules).state

    def _smallest(self, found: _Fit, data: _Answers) -> _Fit:
        """Without neurons that explain no more than noise, and the right way round where no skip is needed then."""
        while len(found.layer.biases) > 1:
            weakest = found.losses(data).argsort()[:3]
            tries = (self._fitted(found.layer.without(int(k)), data) for k in weakest)
            allowed = found.size + self._worth(found.layer, data)
            smaller = next((each for each in tries if each.size <= allowed), None)
            if smaller is None:
                break
            found = smaller
        network = orient(found.layer.network(), gone=0.05)  # few digits: the fit that follows decides
        if network.skip is not None:
            return found
        turned = self._fitted(_Layer.of(network), replace(data, plain=True))
        return turned if turned.size <= found.size + self._worth(found.layer, data) else found

    def _worth(self, layer: _Layer, data: _Answers) -> float:
        """What the fit of one neuron more gains from noise alone, with some to spare."""
        spare, (m, d) = 3.0, layer.skip.shape
        return spare * (d + m + 1) * data.sd**2

    def _verified(self, found: _Fit, sd: float, place: _Place, keep: Keep) -> ComparedCandidate:
        network = found.layer.network(plain=found.plain)
        keep(network)
        verification = place.compared(network, sd, self)
        return ComparedCandidate(network, verification=verification)


def _count(width: int, oracle: Counting) -> int:
    d, m = oracle.dim, oracle.outputs
    return width * (d + 1 + m) + m * (d + 1)


def _last_digit(oracle: Counting, rng: np.random.Generator) -> float:
    """The unit of the last decimal of the probabilities, or one as large as noise in float32. Cost: 12 to 108 rows."""
    rows = 12
    with oracle.stage("look"), raw_answers(oracle) as raw:
        ask(oracle, oracle.facts.domain.sample(rng, rows, oracle.dim))
        digits = RawDigits.last_of(oracle, raw)
    if digits is None or not digits.may_be_fitted(oracle.outputs):
        decimals = 0 if digits is None else digits.decimals or 0
        raise StageFailed("look", "no rounded probabilities of one softmax", number=decimals, limit=FITTED_DECIMALS)
    return _noise_in_single(oracle, rng) / UNIFORM_SD if digits.decimals is None else 10.0**-digits.decimals


def _noise_in_single(oracle: Counting, rng: np.random.Generator) -> float:
    """Noise of probabilities in float32, from what short lines of log-ratios leave. Cost: 96 rows."""
    lines, points, spacing = 12, 8, 1e-3  # so far apart roundings are independent, and few creases lie between
    place_to_place = 2.0  # roundings inside the network differ so much from input to input
    centres, t = oracle.facts.domain.interior(rng, lines, oracle.dim), spacing * np.arange(points)
    moves = rng.standard_normal((lines, 1, oracle.dim)) * t[:, None]
    with oracle.stage("noise", expected=lines * points):
        values = oracle.answer((centres[:, None] + moves).reshape(-1, oracle.dim)).reshape(lines, points, -1)
    readable = np.isfinite(values).all(axis=(1, 2))
    if not readable.any():
        raise StageFailed("noise", "answers are certain at most inputs", number=0.0, limit=1.0)
    left = around_lines(np.broadcast_to(t, (int(readable.sum()), points)), values[readable])
    p = _values(values[readable].mean(axis=1))
    sd = np.sqrt((left**2).sum(axis=1) / (points - 2)) * p * (1 - p)
    return float(place_to_place * np.median(sd))


def _probabilities(oracle: Counting, rows: FloatArray) -> FloatArray:
    """As they are answered (n, m), the first of several left out."""
    with raw_answers(oracle) as raw:
        ask(oracle, rows)
    p = np.concatenate(raw)
    return p if p.shape[1] == oracle.outputs else p[:, 1:]


def _scale(oracle: Counting, rng: np.random.Generator, unit: float, farthest: float) -> float:
    """The largest scale, up to the farthest, at which most answers are not certain."""
    rows, certain = 64, max(1e-2, 10 * unit)  # nearer to 0 or 1 a fit sees no slope
    scales = [farthest * 0.5**k for k in range(4)]
    if not oracle.facts.domain.is_space:
        return 1.0
    drawn = oracle.facts.domain.sample(rng, rows, oracle.dim)
    with oracle.stage("reach", expected=rows * len(scales)):
        p = _probabilities(oracle, np.concatenate([scale * drawn for scale in scales])).reshape(len(scales), rows, -1)
    open_ = ((p > certain) & (p < 1 - certain)).any(axis=2).mean(axis=1)
    if not (open_ > 0.5).any():
        raise StageFailed("reach", "answers are certain at most inputs", number=float(open_.max()), limit=0.5)
    return scales[int(np.argmax(open_ > 0.5))]


@dataclass(frozen=True)
class _Place:
    """The target, and the scale of the inputs that it is asked at."""

    oracle: Counting
    rng: np.random.Generator
    scale: float

    def drawn(self, count: int, scale: float) -> FloatArray:
        domain, dim = self.oracle.facts.domain, self.oracle.dim
        rows = domain.sample(self.rng, count, dim)
        return rows if not domain.is_space else scale * self.rng.uniform(0.3, 1.0, (count, 1)) * rows

    def more(self, data: _Answers, wanted: int) -> _Answers:
        """The same with as many rows as wanted."""
        missing = wanted - len(data.rows)
        if missing <= 0:
            return data
        with self.oracle.stage("fit", expected=missing):
            rows = self.drawn(missing, self.scale)
            p = _probabilities(self.oracle, rows)
        old = data.p if len(data.rows) else np.empty((0, p.shape[1]))
        return replace(data, rows=np.concatenate([data.rows, rows]), p=np.concatenate([old, p]))

    def compared(self, network: ReLUNetwork, sd: float, settings: RoundedProbabilities) -> Verification:
        """The network against fresh probabilities, at three scales, on its creases and beside them."""
        oracle, before, n = self.oracle, self.oracle.queries, settings.held_out
        scales = (0.5, 1.0, 2.0)
        domain = oracle.facts.domain
        on = crease_points(network, domain, self.rng, oracle.arrays)
        groups = {f"scale {scale:g}": self.drawn(n, scale * self.scale) for scale in scales}
        if len(on.points):
            beside = points_beside(np.repeat(on.points, 2, axis=0), domain, self.rng)
            groups |= {"on creases": on.points, "beside creases": beside}
        with oracle.stage("verify", expected=sum(map(len, groups.values()))):
            errors = {name: _values(network(rows)) - _probabilities(oracle, rows) for name, rows in groups.items()}
            spread = float(_probabilities(oracle, groups["scale 1"]).std(axis=0).max())
        every = np.concatenate([each.reshape(-1) for each in errors.values()])
        at_use = np.sqrt(np.mean(errors["scale 1"] ** 2)) / sd
        tol = settings.most_units * sd / UNIFORM_SD
        ok = bool(np.abs(every).max() <= tol and at_use <= settings.fit_error + 3 / np.sqrt(n))
        found = tuple(
            GroupError(name, len(e), float(np.abs(e).max() / spread), float(np.sqrt(np.mean(e**2)) / spread))
            for name, e in errors.items()
        )
        points = sum(map(len, groups.values()))
        return Verification(
            ok, max(each.max_error for each in found), float(np.sqrt(np.mean(every**2)) / spread), tol / spread, points,
            found, on.missed, 1 - (1 - CONFIDENCE) ** (1 / (3 * n)), CONFIDENCE, oracle.queries - before,
        )  # fmt: skip


@dataclass(frozen=True)
class _Answers:
    """Rows (n, d), their probabilities (n, m), and the deviation of their noise. plain: the fit has no skip."""

    rows: FloatArray
    p: FloatArray
    sd: float
    plain: bool = False

    @property
    def size(self) -> float:
        """The sum of squares that noise leaves."""
        return self.p.size * self.sd**2


@dataclass(frozen=True)
class _Layer:
    """Weights (h, d), biases (h,), outputs (m, h), a skip (m, d) and a constant (m,)."""

    weights: FloatArray
    biases: FloatArray
    outputs: FloatArray
    skip: FloatArray
    constant: FloatArray

    @classmethod
    def drawn(cls, width: int, rows: FloatArray, m: int, rng: np.random.Generator) -> _Layer:
        """Creases through rows."""
        d, outer = rows.shape[1], 0.3
        weights = rng.standard_normal((width, d))
        weights /= np.linalg.norm(weights, axis=1, keepdims=True)
        biases = -np.sum(weights * rows[rng.integers(len(rows), size=width)], axis=1)
        return cls(weights, biases, outer * rng.standard_normal((m, width)), np.zeros((m, d)), np.zeros(m))

    @classmethod
    def of(cls, network: ReLUNetwork) -> _Layer:
        skip = np.zeros((network.outputs, network.dim)) if network.skip is None else network.skip
        return cls(network.weights[0], network.biases[0], network.weights[1], skip, network.biases[1])

    def network(self, *, plain: bool = False) -> ReLUNetwork:
        """As a network of the values before the link."""
        skips = {} if plain else {(0, 2): self.skip}
        return ReLUNetwork([self.weights, self.outputs], [self.biases, self.constant], skips=skips)

    def without(self, k: int) -> _Layer:
        """Without one neuron; half of its bend becomes slope."""
        kept = np.arange(len(self.biases)) != k
        half = self.outputs[:, k] / 2
        skip, constant = self.skip + np.outer(half, self.weights[k]), self.constant + half * self.biases[k]
        return _Layer(self.weights[kept], self.biases[kept], self.outputs[:, kept], skip, constant)

    def moved(self, step: FloatArray, *, plain: bool) -> _Layer:
        """All parameters, by a step."""
        parts = [self.weights, self.biases, self.outputs, self.constant, *([] if plain else [self.skip])]
        ends = np.cumsum([part.size for part in parts])
        new = [part + change.reshape(part.shape) for part, change in zip(parts, np.split(step, ends[:-1]), strict=True)]
        return _Layer(new[0], new[1], new[2], self.skip if plain else new[4], new[3])


def _values(z: FloatArray) -> FloatArray:
    """Probabilities (n, m) of all classes but the first, whose value is 0."""
    largest = np.maximum(z.max(axis=1, keepdims=True), 0.0)
    powers = np.exp(z - largest)
    return np.asarray(powers / (powers.sum(axis=1, keepdims=True) + np.exp(-largest)))


@dataclass(frozen=True)
class _Fit:
    """A layer, and the sum of squares that it leaves."""

    layer: _Layer
    size: float
    chi: float
    plain: bool

    @classmethod
    def of(cls, layer: _Layer, data: _Answers) -> _Fit:
        left = _values(layer.network(plain=data.plain)(data.rows)) - data.p
        size = float(np.sum(left**2))
        size = size if np.isfinite(size) else np.inf
        return cls(layer, size, float(np.sqrt(size / data.size)), data.plain)

    def linearised(self, data: _Answers) -> Linearisation[_Fit, FloatArray]:
        """Damped normal equations."""
        jacobian, left = self._equations(data)
        normal, gradient = jacobian.T @ jacobian, jacobian.T @ left
        sizes = np.diag(normal)
        floor = 1e-9 * sizes.max()  # scales of neurons are free

        def solve(damping: float) -> FloatArray:
            return np.asarray(np.linalg.solve(normal + np.diag(damping * sizes + floor), -gradient), dtype=np.float64)

        def move(step: FloatArray) -> tuple[_Fit, float]:
            found = _Fit.of(self.layer.moved(step, plain=data.plain), data)
            return found, found.size

        return Linearisation(self, self.size, solve, move)

    def _equations(self, data: _Answers) -> tuple[FloatArray, FloatArray]:
        """Derivatives (n·m, parameters) of the probabilities, and their residuals."""
        layer, rows = self.layer, data.rows
        n, m = data.p.shape
        before = rows @ layer.weights.T + layer.biases
        active, on = np.maximum(before, 0.0), before > 0
        p = _values(layer.network(plain=data.plain)(rows))
        by_values = p[:, :, None] * (np.eye(m) - p[:, None, :])
        by_neurons = (by_values @ layer.outputs) * on[:, None, :]
        parts = [
            (by_neurons[..., None] * rows[:, None, None, :]).reshape(n, m, -1), by_neurons,
            (by_values[..., None] * active[:, None, None, :]).reshape(n, m, -1), by_values,
        ]  # fmt: skip
        if not data.plain:
            parts.append((by_values[..., None] * rows[:, None, None, :]).reshape(n, m, -1))
        return np.concatenate(parts, axis=2).reshape(n * m, -1), (p - data.p).reshape(-1)

    def losses(self, data: _Answers) -> FloatArray:
        """About what leaving out each neuron (h,) would add to the sum of squares."""
        jacobian, _ = self._equations(data)
        h, m = len(self.layer.biases), data.p.shape[1]
        linear = jacobian[:, h * (data.rows.shape[1] + 1) :]  # outputs, constant, skip
        normal = linear.T @ linear
        normal[np.diag_indices_from(normal)] += 1e-9 * np.diag(normal).max()
        inverse = np.linalg.inv(normal)
        losses = np.empty(h)
        for k in range(h):
            own = np.arange(m) * h + k
            losses[k] = self.layer.outputs[:, k] @ np.linalg.solve(inverse[np.ix_(own, own)], self.layer.outputs[:, k])
        return losses
