"""Answers at random inputs, for a fit of all parameters: products with the Jacobian, and what it is on average."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluctant.extraction.few_digits.arrow import Arrow, core_features, core_unknowns, own_unknowns
from reluctant.extraction.few_digits.extension import Extension
from reluctant.extraction.few_digits.view import View
from reluctant.geometry import Frame
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Anywhere", "Linearised", "ask_anywhere"]

BLOCK_ROWS = 8192


@dataclass(frozen=True)
class Anywhere:
    """Inputs by their coordinates: in the subspace (n, k) and off it (n, D), answers (n, m), one over noise (n,)."""

    y: FloatArray
    u: FloatArray
    f: FloatArray
    weight: FloatArray

    def values(self, core: ReLUNetwork, extension: Extension) -> FloatArray:
        """Neurons (n, h) before the ReLU."""
        return np.asarray(self.y @ core.weights[0].T + core.biases[0] + self.u @ extension.weights)

    def residual(self, core: ReLUNetwork, extension: Extension) -> FloatArray:
        """What is left of the answers, in deviations of their noise."""
        assert core.skip is not None
        affine = self.y @ core.skip.T + core.biases[1] + self.u @ extension.skip
        found = np.maximum(self.values(core, extension), 0) @ core.weights[1].T + affine
        return np.asarray((self.f - found) * self.weight[:, None])


def ask_anywhere(view: View, frame: Frame, directions: FloatArray, count: int, rng: np.random.Generator) -> Anywhere:
    """Gaussian inputs of the scale of use."""
    with view.oracle.stage("polish", expected=count):
        rows, answers = view.ask(rng.standard_normal((count, view.dim)))
    away = rows - frame.origin
    weight = np.full(count, 1 / view.noise.near)
    return Anywhere(away @ frame.basis.T, away @ directions.T, answers, weight)


class Linearised:
    """The Jacobian at a network, as far as products need it; in single precision, for steps alone."""

    def __init__(self, rows: Anywhere, core: ReLUNetwork, extension: Extension) -> None:
        values = rows.values(core, extension)
        self.core, self.shape = core, extension.weights.shape
        self.with_ones = np.column_stack([rows.y, np.ones(len(rows.y))])
        self.u: NDArray[np.float32] = rows.u.astype(np.float32)
        self.active = (values > 0).astype(np.float32)
        self.hidden, self.values = np.maximum(values, 0), values
        self.weight = rows.weight[:, None]

    def forward(self, step: tuple[FloatArray, FloatArray]) -> FloatArray:
        """Change (n, m) of the weighted answers by a step of all parameters."""
        (h, k), m, a = self.core.weights[0].shape, self.core.outputs, self.core.weights[1]
        core, own = step
        hidden, affine = core[: h * (k + 1)].reshape(h, k + 1), core[len(core) - m * (k + 1) :].reshape(k + 1, m)
        off = self.u @ own.astype(np.float32)
        change = (self.active * (self.with_ones @ hidden.T + off[:, :h])) @ a.T + self.with_ones @ affine + off[:, h:]
        if m > 1:
            change += self.hidden @ core[hidden.size : hidden.size + h * m].reshape(h, m)
        return np.asarray(change * self.weight)

    def back(self, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Products of all columns with weighted residuals (n, m)."""
        residual = residual * self.weight
        neurons = self.active * (residual @ self.core.weights[1])
        hidden, affine = neurons.T @ self.with_ones, self.with_ones.T @ residual
        parts = [hidden.reshape(-1), affine.reshape(-1)]
        if self.core.outputs > 1:
            parts.insert(1, (self.hidden.T @ residual).reshape(-1))
        both = np.column_stack([neurons, residual]).astype(np.float32)
        return np.concatenate(parts), (self.u.T @ both).astype(np.float64)

    def added_to(self, arrow: Arrow) -> Arrow:
        """The arrow with these rows as they are on average: the same for every direction, none coupled."""
        own, shared = own_unknowns(self.core), core_unknowns(self.core)
        columns = np.column_stack([self.active, np.ones(len(self.active))]) * self.weight
        spread = float(np.mean(self.u.astype(np.float64) ** 2)) if self.u.size else 0.0
        block = spread * own.normal(columns.T @ columns, own)
        gram = np.zeros((int(shared.column.max()) + 1,) * 2)
        for start in range(0, len(self.values), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            common = core_features(self.values[part], self.with_ones[part], self.weight[part, 0])
            gram += common.T @ common
        core = arrow.core + shared.normal(gram, shared)
        return Arrow(arrow.blocks + block, arrow.couplings, core, arrow.wanted, arrow.core_wanted)
