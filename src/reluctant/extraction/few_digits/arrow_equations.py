"""Equations of the answers in a subspace and of those off it: an arrow.

An answer of the subspace or of the extension depends on the core, which is the network in the subspace, and on the
weights of its own direction alone. So their equations are an arrow: one block for each direction, and a border for
the core. `Layout` says which numbers are unknowns and where they are: a single output's weights are fixed, for only
their sign matters; a network without a skip term has constants alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from reluctant.extraction.few_digits.noisy_extension import NoisyExtension
from reluctant.extraction.few_digits.subspace_fit import Points
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


def answer_sets(points: Points | None, extension: NoisyExtension) -> list[AnswerSet]:
    """The points of the subspace first, if they are given, then those of each direction if its answers are kept."""
    h, m, e = extension.weights.shape[1], extension.skip.shape[1], extension
    off = [AnswerSet(*parts) for parts in zip(e.y, e.s, e.f, e.weight, e.weights, e.skip, strict=True)]
    off = off if e.answered else []
    if points is None:
        return off
    return [AnswerSet(points.y, np.zeros(len(points)), points.f, points.weight, np.zeros(h), np.zeros(m)), *off]


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


def arrow_equations(core: ReLUNetwork, points: Points, extension: NoisyExtension) -> Arrow:
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
