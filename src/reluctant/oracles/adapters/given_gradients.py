"""`WithGradients`: a target of any kind beside a function that gives its gradients, in one answer a row."""

from __future__ import annotations

from collections.abc import Callable

from reluctant.numerics import FloatArray
from reluctant.oracles.adapters.dispatch import call_target
from reluctant.oracles.base import Explained, Oracle, PassThrough
from reluctant.oracles.explanations import GradientFace, as_gradients

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
