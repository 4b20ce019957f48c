"""Creases that the model does not have yet."""

from __future__ import annotations

import numpy as np

from reluctant.extraction.bounded.inside import Inside
from reluctant.extraction.bounded.known import Known
from reluctant.extraction.bounded.rays import Ray
from reluctant.geometry import Lines, scan_lines
from reluctant.numerics import FloatArray

__all__ = ["new_creases"]


def new_creases(inside: Inside, known: Known, point: FloatArray) -> Ray | None:
    """Creases of target minus model from the anchor to a point; None where they could not be told apart."""
    line = Lines.between(known.anchor[None], point[None], inside.scale)

    def difference(rows: FloatArray) -> FloatArray:
        return inside.ask(rows) - known(rows)

    def lost(rows: FloatArray, f: FloatArray) -> FloatArray:
        return inside.lost(rows, known(rows) + f)

    noise = known.noise_towards(point, inside.noise)
    scan = scan_lines(difference, line, noise, inside.rng, few=True, lost=lost)
    if scan.open.any() or np.any(np.diff(scan.creases.t) <= 0):
        return None
    found = scan.creases
    return Ray(line.directions[0], found.t, found.jump, found.jump_sd, float(line.high[0]))
