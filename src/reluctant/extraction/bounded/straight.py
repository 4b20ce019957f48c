"""A first look at whether creases go straight on: those of deeper layers bend, and no such model fits them."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.bounded.inside import Inside
from reluctant.extraction.bounded.known import Known
from reluctant.extraction.failures import StageFailed
from reluctant.geometry.crossings import cross
from reluctant.numerics import FloatArray

__all__ = ["check_straight"]

TESTED = 8  # neurons
MOST_MISSING = 1  # of them: another crease may be close by
POINTS = 64  # between which hyperplanes are crossed
REACH = 1e-4  # of a crossing, in lengths of the domain
MEETING = 0.05  # of the reach: how far a crease may be from where it is expected


def check_straight(inside: Inside, known: Known) -> None:
    """Look for some neurons' creases elsewhere in the domain; raises StageFailed. Cost: 32 rows."""
    chosen = inside.rng.permutation(known.neurons)[:TESTED]
    places = [_place(inside, known, neuron) for neuron in chosen]
    neurons = [neuron for neuron, place in zip(chosen, places, strict=True) if place is not None]
    if not neurons:
        return
    points = np.array([place for place in places if place is not None])
    normals = known.weights[neurons] / np.linalg.norm(known.weights[neurons], axis=1, keepdims=True)
    reach = np.full(len(points), REACH * inside.scale)
    with inside.oracle.stage("straight", expected=4 * len(points)):
        seen = cross(inside.ask, points, normals, reach, MEETING * reach, inside.noise)
    missing = int((~seen.critical).sum())
    if missing > MOST_MISSING:
        raise StageFailed(
            "straight", "creases that bend: there is another hidden layer", number=missing, limit=MOST_MISSING,
            partial=known.network(),
        )  # fmt: skip


def _place(inside: Inside, known: Known, neuron: int) -> FloatArray | None:
    """A point of a neuron's hyperplane between two points of the domain; None if it passes between none."""
    points = inside.domain.interior(inside.rng, POINTS, inside.oracle.dim)
    values = known.values(points)[:, neuron]
    low, high = np.flatnonzero(values < 0), np.flatnonzero(values > 0)
    if not len(low) or not len(high):
        return None
    i, j = inside.rng.choice(low), inside.rng.choice(high)
    share = values[i] / (values[i] - values[j])
    return np.asarray(points[i] + share * (points[j] - points[i]))
