"""Second stage: on which side of its hyperplane each first-layer neuron is active. No queries.

Every gradient is a combination of the active neurons' weights. Written in the basis of all normals it has no
part along neuron j wherever j is inactive, so the measured gradients on the two sides decide.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reluctant.extraction.depth_three.hyperplanes import Hyperplanes
from reluctant.extraction.failures import StageFailed
from reluctant.numerics import FloatArray

__all__ = ["LARGEST_MARGIN", "orient_hyperplanes", "side_sizes", "sign_margins"]

LARGEST_MARGIN = 1e-4  # right ones stay below 1e-7, wrong ones are above 0.1


def side_sizes(planes: Hyperplanes) -> FloatArray:
    """Largest part (n, 2) of any gradient along each neuron, on the negative and on the positive side."""
    known = np.isfinite(planes.slope_sd)
    parts = planes.slopes[known] @ np.linalg.pinv(planes.normals)  # (p, m, n)
    sizes = np.sqrt((parts**2).sum(axis=1))
    positive = planes.points[known] @ planes.normals.T + planes.offsets > 0
    return np.column_stack([np.where(positive, 0, sizes).max(axis=0), np.where(positive, sizes, 0).max(axis=0)])


def sign_margins(planes: Hyperplanes) -> FloatArray:
    """How clear each sign is: part on the inactive side over that on the other."""
    sizes = side_sizes(planes)
    return np.asarray(sizes.min(axis=1) / np.maximum(sizes.max(axis=1), np.finfo(float).tiny))


def orient_hyperplanes(planes: Hyperplanes) -> tuple[Hyperplanes, FloatArray]:
    """Normals that point to the active sides, and the margin of each."""
    sizes, margins = side_sizes(planes), sign_margins(planes)
    if not margins.max(initial=0) < LARGEST_MARGIN:
        raise StageFailed(
            "signs", "a neuron is active on both sides: a false hyperplane, or more neurons than inputs",
            number=float(margins.max()), limit=LARGEST_MARGIN,
        )  # fmt: skip
    signs = np.where(sizes[:, 1] > sizes[:, 0], 1.0, -1.0)
    oriented = replace(planes, normals=planes.normals * signs[:, None], offsets=planes.offsets * signs)
    return oriented, margins
