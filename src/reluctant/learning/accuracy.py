"""How wrong a network is under the Gaussian, with samples where errors hide.

Plain Gaussian samples are blind: a wrong neuron in a cluster errs within 1e-9 of a crease, where none of them is.
So some samples lie near the creases of the network, at distances spread over twelve orders of magnitude, and every
sample is weighted by the Gaussian over the mixture it was drawn from.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Accuracy", "measure_accuracy", "near_creases"]

NEAREST, FARTHEST = 1e-12, 1.0  # distances from a crease
CONFIDENCE = 0.95
DEVIATIONS = 1.96  # of a Gaussian, to either side, for that confidence


@dataclass(frozen=True)
class Accuracy:
    """Mean square error under the standard Gaussian over the variance of the target, with a confidence interval."""

    error: float
    low: float
    high: float
    confidence: float
    points: int
    variance: float  # of the target

    def __str__(self) -> str:
        return (
            f"Relative square error {self.error:.1e} (between {self.low:.1e} and {self.high:.1e} with "
            f"{self.confidence:.0%} confidence), from {self.points} points, those near creases included."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def near_creases(planes: Hyperplanes, n: int, rng: np.random.Generator) -> FloatArray:
    """Gaussian points moved straight to the neighbourhood of a random crease each; none if there is no crease."""
    dim = planes.normals.shape[1]
    if not len(planes):
        return np.empty((0, dim))
    rows, which = rng.standard_normal((n, dim)), rng.integers(len(planes), size=n)
    normals = planes.normals[which]
    sides = rng.choice([-1.0, 1.0], n) * np.exp(rng.uniform(np.log(NEAREST), np.log(FARTHEST), n))
    move = sides - (rows * normals).sum(axis=1) - planes.offsets[which]
    return np.asarray(rows + move[:, None] * normals)


def measure_accuracy(
    network: ReLUNetwork, rows: FloatArray, answers: FloatArray, strips: int, planes: Hyperplanes
) -> Accuracy:
    """Accuracy from answers at Gaussian rows, the last `strips` of which were drawn by `near_creases`. No queries."""
    weight = _weights(rows, strips / len(rows), planes)
    square = ((answers - network(rows)) ** 2).sum(axis=1)
    centre = (weight[:, None] * answers).sum(axis=0) / weight.sum()
    variance = float((weight * ((answers - centre) ** 2).sum(axis=1)).sum() / weight.sum())
    variance = variance or float((answers**2).sum(axis=1).max()) or 1.0  # of a constant: the size of its answers
    terms = weight * square / variance
    error, sd = float(terms.mean()), float(terms.std() / np.sqrt(len(terms)))
    return Accuracy(error, max(0.0, error - DEVIATIONS * sd), error + DEVIATIONS * sd, CONFIDENCE, len(rows), variance)


def _weights(rows: FloatArray, share: float, planes: Hyperplanes) -> FloatArray:
    """Density of the Gaussian over that of the mixture, at each row."""
    if not len(planes) or share == 0:
        return np.ones(len(rows))
    distance = planes.distance(rows)
    along = distance - planes.offsets  # coordinate along each normal, a standard Gaussian one
    size = np.abs(distance)
    inside = (size > NEAREST) & (size < FARTHEST)
    drawn = np.where(inside, 1 / (2 * np.maximum(size, NEAREST) * np.log(FARTHEST / NEAREST)), 0.0)
    gaussian = np.exp(-(along**2) / 2) / np.sqrt(2 * np.pi)
    ratio = np.full(size.shape, np.inf)  # where the Gaussian's density is too small for a number
    np.divide(drawn, gaussian, out=ratio, where=gaussian > 0)
    return np.asarray(1 / (1 - share + share * np.where(drawn > 0, ratio, 0.0).mean(axis=1)))
