"""Is a followed crease really there? Looked for at places all over the part of it that is determined."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.any_depth.asker import Asker
from reluctant.extraction.any_depth.crease import Crease, Incoming
from reluctant.extraction.any_depth.known import Known
from reluctant.extraction.any_depth.walk import find_walls

__all__ = ["is_there"]

PLACES = 8
STEPS = 20  # of the walks that lead there
PRESENT = 0.7  # share of the places that show anything at all
ROOM = 0.1  # of the distance to the next hinge


def is_there(asker: Asker, known: Known, crease: Crease, incoming: Incoming) -> bool:
    """Look at random places of the predicted crease. Cost: 32 rows."""
    starts = incoming.sure_points(known, crease)
    chosen = starts[asker.rng.integers(len(starts), size=PLACES)]
    _, places = find_walls(known, incoming, chosen, STEPS, asker.scale, asker.rng)
    around = known.around(places)
    normals = around.feature_gradients(np.broadcast_to(incoming.weights, around.features.shape))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.abs(around.values / around.hinge_slopes(normals)).min(axis=1)
    seen = asker.test(places, normals, ROOM * room)
    return bool(seen.found.sum() >= max(PRESENT * (~seen.constant).sum(), 1))
