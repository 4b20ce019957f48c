"""Adapter for a ReLUNetwork: the network becomes a target like any other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Facts, Kind, Oracle

__all__ = ["NetworkOracle"]


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
        self._facts = Facts(network.dim, network.outputs, kind=kind, name=name, identity=_identity(network))

    @property
    def facts(self) -> Facts:
        """Dimensions of the network."""
        return self._facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """Evaluate the network, its link included."""
        return LINK_FUNCTIONS[self._network.link](self._network(rows))

    def __repr__(self) -> str:
        return f"NetworkOracle({self._facts.name})"


def _identity(network: ReLUNetwork) -> str:
    digest = hashlib.sha256(f"{network.widths} {network.skip is not None} {network.link}".encode())
    for array in (*network.weights, *network.biases, *(() if network.skip is None else (network.skip,))):
        digest.update(array.tobytes())
    return f"network sha256:{digest.hexdigest()}"
