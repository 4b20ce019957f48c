"""Planted networks for span recovery: any activation, any number format, labels at a threshold (numpy alone)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from reluctant.numerics import FloatArray, Rng, as_generator

__all__ = ["ACTIVATIONS", "Labelled", "labelled"]

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "softplus": lambda z: np.logaddexp(0, z) - np.log(z.dtype.type(2)),
}
SAMPLE = 4000  # inputs that the threshold is set by


@dataclass(frozen=True)
class Labelled:
    """Answers whether a network reaches 1, computed in its own number format: the paper's τ(σ(Ax))."""

    weights: tuple[np.ndarray[Any, Any], ...]
    activation: str

    def values(self, x: FloatArray) -> FloatArray:
        """The value that is compared with 1."""
        h: Any = np.asarray(x).astype(self.weights[0].dtype)
        for weight in self.weights[:-1]:
            h = ACTIVATIONS[self.activation](h @ weight.T)
        return np.asarray((h @ self.weights[-1].T)[:, 0], dtype=np.float64)

    def __call__(self, x: FloatArray) -> FloatArray:
        """0 or 1 for each row."""
        return np.asarray(self.values(x) >= 1, dtype=np.float64)


def labelled(
    widths: Sequence[int], activation: str, rng: Rng = 0, *, dtype: Any = np.float64, ones: float = 0.3
) -> Labelled:
    """A random network of these widths without biases whose label is 1 for about this share of Gaussian inputs."""
    generator = as_generator(rng)
    gain = 2.0 if activation == "relu" else 1.5
    weights = [generator.standard_normal((out, into)) * np.sqrt(gain / into) for into, out in pairwise(widths)]
    values = Labelled(tuple(weights), activation).values(generator.standard_normal((SAMPLE, widths[0])))
    level = float(np.quantile(values, 1 - ones))
    if level <= 0:
        weights[-1], level = -weights[-1], float(np.quantile(-values, 1 - ones))
    weights[-1] /= level
    return Labelled(tuple(weight.astype(dtype) for weight in weights), activation)
