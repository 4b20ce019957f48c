"""One crease, and the incoming weights of its neuron: one linear system in positions alone.

The value before the ReLU is y·φ(x) + c in the features φ of the known layers. At the start p the crease has the
normal Jφ(p)ᵀ y, and y·(φ(q) - φ(p)) = 0 at every other point q of it. What the equations leave open stays as a null
space: coefficients of features that were constant wherever the crease was seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg

from reluctant.extraction.any_depth.known import Around, Known
from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["Crease", "Incoming", "solve"]

SHORT_ROW = 0.05  # distances in feature space below this are not scaled up: their digits are few
RANK = 1e-7  # relative; smaller singular values are open directions
PROBES = 2  # random combinations of open directions: if none of them matters, none does
OPEN = 1e-6  # share of a unit step in an open direction that counts as open


@dataclass(frozen=True)
class Crease:
    """Points (k, d) of one neuron's crease, the first with its unit normal; `bend` is the change of slope there."""

    points: FloatArray
    normal: FloatArray
    bend: float

    def with_points(self, points: FloatArray) -> Crease:
        """More points of it."""
        return replace(self, points=np.concatenate([self.points, points]))


@dataclass(frozen=True)
class Incoming:
    """Weights y (F,) and bias of a neuron in the known features; `open` (F, u) spans what is not determined.

    start: features of the crease's first point. residual: of the linear system.
    """

    weights: FloatArray
    open: FloatArray
    start: FloatArray
    residual: float

    @property
    def bias(self) -> float:
        """Zero at the start of the crease."""
        return -float(self.weights @ self.start)

    @property
    def closed(self) -> bool:
        """True if nothing is open."""
        return self.open.shape[1] == 0

    def values(self, features: FloatArray) -> FloatArray:
        """Values before the ReLU at features (n, F)."""
        return (features - self.start) @ self.weights

    def determined(self, features: FloatArray) -> BoolArray:
        """At which features (n, F) the value does not depend on what is open."""
        if self.closed:
            return np.ones(len(features), dtype=bool)
        away = features - self.start
        return np.asarray(np.linalg.norm(away @ self.open, axis=1) <= OPEN * (SHORT_ROW + np.linalg.norm(away, axis=1)))

    @cached_property
    def probes(self) -> FloatArray:
        """Rows (2, PROBES, F): random combinations of what is open, and of everything, of the same size."""
        rng = np.random.default_rng(len(self.weights))
        every = rng.standard_normal((PROBES, len(self.weights)))
        return np.array([rng.standard_normal((PROBES, self.open.shape[1])) @ self.open.T, every])

    def flat(self, around: Around) -> BoolArray:
        """Around which points the normal does not depend on what is open."""
        n = len(around.features)
        if self.closed:
            return np.ones(n, dtype=bool)
        probes = np.broadcast_to(self.probes[:, :, None, :], (2, PROBES, n, len(self.weights)))
        change, whole = np.linalg.norm(around.feature_gradients(probes), axis=(1, 3))
        return np.asarray(change <= OPEN * whole)

    def sure_points(self, known: Known, crease: Crease) -> FloatArray:
        """Points of the crease around which it is determined."""
        around = known.around(crease.points)
        return crease.points[self.flat(around) & self.determined(around.features)]

    def open_features(self) -> BoolArray:
        """Features (F,) whose coefficient is open."""
        return np.asarray(np.linalg.norm(self.open, axis=1) > OPEN)


def solve(known: Known, crease: Crease) -> Incoming:
    """Least squares over the normal at the start and all points."""
    at_start = known.local(crease.points[:1])
    start = at_start.features[0]
    rows = known.features(crease.points[1:]) - start
    rows /= (np.linalg.norm(rows, axis=1) + SHORT_ROW)[:, None]
    matrix = np.concatenate([at_start.jacobian[0].T, rows])
    right = np.concatenate([crease.normal, np.zeros(len(rows))])
    u, sizes, vt = _svd(matrix)
    rank = int((sizes > RANK * sizes[0]).sum())
    weights = vt[:rank].T @ ((u[:, :rank].T @ right) / sizes[:rank])
    residual = float(np.linalg.norm(matrix @ weights - right))
    return Incoming(weights, vt[rank:].T, start, residual)


def _svd(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """U, S and all right singular vectors; the fast algorithm fails now and then, the other one does not."""
    whole = len(matrix) < matrix.shape[1]
    try:
        return np.linalg.svd(matrix, full_matrices=whole)
    except np.linalg.LinAlgError:
        u, sizes, vt = scipy.linalg.svd(matrix, full_matrices=whole, lapack_driver="gesvd")
        return u, sizes, vt
