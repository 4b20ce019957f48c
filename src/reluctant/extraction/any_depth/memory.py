"""Every answer of a search, in its coordinates: the last fit uses them all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluctant.numerics import FloatArray

__all__ = ["Memory"]


class Memory:
    """A question that remembers; calling it asks."""

    def __init__(self, ask: Callable[[FloatArray], FloatArray]) -> None:
        self.ask = ask
        self.rows: list[FloatArray] = []
        self.answers: list[FloatArray] = []

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Ask, and keep the answers."""
        answers = self.ask(rows) if len(rows) else np.empty((0, self.answers[0].shape[1]))
        self.rows.append(rows)
        self.answers.append(answers)
        return answers

    def near(self, distance: float) -> tuple[FloatArray, FloatArray]:
        """All rows within this distance of the origin, with their answers."""
        rows, answers = np.concatenate(self.rows), np.concatenate(self.answers)
        near = np.linalg.norm(rows, axis=1) < distance
        return rows[near], answers[near]
