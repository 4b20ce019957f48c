"""The face of an adapter that gives gradients, and their way through wrappers: `GradientFace`, `Rewritten`.

A wrapper that changes answers says with `explaining` what becomes of their gradients. An interface that answers input ×
gradient is divided by its inputs; an input that is 0 says nothing, so a row with zeros is asked a little beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from reluctant.errors import InvalidGradient, words
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Ask, Explained, Facts, Oracle, PassThrough, Wrapper


def as_gradients(raw: object, answers: tuple[int, ...], dim: int, output: int | None) -> FloatArray:
    """What a function returned beside answers (rows, outputs), as (rows, outputs, dim); NaN where it says nothing."""
    rows, outputs = answers
    try:
        found = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        got, expected = type(raw).__name__, "an array of numbers"
        raise InvalidGradient(
            f"gradients: got {got} ({error}), expected {expected}.", got=got, expected=expected
        ) from error
    if found.shape == (rows, outputs, dim):
        return found
    if found.shape == (rows, dim) and outputs == 1:
        return found[:, None]
    if found.shape == (rows, dim) and output is not None:
        every = np.full((rows, outputs, dim), np.nan)
        every[:, output] = found
        return every
    one = "" if outputs == 1 else f", or ({rows}, {dim}) of one output that is named"
    got, expected = f"an answer of shape {found.shape} for {rows} rows", f"({rows}, {outputs}, {dim}){one}"
    raise InvalidGradient(f"gradients: got {got}, expected {expected}.", got=got, expected=expected).advised(
        words("The order is rows, outputs, inputs; name one output with {output}.")
    )


class GradientFace(Wrapper):
    """The answer of an adapter to rows with gradients: it gives both together, by `with_gradients`."""

    inner: Any

    @property
    def facts(self) -> Facts:
        """The adapter's facts, with room for gradients."""
        inner: Facts = self.inner.facts
        return replace(inner, outputs=inner.outputs * (1 + inner.dim))

    def answer(self, rows: FloatArray) -> FloatArray:
        """Ask for both."""
        found: Explained = self.inner.with_gradients(rows)
        return found.packed


class Rewritten(Wrapper):
    """The gradients of a wrapper that changes answers: it asks `inner` and rewrites values and gradients together.

    Arguments:
        outer: the wrapper, whose facts these are.
        inner: answers with gradients.
        rewrite: how it changes them.
        inputs: the rows that it asks `inner` for those that it is asked; None for the same.
    """

    def __init__(
        self, outer: Wrapper, inner: Oracle, rewrite: Callable[[Explained], Explained], inputs: Ask | None = None
    ) -> None:
        super().__init__(inner)
        self._outer, self._rewrite, self._inputs = outer, rewrite, inputs

    @property
    def facts(self) -> Facts:
        """The wrapper's facts, with room for gradients."""
        outer = self._outer.facts
        return replace(outer, outputs=outer.outputs * (1 + outer.dim))

    def answer(self, rows: FloatArray) -> FloatArray:
        """Pass on, then rewrite."""
        asked = rows if self._inputs is None else self._inputs(rows)
        return self._rewrite(Explained.unpacked(self.inner.answer(asked), asked.shape[1])).packed


BESIDE_ZERO = 2.0**-26  # of the largest input: half the digits of float64 lie on either side of such a step


class DividedInputs(PassThrough):
    """A target that answers input × gradient for a gradient: answers pass, gradients are divided."""

    def explaining(self, inner: Oracle) -> Oracle:
        """Divide."""
        return DividedByInput(inner)


class DividedByInput(Wrapper):
    """Gradients of an explained oracle that answers input × gradient.

    Inputs next to 0 are asked at a small step beside it. The answer there leads back to the row itself along its own
    gradient, unless a crease lies between them.
    """

    def answer(self, rows: FloatArray) -> FloatArray:
        """Ask beside zeros, then divide."""
        size = np.abs(rows).max(axis=1, keepdims=True)
        least = BESIDE_ZERO * np.where(size > 0, size, 1.0)
        asked = np.where(np.abs(rows) < least, least, rows)
        found = Explained.unpacked(self.inner.answer(asked), rows.shape[1])
        slopes = found.gradients / asked[:, None]
        return Explained(found.values + np.einsum("nmd,nd->nm", slopes, rows - asked), slopes).packed


class Unexplained(PassThrough):
    """The target without its gradients, for methods that should not trust them."""

    def explaining(self, inner: Oracle) -> None:
        """There are none."""
