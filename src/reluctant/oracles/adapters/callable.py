"""Adapters for what can be called in this process: any function, and a `ReLUNetwork`.

A function maps an (n, d) array to (n,) or (n, m) numbers. Whatever it raises comes back as `TargetUnavailable`,
with its cause. A network becomes a target like any other: it answers with its link, and its weights stay behind the
wall.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from reluctant.errors import InvalidInput, ReluctantError, TargetUnavailable
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.base import UNKNOWN_OUTPUTS, Facts, Kind, Oracle, as_answers

__all__ = ["CallableOracle", "NetworkOracle", "call_target"]


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
        self._facts = Facts(dim, UNKNOWN_OUTPUTS, kind=kind, name=name or _function_name(function))

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
            f"Check that it accepts {_shaped(argument)} (dim=). If it answers only in some range, open it with "
            "domain=(low, high); if it takes only so many rows at once, with batch=N; if it fails "
            "now and then, with retries=3."
        ) from error


def _shaped(argument: Any) -> str:
    """The rows that it was asked, any number of them."""
    sizes = ", ".join(str(size) for size in getattr(argument, "shape", (0, "d"))[1:])
    return f"(n, {sizes}) float arrays"


def _function_name(function: Callable[..., object]) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__


def _softmax(values: FloatArray) -> FloatArray:
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _log_softmax(values: FloatArray) -> FloatArray:
    shifted = values - values.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def _sigmoid(values: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # exp of a very negative value is 0 in the end
        return 1 / (1 + np.exp(-values))


LINK_FUNCTIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "identity": lambda values: values,
    "softmax": _softmax,
    "log-softmax": _log_softmax,
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
}


class NetworkOracle(Oracle):
    """Answers as the network does, a final softmax or sigmoid included; its weights stay behind the wall."""

    def __init__(self, network: ReLUNetwork) -> None:
        self._network = network
        name = "-".join(map(str, network.widths))
        kind = Kind.PROBABILITIES if network.link in ("softmax", "sigmoid") else Kind.VALUES
        self._facts = Facts(network.dim, network.outputs, kind=kind, name=name, identity=_network_identity(network))

    @property
    def facts(self) -> Facts:
        """Dimensions of the network."""
        return self._facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """Evaluate the network, its link included."""
        return LINK_FUNCTIONS[self._network.link](self._network(rows))

    def __repr__(self) -> str:
        return f"NetworkOracle({self._facts.name})"


def _network_identity(network: ReLUNetwork) -> str:
    digest = hashlib.sha256(f"{network.widths} {network.skip is not None} {network.link}".encode())
    for array in (*network.weights, *network.biases, *(() if network.skip is None else (network.skip,))):
        digest.update(array.tobytes())
    return f"network sha256:{digest.hexdigest()}"
