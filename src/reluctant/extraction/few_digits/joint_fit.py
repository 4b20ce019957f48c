"""Last stage of few digits: damped Gauss–Newton on all parameters and all answers at once.

An answer of the subspace or of the extension depends on the core, which is the network in the subspace, and on the
weights of its own direction alone. So their equations are an arrow: one block for each direction, and a border for
the core. Answers at random inputs give products with their Jacobian alone. Conjugate gradients solve for each step;
the arrow, with the random inputs as they are on average, is the preconditioner, so a few iterations are enough.
Neurons are turned to their sides before: without the skip term there are fewer unknowns.

`Layout` says which numbers are unknowns and where they are: a single output's weights are fixed, for only their sign
matters; a network without a skip term has constants alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from reluctant.extraction.few_digits.noisy_extension import Extension
from reluctant.extraction.few_digits.subspace_fit import Points
from reluctant.extraction.few_digits.view import View
from reluctant.extraction.orientation import find_turned, turn_terms, without_skip
from reluctant.fitting.least_squares import Linearisation, Parts, StepRules, least_squares
from reluctant.geometry import Frame
from reluctant.geometry.lines import IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray

AnyFloats: TypeAlias = NDArray[np.floating[Any]]
ParameterStep: TypeAlias = tuple[FloatArray, FloatArray]  # of the core (p,), of every direction (D, q)


@dataclass(frozen=True)
class Unknowns:
    """Parameters as pairs: which column they multiply, and the outputs (p, m) they change by it."""

    column: IntArray
    outputs: FloatArray

    def normal(self, gram: FloatArray, other: Unknowns) -> FloatArray:
        """Normal equations between parameters from those between columns."""
        return np.asarray(gram[np.ix_(self.column, other.column)] * (self.outputs @ other.outputs.T))

    def gradient(self, products: FloatArray) -> FloatArray:
        """Right side (p,) from products of columns with residuals."""
        return np.asarray((products[self.column] * self.outputs).sum(axis=1))


@dataclass(frozen=True)
class Layout:
    """Neurons, coordinates of the subspace, outputs, and whether there is a skip term."""

    h: int
    k: int
    m: int
    affine: bool

    @classmethod
    def of(cls, core: ReLUNetwork) -> Layout:
        """The layout of this network."""
        h, k = core.weights[0].shape
        return cls(h, k, core.outputs, core.skip is not None)

    @property
    def columns(self) -> int:
        """Columns of the core: active neurons times each coordinate and one, neurons, coordinates and one."""
        return self.h * (self.k + 1) + self.h + self.k + 1

    def own(self, a: FloatArray) -> Unknowns:
        """Of one direction: a weight of every neuron, then the skip term of every output."""
        neurons = Unknowns(np.arange(self.h), a.T)
        if not self.affine:
            return neurons
        skip = np.full(self.m, self.h)
        return Unknowns(np.append(neurons.column, skip), np.concatenate([a.T, np.eye(self.m)]))

    def core(self, a: FloatArray) -> Unknowns:
        """Of the core: weights and bias of every neuron, its outputs if there are several, the affine term."""
        hidden, each = self.h * (self.k + 1), np.eye(self.m)
        column, outputs = [np.arange(hidden)], [np.repeat(a.T, self.k + 1, axis=0)]
        if self.m > 1:
            column.append(hidden + np.repeat(np.arange(self.h), self.m))
            outputs.append(np.tile(each, (self.h, 1)))
        terms = np.arange(0 if self.affine else self.k, self.k + 1)
        column.append(hidden + self.h + np.repeat(terms, self.m))
        outputs.append(np.tile(each, (len(terms), 1)))
        return Unknowns(np.concatenate(column), np.concatenate(outputs))

    def split_core(self, step: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights and biases (h, k + 1), output weights (h, m), affine term and constants (k + 1, m)."""
        hidden, outputs, affine = np.split(step, np.cumsum([self.h * (self.k + 1), self.h * self.m * (self.m > 1)]))
        full = np.zeros((self.k + 1, self.m))
        full[0 if self.affine else self.k :] = affine.reshape(-1, self.m)
        free = outputs.reshape(self.h, self.m) if self.m > 1 else np.zeros((self.h, self.m))
        return hidden.reshape(self.h, self.k + 1), free, full

    def join_core(self, hidden: AnyFloats, outputs: AnyFloats, affine: AnyFloats) -> FloatArray:
        """Inverse of `split_core`."""
        free = outputs.reshape(-1) if self.m > 1 else np.empty(0)
        parts = [hidden.reshape(-1), free, affine[0 if self.affine else self.k :].reshape(-1)]
        return np.concatenate([part.astype(np.float64) for part in parts])

    def moved(self, core: ReLUNetwork, step: FloatArray) -> ReLUNetwork:
        """The core after a step."""
        hidden, outputs, affine = self.split_core(step)
        (w, a), (b, c), k = core.weights, core.biases, self.k
        skip = None if core.skip is None else core.skip + affine[:k].T
        return ReLUNetwork([w + hidden[:, :k], a + outputs.T], [b + hidden[:, k], c + affine[k]], skip)


