"""Follow hyperplanes: from where each was found to places farther and farther away.

A normal read from two gradients has few digits where neurons lie close together, for steps between them are
short. But along a crease there is room. Four answers across the place where it is expected tell where it is;
places spread over a small disc give a better normal, and that one reaches a larger disc. Neurons 1e-9 apart are
told apart in three or four discs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reluctant.geometry import DistanceNoise
from reluctant.geometry.crossings import EXTRAPOLATED, SMALLEST_BEND, Crossings, cross
from reluctant.geometry.samples import BoolArray, IntArray
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.numerics import FloatArray

__all__ = ["follow"]

Ask = Callable[[FloatArray], FloatArray]

SHARE, EXTRA = 1.5, 6  # places for each unknown, and more
SPARE = 3  # places more than unknowns that must agree
INSIDE = 0.03  # of the room around a crease: how far off it may be expected
WIDER = 4.0  # a crossing is so many times as long as the crease is expected to be off
LONGEST = 0.15  # of the room, or of a unit
WITHIN = 0.45  # of a crossing's reach: between its inner points
SHARP = 8.0  # deviations of noise: a fit farther off saw something else at some of its places
TURNED = 3.0  # a better normal is no farther from the one before, in its deviations
SMALLER = 4.0  # the disc after one on which the crease was lost
MOST_ROUNDS, MOST_LOST = 12, 4  # discs in all, and in a row on which a crease was lost
AMPLIFIED = 4.0  # deviations of a fit


def follow(ask: Ask, planes: Hyperplanes, noise: DistanceNoise, rng: np.random.Generator) -> Hyperplanes:
    """The hyperplanes that could be followed over all that Gaussian inputs meet, to their last digit.

    Cost: about 6 d + 30 rows for each disc, one or two discs a hyperplane and two or three more in a cluster.
    """
    size = float(np.sqrt(planes.normals.shape[1]))
    limit = np.full(len(planes), size)  # of the discs
    todo, done = np.arange(len(planes)), np.zeros(len(planes), dtype=bool)
    lost = np.zeros(len(planes), dtype=int)  # times in a row
    for _ in range(MOST_ROUNDS):
        if not len(todo):
            break
        now = planes.chosen(todo)
        radius = np.minimum(limit[todo], _safe_radius(now))
        everywhere = radius >= size
        rows = _places(now, radius, everywhere, rng)
        found, good = _refitted(now, rows, _crossings(ask, now, rows, noise))
        planes = planes.replaced(todo, found)
        limit[todo] = np.where(good, size, radius / SMALLER)
        done[todo], lost[todo] = good & everywhere, np.where(good, 0, lost[todo] + 1)
        hopeless = ~good & ((_gain(now, radius / SMALLER, noise) < 1) | (lost[todo] == MOST_LOST))
        todo = todo[~done[todo] & ~hopeless]
    return planes.chosen(done)


def _safe_radius(planes: Hyperplanes) -> FloatArray:
    """How far from its centre each crease is known well enough to be told from its neighbours."""
    margin = INSIDE * np.minimum(planes.room, 1.0) - planes.place_sd
    return np.maximum(margin, np.finfo(float).tiny) / np.maximum(planes.tilt, np.finfo(float).tiny)


def _gain(planes: Hyperplanes, radius: FloatArray, noise: DistanceNoise) -> FloatArray:
    """How much better than now a disc of this radius could give the normals."""
    dim = planes.normals.shape[1]
    blur = noise.at(np.linalg.norm(planes.centre, axis=1)) * EXTRAPOLATED / np.linalg.norm(planes.jump, axis=1)
    return planes.tilt * radius / (AMPLIFIED * blur * np.sqrt(dim / _count(dim)))


def _count(dim: int) -> int:
    return int(SHARE * dim) + EXTRA


def _places(planes: Hyperplanes, radius: FloatArray, everywhere: BoolArray, rng: np.random.Generator) -> FloatArray:
    """Places (h, k, d) on each hyperplane: on a disc, or where Gaussian inputs come closest."""
    h, d = planes.normals.shape
    drawn = rng.standard_normal((h, _count(d), d))
    spread = np.where(everywhere, 1.0, radius / np.sqrt(d))
    start = np.where(everywhere[:, None], 0.0, planes.centre)
    rows = start[:, None] + spread[:, None, None] * drawn
    off = np.einsum("hkd,hd->hk", rows, planes.normals) + planes.offsets[:, None]
    return np.asarray(rows - off[:, :, None] * planes.normals[:, None])


def _crossings(ask: Ask, planes: Hyperplanes, rows: FloatArray, noise: DistanceNoise) -> Crossings:
    """Cross every hyperplane at its places, no longer than it takes to meet the crease."""
    _, k, d = rows.shape
    away = np.linalg.norm(rows - planes.centre[:, None], axis=2)
    off = planes.place_sd[:, None] + planes.tilt[:, None] * away
    size = np.linalg.norm(planes.jump, axis=1)[:, None]
    shortest = 2 * SMALLEST_BEND * noise.at(np.linalg.norm(rows, axis=2)) / size
    longest = LONGEST * np.minimum(planes.room, 1.0)[:, None]
    reach = np.clip(WIDER * off, shortest, np.maximum(longest, shortest)).reshape(-1)
    return cross(ask, rows.reshape(-1, d), np.repeat(planes.normals, k, axis=0), reach, WITHIN * reach, noise)


def _refitted(planes: Hyperplanes, rows: FloatArray, seen: Crossings) -> tuple[Hyperplanes, BoolArray]:
    """Hyperplanes through where the creases were seen, and for which of them that gave one."""
    h, k, _ = rows.shape
    good = np.zeros(h, dtype=bool)
    position = np.where(np.isfinite(seen.position), seen.position, 0.0)  # no bend has no position
    points = rows + position.reshape(h, k, 1) * planes.normals[:, None]
    blur = EXTRAPOLATED * seen.sd.reshape(h, k) / np.linalg.norm(planes.jump, axis=1)[:, None]
    bend, critical = seen.bend.reshape(h, k, -1), seen.critical.reshape(h, k)
    for i in range(h):
        at = np.flatnonzero(critical[i])
        fit = _Fit.through(points[i, at], planes.normals[i], float(np.median(blur[i])))
        if fit is None or fit.turned > TURNED * np.sqrt(rows.shape[2]) * planes.tilt[i]:
            continue
        good[i] = True
        planes = planes.replaced(np.array([i]), _moved(planes.chosen(np.array([i])), fit, bend[i, at[fit.kept]]))
    return planes, good


@dataclass(frozen=True)
class _Fit:
    """A hyperplane through points: the ones that were used, how far off they are and how far they spread."""

    normal: FloatArray
    centre: FloatArray
    kept: IntArray
    blur: float
    radius: float
    turned: float  # distance of the normal from the one expected

    @classmethod
    def through(cls, points: FloatArray, expected: FloatArray, blur: float) -> _Fit | None:
        """Leave out the farthest points, one by one, until noise explains the others; None if too few are left."""
        kept, dim = np.arange(len(points)), points.shape[1]
        while len(kept) >= dim + SPARE:
            centre = points[kept].mean(axis=0)
            normal = np.linalg.svd(points[kept] - centre, full_matrices=False)[2][-1]
            distance = np.abs((points[kept] - centre) @ normal)
            off = float(np.sqrt((distance**2).sum() / (len(kept) - dim)))
            if off <= SHARP * blur:
                normal = normal * np.sign(normal @ expected)
                radius = float(np.linalg.norm(points[kept] - centre, axis=1).mean())
                turned = float(np.linalg.norm(normal - expected))
                return cls(normal, centre, kept, max(off, blur), radius, turned)
            kept = np.delete(kept, np.argmax(distance))
        return None


def _moved(plane: Hyperplanes, fit: _Fit, bend: FloatArray) -> Hyperplanes:
    """One hyperplane as the fit gives it, its jump as most crossings saw it."""
    jump = np.median(bend, axis=0)
    on_a_line = len(fit.normal) == 1  # no direction to be wrong about; all crossings are at one place and err alike
    tilt = 0.0 if on_a_line else AMPLIFIED * fit.blur * np.sqrt(len(fit.normal) / len(fit.kept)) / fit.radius
    return replace(
        plane,
        normals=fit.normal[None],
        offsets=np.array([-fit.normal @ fit.centre]),
        centre=fit.centre[None],
        place_sd=np.array([AMPLIFIED * fit.blur]),
        tilt=np.array([tilt]),
        jump=jump[None],
        jump_sd=np.array([np.inf if on_a_line else np.median(np.abs(bend - jump).max(axis=1))]),
    )
