"""Adapter for a ReLUNetwork: the network becomes a target like any other."""

from __future__ import annotations

import hashlib

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.base import Facts, Oracle

__all__ = ["NetworkOracle"]


class NetworkOracle(Oracle):
    """Answers with the values of a network; its weights stay behind the wall."""

    def __init__(self, network: ReLUNetwork) -> None:
        self._network = network
        name = "-".join(map(str, network.widths))
        self._facts = Facts(network.dim, network.outputs, name=name, identity=_identity(network))

    @property
    def facts(self) -> Facts:
        """Dimensions of the network."""
        return self._facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """Evaluate the network."""
        return self._network(rows)

    def __repr__(self) -> str:
        return f"NetworkOracle({self._facts.name})"


def _identity(network: ReLUNetwork) -> str:
    digest = hashlib.sha256()
    for array in (*network.weights, *network.biases, *(() if network.skip is None else (network.skip,))):
        digest.update(array.tobytes())
    return f"network sha256:{digest.hexdigest()}"
