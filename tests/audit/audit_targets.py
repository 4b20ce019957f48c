"""Targets that tests of the audit share: a small network, and its probabilities."""

from __future__ import annotations

import numpy as np

from reluctant import ReLUNetwork
from reluctant.testing import planted

__all__ = ["NETWORK", "confident", "softmax"]

NETWORK = planted((6, 8, 3))


def softmax(x):
    return _shares(NETWORK(x))


def confident(times: float):
    """Probabilities of a network whose values are so many times as large."""
    first, last = NETWORK.weights
    sure = ReLUNetwork([first, times * last], [NETWORK.biases[0], times * NETWORK.biases[1]])
    return lambda x: _shares(sure(x))


def _shares(values):
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
