"""Is the crease of a neuron where its weights predict it?

A neuron that few lines cross is looked for all over the part of its crease that is determined; a hyperplane of the
first layer at random places of it. A crease does not bend at neurons of its own layer: one that was seen on one side
of such a neuron alone, and is not there on the other, belongs to a deeper layer.
"""

from __future__ import annotations

import numpy as np

from reluctant.extraction.any_depth.crease_equations import Crease, IncomingWeights
from reluctant.extraction.any_depth.features import KnownLayers
from reluctant.extraction.any_depth.follow import find_walls, tangents
from reluctant.extraction.any_depth.kinks import Asker, CreaseSeen
from reluctant.numerics import FloatArray

STEPS_TO_PLACES = 20  # of the walks that lead there


def is_there(asker: Asker, known: KnownLayers, crease: Crease, incoming: IncomingWeights) -> bool:
    """Look at random places of the predicted crease. Cost: 32 rows."""
    present_share = 0.7  # share of the places that show anything at all
    places = reached(asker, known, crease, incoming)
    if not len(places):
        return False
    seen = _seen_at(asker, known, incoming, places)
    return bool(seen.found.sum() >= max(present_share * (~seen.constant).sum(), 1))


def reached(asker: Asker, known: KnownLayers, crease: Crease, incoming: IncomingWeights) -> FloatArray:
    """Random places (n, d) of the predicted crease that lie together with its points; none where it is not known."""
    walks = 8
    starts = incoming.sure_points(known, crease)
    if not len(starts):
        return starts
    chosen = starts[asker.rng.integers(len(starts), size=walks)]
    return find_walls(known, incoming, chosen, STEPS_TO_PLACES, asker.scale, asker.rng)[1]


def ends_at(asker: Asker, known: KnownLayers, crease: Crease, incoming: IncomingWeights, so_far: KnownLayers) -> bool:
    """True if the crease is not there behind neurons of its own layer that its points have never crossed.

    so_far: the layers below, and on top of them other neurons of this one. It is looked for just behind that neuron,
    next to points of it: farther on, units that are off may hide it. They may there too, but rarely behind many: where
    it goes straight on across more than twice as many, it is of this layer. Only where it shows before such a neuron it
    can be seen to end there. Cost: 16 to 32 rows for each such neuron.
    """
    looked_at = 4
    absent_share = 0.3  # of the places that show anything: a crease that so few of them show is not there
    points = incoming.sure_points(known, crease)
    own = np.arange(known.hinge_count, so_far.hinge_count)
    on = so_far.patterns(points)[:, own]
    on_one_side, ends, gone = on.all(axis=0) | ~on.any(axis=0), 0, 0
    for other in own[on_one_side]:
        before, behind = _places_beside(known, incoming, so_far, int(other), points)
        seen = _seen_at(asker, known, incoming, behind[:looked_at], so_far)
        absent = np.flatnonzero(~seen.found & ~seen.constant)
        lost = int(_seen_at(asker, known, incoming, before[absent], so_far).found.sum())
        if lost and int(seen.found.sum()) <= absent_share * (lost + int(seen.found.sum())):
            ends, gone = ends + 1, gone + lost
    return gone > looked_at / 2 and 2 * ends > max(int((~on_one_side).sum()), 1)


def _places_beside(
    known: KnownLayers, incoming: IncomingWeights, so_far: KnownLayers, hinge: int, points: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Places (n, d) of the predicted crease just before a hinge and just behind it, in the cells of these points of it.

    The nearest come first.
    """
    aside = 0.4  # of the way from one hinge to the next
    around = so_far.around(points)
    towards = around.hinge_gradients(np.full(len(points), hinge)) * -np.sign(around.values[:, [hinge]])
    with np.errstate(divide="ignore", invalid="ignore"):
        along = tangents(towards, _normals(known, incoming, points))
        reach = -around.values / around.hinge_slopes(along)
    reach = np.where(np.isfinite(reach) & (reach > 0), reach, np.inf)
    reach = np.where(reach < known.domain.room(points, along)[:, None], reach, np.inf)
    clear = np.isfinite(reach[:, hinge]) & (reach[:, hinge] < reach[:, : known.hinge_count].min(axis=1, initial=np.inf))
    points, along, reach = points[clear], along[clear], reach[clear]
    first = reach[:, hinge]
    nearer = np.where(reach < first[:, None], reach, 0.0).max(axis=1, initial=0.0)
    second = np.where(reach > first[:, None], reach, 2 * first[:, None]).min(axis=1)
    nearest = np.argsort(first)
    before, behind = (first + aside * (other - first) for other in (nearer, second))
    return (points + before[:, None] * along)[nearest], (points + behind[:, None] * along)[nearest]


def _normals(known: KnownLayers, incoming: IncomingWeights, places: FloatArray) -> FloatArray:
    """Unit normals (n, d) of a predicted crease."""
    around = known.around(places)
    normals = around.feature_gradients(np.broadcast_to(incoming.weights, around.features.shape))
    return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))


def _seen_at(
    asker: Asker, known: KnownLayers, incoming: IncomingWeights, places: FloatArray, so_far: KnownLayers | None = None
) -> CreaseSeen:
    """What shows across a predicted crease at places on it, closer than the next hinge."""
    place_room = 0.1  # of the distance to the next hinge
    normals = _normals(known, incoming, places)
    around = (so_far or known).around(places)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.abs(around.values / around.hinge_slopes(normals)).min(axis=1, initial=np.inf)
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
    return np.asarray(points[seen.found] + seen.position[seen.found, None] * crease.normal)


def _in_box(asker: Asker, points: FloatArray, normal: FloatArray) -> FloatArray:
    """Points (n, d) of a hyperplane moved at random inside the box."""
    for _ in range(2 * points.shape[1]):
        along = tangents(asker.rng.standard_normal(points.shape), np.broadcast_to(normal, points.shape))
        back, ahead = (asker.domain.room(points, side * along) for side in (-1, 1))
        points = points + asker.rng.uniform(-back, ahead)[:, None] * along
    return points


def _seen_on_hyperplane(asker: Asker, crease: Crease, count: int, spread: float = 1.0) -> tuple[FloatArray, CreaseSeen]:
    """Random places (count, d) of the hyperplane through a crease, and what shows across it there."""
    room = 1e-3  # of the scale
    points = spread * asker.scale / np.sqrt(len(crease.normal)) * asker.rng.standard_normal((count, len(crease.normal)))
    points -= np.outer((points - crease.points[0]) @ crease.normal, crease.normal)
    if not asker.domain.is_space:
        points = _in_box(asker, np.repeat(crease.points[:1], count, axis=0), crease.normal)
    return points, asker.test(points, np.repeat(crease.normal[None], count, axis=0), np.full(count, room * asker.scale))
