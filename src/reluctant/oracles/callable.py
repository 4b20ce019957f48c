"""Adapter for any function that maps an (n, d) array to (n,) or (n, m) numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reluctant.errors import InvalidInput, ReluctantError, TargetUnavailable
from reluctant.numerics import FloatArray
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Facts, Kind, Oracle
from reluctant.oracles.checks import as_answers

__all__ = ["CallableOracle", "call_target"]


class CallableOracle(Oracle):
    """Asks a Python function.

    The number of outputs is what its first answer has; from then on it must keep to it.
    """

    def __init__(
        self, function: Callable[[FloatArray], object], dim: int, *, kind: Kind = Kind.VALUES, name: str = ""
    ) -> None:
        if not callable(function):
            raise InvalidInput.about("target", got=type(function).__name__, expected="a callable")
        self._function = function
        self._facts = Facts(dim, UNKNOWN_OUTPUTS, kind=kind, name=name or _name_of(function))

    @property
    def facts(self) -> Facts:
        """Dimension as given; outputs once they are known."""
        return self._facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """Call the function with a copy-free, read-only view of the rows."""
        view = rows.view()
        view.flags.writeable = False
        answers = as_answers(call_target(self._function, view), len(rows), self._facts.outputs)
        if self._facts.outputs == UNKNOWN_OUTPUTS:
            self._facts = Facts(self.dim, answers.shape[1], kind=self._facts.kind, name=self._facts.name)
        return np.array(answers)  # a copy: the function may reuse its buffer, or give back the rows

    def __repr__(self) -> str:
        return f"CallableOracle({self._facts.name})"


def call_target(function: Callable[[Any], object], argument: Any) -> object:
    """Call the target; whatever it raises comes back as `TargetUnavailable` with its cause."""
    try:
        return function(argument)
    except ReluctantError:
        raise
    except Exception as error:
        raise TargetUnavailable(
            f"target: raised {type(error).__name__}: {error}. "
            f"Check that it accepts {_shaped(argument)} (dim=, --dim). If it answers only in some range, open it with "
            "domain= (--domain LOW,HIGH); if it takes only so many rows at once, with batch= (--batch); if it fails "
            "now and then, with retries=3."
        ) from error


def _shaped(argument: Any) -> str:
    """The rows that it was asked, any number of them."""
    sizes = ", ".join(str(size) for size in getattr(argument, "shape", (0, "d"))[1:])
    return f"(n, {sizes}) float arrays"


def _name_of(function: Callable[..., object]) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__
