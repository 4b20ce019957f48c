"""How wrong a recovered network is, looked for where errors hide, with the true network in hand."""

from __future__ import annotations

import numpy as np

from reluctant.networks import ReLUNetwork

__all__ = ["largest_true_error"]

SCALES = (0.1, 1.0, 10.0)
BESIDE = (0.0, 1e-8, 1e-6, 1e-4, 1e-2)  # distances from a true crease
POINTS = 2000
FARTHEST = 100.0  # typical inputs: creases beyond are not at the scale of use


def largest_true_error(network: ReLUNetwork, true: ReLUNetwork, seed: int = 7) -> float:
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