def core_features(values: AnyFloats, with_ones: AnyFloats, weight: FloatArray) -> FloatArray:
    """Weighted columns of the core: active neurons times each coordinate and one, neurons, coordinates and one."""
    n, weight = len(values), weight[:, None]
    moved = ((values > 0)[:, :, None] * with_ones[:, None, :]).reshape(n, -1)
    return np.column_stack([moved, np.maximum(values, 0), with_ones]) * weight


@dataclass(frozen=True)
class AnswerSet:
    """Answers with one set of weights off the subspace: coordinates, offsets, values, weights, and these weights."""

    y: FloatArray
    s: FloatArray
    f: FloatArray
    weight: FloatArray
    weights: FloatArray
    skip: FloatArray

    def values(self, core: ReLUNetwork) -> FloatArray:
        """Neurons (n, h) before the ReLU."""
        return np.asarray(self.y @ core.weights[0].T + core.biases[0] + self.s[:, None] * self.weights)

    def residual(self, core: ReLUNetwork) -> FloatArray:
        """The residuals of the answers, in deviations of their noise."""
        found = np.maximum(self.values(core), 0) @ core.weights[1].T + core.biases[1]
        if core.skip is not None:
            found += self.y @ core.skip.T + self.s[:, None] * self.skip
        return np.asarray((self.f - found) * self.weight[:, None])

    def columns(self, core: ReLUNetwork) -> tuple[FloatArray, FloatArray]:
        """Weighted columns by which parameters change an answer: of this direction (n, h + 1), of the core."""
        values = self.values(core)
        own = np.column_stack([values > 0, np.ones(len(values))]) * (self.s * self.weight)[:, None]
        return own, core_features(values, np.column_stack([self.y, np.ones(len(self.y))]), self.weight)


def answer_sets(points: Points, extension: Extension) -> list[AnswerSet]:
    """The points of the subspace first, then those of each direction if its answers are kept."""
    h, m = extension.weights.shape[1], extension.skip.shape[1]
    inside = AnswerSet(points.y, np.zeros(len(points)), points.f, points.weight, np.zeros(h), np.zeros(m))
    e = extension
    if not e.answered:
        return [inside]
    return [inside, *map(AnswerSet, e.y, e.s, e.f, e.weight, e.weights, e.skip)]


