"""Output weights: least squares over one ReLU for each hyperplane, x and 1 (LEARNFROMQUERIES of the paper).

Gaussian samples say nothing of a neuron that none of them activates. So there are samples in a strip around each
hyperplane, and a prior: the gradient's jump across it is its output weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from reluctant.geometry import DistanceNoise
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

__all__ = ["Sample", "draw_sample", "fit_outputs"]

Ask = Callable[[FloatArray], FloatArray]

SHARE, EXTRA = 1.5, 20  # Gaussian samples for each unknown, and more
IN_STRIP = 4  # samples around each hyperplane
WIDEST = 0.3  # of a strip, or of the room


@dataclass(frozen=True)
class Sample:
    """Rows, answers, and how much each answer weighs: one over its noise."""

    rows: FloatArray
    answers: FloatArray
    weight: FloatArray  # (n, 1)

    def misfit(self, network: ReLUNetwork) -> float:
        """Sum of the squared residuals, in deviations of the noise."""
        return float(((self.weight * (self.answers - network(self.rows))) ** 2).sum())


def draw_sample(ask: Ask, planes: Hyperplanes, noise: DistanceNoise, rng: np.random.Generator) -> Sample:
    """Gaussian rows and rows around every hyperplane. Cost: 1.5 rows for each unknown and 4 a hyperplane."""
    dim = planes.normals.shape[1]
    gaussian = rng.standard_normal((int(SHARE * (len(planes) + dim + 1)) + EXTRA, dim))
    rows = np.concatenate([gaussian, _strips(planes, rng)])
    return Sample(rows, ask(rows), 1 / noise.at(np.linalg.norm(rows, axis=1))[:, None])


def fit_outputs(planes: Hyperplanes, sample: Sample) -> ReLUNetwork:
    """The network with these hyperplanes. No queries."""
    rows, h = sample.rows, len(planes)
    features = np.column_stack([np.maximum(planes.distance(rows), 0), rows, np.ones(len(rows))])
    least = 1 / float(sample.weight.max())
    prior = np.where(np.isfinite(planes.jump_sd), 1 / np.maximum(planes.jump_sd, least), 0.0)[:, None]
    design = np.concatenate([sample.weight * features, prior * np.eye(h, features.shape[1])])
    wanted = np.concatenate([sample.weight * sample.answers, prior * planes.jump])
    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0] = 1.0
    found = scipy.linalg.lstsq(design / scale, wanted, lapack_driver="gelsd", check_finite=False)[0] / scale[:, None]
    return ReLUNetwork([planes.normals, found[:h].T], [planes.offsets, found[-1]], found[h:-1].T)


def _strips(planes: Hyperplanes, rng: np.random.Generator) -> FloatArray:
    h, dim = planes.normals.shape
    rows = rng.standard_normal((h, IN_STRIP, dim))
    off = np.einsum("hkd,hd->hk", rows, planes.normals) + planes.offsets[:, None]
    width = WIDEST * np.minimum(planes.room, 1.0)[:, None] * rng.uniform(-1, 1, (h, IN_STRIP))
    return np.asarray((rows + (width - off)[:, :, None] * planes.normals[:, None]).reshape(-1, dim))
