"""Clusters that noise does not let one tell apart: an affine map that is switched on at one hyperplane.

Neurons at a distance below the noise whose outputs cancel leave a step: on one side of their hyperplane nothing, on
the other side an affine map as small as their distance (the corner case of Lemma 3.19 of the learning paper). On a
line such a step is found by subdivision: of four parts the one with the step changes by more than the others, however
short they become. Where it is on many lines gives the hyperplane.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reluctant.geometry import DistanceNoise, Lines
from reluctant.geometry.samples import TOLERANCE, BoolArray
from reluctant.learning.hyperplanes import Hyperplanes
from reluctant.numerics import FloatArray

__all__ = ["look_for_gate"]

Ask = Callable[[FloatArray], FloatArray]

REACH, SAMPLES = 4.0, 96  # how far along the line, in scales, and how often the residual is looked at
JITTER = 0.3  # of a step of the grid: nothing is met by rule
SPLIT = 4  # parts of an interval, of which one is kept
WIDTH = 1e-9  # of the scale, down to which a step is followed
SHARE, EXTRA = 2.0, 12  # lines for each unknown of a hyperplane, and more
DISC = 0.02  # of the scale: where it is looked for at first
BRACKET, FAR_BRACKET = 12.0, 30.0  # as many times the disc, and the error of the first hyperplane
IN_ONE_PART = (
    0.35  # of the change in an interval must be in one of its four parts, or it is a bend: that leaves a quarter
)
WIDEST = 1e-3  # of the scale: a change that is spread over more is no step
SEEN = 0.1  # of the step: what has to be left of it elsewhere
OUTLIER = 6.0  # median distances from the fitted hyperplane
REFITS = 3  # of a hyperplane, without what is far from it
SPARE = 4  # places more than unknowns that must agree


@dataclass(frozen=True)
class _Steps:
    """Where on each line the residual steps, how much, and in how short an interval."""

    t: FloatArray
    size: FloatArray
    width: FloatArray


def look_for_gate(residual: Ask, line: Lines, noise: DistanceNoise, rng: np.random.Generator) -> Hyperplanes | None:
    """The hyperplane of the largest step of the residual along a line, None if there is no step.

    Cost: about 200 rows, and 100 (d + 5) more if there is one.
    """
    bracket = _largest_change(residual, line, rng)
    first = _follow_steps(residual, line.origins, line.directions, bracket, WIDTH * line.scale)
    point = line.points(np.zeros(1, dtype=int), first.t)
    least = TOLERANCE * float(noise.at(np.linalg.norm(point, axis=1))[0])
    if not first.size[0] > least or first.width[0] > WIDEST * line.scale or not _lasts(residual, line, first):
        return None
    dim = point.shape[1]
    count = int(SHARE * dim) + EXTRA
    disc = DISC * line.scale
    starts = point + disc / np.sqrt(dim) * rng.standard_normal((count, dim))
    reach = np.full((count, 1), BRACKET * disc)
    near = _plane(residual, starts, line.directions, np.hstack([-reach, reach]), first, line.scale)
    if near is None:
        return None
    normal, centre, off = near
    starts = rng.standard_normal((count, dim))
    starts -= ((starts - centre) @ normal)[:, None] * normal
    reach = FAR_BRACKET * off * (1 + np.linalg.norm(starts - centre, axis=1, keepdims=True) / disc)
    far = _plane(residual, starts, normal[None], np.hstack([-reach, reach]), first, line.scale)
    return None if far is None else _gate(*far, residual(point[:1]).shape[1])


def _lasts(residual: Ask, line: Lines, step: _Steps) -> bool:
    """True if what changes at a step does not change back at once: that would be a bump."""
    beside = step.t + WIDEST * line.scale * np.array([-1.0, 1.0])
    before, after = residual(line.points(np.zeros(2, dtype=int), beside))
    return bool(np.linalg.norm(after - before) > IN_ONE_PART * step.size[0])


def _gate(normal: FloatArray, centre: FloatArray, off: float, outputs: int) -> Hyperplanes:
    size = float(np.sqrt(len(normal)))
    one = np.ones(1)
    return Hyperplanes(
        normal[None], np.array([-normal @ centre]), centre[None], off * one, off / size * one,
        np.zeros((1, outputs)), np.inf * one, one, np.ones(1, dtype=bool),
    )  # fmt: skip


def _largest_change(residual: Ask, line: Lines, rng: np.random.Generator) -> FloatArray:
    """The interval (1, 2) of a coarse grid in which the residual changes most beside its neighbours."""
    t = REACH * line.scale * np.linspace(-1, 1, SAMPLES)
    t[1:-1] += rng.uniform(-JITTER, JITTER, SAMPLES - 2) * (t[1] - t[0])
    slopes = np.diff(residual(line.points(np.zeros(SAMPLES, dtype=int), t)), axis=0) / np.diff(t)[:, None]
    bends = np.linalg.norm(np.diff(slopes, axis=0), axis=1)
    k = int(np.argmax(np.minimum(bends[:-1], bends[1:]) * np.diff(t)[1:-1])) + 1  # unlike both of its neighbours
    return t[None, k : k + 2]


def _follow_steps(
    residual: Ask, starts: FloatArray, directions: FloatArray, brackets: FloatArray, width: float
) -> _Steps:
    """Subdivide brackets (n, 2) along lines until they are short, or the step is spread over what is left."""
    low, high = brackets[:, 0].copy(), brackets[:, 1].copy()
    change, todo, shares = np.zeros(len(starts)), np.arange(len(starts)), np.linspace(0, 1, SPLIT + 1)
    while len(todo):
        t = low[todo, None] + shares * (high - low)[todo, None]
        rows = starts[todo, None] + t[:, :, None] * directions[todo, None]
        values = residual(rows.reshape(-1, starts.shape[1])).reshape(len(todo), SPLIT + 1, -1)
        steps = np.diff(values, axis=1)
        off = np.linalg.norm(steps - np.median(steps, axis=1, keepdims=True), axis=2)
        best, each = np.argmax(off, axis=1), np.arange(len(todo))
        whole = off[each, best] > IN_ONE_PART * change[todo]
        todo, best, each = todo[whole], best[whole], each[whole]
        low[todo], high[todo], change[todo] = t[each, best], t[each, best + 1], off[each, best]
        todo = todo[high[todo] - low[todo] > width]
    return _Steps((low + high) / 2, change, high - low)


def _plane(
    residual: Ask, starts: FloatArray, directions: FloatArray, brackets: FloatArray, first: _Steps, scale: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """Normal, centre and uncertainty of the hyperplane through the steps of many lines; None if it is none."""
    directions = np.broadcast_to(directions, starts.shape)
    seen = _follow_steps(residual, starts, directions, brackets, WIDTH * scale)
    kept = _agreeing(seen, first)
    points, dim = starts + seen.t[:, None] * directions, starts.shape[1]
    for _ in range(REFITS):
        if kept.sum() < dim + SPARE:
            return None
        centre = points[kept].mean(axis=0)
        normal = np.linalg.svd(points[kept] - centre, full_matrices=False)[2][-1]
        distance = np.abs((points - centre) @ normal)
        typical = float(np.median(distance[kept])) + float(np.median(seen.width[kept]))
        kept = kept & (distance <= OUTLIER * typical)
    return normal, centre, OUTLIER * typical


def _agreeing(seen: _Steps, first: _Steps) -> BoolArray:
    """Steps that are as large as the first one, more or less."""
    alike = (seen.size > SEEN * first.size[0]) & (seen.size < first.size[0] / SEEN)
    return np.asarray(alike & (seen.width < first.width[0] / SEEN))
