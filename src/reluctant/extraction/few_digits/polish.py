"""Fifth stage: Gauss–Newton on all parameters at once, with every answer that was paid for.

An answer off the subspace depends on the core, which is the network in the subspace, and on the weights of its own
direction alone. So the normal equations are an arrow: one block for each direction, and a border for the core. The
blocks are eliminated one after the other and the core is solved for: exact steps, at the cost of a small problem for
each direction, and no more questions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from reluctant.extraction.few_digits.extension import Extension
from reluctant.extraction.few_digits.subspace_fit import Points
from reluctant.geometry.samples import IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Polished", "polish_all"]

STEPS = 6
TRIES = 4
FIRST_DAMPING, REFUSED_DAMPING, LEAST_DAMPING = 1e-9, 1e-6, 1e-12  # of columns of norm one
ENOUGH = 1e-3  # gain of a step, as a part of the sum of squares
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Polished:
    """The core in the subspace, the weights in all other directions, and how well they explain the answers.

    weight_errors: standard error (h,) of a weight of each neuron, its outputs being of norm one.
    """

    core: ReLUNetwork
    extension: Extension
    chi: float
    weight_errors: FloatArray


def polish_all(core: ReLUNetwork, points: Points, extension: Extension) -> Polished:
    """The fit with all parameters free, to the points of the subspace and those off it."""
    damping, chi = FIRST_DAMPING, _chi(core, points, extension)
    for _ in range(STEPS):
        arrow = _Arrow.of(core, points, extension)
        moved = None
        for _ in range(TRIES):
            trial = arrow.moved(core, extension, damping)
            after = _chi(trial[0], points, trial[1])
            if after < chi:
                moved, damping = trial, max(damping / 10, LEAST_DAMPING)
                break
            damping = max(100 * damping, REFUSED_DAMPING)
        if moved is None:
            break
        (core, extension), gain, chi = moved, 1 - (after / chi) ** 2, after
        if gain < ENOUGH:
            break
    return Polished(core, extension, chi, _Arrow.of(core, points, extension).weight_errors(core))


def _chi(core: ReLUNetwork, points: Points, extension: Extension) -> float:
    """Root mean square of all residuals, in deviations of the noise."""
    square, count = 0.0, 0
    for rows in _row_sets(points, extension):
        residual = rows.residual(core)
        square, count = square + float((residual**2).sum()), count + residual.size
    return float(np.sqrt(square / count))


@dataclass(frozen=True)
class _Rows:
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
        """What is left of the answers, in deviations of their noise."""
        assert core.skip is not None
        affine = self.y @ core.skip.T + core.biases[1] + self.s[:, None] * self.skip
        found = np.maximum(self.values(core), 0) @ core.weights[1].T + affine
        return np.asarray((self.f - found) * self.weight[:, None])

    def features(self, core: ReLUNetwork) -> tuple[FloatArray, FloatArray]:
        """Weighted columns by which parameters change an answer: of this direction (n, h + 1), of the core.

        The core's are: active neurons times each coordinate and one, neurons, coordinates and one.
        """
        values, weight = self.values(core), self.weight[:, None]
        active, with_ones = (values > 0) * weight, np.column_stack([self.y, np.ones(len(self.y))])
        own = np.column_stack([active * self.s[:, None], self.s[:, None] * weight])
        moved = (active[:, :, None] * with_ones[:, None, :]).reshape(len(values), -1)
        return own, np.column_stack([moved, np.maximum(values, 0) * weight, with_ones * weight])


def _row_sets(points: Points, extension: Extension) -> list[_Rows]:
    h, m = extension.weights.shape[1], extension.skip.shape[1]
    inside = _Rows(points.y, np.zeros(len(points)), points.f, points.weight, np.zeros(h), np.zeros(m))
    e = extension
    return [inside, *map(_Rows, e.y, e.s, e.f, e.weight, e.weights, e.skip)]


@dataclass(frozen=True)
class _Unknowns:
    """Parameters as pairs: which column they multiply, and the outputs (p, m) they change by it."""

    column: IntArray
    outputs: FloatArray

    def normal(self, gram: FloatArray, other: _Unknowns) -> FloatArray:
        """Normal equations between parameters from those between columns."""
        return gram[np.ix_(self.column, other.column)] * (self.outputs @ other.outputs.T)

    def gradient(self, columns: FloatArray, residual: FloatArray) -> FloatArray:
        """Right side (p,)."""
        return np.asarray(((columns.T @ residual)[self.column] * self.outputs).sum(axis=1))


def _unknowns(core: ReLUNetwork) -> tuple[_Unknowns, _Unknowns]:
    """Of one direction: weights of neurons, skip. Of the core: weights and biases, outputs if several, skip."""
    (w, a), (h, k), m = core.weights, core.weights[0].shape, core.outputs
    own = _Unknowns(np.append(np.arange(h), np.full(m, h)), np.concatenate([a.T, np.eye(m)]))
    hidden, neurons = h * (k + 1), np.arange(h)
    column, outputs = [np.arange(hidden)], [np.repeat(a.T, k + 1, axis=0)]
    if m > 1:  # of a single output only the sign matters, and that is known
        column.append(hidden + np.repeat(neurons, m))
        outputs.append(np.tile(np.eye(m), (h, 1)))
    column.append(hidden + h + np.repeat(np.arange(k + 1), m))
    outputs.append(np.tile(np.eye(m), (k + 1, 1)))
    return own, _Unknowns(np.concatenate(column), np.concatenate(outputs))


@dataclass(frozen=True)
class _Arrow:
    """Normal equations: a block and a coupling to the core for each direction, and the core's own."""

    blocks: list[FloatArray]
    couplings: list[FloatArray]
    wanted: list[FloatArray]
    core: FloatArray
    core_wanted: FloatArray

    @classmethod
    def of(cls, network: ReLUNetwork, points: Points, extension: Extension) -> _Arrow:
        own, core = _unknowns(network)
        blocks, couplings, wanted = [], [], []
        gram, right = 0.0, 0.0
        for number, rows in enumerate(_row_sets(points, extension)):
            local, shared = rows.features(network)
            residual = rows.residual(network)
            gram, right = gram + shared.T @ shared, right + shared.T @ residual
            if number:
                blocks.append(own.normal(local.T @ local, own))
                couplings.append(own.normal(local.T @ shared, core))
                wanted.append(own.gradient(local, residual))
        right = (np.asarray(right)[core.column] * core.outputs).sum(axis=1)
        return cls(blocks, couplings, wanted, core.normal(np.asarray(gram), core), right)

    def moved(self, network: ReLUNetwork, extension: Extension, damping: float) -> tuple[ReLUNetwork, Extension]:
        """The network after the step of this damping."""
        core, right = self.core.copy(), self.core_wanted.copy()
        core[np.diag_indices_from(core)] *= 1 + damping
        factors = []
        for block, coupling, wanted in zip(self.blocks, self.couplings, self.wanted, strict=True):
            factor = _factor(block, damping)
            half = scipy.linalg.solve_triangular(factor, coupling, lower=True, check_finite=False)
            own = scipy.linalg.solve_triangular(factor, wanted, lower=True, check_finite=False)
            core -= half.T @ half
            right -= half.T @ own
            factors.append((factor, half, own))
        scale = 1 / np.sqrt(np.maximum(np.diag(core), TINY))
        core *= scale[:, None] * scale
        core[np.diag_indices_from(core)] += damping
        solved = scipy.linalg.cho_factor(core, lower=True, overwrite_a=True, check_finite=False)
        step = scale * scipy.linalg.cho_solve(solved, scale * right, check_finite=False)
        steps = [_back(factor, own - half @ step) for factor, half, own in factors]
        return _core_moved(network, step), _extension_moved(extension, steps)

    def weight_errors(self, network: ReLUNetwork) -> FloatArray:
        """Standard error of a weight of each neuron, over all directions; the core counts as known."""
        h = network.widths[1]
        if not self.blocks:
            return np.sqrt(1 / np.maximum(np.diag(self.core)[: h * (network.dim + 1)].reshape(h, -1)[:, 0], TINY))
        inverses = [np.diag(np.linalg.inv(block))[:h] for block in self.blocks]
        return np.asarray(np.sqrt(np.maximum(np.mean(inverses, axis=0), 0)))


