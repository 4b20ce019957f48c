"""Hyperplanes along which a target bends: what is known of each, and how well."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, unit_roundoff

__all__ = ["Hyperplanes"]

ROUNDINGS = 64.0  # of a network's own hyperplanes, in units of one
CLOSE = 3.0  # deviations


@dataclass(frozen=True)
class Hyperplanes:
    """Creases {x : normals[j]·x + offsets[j] = 0} with unit normals.

    centre: a point of each, near those it was measured at. place_sd: uncertainty there; tilt: how much is added for
    each unit of distance from it. jump: change of the gradient across, along the normal. room: distance to the
    nearest other crease where it was found. gate: whether more than a bend is there, a cluster that cannot be told
    apart; what it switches on is any affine map.
    """

    normals: FloatArray  # (h, d)
    offsets: FloatArray  # (h,)
    centre: FloatArray  # (h, d)
    place_sd: FloatArray  # (h,)
    tilt: FloatArray  # (h,)
    jump: FloatArray  # (h, m)
    jump_sd: FloatArray  # (h,)
    room: FloatArray  # (h,)
    gate: BoolArray  # (h,)

    @classmethod
    def none(cls, dim: int, outputs: int) -> Hyperplanes:
        """An empty collection."""
        empty, rows = np.empty(0), np.empty((0, dim))
        return cls(rows, empty, rows, empty, empty, np.empty((0, outputs)), empty, empty, np.empty(0, dtype=bool))

    @classmethod
    def of(cls, network: ReLUNetwork, off: float = 0.0) -> Hyperplanes:
        """Those of a network whose answers are typically off by so much; neurons that never bend have none."""
        if network.depth != 2:
            return cls.none(network.dim, network.outputs)
        normals, offsets = network.hyperplanes()
        live = np.flatnonzero(np.isfinite(normals).all(axis=1))
        normals, offsets = normals[live], offsets[live]
        jump = (network.weights[1] * np.linalg.norm(network.weights[0], axis=1)).T[live]
        size = np.maximum(np.linalg.norm(jump, axis=1), np.finfo(float).tiny)
        sure = ROUNDINGS * (unit_roundoff(np.float64) + off / size)
        far = np.full(len(live), np.inf)
        no_gate = np.zeros(len(live), dtype=bool)
        return cls(normals, offsets, -offsets[:, None] * normals, sure, sure, jump, far, far, no_gate)

    def __len__(self) -> int:
        return len(self.offsets)

    def __add__(self, other: Hyperplanes) -> Hyperplanes:
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Hyperplanes(*(np.concatenate(pair) for pair in pairs))

    def chosen(self, which: IntArray | BoolArray) -> Hyperplanes:
        """These only."""
        return Hyperplanes(*(getattr(self, field.name)[which] for field in fields(self)))

    def replaced(self, which: IntArray, others: Hyperplanes) -> Hyperplanes:
        """With others in these places."""
        parts = {field.name: getattr(self, field.name).copy() for field in fields(self)}
        for name, part in parts.items():
            part[which] = getattr(others, name)
        return Hyperplanes(**parts)

    def distance(self, points: FloatArray) -> FloatArray:
        """Signed distances (n, h)."""
        return points @ self.normals.T + self.offsets

    def uncertainty(self, points: FloatArray) -> FloatArray:
        """How far (n, h) each hyperplane may be from where it is taken to be, near each point."""
        away = np.linalg.norm(points[:, None] - self.centre[None], axis=2)
        return self.place_sd + self.tilt * away

    def close_to(self, others: Hyperplanes) -> BoolArray:
        """Which of them are, as far as is known, the same as one of the others."""
        if not len(others):
            return np.zeros(len(self), dtype=bool)
        cosine = self.normals @ others.normals.T
        turned = np.linalg.norm(self.normals[:, None] - np.sign(cosine)[:, :, None] * others.normals[None], axis=2)
        size = np.sqrt(self.normals.shape[1])
        alike = turned <= CLOSE * size * (self.tilt[:, None] + others.tilt)
        apart = np.abs(others.distance(self.centre))
        near = apart <= CLOSE * (others.uncertainty(self.centre) + self.place_sd[:, None])
        return np.asarray((alike & near).any(axis=1))

    def on(self, points: FloatArray, blur: FloatArray) -> BoolArray:
        """Points (n,), known up to `blur` (n,), that lie on one of them."""
        if not len(self):
            return np.zeros(len(points), dtype=bool)
        near = np.abs(self.distance(points)) <= self.uncertainty(points) + blur[:, None]
        return np.asarray(near.any(axis=1))