@dataclass(frozen=True)
class Arrow:
    """Blocks (D, q, q) of the directions, couplings (D, q, p) to the core if any, the core (p, p); right sides."""

    blocks: FloatArray
    couplings: FloatArray | None
    core: FloatArray
    wanted: FloatArray
    core_wanted: FloatArray

    @property
    def unknowns(self) -> int:
        """Number of unknowns."""
        return int(self.core_wanted.size + self.wanted.size)

    def __matmul__(self, step: ParameterStep) -> ParameterStep:
        core, own = step
        own_side, core_side = np.einsum("dqr,dr->dq", self.blocks, own), self.core @ core
        if self.couplings is not None:
            flat = self.couplings.reshape(-1, len(core))
            own_side += (flat @ core).reshape(own.shape)
            core_side += flat.T @ own.reshape(-1)
        return core_side, own_side

    def plus(self, block: FloatArray, core: FloatArray) -> Arrow:
        """The same with more in the block of every direction, and in the core."""
        return Arrow(self.blocks + block, self.couplings, self.core + core, self.wanted, self.core_wanted)

    def inverse(self, damping: float) -> ArrowInverse:
        """Solve by eliminating the directions, each diagonal entry enlarged by this part."""
        scale = 1 / np.sqrt(np.maximum(np.diagonal(self.blocks, axis1=1, axis2=2), DOUBLE.tiny))
        blocks = self.blocks * scale[:, :, None] * scale[:, None, :]
        q = self.blocks.shape[1]
        blocks[:, np.arange(q), np.arange(q)] = 1 + damping
        inverses = np.linalg.inv(blocks) * scale[:, :, None] * scale[:, None, :]
        core = self.core.copy()
        if self.couplings is not None:
            for inverse, coupling in zip(inverses, self.couplings, strict=True):
                core -= coupling.T @ (inverse @ coupling)
        core_scale = 1 / np.sqrt(np.maximum(np.diag(core), DOUBLE.tiny))
        core = (core + core.T) / 2 * (core_scale[:, None] * core_scale)
        core[np.diag_indices_from(core)] = 1 + damping
        factor = scipy.linalg.cho_factor(core, lower=True, overwrite_a=True, check_finite=False)
        couplings = None if self.couplings is None else self.couplings.reshape(-1, len(core))
        return ArrowInverse(couplings, inverses, factor, core_scale)


@dataclass(frozen=True)
class ArrowInverse:
    """The eliminated directions and the factor of the rest of the core."""

    couplings: FloatArray | None
    inverses: FloatArray
    factor: tuple[FloatArray, bool]
    scale: FloatArray

    def __matmul__(self, wanted: ParameterStep) -> ParameterStep:
        core, own = wanted
        own = np.einsum("dqr,dr->dq", self.inverses, own)
        if self.couplings is None:
            return self._solved(core), own
        step = self._solved(core - self.couplings.T @ own.reshape(-1))
        back = np.einsum("dqr,dr->dq", self.inverses, (self.couplings @ step).reshape(own.shape))
        return step, own - back

    def _solved(self, core: FloatArray) -> FloatArray:
        return np.asarray(self.scale * scipy.linalg.cho_solve(self.factor, self.scale * core, check_finite=False))


def arrow_equations(core: ReLUNetwork, points: Points, extension: Extension) -> Arrow:
    """The equations at this network."""
    layout, a = Layout.of(core), core.weights[1]
    own, shared = layout.own(a), layout.core(a)
    q, p, count = len(own.column), len(shared.column), len(extension)
    blocks, wanted = np.zeros((count, q, q)), np.zeros((count, q))
    couplings = np.empty((count, q, p)) if extension.answered else None
    gram, products = np.zeros((layout.columns,) * 2), np.zeros((layout.columns, layout.m))
    for number, rows in enumerate(answer_sets(points, extension)):
        local, common = rows.columns(core)
        residual = rows.residual(core)
        gram += common.T @ common
        products += common.T @ residual
        if number and couplings is not None:
            blocks[number - 1] = own.normal(local.T @ local, own)
            couplings[number - 1] = own.normal(local.T @ common, shared)
            wanted[number - 1] = own.gradient(local.T @ residual)
    return Arrow(blocks, couplings, shared.normal(gram, shared), wanted, shared.gradient(products))


SingleArray: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class RandomAnswers:
    """Inputs (n, d), answers (n, m), one over their noise (n, 1); and the frame and directions (D, d) of a fit."""

    rows: AnyFloats
    f: FloatArray
    weight: FloatArray
    frame: Frame
    directions: FloatArray

    def residual(self, core: ReLUNetwork, extension: Extension) -> FloatArray:
        """The residuals of the answers, in deviations of their noise."""
        network = extension.lifted(core, self.frame)
        found = [network(self.rows[part].astype(np.float64)) for part in _row_blocks(len(self.rows))]
        return np.asarray((self.f - np.concatenate(found)) * self.weight)


