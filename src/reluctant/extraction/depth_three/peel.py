"""The layers above a known first layer, as a target of their own: asked at hidden values, on the positive orthant.

The hidden values y ≥ 0 are those of the input x = W⁺(y - b), for W has a right inverse W⁺ (Section 3.5.4 of the
extraction paper). Every row asked is one row of the target, in the same account.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluctant.domains import Domain
from reluctant.extraction.depth_three.first_layer import FirstLayer
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting, Facts, Oracle, Wrapper

__all__ = ["LEAST", "Peeled", "peel"]

LEAST = 1e-6  # hidden value: on a hyperplane itself nobody could say on which side rounding puts an input


class Peeled(Wrapper):
    """Answers hidden values of the first layer as the target answers an input that has them."""

    def __init__(self, inner: Oracle, layer: FirstLayer) -> None:
        super().__init__(inner)
        self.layer = layer
        self._inverse = np.linalg.pinv(layer.weights)

    @property
    def facts(self) -> Facts:
        """As many inputs as the first layer has neurons, all of them positive."""
        orthant = Domain(LEAST, np.inf)
        return replace(super().facts, dim=len(self.layer), domain=orthant, name=f"{self.inner.facts.name}, peeled")

    def inputs(self, hidden: FloatArray) -> FloatArray:
        """Inputs (n, d) whose hidden values are these rows."""
        return (hidden - self.layer.biases) @ self._inverse.T

    def answer(self, rows: FloatArray) -> FloatArray:
        """Ask the target at inputs with these hidden values."""
        return self.inner.answer(self.inputs(rows))


def peel(oracle: Counting, layer: FirstLayer) -> Counting:
    """The opened target without its first layer, with the same ledger."""
    return Counting(Peeled(oracle.inner, layer), oracle.ledger)
