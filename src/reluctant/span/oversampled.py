"""Few digits, as in float32: more gradients than directions, the rank from their singular values, long steps after.

Taken one at a time, directions of few digits spoil each other; together they are told from noise by its own largest
singular value, s·(√rows + √columns) for noise of deviation s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from reluctant.numerics import FloatArray
from reluctant.span.central import Central, central_slopes
from reluctant.span.found import Found
from reluctant.span.ground import Ground
from reluctant.span.look import LivePoints, Look
from reluctant.span.refine import LONGEST, Inside, long_steps, refine, without_rest
from reluctant.span.silence import leaks, slopes_along

__all__ = ["oversampled"]

FIRST_STEP = 2.0**-5  # of central differences, in typical coordinates
BENT_SHARE = (0.08, 0.25)  # of the steps at a point that may meet a crease: fewer lose digits, more lose rows
FACTOR = 2.0
BATCH = 16  # gradients taken together
MORE, MOST, CLEAR = 1.8, 2.8, 0.2  # gradients for each direction, and if the rank's margin is no better than this
SPARE = 16  # and so many besides
HEARD, LOUD = 16, 0.1  # long steps, and how much of a gradient they show where directions are missing
MOST_FOR_EACH_INPUT = 4  # gradients
EDGE = 2.0  # times the largest singular value that noise alone would have: above is a direction
GAP = 3.0  # between the weakest direction and what creases too weak to be seen leave of themselves
ALONE = 0.7  # of a singular vector's weight on one gradient: it is no direction that others share
MOST_OUTLIERS = 4  # at most one gradient in so many is left out
STAGES = 5
ALONG_SPAN = 8.0  # steps inside the span meet more creases than steps along coordinates: so much shorter
SHARE = 0.5  # of the straight part around a point that a long step may use up
AFTER_A_LOSS = 1e-3  # error to expect of a span that had a direction too many: another stage is due
WEAK = 0.1  # of the weakest direction: what long steps may show outside the span
NEARLY = 0.25  # of the longest step: a stage after one with such steps has nothing to gain
GAIN = 0.5  # a stage that leaves more of the error is the last


@dataclass(frozen=True)
class _Sample:
    """Gradients (rows of all outputs), their points, and the noise of an entry."""

    points: FloatArray
    values: FloatArray
    rows: FloatArray
    sd: float
    step: float


def oversampled(
    seen: Look, rng: np.random.Generator, keep: Callable[[FloatArray], None], *, fine: bool, least: int = 0
) -> Found:
    """Rank and span from answers with few digits, by so many gradients at least; `keep` is told of them on the way.

    Cost: about 5·k·n rows, and 2.3·k·n for each stage: up to five if fine, else one.
    """
    sample = _gradients(seen, rng, keep, least)
    size = _size(sample)
    if size == 0:  # none, or rounding hides most changes
        return Found(
            sample.rows[:0], sample.points, sample.values, np.empty(0), 0.0,
            margin=np.inf, leak=np.inf, limit=0.0, gradients=0,
        )  # fmt: skip
    _, sizes, directions = np.linalg.svd(sample.rows, full_matrices=False)
    rank = _rank(sizes, sample)
    weakest, margin = float(sizes[rank - 1]) if rank else np.inf, _margin(sizes, rank, sample)
    which = _most_telling(sample, directions[:rank])
    kept = weakest / (size * float(np.sqrt(len(sample.rows)))) if rank else np.inf
    start = Found(
        directions[:rank], sample.points[which], sample.values[which], np.full(len(which), sample.step / ALONG_SPAN),
        size,
        margin=margin, leak=min(margin, 1.0), limit=WEAK * kept,
        gradients=len(sample.rows), kept=kept,
    )  # fmt: skip
    return _refined(seen.ground, start, STAGES if fine else 1, rng, keep) if 0 < rank < seen.ground.dim else start


def _most_telling(sample: _Sample, basis: FloatArray) -> NDArray[np.intp]:
    """Points for the stages: if there are more than enough, those whose gradients fix the directions best."""
    enough, outputs = int(MORE * len(basis)) + SPARE, len(sample.rows) // len(sample.points)
    left, chosen = np.arange(len(sample.rows)), np.empty(0, dtype=np.intp)
    while len(chosen) < min(enough, len(sample.points)) and len(basis):
        order = qr((sample.rows[left] @ basis.T).T, mode="r", pivoting=True)[1][: len(basis)]
        chosen = np.unique(np.concatenate([chosen, left[order] // outputs]))
        left = np.delete(left, order)
    return chosen


def _gradients(seen: Look, rng: np.random.Generator, keep: Callable[[FloatArray], None], least: int) -> _Sample:
    """Gradients at live points until there are enough for the rank they show."""
    queue, step, parts = LivePoints(seen, rng), FIRST_STEP * seen.ground.scale, []
    nothing = np.empty((0, seen.ground.dim))
    sample = _Sample(nothing, nothing, nothing, 0.0, step)
    for _ in range(max(MOST_FOR_EACH_INPUT * seen.ground.dim, least) // BATCH + 1):
        found = central_slopes(seen.ground, queue.draw(BATCH)[0], None, step)
        parts.append(found)
        step *= _change_of_step(float(np.median(found.bent)))
        sample = _together(parts, step)
        if len(sample.rows) < max(least, 1):
            continue
        _, sizes, directions = np.linalg.svd(sample.rows, full_matrices=False)
        rank = _rank(sizes, sample)
        keep(directions[:rank])
        enough = MORE if _margin(sizes, rank, sample) < CLEAR else MOST
        if rank == seen.ground.dim or len(sample.rows) >= enough * rank + SPARE:
            above = int((sizes > _edge(sample)).sum())
            if len(sample.rows) >= MOST * above + SPARE or not _is_loud(seen.ground, sample, rank, rng):
                break
    return sample


def _is_loud(ground: Ground, sample: _Sample, rank: int, rng: np.random.Generator) -> bool:
    """Whether long steps beside the first directions change much: an early gap of few gradients is not the rank.

    Thin networks have a few strong directions. Cost: a row for each long step.
    """
    if not 0 < rank < ground.dim:
        return False
    directions = np.linalg.svd(sample.rows, full_matrices=False)[2][:rank]
    starts, before = sample.points[-HEARD:], sample.values[-HEARD:]
    slope = leaks(ground, directions, starts, before, rng)[0]
    return float(np.sqrt((slope**2).mean())) > LOUD * _size(sample)


def _size(sample: _Sample) -> float:
    """Of a gradient, by the outputs that have one where they were asked: most are 0 of an answer cut to its largest."""
    sizes = np.linalg.norm(sample.rows, axis=1)
    return float(np.median(sizes[sizes > 0])) if sizes.any() else 0.0


def _change_of_step(bent: float) -> float:
    if bent > BENT_SHARE[1]:
        return 1 / FACTOR
    return FACTOR if bent < BENT_SHARE[0] else 1.0


def _together(parts: list[Central], step: float) -> _Sample:
    rows = np.concatenate([part.slope[part.good].reshape(-1, part.slope.shape[2]) for part in parts])
    sd = float(np.sqrt(np.mean([np.mean(part.sd**2) for part in parts])))
    points = np.concatenate([part.points[part.good] for part in parts])
    values = np.concatenate([part.value[part.good] for part in parts])
    return _without_outliers(_Sample(points, values, rows, sd, step))


def _without_outliers(sample: _Sample) -> _Sample:
    """Leave out gradients that alone make up the weakest direction: a crease that was overlooked does that."""
    for _ in range(len(sample.points) // MOST_OUTLIERS):  # none, if there are no gradients
        left, sizes, _ = np.linalg.svd(sample.rows, full_matrices=False)
        rank = _rank(sizes, sample)
        if rank == 0 or (left[:, rank - 1] ** 2).max() < ALONE:
            break
        outputs = len(sample.rows) // len(sample.points)
        keep = np.arange(len(sample.points)) != int(np.argmax(left[:, rank - 1] ** 2)) // outputs
        rows = sample.rows[np.repeat(keep, outputs)]
        sample = replace(sample, points=sample.points[keep], values=sample.values[keep], rows=rows)
    return sample


def _edge(sample: _Sample) -> float:
    return EDGE * sample.sd * float(np.sqrt(sample.rows.shape[0]) + np.sqrt(sample.rows.shape[1]))


def _margin(sizes: NDArray[np.floating[Any]], rank: int, sample: _Sample) -> float:
    """What counts as nothing over the weakest direction."""
    rest = max(float(sizes[rank]) if rank < len(sizes) else 0.0, _edge(sample) / EDGE)
    return rest / float(sizes[rank - 1]) if rank else 0.0


def _rank(sizes: NDArray[np.floating[Any]], sample: _Sample) -> int:
    """Where the last clear gap of the singular values is, above what noise alone would show."""
    gaps = sizes[:-1] / np.maximum(sizes[1:], np.finfo(float).tiny)
    clear = np.flatnonzero((gaps > GAP) & (sizes[:-1] > _edge(sample)))
    return int(clear[-1]) + 1 if len(clear) else int((sizes > _edge(sample)).sum())


def _refined(
    ground: Ground, found: Found, stages: int, rng: np.random.Generator, keep: Callable[[FloatArray], None]
) -> Found:
    """Long-step stages as long as they help."""
    for _ in range(stages):
        inside = central_slopes(ground, without_rest(ground, found.basis, found.points), found.basis, found.steps[0])
        good = inside.good
        if good.sum() * inside.value.shape[1] < found.rank:
            break
        length = long_steps(ground, found.steps[good], found.leak, SHARE)
        there = Inside(inside.points[good], inside.value[good], inside.slope[good])
        better = refine(ground, found.basis, there, length, rng)
        leak = float(leaks(ground, better, inside.points, inside.value, rng)[0].max()) / found.size
        if leak > found.leak:
            break
        helped = leak < GAIN * found.leak and np.median(length) < NEARLY * LONGEST * ground.scale
        rank = found.rank
        found = _without_silent(ground, replace(found, basis=better, leak=leak), inside.slope[good])
        keep(found.basis)
        if found.rank == 0 or (found.rank == rank and not helped):
            break
    return found


def _without_silent(ground: Ground, found: Found, slope: FloatArray) -> Found:
    """Leave out directions inside the span along which long steps change nothing: noise or a crease made them up."""
    rows = slope.reshape(-1, found.rank)
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    rank = found.rank
    while rank:
        along = np.tile(directions[rank - 1] @ found.basis, (len(found.points), 1))
        shown = slopes_along(ground, along, found.points, found.values)
        if np.sqrt((shown**2).mean()) > found.limit * found.size:
            break
        rank -= 1
    if rank == found.rank:
        return found
    kept = float(sizes[rank - 1]) / (found.size * float(np.sqrt(len(rows)))) if rank else found.kept
    basis, leak = directions[:rank] @ found.basis, max(found.leak, AFTER_A_LOSS)
    return replace(found, basis=basis, limit=WEAK * kept, kept=kept, leak=leak)