def ask_anywhere(
    view: View, frame: Frame, directions: FloatArray, count: int, rng: np.random.Generator, spread: float = 0.0
) -> RandomAnswers:
    """Random inputs as they are in use, and of scales about that, by up to `spread` in their logarithm.

    In many dimensions Gaussian inputs are all as long, and hardly tell constants from weights that differ a little.
    """
    rows = np.empty((count, view.dim), np.float32 if view.in_single else np.float64)
    f, sd = np.empty((count, view.outputs)), np.empty((count, 1))
    scales = np.exp(rng.uniform(-spread, spread, (count, 1)))
    with view.oracle.stage("polish", expected=count):
        for part in _row_blocks(count):
            asked, f[part] = view.ask(scales[part] * view.sample(rng, part.stop - part.start))
            rows[part], sd[part, 0] = asked, view.noise_at_use(asked)
    return RandomAnswers(rows, f, 1 / (sd * np.maximum(scales, 1)), frame, directions)


def _row_blocks(count: int) -> Iterator[slice]:
    block_rows = 8192
    return (slice(start, min(start + block_rows, count)) for start in range(0, count, block_rows))


class Linearised:
    """The Jacobian at a network, as far as products need it; in single precision, for steps alone."""

    def __init__(self, random: RandomAnswers, core: ReLUNetwork, extension: Extension) -> None:
        network = extension.lifted(core, random.frame)
        self.random, self.layout, self.a = random, Layout.of(core), core.weights[1].astype(np.float32)
        self.values: AnyFloats = random.rows @ network.weights[0].T.astype(np.float32)
        self.values += network.biases[0].astype(np.float32)

    def forward(self, step: ParameterStep) -> FloatArray:
        """Change (n, m) of the weighted answers by a step of all parameters."""
        layout, random = self.layout, self.random
        hidden, outputs, affine = layout.split_core(step[0])
        w, b = self._of_inputs(hidden, step[1][:, : layout.h])
        skip, constant = self._of_inputs(affine.T, step[1][:, layout.h :] if layout.affine else None)
        change = np.empty(random.f.shape, np.float32)
        for part in _row_blocks(len(change)):
            rows, values = random.rows[part], self.values[part]
            change[part] = ((values > 0) * (rows @ w.T + b)) @ self.a.T + constant
            if layout.m > 1:
                change[part] += np.maximum(values, 0) @ outputs.astype(np.float32)
            if layout.affine:
                change[part] += rows @ skip.T
        return np.asarray(change * random.weight)

    def back(self, residual: FloatArray) -> ParameterStep:
        """Products of all columns with weighted residuals (n, m)."""
        layout, random = self.layout, self.random
        unit = float(np.abs(residual).max()) or 1.0
        left = (residual * (random.weight / unit)).astype(np.float32)
        (h, m), d = (layout.h, layout.m), random.rows.shape[1]
        inputs, sums = np.zeros((h + m, d)), np.zeros(h + m)
        outputs = np.zeros((h, m))
        for part in _row_blocks(len(left)):
            values = self.values[part]
            neurons = np.column_stack([(values > 0) * (left[part] @ self.a), left[part]])
            inputs += neurons.T @ random.rows[part]
            sums += neurons.sum(axis=0, dtype=np.float64)
            if m > 1:
                outputs += np.maximum(values, 0).T @ left[part]
        away = inputs - np.outer(sums, random.frame.origin)
        inside = np.column_stack([away @ random.frame.basis.T, sums])
        own = random.directions @ (away if layout.affine else away[:h]).T
        return unit * layout.join_core(inside[:h], outputs, inside[h:].T), unit * own

    def _of_inputs(self, inside: FloatArray, own: FloatArray | None) -> tuple[SingleArray, SingleArray]:
        """Weights (r, d) and constants (r,) of the input itself, from those inside (r, k + 1) and own ones (D, r)."""
        frame = self.random.frame
        w = inside[:, :-1] @ frame.basis
        if own is not None:
            w += own.T @ self.random.directions
        return w.astype(np.float32), (inside[:, -1] - w @ frame.origin).astype(np.float32)

    def added_to(self, arrow: Arrow) -> Arrow:
        """The arrow with these rows as they are on average: the same for every direction, none coupled."""
        averaged_rows = 20_000  # that tell what the Jacobian is on average
        random, a = self.random, self.a.astype(np.float64)
        own, shared = self.layout.own(a), self.layout.core(a)
        values, away = self.values[:averaged_rows], random.rows[:averaged_rows] - random.frame.origin
        weight = random.weight[:averaged_rows] * np.sqrt(len(random.rows) / max(len(values), 1))
        columns = np.column_stack([values > 0, np.ones(len(values))]) * weight
        off = away @ random.directions.T
        spread = float(np.mean((off * weight) ** 2) / np.mean(weight**2)) if off.size else 0.0
        block = spread * own.normal(columns.T @ columns, own)
        gram = np.zeros((self.layout.columns,) * 2)
        with_ones = np.column_stack([away @ random.frame.basis.T, np.ones(len(values))])
        for part in _row_blocks(len(values)):
            common = core_features(values[part], with_ones[part], weight[part, 0])
            gram += common.T @ common
        return arrow.plus(block, shared.normal(gram, shared))


