"""Hyperplanes that are one: found twice, the first time badly, both would stay in the network.

The learning paper calls neurons (Δ, α)-close (Definition 3.7) if their angle is at most Δ and their thresholds
differ by at most α, and shows that close ones can be merged. Here close ones are candidates only: one is left out
if the answers are explained as well without it.
"""

from __future__ import annotations

import numpy as np

from reluctant.learning.closeness import are_close
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.learning.regression import Sample, fit_outputs

__all__ = ["prune"]

CLOSE_ANGLE, CLOSE_THRESHOLD = 0.05, 0.05  # Δ and α
NO_WORSE = 1.1  # times the sum of squares with all of them


def prune(planes: Hyperplanes, sample: Sample) -> Hyperplanes:
    """The hyperplanes without those that a close one makes superfluous. No queries."""
    misfit = sample.misfit(fit_outputs(planes, sample))
    for i in reversed(range(len(planes))):
        if are_close(planes.normals, -planes.offsets, CLOSE_ANGLE, CLOSE_THRESHOLD)[i].sum() == 1:
            continue  # to itself
        others = planes.chosen(np.arange(len(planes)) != i)
        left = sample.misfit(fit_outputs(others, sample))
        if left <= NO_WORSE * misfit:
            planes, misfit = others, left
    return planes
