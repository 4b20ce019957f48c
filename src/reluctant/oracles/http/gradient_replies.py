"""Gradients in the replies of a served model: which part of a reply holds them, and their shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.oracles.base import Explained
from reluctant.oracles.explanations import as_gradients


@dataclass(frozen=True)
class ServedGradients:
    """name: of the output tensor, or a path into a JSON reply. output: which output they are of, if of one alone."""

    name: str
    output: int | None = None

    @classmethod
    def of(cls, given: object, output: int | None) -> ServedGradients | None:
        """What a user gives as gradients of a served model; a function of their own has no place in a reply."""
        return cls(given, output) if isinstance(given, str) else None

    def beside(self, values: FloatArray, numbers: FloatArray, dim: int) -> Explained:
        """Answers (n, m) with the numbers of their gradients: a row may be flat, or in the shape of an input."""
        rows, outputs = values.shape
        if len(numbers) == rows and numbers.shape != (rows, dim):
            whole = numbers.size == rows * outputs * dim
            numbers = numbers.reshape(rows, outputs, dim) if whole else np.reshape(numbers, (rows, -1))
        return Explained(values, as_gradients(numbers, (rows, outputs), dim, self.output))
