"""A neuron that no line has met shows where the network found so far errs: lines from there to where it does not.

Between a point where a missing neuron is on and one where it is off lies its crease.
"""

from __future__ import annotations

import numpy as np

from reluctant.geometry import Lines
from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray

__all__ = ["segments_across"]

SEGMENTS = 3  # scanned in a round
NEIGHBOURS = 5  # right points near a wrong one, one of which is taken
BEYOND = 0.5  # of its length, a segment goes on at both ends: creases are better not at the very end


def segments_across(rows: FloatArray, wrong: BoolArray, off: FloatArray, rng: np.random.Generator) -> Lines:
    """Segments from wrong rows, the worst first, to rows nearby that are right."""
    dim = rows.shape[1]
    order = np.flatnonzero(wrong)[np.argsort(-off[wrong])][:SEGMENTS]
    right = rows[~wrong]
    start, stop = [], []
    for row in rows[order]:
        distance = np.linalg.norm(right - row, axis=1)
        nearest = np.argsort(distance)[:NEIGHBOURS]
        other = right[rng.choice(nearest)]
        start.append(row - BEYOND * (other - row))
        stop.append(other + BEYOND * (other - row))
    return Lines.between(np.array(start), np.array(stop), float(np.sqrt(dim)))
