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

__all__ = ["Views", "view_each", "view_more"]

REACHES = (1.0, 0.2)  # of a crossing, in typical inputs of one coordinate
LEAST_ROOM, MOST_ROOM = 2.0, 8.0  # how far inside their states the other neurons are, at random
OFF_COURSE = 20.0  # errors of a hyperplane that a crease may be away from it; one farther off is another one
UNCERTAIN = 1e-10  # at least, in typical inputs
SHARE_ON = 0.5  # of the other neurons
MOST_BACKGROUNDS = 20  # random states of the others, tried one after the other
SHORTER = 4.0  # reaches, after every few of them
MORE_BACKGROUNDS, LONGER_REACHES = 6, (4.0, 2.0, 0.7)  # for a neuron that has to be measured there
SHARP, SHARPER_BACKGROUNDS = 5e-14, 4  # error of a position for which a few more are tried


@dataclass(frozen=True)
class Views:
    """Which neuron was crossed, where, over which reach, and what was seen."""

    neuron: IntArray
    on: FloatArray  # (v, k): the point of the crease, in coordinates of the frame
    reach: FloatArray
    bend: FloatArray  # size of the change of slope
    sd: FloatArray  # of an answer
    usable: BoolArray

    @property
    def blur(self) -> FloatArray:
        """Error of each position; infinite where nothing was seen."""
        with np.errstate(divide="ignore"):
            return np.where(self.usable, self.sd / self.bend, np.inf)

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
    views = _look(oracle, planes, np.arange(n), np.array(REACHES), noise, rng)
    for tried in range(MOST_BACKGROUNDS):
        wanted = SHARP if tried < SHARPER_BACKGROUNDS else np.inf
        blurred = np.setdiff1d(np.arange(n), views.neuron[views.blur < wanted])
        if not len(blurred):
            return views
        reaches = np.array(REACHES) / SHORTER ** (tried // SHARPER_BACKGROUNDS)
        views = views + _look(oracle, planes, blurred, reaches, noise, rng)
    raise StageFailed("refine", "first-layer neurons not seen again", number=len(blurred), limit=0)


def view_more(
    oracle: Counting, planes: Hyperplanes, neurons: IntArray, noise: DistanceNoise, rng: np.random.Generator
) -> Views:
    """Some more views of these neurons, to choose the best from. Cost: 72 rows a neuron."""
    return _look(oracle, planes, np.repeat(neurons, MORE_BACKGROUNDS), np.array(LONGER_REACHES), noise, rng)


def _look(
    oracle: Counting,
    planes: Hyperplanes,
    neurons: IntArray,
    reaches: FloatArray,
    noise: DistanceNoise,
    rng: np.random.Generator,
) -> Views:
    """Cross the hyperplanes of these neurons over all reaches, with the others in random states."""
    states = rng.random((len(neurons), len(planes))) < SHARE_ON
    room = rng.uniform(LEAST_ROOM, MOST_ROOM, len(neurons))
    starts = quiet_points(planes.normals, planes.offsets, neurons, states, room)
    which, points = np.tile(neurons, len(reaches)), np.tile(starts, (len(reaches), 1))
    reach, normals = np.repeat(reaches, len(neurons)), planes.normals[which]
    away = np.linalg.norm(points - planes.on[which], axis=1)
    within = OFF_COURSE * planes.errors[which] * away + UNCERTAIN * planes.scale
    seen = cross(lambda y: oracle.query(planes.frame.points(y)), points, normals, reach, within, noise)
    on = points + np.where(seen.critical, seen.position, 0.0)[:, None] * normals
    return Views(which, on, reach, seen.size, seen.sd, seen.critical)
