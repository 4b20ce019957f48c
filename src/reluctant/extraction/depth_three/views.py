"""Crossings of single first-layer hyperplanes: where each is, and how strongly its neuron is seen there.

The crossing starts far inside the states of all other neurons, half of them on, and is short against that, so
that no crease of the layers above is likely to lie on it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from reluctant.extraction.depth_three.hyperplanes import Hyperplanes
from reluctant.extraction.depth_three.quiet import quiet_points
from reluctant.extraction.failures import StageFailed
from reluctant.geometry import DistanceNoise
from reluctant.geometry.crossings import cross
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting

__all__ = ["Views", "view_each"]

REACHES = (1.0, 0.2)  # of a crossing, in typical inputs of one coordinate
ROOM = 4.0  # how far inside their states the other neurons are
WHERE_EXPECTED = 1e-4  # of the reach: a crease farther off is another one
SHARE_ON = 0.5  # of the other neurons
MOST_BACKGROUNDS = 20  # random states of the others, tried one after the other


@dataclass(frozen=True)
class Views:
    """Which neuron was crossed, where, over which reach, and what was seen."""

    neuron: IntArray
    on: FloatArray  # (v, k): the point of the crease, in coordinates of the frame
    reach: FloatArray
    bend: FloatArray  # size of the change of slope
    sd: FloatArray  # of an answer
    usable: BoolArray

    def best(self, quality: FloatArray, n: int) -> IntArray:
        """Index of the best usable view of each of n neurons, -1 for none."""
        order = np.argsort(quality[self.usable])
        usable = np.flatnonzero(self.usable)[order]
        chosen = np.full(n, -1)
        chosen[self.neuron[usable]] = usable
        return chosen

    def __add__(self, other: Views) -> Views:
        return Views(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))


def view_each(oracle: Counting, planes: Hyperplanes, noise: DistanceNoise, rng: np.random.Generator) -> Views:
    """Views of all neurons, at least one usable one of each. Cost: 8 rows a neuron and background."""
    n = len(planes)
    views = _look(oracle, planes, np.arange(n), noise, rng)
    for _ in range(MOST_BACKGROUNDS):
        hidden = np.setdiff1d(np.arange(n), views.neuron[views.usable])
        if not len(hidden):
            return views
        views = views + _look(oracle, planes, hidden, noise, rng)
    raise StageFailed("refine", "first-layer neurons not seen again", number=len(hidden), limit=0)


def _look(
    oracle: Counting, planes: Hyperplanes, neurons: IntArray, noise: DistanceNoise, rng: np.random.Generator
) -> Views:
    """Cross the hyperplanes of these neurons with the others in random states."""
    states = rng.random((len(neurons), len(planes))) < SHARE_ON
    starts = quiet_points(planes.normals, planes.offsets, neurons, states, ROOM)
    which, points, reach = np.tile(neurons, len(REACHES)), np.tile(starts, (len(REACHES), 1)), np.repeat(REACHES, len(neurons))
    normals = planes.normals[which]
    seen = cross(lambda y: oracle.query(planes.frame.points(y)), points, normals, reach, WHERE_EXPECTED * reach, noise)
    on = points + np.where(seen.critical, seen.position, 0.0)[:, None] * normals
    return Views(which, on, reach, seen.size, seen.sd, seen.critical)