@dataclass(frozen=True)
class JointFit:
    """The network in the subspace, its weights in all other directions, and all answers it is fitted to."""

    core: ReLUNetwork
    extension: Extension
    points: Points
    anywhere: RandomAnswers

    @cached_property
    def random_residual(self) -> FloatArray:
        """The residuals of the answers at random inputs."""
        return self.anywhere.residual(self.core, self.extension)

    @cached_property
    def square(self) -> float:
        """Sum of the squares of all residuals."""
        inside = sum(float((rows.residual(self.core) ** 2).sum()) for rows in answer_sets(self.points, self.extension))
        return inside + float((self.random_residual**2).sum())

    @property
    def chi(self) -> float:
        """Root mean square of all residuals, in deviations of the noise."""
        return float(np.sqrt(self.square / self.answers))

    @property
    def answers(self) -> int:
        """Number of answers."""
        return int(self.points.f.size + self.extension.f.size + self.anywhere.f.size)

    @property
    def network(self) -> ReLUNetwork:
        """The network as a function of the input itself."""
        return self.extension.lifted(self.core, self.anywhere.frame)


def polish_all(fit: JointFit) -> tuple[JointFit, FloatArray]:
    """The fit with all parameters free, and the standard error (h,) of a weight of each neuron."""
    newton_steps = 6
    step_parts = (1.0, 0.3, 0.1)  # parts of a step that are tried
    enough_squares = 0.03  # squares for each unknown: noise itself leaves them one each uncertain
    arrow = arrow_equations(fit.core, fit.points, fit.extension)
    random = Linearised(fit.anywhere, fit.core, fit.extension)
    enough = enough_squares * arrow.unknowns

    def linearise(at: JointFit) -> Linearisation[JointFit, ParameterStep] | None:
        nonlocal arrow, random  # the last ones give the errors
        if at is not fit:
            arrow = arrow_equations(at.core, at.points, at.extension)
            random = Linearised(at.anywhere, at.core, at.extension)
        step = _gauss_newton_step(arrow, random, at, enough)
        if step is None:
            return None
        return Linearisation(at, at.square, lambda part: (part * step[0], part * step[1]), partial(_moved_fit, at))

    rules = StepRules(newton_steps, Parts(step_parts), enough=lambda before, after: before - after < enough)
    found = least_squares(fit, linearise, rules).state
    return found, _weight_errors(random.added_to(arrow), Layout.of(found.core))


