"""Last stage of few digits: damped Gauss–Newton on all parameters and all answers at once.

Equations of the answers in the subspace are formed, and those of the extension, which are an arrow; many parameters do
without the latter. Answers at random inputs give products with their Jacobian alone. Conjugate gradients solve for each
step; the arrow, with the other answers as they are on average, is the preconditioner, so a few iterations are
enough. Neurons are turned to their sides before: without the skip term there are fewer unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reluctant.extraction.few_digits.arrow_equations import (
    AnyFloats,
    Arrow,
    Layout,
    ParameterStep,
    answer_sets,
    arrow_equations,
    core_features,
)
from reluctant.extraction.few_digits.noisy_extension import NoisyExtension
from reluctant.extraction.few_digits.scaled_view import View
from reluctant.extraction.few_digits.subspace_fit import Points
from reluctant.extraction.orientation import find_turned, turn_terms, without_skip
from reluctant.fitting.least_squares import Linearisation, Parts, StepRules, least_squares
from reluctant.geometry import Frame
from reluctant.geometry.lines import BoolArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.verification.precision import rounding_sizes

SingleArray: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class RandomAnswers:
    """Inputs (n, d), answers (n, m), one over their noise (n, 1); and the frame and directions (D, d) of a fit."""

    rows: AnyFloats
    f: FloatArray
    weight: FloatArray
    frame: Frame
    directions: FloatArray

    def residual(self, core: ReLUNetwork, extension: NoisyExtension) -> FloatArray:
        """The residuals of the answers, in deviations of their noise."""
        network = extension.lifted(core, self.frame)
        found = [network(self.rows[part].astype(np.float64)) for part in _row_blocks(len(self.rows))]
        return np.asarray((self.f - np.concatenate(found)) * self.weight)

    def carried(self, network: ReLUNetwork, far: BoolArray) -> RandomAnswers:
        """The same with noise of far inputs (n,) no less than the roundings that this network carries there."""
        sizes = np.sqrt((rounding_sizes(network, self.rows.astype(np.float64)) ** 2).mean(axis=1))
        unit = np.median(sizes[~far]) / np.median(1 / self.weight[~far, 0])
        weight = np.where(far, np.minimum(self.weight[:, 0], unit / np.maximum(sizes, DOUBLE.tiny)), self.weight[:, 0])
        return replace(self, weight=weight[:, None])


def ask_anywhere(
    view: View, frame: Frame, directions: FloatArray, scales: FloatArray, rng: np.random.Generator
) -> RandomAnswers:
    """Random inputs as they are in use, each times its scale (n,)."""
    rows = np.empty((len(scales), view.dim), np.float32 if view.in_single else np.float64)
    f, sd = np.empty((len(scales), view.outputs)), np.empty((len(scales), 1))
    with view.oracle.stage("polish", expected=len(scales)):
        for part in _row_blocks(len(scales)):
            asked, f[part] = view.ask(scales[part, None] * view.sample(rng, part.stop - part.start))
            rows[part], sd[part, 0] = asked, view.noise_at_use(asked, scales[part])
    return RandomAnswers(rows, f, 1 / sd, frame, directions)


def _row_blocks(count: int) -> Iterator[slice]:
    block_rows = 8192
    return (slice(start, min(start + block_rows, count)) for start in range(0, count, block_rows))


class Linearised:
    """The Jacobian at a network, as far as products need it; in single precision, for steps alone."""

    def __init__(self, random: RandomAnswers, core: ReLUNetwork, extension: NoisyExtension) -> None:
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
        weighted = residual * random.weight
        unit = float(np.abs(weighted).max()) or 1.0
        left = (weighted / unit).astype(np.float32)
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
    extension: NoisyExtension
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

    def equations(self) -> FitEquations:
        """The linear equations of a step."""
        anywhere = Linearised(self.anywhere, self.core, self.extension)
        return FitEquations(arrow_equations(self.core, self.points, self.extension), anywhere, self.random_residual)

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


@dataclass(frozen=True)
class FitEquations:
    """Normal equations of a step: an arrow, and answers at random inputs that give products with residuals."""

    arrow: Arrow
    anywhere: Linearised
    residual: FloatArray

    @cached_property
    def nearly(self) -> Arrow:
        """All of it as an arrow, answers at random inputs as they are on average."""
        return self.anywhere.added_to(self.arrow)

    @property
    def wanted(self) -> ParameterStep:
        """The right side."""
        return _plus((self.arrow.core_wanted, self.arrow.wanted), self.anywhere.back(self.residual), 1.0)

    def __matmul__(self, step: ParameterStep) -> ParameterStep:
        return _plus(self.arrow @ step, self.anywhere.back(self.anywhere.forward(step)), 1.0)


def polish_all(fit: JointFit) -> tuple[JointFit, FloatArray]:
    """The fit with all parameters free, and the standard error (h,) of a weight of each neuron."""
    newton_steps = 6
    step_parts = (1.0, 0.3, 0.1)  # parts of a step that are tried
    enough_squares = 0.03  # squares for each unknown: noise itself leaves them one each uncertain
    equations = fit.equations()
    enough = enough_squares * equations.arrow.unknowns

    def linearise(at: JointFit) -> Linearisation[JointFit, ParameterStep] | None:
        nonlocal equations  # the last ones give the errors
        equations = equations if at is fit else at.equations()
        step = _gauss_newton_step(equations, enough)
        if step is None:
            return None
        return Linearisation(at, at.square, lambda part: (part * step[0], part * step[1]), partial(_moved_fit, at))

    rules = StepRules(newton_steps, Parts(step_parts), enough=lambda before, after: before - after < enough)
    found = least_squares(fit, linearise, rules).state
    return found, _weight_errors(equations.nearly, Layout.of(found.core))


def _gauss_newton_step(equations: FitEquations, enough: float) -> ParameterStep | None:
    """The step, or None where the gradient promises that it would gain less than `enough` squares."""
    damping = 1e-9  # of columns of norm one: scales of neurons are free
    inverse, wanted = equations.nearly.inverse(damping), equations.wanted
    if _dot(wanted, inverse @ wanted) < enough:
        return None
    return _conjugate_gradients(equations.__matmul__, lambda gradient: inverse @ gradient, wanted, enough)


def _conjugate_gradients(
    normal: Callable[[ParameterStep], ParameterStep],
    nearly: Callable[[ParameterStep], ParameterStep],
    wanted: ParameterStep,
    enough: float,
) -> ParameterStep:
    """Solve normal(step) = wanted; `nearly` inverts `normal` about, `enough` squares may be left to gain."""
    # Of conjugate gradients, and the part of the first gradient, squared, that may be left.
    iterations, close_enough = 20, 1e-4
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
