"""Creases on lines, and the hyperplane of each from the gradients on its two sides.

GETNEURONS of the learning paper compares gradients on the intervals of a fine grid; here the lines are searched
by adaptive subdivision, so that only pieces beside a crease are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry import DistanceNoise, Gradients, Lines, Scan, gradients, scan_lines
from reluctant.geometry.samples import TOLERANCE, BoolArray, IntArray
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.numerics import FloatArray

__all__ = ["Looked", "lines_at", "look_along"]

Ask = Callable[[FloatArray], FloatArray]

FARTHEST = 6.0  # from the origin may a hyperplane be that Gaussian inputs meet
FAR_ALONG = 1e3  # scales along a line: what is farther is nearly parallel to it, and better seen on another
STEP = 0.03  # of a piece's length, for a gradient in its middle
CROWD = 1e-3  # of the scale: creases closer than that may be of neurons that are nearly parallel
SAFETY = 4.0  # deviations of a normal
CLEAR = 0.1  # error of a normal that is still worth following
NEAREST, DOUBLINGS = 2.0**-36, 40  # of the scale: a narrow thing is looked at in steps that double
MOST_ROWS = 1200  # on one line before the noise is taken for larger than it was measured
MORE_NOISE, MOST_RESTARTS = 8.0, 6


@dataclass(frozen=True)
class Looked:
    """First look at the hyperplanes met by some lines, and the noise with which the lines could be read."""

    planes: Hyperplanes
    creases: int
    unresolved: int  # intervals
    noise: DistanceNoise


def lines_at(points: FloatArray, rng: np.random.Generator) -> Lines:
    """Whole lines through these points, in random directions."""
    lines = Lines.random(rng, len(points), points.shape[1])
    return replace(lines, origins=points)


def look_along(
    ask: Ask, lines: Lines, noise: DistanceNoise, rng: np.random.Generator, known: Hyperplanes, *, narrow: bool = False
) -> Looked:
    """Scan lines one by one; measure the hyperplane of each crease that is not known.

    If `narrow`, there is something narrow at the origin of each line. Cost: about five rows a crease, 80 more a
    narrow line, and d + 2 for each piece beside a new crease.
    """
    looked = Looked(known.chosen(np.zeros(len(known), dtype=bool)), 0, 0, noise)
    for i in range(len(lines)):
        line = Lines(*(part[i : i + 1] for part in (lines.origins, lines.directions)), lines.scale,
                     lines.low[i : i + 1], lines.high[i : i + 1])  # fmt: skip
        scan, noise = _scan(ask, line, noise, rng, narrow)
        found = _first_planes(ask, line, scan, noise, rng, known + looked.planes)
        looked = Looked(
            looked.planes + found, looked.creases + len(scan.creases), looked.unresolved + int(scan.open.sum()), noise
        )
    return looked


def _scan(
    ask: Ask, line: Lines, noise: DistanceNoise, rng: np.random.Generator, narrow: bool
) -> tuple[Scan, DistanceNoise]:
    """Scan a line; if that gets nowhere, the noise is larger where it passes than where it was measured."""
    for restart in range(MOST_RESTARTS):
        scan = scan_lines(ask, line, noise, rng, places=_doubling(line.scale) if narrow else None, most=MOST_ROWS)
        crowded = len(scan.samples) >= MOST_ROWS and len(scan.creases) * 4 > MOST_ROWS
        if not scan.open.any() and not crowded:
            break
        if restart + 1 < MOST_RESTARTS:
            noise = DistanceNoise(MORE_NOISE * noise.near, MORE_NOISE * noise.growth)
    return scan, noise


def _doubling(scale: float) -> FloatArray:
    steps = scale * NEAREST * 2.0 ** np.arange(DOUBLINGS)
    return np.concatenate([-steps[::-1], [0.0], steps])


def _first_planes(
    ask: Ask, line: Lines, scan: Scan, noise: DistanceNoise, rng: np.random.Generator, known: Hyperplanes
) -> Hyperplanes:
    t, jump = scan.creases.t, scan.creases.jump
    points = line.points(np.zeros(len(t), dtype=int), t)
    blur = TOLERANCE * noise.at(np.abs(t)) / np.linalg.norm(jump, axis=1)
    new = np.flatnonzero(~known.on(points, blur) & (np.abs(t) < FAR_ALONG * line.scale))
    if not len(new):
        return known.chosen(np.zeros(len(known), dtype=bool))
    measured, index = _gradients_beside(ask, line, t, new, noise, rng)
    before, after = index[new], index[new + 1]
    change = measured.slope[after] - measured.slope[before]  # (c, m, d)
    _, sizes, directions = np.linalg.svd(change, full_matrices=False)
    normals, size = directions[:, 0], sizes[:, 0]
    sd = np.hypot(measured.sd[before], measured.sd[after])
    with np.errstate(divide="ignore", invalid="ignore"):
        tilt = SAFETY * sd / size
    room = _room(t, CROWD * line.scale)[new] * np.abs(normals @ line.directions[0])
    offsets = -(normals * points[new]).sum(axis=1)
    good = measured.good[before] & measured.good[after] & (tilt < CLEAR) & (np.abs(offsets) < FARTHEST)
    steps = np.einsum("cmd,cd->cm", change, normals)
    planes = Hyperplanes(normals, offsets, points[new], blur[new], tilt, steps, sd, room)
    return planes.chosen(good)


def _room(t: FloatArray, crowd: float) -> FloatArray:
    """Distance from each crease to the next; in a crowd the least of all, for elsewhere the order is another."""
    gaps = np.diff(t)
    members = np.concatenate([[0], np.cumsum(gaps > crowd)])
    room = np.minimum(np.append(np.inf, gaps), np.append(gaps, np.inf))
    least = np.full(members[-1] + 1, np.inf)
    np.minimum.at(least, members, room)
    return least[members]


def _gradients_beside(
    ask: Ask, line: Lines, t: FloatArray, new: IntArray, noise: DistanceNoise, rng: np.random.Generator
) -> tuple[Gradients, IntArray]:
    """Gradients in the middle of the pieces beside new creases, and where each piece's is among them."""
    ends = np.concatenate([[t[0] - line.scale - abs(t[0])], t, [t[-1] + line.scale + abs(t[-1])]])
    beside = np.unique(np.concatenate([new, new + 1]))
    middle, length = (ends[beside] + ends[beside + 1]) / 2, ends[beside + 1] - ends[beside]
    index = np.zeros(len(t) + 1, dtype=np.intp)
    index[beside] = np.arange(len(beside))
    steps = STEP * np.minimum(length, line.scale)
    places = line.points(np.zeros(len(middle), dtype=int), middle)
    return gradients(ask, places, None, steps, noise, rng), index


def _unused(x: BoolArray) -> BoolArray:
    return x
