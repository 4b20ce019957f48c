"""`WithGradients`: a target of any kind beside a function that gives its gradients, in one answer a row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluctant.errors import InvalidAnswer
from reluctant.numerics import FloatArray
from reluctant.oracles.adapters.dispatch import call_target
from reluctant.oracles.base import Explained, Oracle, PassThrough
from reluctant.oracles.explanations import GradientFace

GradientFunction = Callable[[FloatArray], object]  # rows (n, d) -> (n, m, d), or (n, d) of one output


class WithGradients(PassThrough):
    """Passes questions on; asked for gradients, it calls the function at the same rows.

    Arguments:
        inner: the target.
        function: its gradients.
        output: which output they are of, where they are those of one among several.
    """

    def __init__(self, inner: Oracle, function: GradientFunction, output: int | None = None) -> None:
        super().__init__(inner)
        self._function, self._output = function, output

    @property
    def explained(self) -> Oracle:
        """Values and gradients."""
        return GradientFace(self)

    def with_gradients(self, rows: FloatArray) -> Explained:
        """Ask the target and the function."""
        values = self.inner.answer(rows)
        view = rows.view()
        view.flags.writeable = False
        raw = call_target(self._function, view)
        return Explained(values, as_gradients(raw, values.shape, rows.shape[1], self._output))


def as_gradients(raw: object, answers: tuple[int, ...], dim: int, output: int | None) -> FloatArray:
    """What a function returned beside answers (rows, outputs), as (rows, outputs, dim); NaN where it says nothing."""
    rows, outputs = answers
    try:
        found = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidAnswer(f"gradients: got {type(raw).__name__} ({error}), expected an array of numbers.") from error
    if found.shape == (rows, outputs, dim):
        return found
    if found.shape == (rows, dim) and outputs == 1:
        return found[:, None]
    if found.shape == (rows, dim) and output is not None:
        every = np.full((rows, outputs, dim), np.nan)
        every[:, output] = found
        return every
    one = "" if outputs == 1 else f", or ({rows}, {dim}) of one output that is named"
    raise InvalidAnswer(
        f"gradients: got an answer of shape {found.shape} for {rows} rows, expected ({rows}, {outputs}, {dim}){one}. "
        "The order is rows, outputs, inputs; name one output with output=."
    )
