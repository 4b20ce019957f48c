"""Where creases meet: one of a neuron above bends at a hyperplane of the first layer, which goes straight on there.

That tells layers apart where creases show in part of space alone. Visibility does not: a neuron of the first layer is
hidden where all that read it are off, and one above that reads few others goes straight on for long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.geometry import DistanceNoise
from reluctant.geometry.gradients import cross
from reluctant.geometry.lines import Batch, BoolArray, IntArray
from reluctant.numerics import DOUBLE, FloatArray


@dataclass(frozen=True)
class CreasePlanes(Batch):
    """Hyperplanes normals @ y + offsets = 0 that creases lie on: normals of norm one, their errors, a point of each."""

    normals: FloatArray  # (n, k)
    offsets: FloatArray  # (n,)
    errors: FloatArray  # (n,)
    on: FloatArray  # (n, k), where the crease was seen

    def way_to(self, other: CreasePlanes, i: IntArray, j: IntArray) -> tuple[FloatArray, FloatArray]:
        """From the point of each hyperplane the direction (p, k) inside it to another, and how far (p,) that is.

        Infinite where the two are parallel.
        """
        parallel = 1e-4  # part of a normal that is not along the other
        normals, others = self.normals[i], other.normals[j]
        inside = others - (others * normals).sum(axis=1, keepdims=True) * normals
        length = np.linalg.norm(inside, axis=1)
        usable = length > parallel
        length = np.where(usable, length, 1.0)
        values = (self.on[i] * others).sum(axis=1) + other.offsets[j]
        return inside / length[:, None], np.where(usable, -values / length, np.inf)


@dataclass(frozen=True)
class CreaseMeetings:
    """Looks at places where creases meet, on a target of unit `scale`."""

    ask: Callable[[FloatArray], FloatArray]
    noise: DistanceNoise
    scale: float

    def bending(self, some: CreasePlanes, known: CreasePlanes) -> BoolArray:
        """Which hyperplanes end where they meet a known one that goes on there: they are of neurons of a layer above.

        Cost: 8 rows for each of the 8 nearest known ones, and of the 16 after these where it goes on at all of them.
        """
        together, rounds = 8, 3
        bent = np.zeros(len(some), dtype=bool)
        if not len(some) or not len(known):
            return bent
        pairs = np.indices((len(some), len(known))).reshape(2, -1)
        away = np.abs(some.way_to(known, *pairs)[1]).reshape(len(some), -1)
        order = np.argsort(away, axis=1)
        for start in range(0, together * rounds, together):
            near = order[~bent, start : start + together]
            i, j = np.repeat(np.flatnonzero(~bent), near.shape[1]), near.reshape(-1)
            i, j = (part[np.isfinite(away[i, j])] for part in (i, j))
            ends, _ = self.at(some, known, i, j)
            i, j = i[ends], j[ends]
            _, goes_on = self.at(known, some, j, i)
            bent[i[goes_on]] = True
        return bent

    def at(self, some: CreasePlanes, known: CreasePlanes, i: IntArray, j: IntArray) -> tuple[BoolArray, BoolArray]:
        """Whether each hyperplane is seen before it meets a known one and not after, and whether it is after too."""
        beside, reach = 1e-3, 2e-4  # of the way there: how far before and after it is looked for, and over which reach
        off_course = 20.0  # errors of a hyperplane that its crease may be away from it
        if not len(i):
            return np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)
        tangents, way = some.way_to(known, i, j)
        size = np.abs(way)
        within = off_course * some.errors[i] * size + DOUBLE.rounding * self.scale
        seen = []
        for side in (1 - beside, 1 + beside):
            points = some.on[i] + (side * way)[:, None] * tangents
            seen.append(cross(self.ask, points, some.normals[i], reach * size, self.noise, within).critical)
        before, after = seen
        return before & ~after, before & after
