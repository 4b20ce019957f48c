"""Is the crease of a neuron where its weights predict it?

A neuron that few lines cross is looked for all over the part of its crease that is determined; a hyperplane of the
first layer at random places of it. A crease does not bend at neurons of its own layer: one that was seen on one side
of such a neuron alone, and is not there on the other, belongs to a deeper layer.
"""

from __future__ import annotations

import numpy as np

from reluctant.extraction.any_depth.crease_equations import Crease, IncomingWeights
from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.extraction.any_depth.follow import find_walls
from reluctant.extraction.any_depth.kinks import Asker, CreaseSeen
from reluctant.numerics import FloatArray

STEPS_TO_PLACES = 20  # of the walks that lead there


def is_there(asker: Asker, known: KnownLayers, crease: Crease, incoming: IncomingWeights) -> bool:
    """Look at random places of the predicted crease. Cost: 32 rows."""
    looked_at = 8
    present_share = 0.7  # share of the places that show anything at all
    starts = incoming.sure_points(known, crease)
    if not len(starts):
        return False
    chosen = starts[asker.rng.integers(len(starts), size=looked_at)]
    _, places = find_walls(known, incoming, chosen, STEPS_TO_PLACES, asker.scale, asker.rng)
    seen = _seen_at(asker, known, incoming, places)
    return bool(seen.found.sum() >= max(present_share * (~seen.constant).sum(), 1))


def ends_at(asker: Asker, known: KnownLayers, crease: Crease, incoming: IncomingWeights, so_far: KnownLayers) -> bool:
    """True if the crease is not there behind some neuron of its own layer that its points have never crossed.

    so_far: the layers below, and on top of them other neurons of this one. Cost: 16 rows for each such neuron.
    """
    walks, looked_at = 48, 4
    absent_share = 0.3  # of the places that show anything: a crease that so few of them show is not there
    own = slice(known.hinge_count, None)
    seen_on = so_far.patterns(crease.points)[:, own]
    one_sided = np.flatnonzero(seen_on.all(axis=0) | ~seen_on.any(axis=0))
    starts = incoming.sure_points(known, crease)
    if not len(one_sided) or not len(starts):
        return False
    chosen = starts[asker.rng.integers(len(starts), size=walks)]
    ways = [chosen]
    for _ in range(STEPS_TO_PLACES):
        ways.append(find_walls(known, incoming, ways[-1], 1, asker.scale, asker.rng)[1])
    places = np.concatenate(ways)
    beyond = so_far.patterns(places)[:, own] != seen_on[0]
    for other in one_sided:
        there = np.flatnonzero(beyond[:, other])
        if len(there) < looked_at:
            continue
        seen = _seen_at(asker, so_far, incoming, places[asker.rng.choice(there, looked_at, replace=False)], known)
        visible = int((~seen.constant).sum())
        if visible > looked_at / 2 and seen.found.sum() <= absent_share * visible:
            return True
    return False


def _seen_at(
    asker: Asker, hinges: KnownLayers, incoming: IncomingWeights, places: FloatArray, known: KnownLayers | None = None
) -> CreaseSeen:
    """What shows across a predicted crease at places on it, closer than the next of the hinges."""
    place_room = 0.1  # of the distance to the next hinge
    below = hinges if known is None else known
    around = below.around(places)
    normals = around.feature_gradients(np.broadcast_to(incoming.weights, around.features.shape))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    around = hinges.around(places)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.abs(around.values / around.hinge_slopes(normals)).min(axis=1)
    return asker.test(places, normals, place_room * room)


def goes_straight_on(asker: Asker, crease: Crease, least: float) -> bool:
    """Look at random places of the hyperplane through a crease; `least` share must show it. Cost: 48 rows."""
    looked_at = 12
    _, seen = _seen_on_hyperplane(asker, crease, looked_at)
    visible = int((~seen.constant).sum())
    return bool(seen.found.sum() >= least * visible - 1)


def places_of(asker: Asker, crease: Crease, count: int) -> FloatArray:
    """Points (n, d), no more than `count`, of the hyperplane through a crease, far apart. Cost: 4 rows each."""
    far = 3.0  # times a typical input
    points, seen = _seen_on_hyperplane(asker, crease, count, far)
    return np.asarray(points + seen.position[:, None] * crease.normal)[seen.found]


def _seen_on_hyperplane(asker: Asker, crease: Crease, count: int, spread: float = 1.0) -> tuple[FloatArray, CreaseSeen]:
    """Random places (count, d) of the hyperplane through a crease, and what shows across it there."""
    room = 1e-3  # of the scale
    points = spread * asker.scale / np.sqrt(len(crease.normal)) * asker.rng.standard_normal((count, len(crease.normal)))
    points -= np.outer((points - crease.points[0]) @ crease.normal, crease.normal)
    return points, asker.test(points, np.repeat(crease.normal[None], count, axis=0), np.full(count, room * asker.scale))
