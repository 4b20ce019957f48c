"""The cell test: which kinks have a crease that runs straight through the known cell around them.

A crease of the next layer bends at known hinges alone, and not at those of its own layer. Slopes across the line, on
both sides of a kink, give directions in which its crease goes on, and the crease must be there, close to where the
cell ends. A crease of a deeper layer bends before that as a rule: directions that cross neurons found so far come
first. Kinks are tested together, before any full normal is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.extraction.any_depth.kinks import Asker, KinkStore
from reluctant.geometry import gradients
from reluctant.geometry.lines import BoolArray, IntArray
from reluctant.numerics import FloatArray

PART_OF_THE_WAY = (0.6, 0.93)  # to the end of the cell: where the crease is looked for
FARTHEST_LOOK = 4.0  # in units of the scale
CHOICES = 16  # directions to choose from, for every place that is asked


@dataclass(frozen=True)
class Cells:
    """The layers below, whose hinges end a cell, and neurons found so far of the layer that is looked for.

    near: look just behind the next of these, not at the end of the cell: units that are off may hide the rest.
    """

    known: KnownLayers
    so_far: KnownLayers
    near: bool = False

    def places(
        self, asker: Asker, points: FloatArray, directions: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Places (n, d) most of the way to the end of the cell, the way there, and how much they tell."""
        reach = np.minimum(_to_hinge(self.known, points, directions), FARTHEST_LOOK * asker.unit(points))
        if self.near:
            return self.near_places(points, directions, reach)
        places = points + (asker.rng.uniform(*PART_OF_THE_WAY, len(points)) * reach)[:, None] * directions
        own = slice(self.known.hinge_count, None)
        before, after = (self.so_far.around(at).values[:, own] > 0 for at in (points, places))
        return places, reach, np.not_equal(before, after).sum(axis=1).astype(float)

    def near_places(
        self, points: FloatArray, directions: FloatArray, reach: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Places just behind the next neuron found so far; the nearer that is, the more they tell."""
        behind = 0.4  # of the way from one hinge to the next
        hinges = np.column_stack([_reaches(self.so_far, points, directions)[:, self.known.hinge_count :], reach, reach])
        first, second = np.sort(hinges, axis=1)[:, :2].T
        return points + (first + behind * (second - first))[:, None] * directions, first, reach / first

    def is_ahead(self, asker: Asker, points: FloatArray, choices: FloatArray, across: FloatArray) -> BoolArray:
        """Is there a crease from each point in one of its directions (n, c, d), at the end of its cell, if any shows?

        across: unit directions in which it is crossed there. The direction is the one that crosses most neurons.
        """
        room_around = 0.05  # of the way there
        beside = 0.5  # of the distance to the next hinge
        if not len(points):
            return np.empty(0, dtype=bool)
        n, c, d = choices.shape
        places, reach, crossed = self.places(asker, np.repeat(points, c, axis=0), choices.reshape(n * c, d))
        best = np.arange(n) * c + crossed.reshape(n, c).argmax(axis=1)
        places, reach = places[best], reach[best]
        room = np.minimum(room_around * reach, beside * _to_hinge(self.so_far, places, across, both=True))
        seen = asker.test(places, across, room)
        return np.asarray(seen.found | seen.constant)


def straight_in_cell(asker: Asker, store: KinkStore, cells: Cells, which: IntArray) -> BoolArray:
    """For each of these kinks: does its crease go straight on to the end of the known cell, as far as can be seen?

    Cost: 3 to 6 rows a piece of a line, more where a whole normal takes many, and 4 rows a look, 2 to 4 of them.
    """
    straight = np.ones(len(which), dtype=bool)
    if not len(which):
        return straight
    tangents = _tangents(asker, store, which)
    for look in range(max(2, tangents.directions.shape[1])):
        there = np.flatnonzero(straight & tangents.found)
        points, along = store.kinks.point[which[there]], store.kinks.direction[which[there]]
        choices = (-1.0) ** look * tangents.mixed(there, asker.rng)
        straight[there] = cells.is_ahead(asker, points, choices, along)
    return straight


def fills_cell(asker: Asker, cells: Cells, point: FloatArray, normal: FloatArray) -> bool:
    """Is the crease of a kink with this unit normal there in all directions, close to the end of the known cell?

    Cost: 12 rows, and 20 more where most of these agree.
    """
    looks, seen_share = (3, 5), 0.8
    if not cells.known.layers and not cells.near:
        return True
    met = np.empty(0, dtype=bool)
    for count in looks:
        points, normals = np.repeat(point[None], count, axis=0), np.repeat(normal[None], count, axis=0)
        along = asker.rng.standard_normal((count, CHOICES, len(point)))
        along -= (along @ normal)[..., None] * normal
        along /= np.linalg.norm(along, axis=-1, keepdims=True)
        met = np.concatenate([met, cells.is_ahead(asker, points, along, normals)])
        if met.mean() < seen_share - 1 / len(met):
            return False
    return bool(met.mean() >= seen_share)


@dataclass(frozen=True)
class _Tangents:
    """Some directions (n, k, d) along each crease, and where they were found; a kink without counts as straight."""

    directions: FloatArray
    found: BoolArray

    def mixed(self, which: IntArray, rng: np.random.Generator) -> FloatArray:
        """Unit directions (n, CHOICES, d) between those of these kinks, on one side of the first of them."""
        parts = rng.standard_normal((len(which), CHOICES, self.directions.shape[1]))
        parts[..., 0] = np.abs(parts[..., 0])
        found = parts @ self.directions[which]
        return np.asarray(found / np.linalg.norm(found, axis=-1, keepdims=True))


def _tangents(asker: Asker, store: KinkStore, which: IntArray) -> _Tangents:
    """Directions along the crease of each kink, in the planes of its line and some random directions for all."""
    inputs_each, most = 5, 4  # a whole normal costs a row an input: so many for each direction
    side_step = 0.15  # of the width of a piece
    agreement = 1e-4  # relative: bends of several outputs across a crease are proportional
    count = max(min(store.dim // inputs_each, most), min(2, store.dim - 1), 1)
    across = np.linalg.qr(asker.rng.standard_normal((store.dim, count)))[0].T
    pieces = np.unique(np.concatenate([store.piece_before(which), store.piece_before(which) + 1]))
    steps = side_step * store.widths[pieces]
    slopes = gradients(
        asker.ask, store.middles[pieces], across, steps, asker.noise, asker.rng, domain=asker.domain, rounds=2
    )
    at = np.searchsorted(pieces, store.piece_before(which))
    jump = slopes.slope[at + 1] - slopes.slope[at]  # (n, m, k)
    bend, along = store.kinks.bend[which], store.kinks.direction[which]
    square = (bend**2).sum(axis=1)
    ratio = np.einsum("nmk,nm->nk", jump, bend) / square[:, None]
    off = np.linalg.norm(jump - ratio[:, None, :] * bend[:, :, None], axis=1)
    agrees = np.asarray(off <= agreement * (np.abs(ratio) + 1) * np.sqrt(square)[:, None]).all(axis=1)
    directions = across - ratio[:, :, None] * along[:, None, :]
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    return _Tangents(directions, slopes.good[at] & slopes.good[at + 1] & agrees)


def _to_hinge(known: KnownLayers, points: FloatArray, directions: FloatArray, *, both: bool = False) -> FloatArray:
    """Distance (n,) to the next known hinge in a direction, or in both."""
    reach = _reaches(known, points, directions, both=both).min(axis=1, initial=np.inf)
    room = known.domain.room(points, directions)
    return np.minimum(reach, np.minimum(room, known.domain.room(points, -directions)) if both else room)


def _reaches(known: KnownLayers, points: FloatArray, directions: FloatArray, *, both: bool = False) -> FloatArray:
    """Distances (n, H) to known hinges in a direction, or in both; infinite where there is none."""
    around = known.around(points)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = -around.values / around.hinge_slopes(directions)
    reach = np.abs(reach) if both else reach
    return np.where((reach > 0) & np.isfinite(reach), reach, np.inf)
