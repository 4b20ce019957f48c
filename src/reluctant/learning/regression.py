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
from reluctant.numerics import FloatArray, unit_roundoff

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
    unknowns = len(planes) + dim + 1 + dim * int(planes.gate.sum())
    gaussian = rng.standard_normal((int(SHARE * unknowns) + EXTRA, dim))
    rows = np.concatenate([gaussian, _strips(planes, rng)])
    return Sample(rows, ask(rows), 1 / noise.at(np.linalg.norm(rows, axis=1))[:, None])


def fit_outputs(planes: Hyperplanes, sample: Sample) -> ReLUNetwork:
    """The network with these hyperplanes. No queries."""
    plain, gates = planes.chosen(~planes.gate), planes.chosen(planes.gate)
    rows, h = sample.rows, len(plain)
    inputs = np.column_stack([rows, np.ones(len(rows))])
    features = np.column_stack([np.maximum(plain.distance(rows), 0), *_switched(gates, rows, inputs), inputs])
    least = 1 / float(sample.weight.max())
    prior = np.where(np.isfinite(plain.jump_sd), 1 / np.maximum(plain.jump_sd, least), 0.0)[:, None]
    weight = sample.weight * _sure(gates, rows)[:, None]
    design = np.concatenate([weight * features, prior * np.eye(h, features.shape[1])])
    wanted = np.concatenate([weight * sample.answers, prior * plain.jump])
    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0] = 1.0
    found = scipy.linalg.lstsq(design / scale, wanted, lapack_driver="gelsd", check_finite=False)[0] / scale[:, None]
    neurons = [(plain.normals, plain.offsets, found[:h].T)]
    maps = found[h : -inputs.shape[1]].reshape(len(gates), inputs.shape[1], sample.answers.shape[1])
    neurons += [_pair(gates.normals[k], gates.offsets[k], maps[k]) for k in range(len(gates))]
    w, b, a = (list(parts) for parts in zip(*neurons, strict=True))
    affine = found[-inputs.shape[1] :]
    return ReLUNetwork([np.concatenate(w), np.hstack(a)], [np.concatenate(b), affine[-1]], affine[:-1].T)


def _switched(gates: Hyperplanes, rows: FloatArray, inputs: FloatArray) -> list[FloatArray]:
    """For each gate x and 1 where it is open, and zero elsewhere."""
    return [np.where(side[:, None] > 0, inputs, 0.0) for side in gates.distance(rows).T]


def _sure(gates: Hyperplanes, rows: FloatArray) -> FloatArray:
    """Zero for rows so close to a gate that it may be open or not, else one."""
    return np.asarray(1.0 - (np.abs(gates.distance(rows)) < gates.uncertainty(rows)).any(axis=1))


def _pair(normal: FloatArray, offset: float, switched: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """An affine map (d + 1, m) that is on beyond a hyperplane, as pairs of neurons: max(Mz + ℓ, 0) - max(Mz, 0).

    The larger M, the narrower the slab in which they are wrong, and the more digits they lose; both errors are of
    the size of a third of the digits for this M.
    """
    outputs = switched.shape[1]
    steep = np.linalg.norm(switched, axis=0) * unit_roundoff(np.float64) ** (-2 / 3)
    weights = steep[:, None] * normal
    first = np.concatenate([weights + switched[:-1].T, weights])
    bias = np.concatenate([steep * offset + switched[-1], steep * offset])
    return first, bias, np.hstack([np.eye(outputs), -np.eye(outputs)])


def _strips(planes: Hyperplanes, rng: np.random.Generator) -> FloatArray:
    h, dim = planes.normals.shape
    rows = rng.standard_normal((h, IN_STRIP, dim))
    off = np.einsum("hkd,hd->hk", rows, planes.normals) + planes.offsets[:, None]
    width = WIDEST * np.minimum(planes.room, 1.0)[:, None] * rng.uniform(-1, 1, (h, IN_STRIP))
    return np.asarray((rows + (width - off)[:, :, None] * planes.normals[:, None]).reshape(-1, dim))
