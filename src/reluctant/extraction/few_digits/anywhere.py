"""Answers at random inputs, for a fit of all parameters: products with the Jacobian, and what it is on average.

Inputs are kept as they were asked, in single precision where they are exact in it; coordinates would not be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reluctant.extraction.few_digits.arrow import Arrow, core_features
from reluctant.extraction.few_digits.extension import Extension
from reluctant.extraction.few_digits.layout import AnyFloats, Layout, Step
from reluctant.extraction.few_digits.view import View
from reluctant.geometry import Frame
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Anywhere", "Linearised", "ask_anywhere"]

SingleArray: TypeAlias = NDArray[np.float32]

BLOCK_ROWS = 8192
AVERAGED_ROWS = 20_000  # that tell what the Jacobian is on average


@dataclass(frozen=True)
class Anywhere:
    """Inputs (n, d), answers (n, m), one over their noise (n, 1); and the frame and directions (D, d) of a fit."""

    rows: AnyFloats
    f: FloatArray
    weight: FloatArray
    frame: Frame
    directions: FloatArray

    def residual(self, core: ReLUNetwork, extension: Extension) -> FloatArray:
        """What is left of the answers, in deviations of their noise."""
        network = extension.lifted(core, self.frame)
        found = [network(self.rows[part].astype(np.float64)) for part in _blocks(len(self.rows))]
        return np.asarray((self.f - np.concatenate(found)) * self.weight)


def ask_anywhere(
    view: View, frame: Frame, directions: FloatArray, count: int, rng: np.random.Generator, spread: float = 0.0
) -> Anywhere:
    """Random inputs as they are in use, and of scales about that, by up to `spread` in their logarithm.

    In many dimensions Gaussian inputs are all as long, and hardly tell constants from weights that differ a little.
    """
    rows = np.empty((count, view.dim), np.float32 if view.in_single else np.float64)
    f, sd = np.empty((count, view.outputs)), np.empty((count, 1))
    scales = np.exp(rng.uniform(-spread, spread, (count, 1)))
    with view.oracle.stage("polish", expected=count):
        for part in _blocks(count):
            asked, f[part] = view.ask(scales[part] * view.sample(rng, part.stop - part.start))
            rows[part], sd[part, 0] = asked, view.noise_at_use(asked)
    return Anywhere(rows, f, 1 / (sd * np.maximum(scales, 1)), frame, directions)


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, min(start + BLOCK_ROWS, count)) for start in range(0, count, BLOCK_ROWS))


class Linearised:
    """The Jacobian at a network, as far as products need it; in single precision, for steps alone."""

    def __init__(self, random: Anywhere, core: ReLUNetwork, extension: Extension) -> None:
        network = extension.lifted(core, random.frame)
        self.random, self.layout, self.a = random, Layout.of(core), core.weights[1].astype(np.float32)
        self.values: AnyFloats = random.rows @ network.weights[0].T.astype(np.float32)
        self.values += network.biases[0].astype(np.float32)

    def forward(self, step: Step) -> FloatArray:
        """Change (n, m) of the weighted answers by a step of all parameters."""
        layout, random = self.layout, self.random
        hidden, outputs, affine = layout.split_core(step[0])
        w, b = self._of_inputs(hidden, step[1][:, : layout.h])
        skip, constant = self._of_inputs(affine.T, step[1][:, layout.h :] if layout.affine else None)
        change = np.empty(random.f.shape, np.float32)
        for part in _blocks(len(change)):
            rows, values = random.rows[part], self.values[part]
            change[part] = ((values > 0) * (rows @ w.T + b)) @ self.a.T + constant
            if layout.m > 1:
                change[part] += np.maximum(values, 0) @ outputs.astype(np.float32)
            if layout.affine:
                change[part] += rows @ skip.T
        return np.asarray(change * random.weight)

    def back(self, residual: FloatArray) -> Step:
        """Products of all columns with weighted residuals (n, m)."""
        layout, random = self.layout, self.random
        unit = float(np.abs(residual).max()) or 1.0
        left = (residual * (random.weight / unit)).astype(np.float32)
        (h, m), d = (layout.h, layout.m), random.rows.shape[1]
        inputs, sums = np.zeros((h + m, d)), np.zeros(h + m)
        outputs = np.zeros((h, m))
        for part in _blocks(len(left)):
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
        random, a = self.random, self.a.astype(np.float64)
        own, shared = self.layout.own(a), self.layout.core(a)
        values, away = self.values[:AVERAGED_ROWS], random.rows[:AVERAGED_ROWS] - random.frame.origin
        weight = random.weight[:AVERAGED_ROWS] * np.sqrt(len(random.rows) / max(len(values), 1))
        columns = np.column_stack([values > 0, np.ones(len(values))]) * weight
        off = away @ random.directions.T
        spread = float(np.mean((off * weight) ** 2) / np.mean(weight**2)) if off.size else 0.0
        block = spread * own.normal(columns.T @ columns, own)
        gram = np.zeros((self.layout.columns,) * 2)
        with_ones = np.column_stack([away @ random.frame.basis.T, np.ones(len(values))])
        for part in _blocks(len(values)):
            common = core_features(values[part], with_ones[part], weight[part, 0])
            gram += common.T @ common
        return arrow.plus(block, shared.normal(gram, shared))
