"""Rows and answers that were paid for: `remember` keeps what a target answers, for fits that ask nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Oracle, Wrapper
from reluctant.oracles.moves import Moves

__all__ = ["Memory", "remember"]


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
