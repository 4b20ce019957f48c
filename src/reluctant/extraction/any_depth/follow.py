"""Follow a crease until every incoming weight of its neuron is determined, or nothing more can be reached."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.any_depth.asker import Asker
from reluctant.extraction.any_depth.bends import INCONSISTENT, cross_walls
from reluctant.extraction.any_depth.crease import Crease, Incoming, solve
from reluctant.extraction.any_depth.known import Known
from reluctant.extraction.any_depth.walk import Walls, find_walls
from reluctant.geometry.samples import IntArray

__all__ = ["follow"]

WALKS, STEPS = 24, 30  # side by side, and how far each goes
FIRST_WALLS, MOST_WALLS = 3, 8  # asked in a round: few until one was crossed
FAILURES_FIRST = 4  # walls not crossed before any is: a crease of a deeper layer, or one that cannot be seen
FAILURES_AT_A_HINGE = 3
FAILURES_PER_SUCCESS = 0.5
MOST_DRY = 2  # walks in a row that find no new wall


def follow(asker: Asker, known: Known, crease: Crease) -> Crease | None:
    """The crease with all points that were needed, None if it is not one of the next layer.

    Cost: about 16 rows for each coefficient that the start leaves open.
    """
    incoming = solve(known, crease)
    failed = np.zeros(known.hinge_count, dtype=int)
    good = bad = dry = 0
    while not incoming.closed and dry < MOST_DRY:
        if incoming.residual > INCONSISTENT:
            return None
        walls = _choose(_walls(asker, known, crease, incoming), failed, MOST_WALLS if good else FIRST_WALLS)
        if not len(walls):
            dry += 1
            continue
        places, blind = cross_walls(asker, known, crease, incoming, walls, failed[walls.hinge])
        crossed = np.array([len(points) > 0 for points in places])
        np.add.at(failed, walls.hinge[~crossed], 1)
        good, bad = good + int(crossed.sum()), bad + int((~crossed & ~blind).sum())
        if bad > FAILURES_FIRST + FAILURES_PER_SUCCESS * good or (not good and bad >= FAILURES_FIRST):
            return None
        crease = crease.with_points(np.concatenate(places))
        incoming = solve(known, crease)
        dry = 0 if crossed.any() else dry
    return crease if incoming.residual <= INCONSISTENT else None


def _walls(asker: Asker, known: Known, crease: Crease, incoming: Incoming) -> Walls:
    starts = incoming.sure_points(known, crease)
    chosen = starts[asker.rng.integers(len(starts), size=WALKS)]
    return find_walls(known, incoming, chosen, STEPS, asker.scale, asker.rng)[0]


def _choose(walls: Walls, failed: IntArray, most: int) -> Walls:
    """The roomiest wall at each hinge, the roomiest of those first."""
    walls = walls.chosen(np.flatnonzero(failed[walls.hinge] < FAILURES_AT_A_HINGE))
    order = np.argsort(-walls.clearance())
    _, first = np.unique(walls.hinge[order], return_index=True)
    return walls.chosen(order[np.sort(first)][:most])
