"""Hyperplanes that are one: found twice, the first time badly, both would stay in the network.

The learning paper calls neurons (Δ, α)-close (Definition 3.7) if their angle is at most Δ and their thresholds
differ by at most α, and shows that close ones can be merged. Here close ones are candidates only: one is left out
if the answers are explained as well without it.
"""

from __future__ import annotations

import numpy as np

from reluctant.learning.close_pairs import are_close
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.learning.regression import Sample, fit_outputs

__all__ = ["prune"]

CLOSE_ANGLE, CLOSE_THRESHOLD = 0.05, 0.05  # Δ and α
NO_WORSE = 1.1  # times the sum of squares with all of them


def prune(planes: Hyperplanes, sample: Sample) -> Hyperplanes:
    """The hyperplanes without those that a close one makes superfluous. No queries."""
    close = are_close(planes.normals, -planes.offsets, CLOSE_ANGLE, CLOSE_THRESHOLD)
    kept = np.ones(len(planes), dtype=bool)
    misfit = None
    for i in reversed(range(len(planes))):
        if close[i, kept].sum() == 1:  # to itself
            continue
        misfit = sample.misfit(fit_outputs(planes.chosen(kept), sample)) if misfit is None else misfit
        kept[i] = False
        left = sample.misfit(fit_outputs(planes.chosen(kept), sample))
        kept[i] = left > NO_WORSE * misfit
        misfit = misfit if kept[i] else left
    return planes.chosen(kept)