def _factor(block: FloatArray, damping: float) -> FloatArray:
    damped = block.copy()
    damped[np.diag_indices_from(damped)] = np.diag(block) * (1 + damping) + TINY
    return np.asarray(scipy.linalg.cholesky(damped, lower=True, overwrite_a=True, check_finite=False))


def _back(factor: FloatArray, half: FloatArray) -> FloatArray:
    return np.asarray(scipy.linalg.solve_triangular(factor, half, lower=True, trans="T", check_finite=False))


def _core_moved(network: ReLUNetwork, step: FloatArray) -> ReLUNetwork:
    (w, a), (b, c), skip = network.weights, network.biases, network.skip
    assert skip is not None
    (h, k), m = w.shape, len(c)
    hidden, affine = step[: h * (k + 1)].reshape(h, k + 1), step[len(step) - m * (k + 1) :].reshape(k + 1, m)
    if m > 1:
        a = a + step[hidden.size : hidden.size + h * m].reshape(h, m).T
    return ReLUNetwork([w + hidden[:, :k], a], [b + hidden[:, k], c + affine[k]], skip + affine[:k].T)


def _extension_moved(extension: Extension, steps: list[FloatArray]) -> Extension:
    if not steps:
        return extension
    h, moved = extension.weights.shape[1], np.array(steps)
    return replace(extension, weights=extension.weights + moved[:, :h], skip=extension.skip + moved[:, h:])
