"""Linear systems that methods share, and `Memory`, which keeps rows and answers for later fits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import HOST, Array, Arrays, FloatArray
from reluctant.oracles import Counting, Oracle, Wrapper
from reluctant.oracles.base import Moves

MANY_NEURONS = 600  # from here on a factorisation that looks at every pivot takes a noticeable part of the time


def design_matrix(active: Array, outputs: FloatArray, arrays: Arrays = HOST) -> Array:
    """Rows (n·m) by unknowns (h + m): neurons, then the skip rows. `active` (n, h) is one of `arrays`."""
    n, h = active.shape
    m = len(outputs)
    of_neurons = active[:, None, :] * arrays.put(outputs)[None]
    of_skip = arrays.xp.broadcast_to(arrays.put(np.eye(m)), (n, m, m))
    return arrays.xp.concatenate([of_neurons, of_skip], axis=2).reshape(n * m, h + m)


class Design:
    """A design matrix and its solutions: with as many rows as unknowns there is one for all weights."""

    def __init__(self, rows: Array, arrays: Arrays = HOST) -> None:
        self.rows, self.arrays = rows, arrays
        self._inverse: Array | None = None

    @classmethod
    def of(cls, active: Array, outputs: FloatArray, arrays: Arrays = HOST) -> Design:
        """Of points with these patterns (n, h)."""
        return cls(design_matrix(active, outputs, arrays), arrays)

    @property
    def inverse(self) -> Array:
        """Of a square design; worked out once."""
        if self._inverse is None:
            self._inverse = self.arrays.inverse(self.rows)
        return self._inverse

    def solution(self, weights: FloatArray) -> Array:
        """The matrix P for which P @ rows is the weighted least-squares solution."""
        rows, unknowns = self.rows.shape
        if rows == unknowns >= MANY_NEURONS:
            return self.inverse
        return solve_weighted(self.rows, weights, self.arrays)


def solve_weighted(design: Array, weights: FloatArray, arrays: Arrays = HOST) -> Array:
    """The matrix P for which P @ rows is the weighted least-squares solution."""
    return arrays.least_squares(design, arrays.put(weights / np.median(weights)))


def normal_solver(design: Array, arrays: Arrays = HOST) -> Callable[[Array], Array]:
    """Least squares by the normal equations: quick, and half the digits, so for steps that are taken again."""
    ridge = 1e-12  # of squares of columns of norm one: a column of zeros, a neuron never on, is left alone
    normal = design.T @ design
    scale = arrays.xp.sqrt(normal.diagonal())
    scale = arrays.xp.where(scale > 0, scale, 1.0)
    normal /= scale[:, None] * scale
    each = arrays.put(np.arange(len(normal)))
    normal[each, each] += ridge
    solve = arrays.cholesky_solver(normal)
    return lambda right: solve((design.T @ right) / scale) / scale


def affine_map(oracle: Counting) -> ReLUNetwork:
    """The map as a network without hidden layer. Cost: d + 1 rows."""
    with oracle.stage("affine", expected=oracle.dim + 1):
        answers = oracle.query(np.vstack([np.zeros(oracle.dim), np.eye(oracle.dim)]))
    return ReLUNetwork([(answers[1:] - answers[0]).T], [answers[0]])


class Memory:
    """Rows with their answers, in the order in which they were asked; nothing once there are more than `most`."""

    def __init__(self, most: int | None = None) -> None:
        self.answers: list[FloatArray] = []
        self._asked: list[FloatArray | Moves] = []
        self._most, self._seen = most, 0

    def keep(self, rows: FloatArray | Moves, answers: FloatArray) -> None:
        """Keep them: copies of rows, descriptions as they are."""
        self._seen += len(rows)
        if self._most is not None and self._seen > self._most:
            self._asked, self.answers = [], []
            return
        self._asked.append(rows if isinstance(rows, Moves) else rows.copy())
        self.answers.append(answers.copy())

    @property
    def rows(self) -> list[FloatArray]:
        """Written out."""
        return [asked.rows() if isinstance(asked, Moves) else asked for asked in self._asked]

    def listening(self, ask: Callable[[FloatArray], FloatArray]) -> Callable[[FloatArray], FloatArray]:
        """The same question; what it is asked and answers is kept."""

        def asked(rows: FloatArray) -> FloatArray:
            answers = ask(rows)
            self.keep(rows, answers)
            return answers

        return asked

    def everything(self) -> tuple[FloatArray, FloatArray]:
        """All rows and their answers."""
        return np.concatenate(self.rows), np.concatenate(self.answers)

    def near(self, distance: float) -> tuple[FloatArray, FloatArray]:
        """Rows within this distance of the origin, with their answers."""
        rows, answers = self.everything()
        near = np.linalg.norm(rows, axis=1) < distance
        return rows[near], answers[near]


class _MemoryOracle(Wrapper):
    """Keeps rows and answers as they pass."""

    transparent = True

    def __init__(self, inner: Oracle, memory: Memory) -> None:
        super().__init__(inner)
        self.memory = memory

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, keep a copy."""
        return self.memory.listening(self.inner.answer)(rows)

    def answer_moves(self, moves: Moves) -> FloatArray:
        """Pass on as they are described, keep what describes them."""
        answers = self.inner.answer_moves(moves)
        self.memory.keep(moves, answers)
        return answers


def remember(oracle: Counting, most: int | None = None) -> tuple[Counting, Memory]:
    """The same opened target with the same ledger, and a memory of what it answers from now on."""
    memory = Memory(most)
    return Counting(_MemoryOracle(oracle.inner, memory), oracle.ledger, oracle.facts.domain), memory