def _gauss_newton_step(arrow: Arrow, random: Linearised, fit: JointFit, enough: float) -> ParameterStep | None:
    """The step, or None where the gradient promises that it would gain less than `enough` squares."""
    damping = 1e-9  # of columns of norm one: scales of neurons are free
    inverse = random.added_to(arrow).inverse(damping)
    products = random.back(fit.random_residual)
    wanted = _plus((arrow.core_wanted, arrow.wanted), products, 1.0)
    if _dot(wanted, inverse @ wanted) < enough:
        return None

    def normal(step: ParameterStep) -> ParameterStep:
        return _plus(arrow @ step, random.back(random.forward(step)), 1.0)

    return _conjugate_gradients(normal, lambda gradient: inverse @ gradient, wanted, enough)


def _conjugate_gradients(
    normal: Callable[[ParameterStep], ParameterStep],
    nearly: Callable[[ParameterStep], ParameterStep],
    wanted: ParameterStep,
    enough: float,
) -> ParameterStep:
    """Solve normal(step) = wanted; `nearly` inverts `normal` about, `enough` squares may be left to gain."""
    # Of conjugate gradients, and the part of the first gradient, squared, that may be left.
    iterations, close_enough = 15, 1e-5
    step: ParameterStep = (np.zeros_like(wanted[0]), np.zeros_like(wanted[1]))
    left, direction = wanted, nearly(wanted)
    size = first = _dot(left, direction)
    for _ in range(iterations):
        if not size > max(close_enough * first, enough):
            break
        ahead = normal(direction)
        length = size / _dot(direction, ahead)
        step, left = _plus(step, direction, length), _plus(left, ahead, -length)
        conditioned = nearly(left)
        before, size = size, _dot(left, conditioned)
        direction = _plus(conditioned, direction, size / before)
    return step


def _plus(one: ParameterStep, other: ParameterStep, factor: float) -> ParameterStep:
    return one[0] + factor * other[0], one[1] + factor * other[1]


def _dot(one: ParameterStep, other: ParameterStep) -> float:
    return float(one[0] @ other[0] + np.vdot(one[1], other[1]))


def _moved_fit(fit: JointFit, step: ParameterStep) -> tuple[JointFit, float]:
    """The fit after a step, and its sum of squares."""
    core, own = step
    layout, old = Layout.of(fit.core), fit.extension
    skip = old.skip + own[:, layout.h :] if layout.affine else old.skip
    extension = replace(old, weights=old.weights + own[:, : layout.h], skip=skip)
    moved = replace(fit, core=layout.moved(fit.core, core), extension=extension)
    return moved, moved.square


def _weight_errors(arrow: Arrow, layout: Layout) -> FloatArray:
    """Standard error of a weight of each neuron: over all directions, or in the subspace where there are none."""
    if len(arrow.blocks):
        variances = np.diagonal(np.linalg.inv(arrow.blocks), axis1=1, axis2=2)[:, : layout.h].mean(axis=0)
    else:
        of_core = np.diag(np.linalg.pinv(arrow.core, hermitian=True))
        variances = layout.split_core(of_core)[0][:, : layout.k].mean(axis=1)
    return np.asarray(np.sqrt(np.maximum(variances, 0)))


def turned_fit(fit: JointFit) -> JointFit:
    """The same fit without a skip term where the sides can be found, else as it is."""
    skip_gone = 1e-2  # of the largest term: what few digits may leave of the skip; the last fit tells if it was wrong
    (w, a), skip, own = fit.core.weights, fit.core.skip, fit.extension
    if skip is None:
        return fit
    terms = turn_terms(np.concatenate([w, own.weights.T], axis=1), a)
    missing = -np.concatenate([skip, own.skip.T], axis=1)
    flip = find_turned(terms, missing.reshape(-1), gone=skip_gone)
    if flip is None:
        return fit
    extension = replace(own, weights=np.where(flip, -1.0, 1.0) * own.weights, skip=np.zeros_like(own.skip))
    return replace(fit, core=without_skip(fit.core, flip), extension=extension)
