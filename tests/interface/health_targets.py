"""Targets for the health check: good networks seen through every kind of interface."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reluctant import ReLUNetwork
from reluctant.testing import planted

DIM = 20

Target = Callable[[np.ndarray], np.ndarray]


def network(seed: int, outputs: int = 1, hidden: int = 30) -> ReLUNetwork:
    """A generic network of `DIM` inputs."""
    return planted((DIM, hidden, outputs), seed)


def lively(widths: tuple[int, ...], seed: int) -> ReLUNetwork:
    """The first network from this seed on whose last layers are not dead at most inputs."""
    rows = np.random.default_rng(0).standard_normal((100, widths[0]))
    candidates = (planted(widths, rng) for rng in range(seed, seed + 100))
    return next(each for each in candidates if len(np.unique(each(rows))) > len(rows) / 2)


def with_activation(activation: Target, seed: int) -> Target:
    """One hidden layer with another activation than ReLU."""
    (w, a), (b, c) = network(seed).weights, network(seed).biases
    return lambda x: activation(x @ w.T + b) @ a.T + c


def softmax(values: Target) -> Target:
    """Probabilities of these logits."""

    def target(x: np.ndarray) -> np.ndarray:
        logits = values(x)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return target


def labels(x: np.ndarray) -> np.ndarray:
    """Three classes, equally often."""
    return x[:, :3].argmax(axis=1)


class Recording:
    """Keeps every row it is asked."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.batches: list[np.ndarray] = []

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.batches.append(x.copy())
        return self.target(x)

    @property
    def rows(self) -> np.ndarray:
        """All rows so far."""
        return np.concatenate(self.batches)
