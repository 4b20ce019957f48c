"""A network evaluated where large arrays live."""

from __future__ import annotations

import numpy as np

from reluctant.arrays import HOST, Arrays
from reluctant.networks.network import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["evaluate"]

ROWS_OF_CELLS = 4  # of the numbers worked on together: rows, and values of a layer


def evaluate(network: ReLUNetwork, rows: FloatArray, arrays: Arrays = HOST) -> FloatArray:
    """What the network gives at rows (n, d), worked out there."""
    if arrays is HOST:
        return network(rows)
    weights = [arrays.put(w).T for w in network.weights]
    biases = [arrays.put(b) for b in network.biases]
    skip = None if network.skip is None else arrays.put(network.skip).T
    size = max(1, arrays.cells // (ROWS_OF_CELLS * max(network.widths)))
    parts = []
    for start in range(0, len(rows), size):
        hidden = given = arrays.put(rows[start : start + size])
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            hidden = arrays.xp.clip(hidden @ w + b, 0, None)
        out = hidden @ weights[-1] + biases[-1]
        parts.append(arrays.get(out if skip is None else out + given @ skip))
    return np.concatenate(parts)
