"""The cell test: which kinks have a crease that runs straight through the known cell around them.

A crease of the next layer bends at known hinges alone. One slope across the line, on both sides of a kink, gives a
direction in which its crease goes on, and the crease must be there, close to where the cell ends, on both sides. A
crease of a deeper layer bends before that as a rule. Kinks are tested together, before any full normal is measured.
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


@dataclass(frozen=True)
class _Tangents:
    """Unit directions (n, d) along creases, and where one was found; a kink without one counts as straight."""

    direction: FloatArray
    found: BoolArray


def straight_in_cell(asker: Asker, store: KinkStore, known: KnownLayers, which: IntArray) -> BoolArray:
    """For each of these kinks: does its crease go straight on to the end of the known cell, as far as can be seen?

    Cost: 3 rows a piece of a line, 4 rows a side; the second side follows the first.
    """
    tangents = _tangents(asker, store, which)
    straight = np.ones(len(which), dtype=bool)
    for side in (1.0, -1.0):
        there = np.flatnonzero(straight & tangents.found)
        points, along = store.kinks.point[which[there]], store.kinks.direction[which[there]]
        straight[there] = _is_ahead(asker, known, points, side * tangents.direction[there], along)
    return straight


def fills_cell(asker: Asker, known: KnownLayers, point: FloatArray, normal: FloatArray) -> bool:
    """Is the crease of a kink with this unit normal there in all directions, close to the end of the known cell?

    Cost: 12 rows, and 20 more where most of these agree.
    """
    looks, seen_share = (3, 5), 0.8
    if not known.layers:
        return True
    met = np.empty(0, dtype=bool)
    for count in looks:
        points, normals = np.repeat(point[None], count, axis=0), np.repeat(normal[None], count, axis=0)
        along = asker.rng.standard_normal(points.shape)
        along -= (along @ normal)[:, None] * normal
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        met = np.concatenate([met, _is_ahead(asker, known, points, along, normals)])
        if met.mean() < seen_share - 1 / len(met):
            return False
    return bool(met.mean() >= seen_share)


def _tangents(asker: Asker, store: KinkStore, which: IntArray) -> _Tangents:
    """A direction along the crease of each kink, in the plane of its line and one random direction for all."""
    side_step = 0.15  # of the width of a piece
    agreement = 1e-4  # relative: bends of several outputs across a crease are proportional
    across = asker.rng.standard_normal(store.dim)
    across /= np.linalg.norm(across)
    pieces = np.unique(np.concatenate([store.piece_before(which), store.piece_before(which) + 1]))
    steps = side_step * store.widths[pieces]
    slopes = gradients(asker.ask, store.middles[pieces], across[None], steps, asker.noise, asker.rng, rounds=2)
    at = np.searchsorted(pieces, store.piece_before(which))
    jump = slopes.slope[at + 1, :, 0] - slopes.slope[at, :, 0]
    bend, along = store.kinks.bend[which], store.kinks.direction[which]
    square = (bend**2).sum(axis=1)
    ratio = (jump * bend).sum(axis=1) / square
    off = np.linalg.norm(jump - ratio[:, None] * bend, axis=1)
    found = slopes.good[at] & slopes.good[at + 1] & (off <= agreement * (np.abs(ratio) + 1) * np.sqrt(square))
    direction = across - ratio[:, None] * along
    return _Tangents(direction / np.linalg.norm(direction, axis=1, keepdims=True), found)


def _is_ahead(
    asker: Asker, known: KnownLayers, points: FloatArray, directions: FloatArray, across: FloatArray
) -> BoolArray:
    """Is there a crease in this direction from each point, most of the way to the end of its cell, or nothing to see?

    across: unit directions in which it is crossed there.
    """
    room_around = 0.05  # of the way there
    beside = 0.5  # of the distance to the next hinge
    if not len(points):
        return np.empty(0, dtype=bool)
    farthest = FARTHEST_LOOK * asker.unit(points)
    reach = np.minimum(_to_hinge(known, points, directions), farthest)
    places = points + (asker.rng.uniform(*PART_OF_THE_WAY, len(points)) * reach)[:, None] * directions
    room = np.minimum(room_around * reach, beside * _to_hinge(known, places, across, both=True))
    seen = asker.test(places, across, room)
    return np.asarray(seen.found | seen.constant)


def _to_hinge(known: KnownLayers, points: FloatArray, directions: FloatArray, *, both: bool = False) -> FloatArray:
    """Distance (n,) to the next known hinge in a direction, or in both."""
    if not known.layers:
        return np.full(len(points), np.inf)
    around = known.around(points)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = -around.values / around.hinge_slopes(directions)
    reach = np.abs(reach) if both else reach
    return np.where((reach > 0) & np.isfinite(reach), reach, np.inf).min(axis=1)
