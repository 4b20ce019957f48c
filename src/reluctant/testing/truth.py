"""How wrong a recovered network is, looked for where errors hide, with the true network in hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["largest_true_error", "relative_square_error"]

SCALES = (0.1, 1.0, 10.0)
BESIDE = (0.0, 1e-8, 1e-6, 1e-4, 1e-2)  # distances from a true crease
POINTS = 2000
NEAREST, WIDEST = 1e-12, 1.0  # distances from a true crease that samples are spread over
MANY = 100_000
FARTHEST = 100.0  # typical inputs: creases beyond are not at the scale of use


def largest_true_error(network: Callable[[FloatArray], Any], true: ReLUNetwork, seed: int = 7) -> float:
    """Largest error over random inputs, on every true first-layer hyperplane and beside it.

    Relative to the standard deviation of the output, at scales 0.1, 1 and 10.
    """
    rng = np.random.default_rng(seed)
    normals, offsets = true.hyperplanes()
    spread, worst = true(rng.standard_normal((POINTS, true.dim))).std(), 0.0
    for scale in SCALES:
        starts = scale * rng.standard_normal((len(offsets), true.dim))
        feet = starts - ((starts * normals).sum(axis=1) + offsets)[:, None] * normals
        groups = [scale * rng.standard_normal((POINTS, true.dim))]
        groups += [feet + distance * rng.standard_normal(feet.shape) for distance in BESIDE]
        for rows in groups:
            near = rows[np.linalg.norm(rows, axis=1) < FARTHEST * np.sqrt(true.dim)]
            if len(near):
                unit = max(spread, true(near).std())
                worst = max(worst, float(np.abs(network(near) - true(near)).max() / unit))
    return worst


def relative_square_error(network: ReLUNetwork, true: ReLUNetwork, seed: int = 7, points: int = MANY) -> float:
    """Mean square error under the Gaussian over the variance of the true network, one hidden layer.

    Half of the samples lie near the true creases, at distances spread evenly in their logarithm, and every sample is
    weighted by the Gaussian over the mixture it comes from: plain samples do not see an error inside a cluster.
    """
    rng = np.random.default_rng(seed)
    normals, offsets = true.hyperplanes()
    live = np.isfinite(normals).all(axis=1)
    normals, offsets = normals[live], offsets[live]
    rows, beside = rng.standard_normal((points, true.dim)), rng.integers(len(offsets), size=points // 2)
    sides = rng.choice([-1.0, 1.0], len(beside)) * np.exp(rng.uniform(np.log(NEAREST), np.log(WIDEST), len(beside)))
    near = rows[: len(beside)]
    near += (sides - (near * normals[beside]).sum(axis=1) - offsets[beside])[:, None] * normals[beside]
    weight = _gaussian_over_mixture(rows @ normals.T, offsets)[:, None]
    answers = true(rows)
    centre = (weight * answers).sum(axis=0) / weight.sum()
    return float((weight * (network(rows) - answers) ** 2).sum() / (weight * (answers - centre) ** 2).sum())


def _gaussian_over_mixture(along: FloatArray, offsets: FloatArray) -> FloatArray:
    """At coordinates (n, h) along the normals: the Gaussian's density over that of the two halves together."""
    size = np.abs(along + offsets)
    drawn = np.where((size > NEAREST) & (size < WIDEST), 1 / (2 * np.maximum(size, NEAREST)), 0.0)
    drawn /= np.log(WIDEST / NEAREST)
    gaussian = np.exp(-(along**2) / 2) / np.sqrt(2 * np.pi)
    ratio = np.full(size.shape, np.inf)  # where the Gaussian's density is too small for a number
    np.divide(drawn, gaussian, out=ratio, where=gaussian > 0)
    return np.asarray(2 / (1 + np.where(drawn > 0, ratio, 0.0).mean(axis=1)))
