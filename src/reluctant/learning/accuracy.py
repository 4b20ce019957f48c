"""How wrong a network is under the Gaussian, with samples where errors hide.

Plain Gaussian samples are blind: a wrong neuron in a cluster errs within 1e-9 of a crease, where none of them is.
So some samples lie near the creases of the network, at distances spread over twelve orders of magnitude, and every
sample is weighted by the Gaussian over the mixture it was drawn from. A few of them tell in which decades around which
creases the error is; the samples that are counted are drawn mostly there.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reluctant.geometry.samples import IntArray
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["Accuracy", "Sampled", "even_chances", "likely_chances", "measure_accuracy", "near_creases", "output_units"]

NEAREST, DECADES = 1e-12, 12  # the smallest distance from a crease, and decades from there
CONFIDENCE = 0.95
DEVIATIONS = 1.96  # of a Gaussian, to either side, for that confidence
UNMET = 3.0  # with that confidence a part of 3/n is met by one of n samples; it may hold terms like the largest one
KNOWN_SHARE = 0.5  # of the samples that are drawn where errors were met
ROUNDINGS = 64.0  # of the largest answer: an output that varies by less is constant


@dataclass(frozen=True)
class Accuracy:
    """Mean square error under the standard Gaussian over the variance of the target, with a confidence interval.

    Of several outputs it is that of the worst, each relative to its own variance.
    """

    error: float
    low: float
    high: float
    confidence: float
    points: int
    variance: float  # of that output

    def __str__(self) -> str:
        return (
            f"Relative square error {self.error:.1e} (between {self.low:.1e} and {self.high:.1e} with "
            f"{self.confidence:.0%} confidence), from {self.points} points, those near creases included."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Sampled:
    """Rows and answers: Gaussian ones, then `strips` of them drawn by `near_creases` with these chances."""

    rows: FloatArray
    answers: FloatArray
    strips: int
    chances: FloatArray  # (h, decades)


def even_chances(planes: Hyperplanes) -> FloatArray:
    """The same for every crease and decade (h, decades)."""
    return np.full((len(planes), DECADES), 1 / max(DECADES * len(planes), 1))


def near_creases(planes: Hyperplanes, n: int, chances: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Gaussian points moved straight to the neighbourhood of a crease each, spread evenly over what `chances` says."""
    if not len(planes):
        return np.empty((0, planes.normals.shape[1]))
    edges = np.append(0.0, np.cumsum(chances))
    places = edges[-1] * (np.arange(n) + rng.random(n)) / n
    cell = np.minimum(np.searchsorted(edges, places, side="right") - 1, chances.size - 1)
    crease, decade = np.divmod(cell, DECADES)
    along = decade + np.clip((places - edges[cell]) / chances.ravel()[cell], 0, 1)
    sides = rng.choice([-1.0, 1.0], n) * NEAREST * 10.0**along
    rows, normals = rng.standard_normal((n, planes.normals.shape[1])), planes.normals[crease]
    move = sides - (rows * normals).sum(axis=1) - planes.offsets[crease]
    return np.asarray(rows + move[:, None] * normals)


def likely_chances(network: ReLUNetwork, samples: Sampled, planes: Hyperplanes) -> FloatArray:
    """Chances that favour where errors were met, and the decades beside; the rest is left for where they were not."""
    even = even_chances(planes)
    near = samples.rows[len(samples.rows) - samples.strips :]
    terms = _terms(network, samples, planes)[0][len(samples.rows) - samples.strips :].max(axis=1, initial=0)
    seen, cell = np.zeros(even.shape), _decades(np.abs(planes.distance(near)))
    for crease in range(len(planes)):
        np.add.at(seen[crease], cell[:, crease], terms)
    beside = np.pad(seen, ((0, 0), (1, 1)), mode="edge")
    seen = beside[:, :-2] + 2 * beside[:, 1:-1] + beside[:, 2:]
    total = float(seen.sum())
    return even if total <= 0 else np.asarray((1 - KNOWN_SHARE) * even + KNOWN_SHARE * seen / total)


def measure_accuracy(network: ReLUNetwork, samples: Sampled, planes: Hyperplanes) -> Accuracy:
    """Accuracy of a network with these hyperplanes, the worst output's. No queries."""
    terms, variance = _terms(network, samples, planes)
    error, n = terms.mean(axis=0), len(terms)
    sd = np.hypot(terms.std(axis=0), error * _kurtosis(samples.answers, variance)) / np.sqrt(n)
    # Errors hide in few samples: those that were not met may be like the largest that was.
    high = error + DEVIATIONS * sd + UNMET * terms.max(axis=0) / n
    k = int(np.argmax(high))
    low = max(0.0, float(error[k] - DEVIATIONS * sd[k]))
    return Accuracy(float(error[k]), low, float(high[k]), CONFIDENCE, n, float(variance[k]))


def _kurtosis(answers: FloatArray, variance: FloatArray) -> FloatArray:
    """Standard deviation of one answer's square deviation, in variances: the unit of the error is measured too."""
    square = (answers - answers.mean(axis=0)) ** 2 / variance
    return np.asarray(square.std(axis=0))


def output_units(answers: FloatArray, weight: FloatArray) -> FloatArray:
    """Variance of every output under the Gaussian; of one that is constant, the square of its answers."""
    share = weight[:, None] / weight.sum()
    centre = (share * answers).sum(axis=0)
    variance = (share * (answers - centre) ** 2).sum(axis=0)
    size = np.abs(answers).max(axis=0)
    constant = variance <= (ROUNDINGS * unit_roundoff(np.float64) * size) ** 2
    return np.where(constant, np.where(size > 0, size**2, 1.0), variance)


def _terms(network: ReLUNetwork, samples: Sampled, planes: Hyperplanes) -> tuple[FloatArray, FloatArray]:
    """What every sample adds to every output's error (n, m), and the variances that are their units."""
    weight = _weights(samples, planes)
    units = output_units(samples.answers, weight)
    return weight[:, None] * (samples.answers - network(samples.rows)) ** 2 / units, units


def _decades(size: FloatArray) -> IntArray:
    """Which decade distances are in, the nearest or farthest if in none."""
    return np.clip(np.log10(np.maximum(size, NEAREST) / NEAREST), 0, DECADES - 1).astype(np.intp)


def _weights(samples: Sampled, planes: Hyperplanes) -> FloatArray:
    """Density of the Gaussian over that of the mixture, at each row."""
    if not samples.strips:
        return np.ones(len(samples.rows))
    share = samples.strips / len(samples.rows)
    distance = planes.distance(samples.rows)
    along = distance - planes.offsets  # coordinate along each normal, a standard Gaussian one
    size = np.abs(distance)
    inside = (size > NEAREST) & (size < NEAREST * 10.0**DECADES)
    chance = samples.chances[np.arange(len(planes)), _decades(size)]
    drawn = np.where(inside, chance / (2 * np.maximum(size, NEAREST) * np.log(10)), 0.0)
    gaussian = np.exp(-(along**2) / 2) / np.sqrt(2 * np.pi)
    ratio = np.full(size.shape, np.inf)  # where the Gaussian's density is too small for a number
    np.divide(drawn, gaussian, out=ratio, where=gaussian > 0)
    return np.asarray(1 / (1 - share + share * np.where(drawn > 0, ratio, 0.0).sum(axis=1)))
