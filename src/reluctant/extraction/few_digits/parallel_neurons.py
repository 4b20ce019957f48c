"""Parallel neurons that look like one from afar, separated near the origin.

From far away two neurons with one normal have one crease: the look gives the normal and the sum of their output weights
exactly. Near the origin the sum of two hinges is left over beside the hinge in place of both. Which neuron that is,
where its two creases are, and what each of them carries of the sum follow from random inputs of the scale of use, by
least squares; biases are fitted anew along with them. Asks nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from reluctant.fitting.least_squares import Linearisation, Parts, StepRules, design_matrix, least_squares
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

EXPLAINED = 3.0  # times the noise, root mean square, that answers leave of a network that explains them
MOST_PAIRS = 3


def with_parallel_neurons(network: ReLUNetwork, rows: FloatArray, answers: FloatArray, sd: float) -> ReLUNetwork:
    """The network with neurons split into parallel ones, as far as that explains answers; as it is if it does not.

    rows: inputs of the scale of use. sd: noise of an answer.
    """
    better = 0.5  # of the root mean square before: a pair that brings less is none
    for _ in range(MOST_PAIRS):
        left = _left(network, rows, answers)
        if left <= EXPLAINED * sd or not network.widths[1]:
            break
        split = _Split.best(network, rows, answers)
        found = split.fitted(rows, answers)
        if not _left(found, rows, answers) < better * left:
            break
        network = found
    return network


def _left(network: ReLUNetwork, rows: FloatArray, answers: FloatArray) -> float:
    return float(np.sqrt(np.mean((answers - network(rows)) ** 2)))


@dataclass(frozen=True)
class _Split:
    """A network whose last neuron is parallel to another one; together they carry `total` (m,)."""

    network: ReLUNetwork
    pair: tuple[int, int]
    total: FloatArray

    @classmethod
    def best(cls, network: ReLUNetwork, rows: FloatArray, answers: FloatArray) -> _Split:
        """The neuron and the pair of creases in its place that explain most of the residual."""
        coarse, fine = np.linspace(0.03, 0.97, 10), np.linspace(0.02, 0.98, 24)  # quantiles of inputs along a normal
        (w, a), (b, c) = network.weights, network.biases
        along, left = rows @ w.T, answers - network(rows)
        base = np.linalg.qr(design_matrix(along + b > 0, a))[0]
        explained = []
        for j in range(len(b)):
            hinges = _hinges(along[:, j], -np.quantile(along[:, j], coarse)) - _hinges(along[:, j], b[j : j + 1])
            explained.append(_explained(_for_outputs(hinges, len(a)), left.reshape(-1), base)[1])
        j = int(np.argmax(explained))
        offsets = -np.quantile(along[:, j], fine)
        hinges = _hinges(along[:, j], offsets)
        one = _hinges(along[:, j], b[j : j + 1])
        best, choice = -np.inf, (0, 1, a[:, j])
        for k, other in combinations(range(len(offsets)), 2):
            rest = left - (hinges[:, [other]] - one) * a[:, j]
            columns = _for_outputs(hinges[:, [k]] - hinges[:, [other]], len(a))
            part, gain = _explained(columns, rest.reshape(-1), base)
            gain -= _size(rest.reshape(-1), base)
            if gain > best:
                best, choice = gain, (k, other, part)
        k, other, part = choice
        biases = np.append(b, offsets[other])
        biases[j] = offsets[k]
        outputs = np.column_stack([a, a[:, j] - part])
        outputs[:, j] = part
        return cls(ReLUNetwork([np.vstack([w, w[j]]), outputs], [biases, c], network.skip), (j, len(b)), a[:, j])

    def fitted(self, rows: FloatArray, answers: FloatArray) -> ReLUNetwork:
        """Gauss–Newton on biases, constants and what the first of the pair carries."""
        rules = StepRules(steps=12, policy=Parts((1.0, 0.5, 0.25, 0.125)))
        return least_squares(self.network, lambda at: self._linearised(at, rows, answers), rules).state

    def _linearised(
        self, at: ReLUNetwork, rows: FloatArray, answers: FloatArray
    ) -> Linearisation[ReLUNetwork, FloatArray]:
        (w, a), (b, _), (first, second) = at.weights, at.biases, self.pair
        values = rows @ w.T + b
        hinges = np.maximum(values[:, [first]], 0) - np.maximum(values[:, [second]], 0)
        design = np.hstack([design_matrix(values > 0, a), _for_outputs(hinges, len(a))])
        step = np.linalg.lstsq(design, (answers - at(rows)).reshape(-1), rcond=1e-10)[0]

        def move(part: FloatArray) -> tuple[ReLUNetwork, float]:
            moved = self.moved(at, part)
            return moved, _left(moved, rows, answers)

        return Linearisation(at, _left(at, rows, answers), lambda part: part * step, move)

    def moved(self, network: ReLUNetwork, step: FloatArray) -> ReLUNetwork:
        """After a step of biases, constants and the part of the first."""
        (w, a), (b, c), (first, second) = network.weights, network.biases, self.pair
        outputs, h, m = a.copy(), len(b), len(a)
        outputs[:, first] = a[:, first] + step[h + m :]
        outputs[:, second] = self.total - outputs[:, first]
        return ReLUNetwork([w, outputs], [b + step[:h], c + step[h : h + m]], network.skip)


def _hinges(along: FloatArray, offsets: FloatArray) -> FloatArray:
    """max(t + o, 0) for every place and offset (n, k)."""
    return np.maximum(along[:, None] + offsets, 0)


def _for_outputs(columns: FloatArray, outputs: int) -> FloatArray:
    """Columns (n, k) with a coefficient for each output: (n·m, k·m)."""
    return np.asarray(np.einsum("nk,mo->nmko", columns, np.eye(outputs)).reshape(len(columns) * outputs, -1))


def _explained(columns: FloatArray, left: FloatArray, base: FloatArray) -> tuple[FloatArray, float]:
    """Coefficients of columns that explain the residual beside an orthonormal base, and the squares they explain."""
    beside = columns - base @ (base.T @ columns)
    found = np.linalg.lstsq(beside, left - base @ (base.T @ left), rcond=1e-10)[0]
    return np.asarray(found, dtype=np.float64), float(((beside @ found) ** 2).sum())


def _size(left: FloatArray, base: FloatArray) -> float:
    """Sum of squares of the residual beside an orthonormal base."""
    return float(((left - base @ (base.T @ left)) ** 2).sum())
