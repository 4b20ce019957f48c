"""Answers at random inputs, for a fit of all parameters: products with the Jacobian, and what it is on average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reluctant.extraction.few_digits.arrow import Arrow, core_features
from reluctant.extraction.few_digits.extension import Extension
from reluctant.extraction.few_digits.layout import Layout, Step
from reluctant.extraction.few_digits.view import View
from reluctant.geometry import Frame
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Anywhere", "Linearised", "ask_anywhere"]

SingleArray: TypeAlias = NDArray[np.float32]

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
        found = np.maximum(self.values(core, extension), 0) @ core.weights[1].T + core.biases[1]
        if core.skip is not None:
            found += self.y @ core.skip.T + self.u @ extension.skip
        return np.asarray((self.f - found) * self.weight[:, None])


def ask_anywhere(view: View, frame: Frame, directions: FloatArray, count: int, rng: np.random.Generator) -> Anywhere:
    """Random inputs as they are in use."""
    with view.oracle.stage("polish", expected=count):
        rows, answers = view.ask(view.sample(rng, count))
    away = rows - frame.origin
    return Anywhere(away @ frame.basis.T, away @ directions.T, answers, 1 / view.noise_at_use(rows))


class Linearised:
    """The Jacobian at a network, as far as products need it; in single precision, for steps alone."""

    def __init__(self, rows: Anywhere, core: ReLUNetwork, extension: Extension) -> None:
        values = rows.values(core, extension)
        self.layout, self.a = Layout.of(core), core.weights[1].astype(np.float32)
        self.with_ones = np.column_stack([rows.y, np.ones(len(rows.y))]).astype(np.float32)
        self.u: SingleArray = rows.u.astype(np.float32)
        self.values: SingleArray = values.astype(np.float32)
        self.active, self.hidden = (values > 0).astype(np.float32), np.maximum(self.values, 0)
        self.weight = rows.weight[:, None]

    def forward(self, step: Step) -> FloatArray:
        """Change (n, m) of the weighted answers by a step of all parameters."""
        hidden, outputs, affine = (part.astype(np.float32) for part in self.layout.split_core(step[0]))
        off, h = self.u @ step[1].astype(np.float32), self.layout.h
        change = (self.active * (self.with_ones @ hidden.T + off[:, :h])) @ self.a.T
        change += self.with_ones @ affine + self.hidden @ outputs
        if self.layout.affine:
            change += off[:, h:]
        return np.asarray(change * self.weight)

    def back(self, residual: FloatArray) -> Step:
        """Products of all columns with weighted residuals (n, m)."""
        unit = float(np.abs(residual).max()) or 1.0
        left = (residual * (self.weight / unit)).astype(np.float32)
        neurons = self.active * (left @ self.a)
        core = self.layout.join_core(neurons.T @ self.with_ones, self.hidden.T @ left, self.with_ones.T @ left)
        own = self.u.T @ (np.column_stack([neurons, left]) if self.layout.affine else neurons)
        return unit * core, unit * own.astype(np.float64)

    def added_to(self, arrow: Arrow) -> Arrow:
        """The arrow with these rows as they are on average: the same for every direction, none coupled."""
        a = self.a.astype(np.float64)
        own, shared = self.layout.own(a), self.layout.core(a)
        columns = np.column_stack([self.active, np.ones(len(self.active))]) * self.weight
        spread = float(np.mean(self.u**2, dtype=np.float64)) if self.u.size else 0.0
        block = spread * own.normal(columns.T @ columns, own)
        gram = np.zeros((self.layout.columns,) * 2)
        for start in range(0, len(self.values), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            common = core_features(self.values[part], self.with_ones[part], self.weight[part, 0])
            gram += common.T @ common
        core = arrow.core + shared.normal(gram, shared)
        return Arrow(arrow.blocks + block, arrow.couplings, core, arrow.wanted, arrow.core_wanted)
