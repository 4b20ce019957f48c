"""Planted networks with known creases, and the true error of a recovered network.

Tests and benchmarks share them: random networks of any widths, networks of any activation and number format with
0/1 labels at a threshold, and the digits classifiers, bundled or trained anew. Error measures ask where errors hide: on
every true crease and beside it. Families that break general position are in `reluctant.testing.families`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from reluctant.bundled import digits_model
from reluctant.errors import require
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator

Family: TypeAlias = Callable[[Rng], ReLUNetwork]


def planted(
    widths: Sequence[int],
    rng: Rng = 0,
    *,
    bias: float = 1.0,
    skip: bool = False,
    zero_output_bias: bool = False,
) -> ReLUNetwork:
    """A Gaussian network of these widths, scaled so that values stay of order one through the layers."""
    generator = as_generator(rng)
    pairs = list(pairwise(widths))
    weights = [generator.standard_normal((out, into)) * np.sqrt(2 / into) for into, out in pairs]
    biases = [bias * generator.standard_normal(out) for _, out in pairs]
    if zero_output_bias:
        biases[-1] = np.zeros(widths[-1])
    affine = generator.standard_normal((widths[-1], widths[0])) / np.sqrt(widths[0]) if skip else None
    return ReLUNetwork(weights, biases, affine)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "softplus": lambda z: np.logaddexp(0, z) - np.log(z.dtype.type(2)),
}
THRESHOLD_SAMPLE = 4000  # inputs that the threshold is set by


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
    values = Labelled(tuple(weights), activation).values(generator.standard_normal((THRESHOLD_SAMPLE, widths[0])))
    level = float(np.quantile(values, 1 - ones))
    if level <= 0:
        weights[-1], level = -weights[-1], float(np.quantile(-values, 1 - ones))
    weights[-1] /= level
    return Labelled(tuple(weight.astype(dtype) for weight in weights), activation)


MOST_INK = 16.0


def trained_digits() -> ReLUNetwork:
    """The bundled 64-32-10 digits classifier (reading it needs onnx)."""
    return ReLUNetwork.load(digits_model())


def train_digits(hidden: tuple[int, ...], seed: int) -> ReLUNetwork:
    """Logits of a classifier with these hidden layers, trained on the UCI digits (needs scikit-learn)."""
    datasets = require("sklearn.datasets", extra="sklearn", purpose="Training on digits")
    networks = require("sklearn.neural_network", extra="sklearn", purpose="Training on digits")
    images, labels = datasets.load_digits(return_X_y=True)
    model = networks.MLPClassifier(hidden, max_iter=1000, alpha=1e-3, random_state=seed).fit(images / MOST_INK, labels)
    return ReLUNetwork([w.T for w in model.coefs_], model.intercepts_)


ERROR_SCALES = (0.1, 1.0, 10.0)
BESIDE_CREASES = (0.0, 1e-8, 1e-6, 1e-4, 1e-2)  # distances from a true crease
ERROR_POINTS = 2000
NEAREST_TO_CREASE, WIDEST_FROM_CREASE = 1e-12, 1.0  # distances from a true crease that samples are spread over
MANY_POINTS = 100_000
FARTHEST_POINTS = 100.0  # typical inputs: creases beyond are not at the scale of use


def largest_true_error(network: Callable[[FloatArray], Any], true: ReLUNetwork, seed: int = 7) -> float:
    """Largest error over random inputs, on every true first-layer hyperplane and beside it.

    Relative to the standard deviation of the output, at scales 0.1, 1 and 10.
    """
    rng = np.random.default_rng(seed)
    normals, offsets = true.hyperplanes()
    spread, worst = true(rng.standard_normal((ERROR_POINTS, true.dim))).std(), 0.0
    for scale in ERROR_SCALES:
        starts = scale * rng.standard_normal((len(offsets), true.dim))
        feet = starts - ((starts * normals).sum(axis=1) + offsets)[:, None] * normals
        groups = [scale * rng.standard_normal((ERROR_POINTS, true.dim))]
        groups += [feet + distance * rng.standard_normal(feet.shape) for distance in BESIDE_CREASES]
        for rows in groups:
            near = rows[np.linalg.norm(rows, axis=1) < FARTHEST_POINTS * np.sqrt(true.dim)]
            if len(near):
                unit = max(spread, true(near).std())
                worst = max(worst, float(np.abs(network(near) - true(near)).max() / unit))
    return worst


def relative_square_error(network: ReLUNetwork, true: ReLUNetwork, seed: int = 7, points: int = MANY_POINTS) -> float:
    """Mean square error under the Gaussian over the variance of the true network, one hidden layer.

    Half of the samples lie near the true creases, at distances spread evenly in their logarithm, and every sample is
    weighted by the Gaussian over the mixture it comes from: plain samples do not see an error inside a cluster.
    """
    rng = np.random.default_rng(seed)
    normals, offsets = true.hyperplanes()
    live = np.isfinite(normals).all(axis=1)
    normals, offsets = normals[live], offsets[live]
    rows, beside = rng.standard_normal((points, true.dim)), rng.integers(len(offsets), size=points // 2)
    sides = rng.choice([-1.0, 1.0], len(beside)) * np.exp(
        rng.uniform(np.log(NEAREST_TO_CREASE), np.log(WIDEST_FROM_CREASE), len(beside))
    )
    near = rows[: len(beside)]
    near += (sides - (near * normals[beside]).sum(axis=1) - offsets[beside])[:, None] * normals[beside]
    weight = _gaussian_over_mixture(rows @ normals.T, offsets)[:, None]
    answers = true(rows)
    centre = (weight * answers).sum(axis=0) / weight.sum()
    return float((weight * (network(rows) - answers) ** 2).sum() / (weight * (answers - centre) ** 2).sum())


def _gaussian_over_mixture(along: FloatArray, offsets: FloatArray) -> FloatArray:
    """At coordinates (n, h) along the normals: the Gaussian's density over that of the two halves together."""
    size = np.abs(along + offsets)
    drawn = np.where(
        (size > NEAREST_TO_CREASE) & (size < WIDEST_FROM_CREASE), 1 / (2 * np.maximum(size, NEAREST_TO_CREASE)), 0.0
    )
    drawn /= np.log(WIDEST_FROM_CREASE / NEAREST_TO_CREASE)
    gaussian = np.exp(-(along**2) / 2) / np.sqrt(2 * np.pi)
    ratio = np.full(size.shape, np.inf)  # where the Gaussian's density is too small for a number
    np.divide(drawn, gaussian, out=ratio, where=gaussian > 0)
    return np.asarray(2 / (1 + np.where(drawn > 0, ratio, 0.0).mean(axis=1)))
