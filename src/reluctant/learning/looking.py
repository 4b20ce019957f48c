"""Creases on a line, and the hyperplane of each from the gradients on its two sides.

GETNEURONS of the learning paper compares gradients on the intervals of a fine grid; here the line is searched by
adaptive subdivision, so that only pieces beside a crease are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry import Creases, DistanceNoise, Gradients, Lines, Scan, gradients, scan_lines
from reluctant.geometry.samples import TOLERANCE, IntArray
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.numerics import FloatArray, quotient, unit_roundoff

__all__ = ["Looked", "line_through", "look_along"]

Ask = Callable[[FloatArray], FloatArray]

FARTHEST = 6.0  # from the origin may a hyperplane be that Gaussian inputs meet
FAR_ALONG = 1e3  # scales along a line: what is farther is nearly parallel to it, and better seen on another
STEP = 0.03  # of a piece's length, for a gradient in its middle
CROWD = 1e-3  # of the scale: creases closer than that may be of neurons that are nearly parallel
NORMAL_SAFETY = 4.0  # deviations
CLEAR = 0.1  # error of a normal that is still worth following
NEAREST, DOUBLINGS = 2.0**-36, 40  # of the scale: something narrow is looked at in steps that double
FIRST_ROWS, MORE_ROWS = 1200, 4  # on a line before it is asked whether that leads anywhere, and as many times more
DUST = 1e-7  # of the scale: creases that are mostly this close to each other are noise
MORE_NOISE, ROUNDINGS = 8.0, 4.0  # the noise of the next try: so much more, or so many roundings of a sum
MOST_TRIES = 6
SLOPES, BESIDE = 6, 1e-6  # how often, and in which steps of the scale, the slope of something narrow is looked at


@dataclass(frozen=True)
class Looked:
    """New hyperplanes that a line meets, as far as gradients tell, and the noise with which it could be read."""

    planes: Hyperplanes
    creases: int
    unresolved: int  # intervals
    noise: DistanceNoise


def line_through(point: FloatArray, rng: np.random.Generator) -> Lines:
    """A long line in a random direction."""
    drawn = Lines.random(rng, 1, len(point))
    far = np.array([FAR_ALONG * drawn.scale])
    return Lines(point[None], drawn.directions, drawn.scale, -far, far)


def look_along(ask: Ask, line: Lines, noise: DistanceNoise, rng: np.random.Generator, known: Hyperplanes) -> Looked:
    """Scan a line at whose origin something may be narrow; measure the hyperplane of each crease that is not known.

    Cost: about 100 rows, five a crease, and d + 2 for each piece beside a new crease.
    """
    scan, noise = _scan(ask, line, _at_origin(ask, line, noise, rng), rng)
    planes = _first_planes(ask, line, scan, noise, rng, known)
    return Looked(planes, len(scan.creases), int(scan.open.sum()), noise)


def _scan(ask: Ask, line: Lines, noise: DistanceNoise, rng: np.random.Generator) -> tuple[Scan, DistanceNoise]:
    """Scan a line; if that ends in dust, the noise is larger where it passes than where it was measured."""
    most, places = FIRST_ROWS, _doubling(line.scale)
    for _ in range(MOST_TRIES):
        used = noise
        scan = _met(scan_lines(ask, line, used, rng, places=places, most=most))
        dusty = len(scan.creases) > 1 and bool(np.median(np.diff(scan.creases.t)) < DUST * line.scale)
        if not scan.open.any() and not (dusty and len(scan.samples) >= most):
            break
        if len(scan.samples) >= most and not dusty:
            most *= MORE_ROWS
        else:
            noise = _at_slopes(noise.times(MORE_NOISE), _wide_slopes(scan, line), line)
    return scan, _at_slopes(used, _wide_slopes(scan, line), line)


def _met(scan: Scan) -> Scan:
    """Without creases at infinity, where coarse answers let pieces of one slope seem to cross."""
    found = scan.creases
    kept = ~found.nowhere
    return replace(scan, creases=Creases(found.line[kept], found.t[kept], found.jump[kept], found.jump_sd[kept]))


def _at_slopes(noise: DistanceNoise, slopes: FloatArray, line: Lines) -> DistanceNoise:
    """The noise, or what roundings of the sums inside a network leave that gives slopes like these."""
    sums = ROUNDINGS * unit_roundoff(np.float64) * float(np.abs(slopes).max(initial=0))
    return DistanceNoise(max(noise.near, sums * line.scale), max(noise.growth, sums))


def _wide_slopes(scan: Scan, line: Lines) -> FloatArray:
    return scan.pieces.slope[scan.pieces.certified & (scan.pieces.length > DUST * line.scale)]


def _at_origin(ask: Ask, line: Lines, noise: DistanceNoise, rng: np.random.Generator) -> DistanceNoise:
    """Noise where a target that is flat elsewhere is steep. Cost: 7 rows."""
    dim = line.origins.shape[1]
    steps = rng.standard_normal((SLOPES, dim)) * line.scale * BESIDE / np.sqrt(dim)
    answers = ask(np.concatenate([line.origins, line.origins + steps]))
    return _at_slopes(noise, np.sqrt(dim) * (answers[1:] - answers[0]) / (line.scale * BESIDE), line)


def _doubling(scale: float) -> FloatArray:
    """Places on both sides of the origin: of two halves of a bump one holds it, the other one of these."""
    steps = scale * NEAREST * 2.0 ** np.arange(DOUBLINGS)
    return np.concatenate([-steps[::-1], [0.0], steps])


def _first_planes(
    ask: Ask, line: Lines, scan: Scan, noise: DistanceNoise, rng: np.random.Generator, known: Hyperplanes
) -> Hyperplanes:
    """What gradients beside the new creases tell of their hyperplanes."""
    t, jump = scan.creases.t, scan.creases.jump
    points = line.points(np.zeros(len(t), dtype=int), t)
    blur = quotient(TOLERANCE * noise.at(np.abs(t)), np.linalg.norm(jump, axis=1))
    new = np.flatnonzero(~known.on(points, blur))
    if not len(new):
        return known.chosen(new)
    measured, index = _gradients_beside(ask, line, t, new, noise, rng)
    before, after = index[new], index[new + 1]
    change = np.nan_to_num(measured.slope[after] - measured.slope[before])  # (c, m, d)
    _, sizes, directions = np.linalg.svd(change, full_matrices=False)
    ahead = np.where(directions[:, 0] @ line.directions[0] < 0, -1.0, 1.0)  # parallel neurons have one direction
    normals, sd = ahead[:, None] * directions[:, 0], np.hypot(measured.sd[before], measured.sd[after])
    tilt = quotient(NORMAL_SAFETY * sd, sizes[:, 0])
    room = _room(t, CROWD * line.scale)[new] * np.abs(normals @ line.directions[0])
    offsets = -(normals * points[new]).sum(axis=1)
    steps = np.einsum("cmd,cd->cm", change, normals)
    good = measured.good[before] & measured.good[after] & (tilt < CLEAR) & (np.abs(offsets) < FARTHEST)
    no_gate = np.zeros(len(new), dtype=bool)
    return Hyperplanes(normals, offsets, points[new], blur[new], tilt, steps, sd, room, no_gate).chosen(good)


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
    steps = STEP * np.clip(length, 0, line.scale)
    places = line.points(np.zeros(len(middle), dtype=int), middle)
    with np.errstate(divide="ignore", invalid="ignore"):  # no step is left in a piece that rounding closes
        return gradients(ask, places, None, steps, noise, rng), index
