"""Hyperplanes that are one: found twice, the first time badly, both would stay in the network.

The learning paper calls neurons (Δ, α)-close (Definition 3.7) if their angle is at most Δ and their thresholds
differ by at most α, and shows that close ones can be merged. Here close ones are candidates only: one is left out
if the answers are explained as well without it.
"""

from __future__ import annotations

import numpy as np

from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.learning.regression import Sample, fit_outputs

__all__ = ["prune"]

CLOSE_ANGLE, CLOSE_THRESHOLD = 0.05, 0.05  # Δ and α
NO_WORSE = 1.1  # times the sum of squares with all of them


def prune(planes: Hyperplanes, sample: Sample) -> Hyperplanes:
    """The hyperplanes without those that a close one makes superfluous. No queries."""
    misfit = sample.misfit(fit_outputs(planes, sample))
    for i in reversed(range(len(planes))):
        without = np.arange(len(planes)) != i
        if not _has_close(planes, i):
            continue
        left = sample.misfit(fit_outputs(planes.chosen(without), sample))
        if left <= NO_WORSE * misfit:
            planes, misfit = planes.chosen(without), left
    return planes


def _has_close(planes: Hyperplanes, i: int) -> bool:
    """True if another hyperplane is (Δ, α)-close to the i-th, on whichever side."""
    cosine = planes.normals @ planes.normals[i]
    side = np.sign(cosine)
    turned = np.linalg.norm(side[:, None] * planes.normals - planes.normals[i], axis=1)
    close = (turned <= CLOSE_ANGLE) & (np.abs(side * planes.offsets - planes.offsets[i]) <= CLOSE_THRESHOLD)
    return int(close.sum()) > 1
