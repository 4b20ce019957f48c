"""All directions together, from answers with few digits: the rank is a gap of singular values.

Found one at a time, directions of few digits spoil each other. So more gradients than directions are measured by
central differences, with long steps that are shortened only where they meet a crease: a crease shows in the second
difference of its own direction. Noise of deviation s has a largest singular value of s·(√rows + √columns), and the
last clear gap above it is the rank. Stages of long steps follow as long as they help.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from reluctant.geometry.gradients import row_batches
from reluctant.geometry.lines import BoolArray
from reluctant.interface.noise import SECOND_DIFFERENCE_GAIN
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.span.first_look import FirstLook, Ground, LivePoints, as_long_as_allowed
from reluctant.span.subspace import (
    LONGEST_STEP,
    FoundSpan,
    SlopesInside,
    leak_slopes,
    long_steps,
    refine_basis,
    slopes_along,
    without_rest,
)


@dataclass(frozen=True)
class CentralSlopes:
    """At each point the value, the slopes along all directions, their noise, and the share that met a crease.

    good: every step could be made short enough to meet none.
    """

    points: FloatArray  # (p, d)
    value: FloatArray  # (p, m)
    slope: FloatArray  # (p, m, k)
    sd: FloatArray  # (p, k)
    bent: FloatArray  # (p,): share of the first steps
    good: BoolArray  # (p,)


def central_slopes(ground: Ground, points: FloatArray, directions: FloatArray | None, step: float) -> CentralSlopes:
    """Slopes along unit directions (k, d), None for the coordinates. Cost: 2k + 1 rows a point, more beside creases."""
    parts = [
        _batch_slopes(ground, points[some], directions, step)
        for some in row_batches(len(points), 2 * (ground.dim if directions is None else len(directions)), ground.dim)
    ]
    arrays = zip(*((part.points, part.value, part.slope, part.sd, part.bent, part.good) for part in parts), strict=True)
    return CentralSlopes(*(np.concatenate(array) for array in arrays))


def _batch_slopes(ground: Ground, points: FloatArray, directions: FloatArray | None, step: float) -> CentralSlopes:
    shorter_step = 4.0
    most_shortened = 4
    directions = np.eye(ground.dim) if directions is None else directions
    value = ground.ask(points)
    shape = (len(points), len(directions))
    slope, steps = np.zeros((*shape, value.shape[1])), np.full(shape, step)
    open_ = np.ones(shape, dtype=bool)
    first: BoolArray = open_
    for round_ in range(most_shortened):
        which, along = np.nonzero(open_)
        moves = steps[which, along, None] * directions[along]
        open_[which, along], slope[which, along] = _differences(ground, points[which], value[which], moves)
        first = open_.copy() if round_ == 0 else first
        if not open_.any():
            break
        steps[open_] /= shorter_step if round_ < most_shortened - 1 else 1.0
    sd = ground.sd(points)[:, None] / (np.sqrt(2) * steps)
    return CentralSlopes(
        points, value, np.swapaxes(slope, 1, 2), sd, first.mean(axis=1), np.asarray(~open_.any(axis=1))
    )


def _differences(
    ground: Ground, points: FloatArray, value: FloatArray, moves: FloatArray
) -> tuple[BoolArray, FloatArray]:
    """Which moves (n, d) to both sides of points (n, d) met a crease, and the slopes over them."""
    # Deviations of the noise (which has its own safety) that a second difference may have without a crease.
    bent_noise = 3.0
    moves = as_long_as_allowed(ground.domain, points, moves, both=True)
    ahead, behind = np.split(ground.ask(np.concatenate([points + moves, points - moves])), 2)
    second = np.abs(ahead + behind - 2 * value).max(axis=1)
    bent = second > bent_noise * SECOND_DIFFERENCE_GAIN * ground.sd(points)
    return bent, (ahead - behind) / (2 * np.linalg.norm(moves, axis=1, keepdims=True))


# Gradients for each direction; and if the rank's margin is no better than this.
GRADIENTS_EACH, MOST_GRADIENTS_EACH, CLEAR_MARGIN = 1.8, 2.8, 0.2
SPARE_GRADIENTS = 16  # and so many besides
NOISE_EDGE = 2.0  # times the largest singular value that noise alone would have: above is a direction
WEAK_PART = 0.1  # of the weakest direction: what long steps may show outside the span


@dataclass(frozen=True)
class _GradientSample:
    """Gradients (rows of all outputs), their points, and the noise of an entry."""

    points: FloatArray
    values: FloatArray
    rows: FloatArray
    sd: float
    step: float


def oversampled_span(
    seen: FirstLook, rng: np.random.Generator, keep: Callable[[FloatArray], None], *, fine: bool, least: int = 0
) -> FoundSpan:
    """Rank and span from answers with few digits, by so many gradients at least; `keep` gets them on the way.

    Cost: about 5·k·n rows, and 2.3·k·n for each stage: up to five if fine, else one.
    """
    most_stages = 5
    shorter_along = 8.0  # steps inside the span meet more creases than steps along coordinates: so much shorter
    sample = _sampled_gradients(seen, rng, keep, least)
    size = _gradient_size(sample)
    if size == 0:  # none, or rounding hides most changes
        return FoundSpan(
            sample.rows[:0], sample.points, sample.values, np.empty(0), 0.0,
            margin=np.inf, leak=np.inf, limit=0.0, gradients=0,
        )  # fmt: skip
    _, sizes, directions = np.linalg.svd(sample.rows, full_matrices=False)
    rank = _clear_rank(sizes, sample)
    weakest, margin = float(sizes[rank - 1]) if rank else np.inf, _rank_margin(sizes, rank, sample)
    basis = directions[:rank]
    enough, outputs = int(GRADIENTS_EACH * len(basis)) + SPARE_GRADIENTS, len(sample.rows) // len(sample.points)
    left, which = np.arange(len(sample.rows)), np.empty(0, dtype=np.intp)
    while len(which) < min(enough, len(sample.points)) and len(basis):
        order = qr((sample.rows[left] @ basis.T).T, mode="r", pivoting=True)[1][: len(basis)]
        which = np.unique(np.concatenate([which, left[order] // outputs]))
        left = np.delete(left, order)
    kept = weakest / (size * float(np.sqrt(len(sample.rows)))) if rank else np.inf
    start = FoundSpan(
        directions[:rank], sample.points[which], sample.values[which], np.full(len(which), sample.step / shorter_along),
        size,
        margin=margin, leak=min(margin, 1.0), limit=WEAK_PART * kept,
        gradients=len(sample.rows), kept=kept,
    )  # fmt: skip
    return (
        _after_long_steps(seen.ground, start, most_stages if fine else 1, rng, keep)
        if 0 < rank < seen.ground.dim
        else start
    )


def _sampled_gradients(
    seen: FirstLook, rng: np.random.Generator, keep: Callable[[FloatArray], None], least: int
) -> _GradientSample:
    """Gradients at live points until there are enough for the rank they show."""
    first_step = 2.0**-5  # of central differences, in typical coordinates
    gradient_batch = 16  # gradients measured together
    most_gradients_an_input = 4  # gradients
    queue, step, parts = LivePoints(seen, rng), first_step * seen.ground.scale, []
    nothing = np.empty((0, seen.ground.dim))
    sample = _GradientSample(nothing, nothing, nothing, 0.0, step)
    for _ in range(max(most_gradients_an_input * seen.ground.dim, least) // gradient_batch + 1):
        found = central_slopes(seen.ground, queue.draw(gradient_batch)[0], None, step)
        parts.append(found)
        step *= _change_of_step(float(np.median(found.bent)))
        rows = np.concatenate([part.slope[part.good].reshape(-1, part.slope.shape[2]) for part in parts])
        sd = float(np.sqrt(np.mean([np.mean(part.sd**2) for part in parts])))
        points = np.concatenate([part.points[part.good] for part in parts])
        values = np.concatenate([part.value[part.good] for part in parts])
        sample = _without_outliers(_GradientSample(points, values, rows, sd, step))
        if len(sample.rows) < max(least, 1):
            continue
        _, sizes, directions = np.linalg.svd(sample.rows, full_matrices=False)
        rank = _clear_rank(sizes, sample)
        keep(directions[:rank])
        enough = GRADIENTS_EACH if _rank_margin(sizes, rank, sample) < CLEAR_MARGIN else MOST_GRADIENTS_EACH
        if rank == seen.ground.dim or len(sample.rows) >= enough * rank + SPARE_GRADIENTS:
            above = int((sizes > _noise_edge(sample)).sum())
            if len(sample.rows) >= MOST_GRADIENTS_EACH * above + SPARE_GRADIENTS or not _is_loud(
                seen.ground, sample, rank, rng
            ):
                break
    return sample


def _is_loud(ground: Ground, sample: _GradientSample, rank: int, rng: np.random.Generator) -> bool:
    """Whether long steps beside the first directions change much: an early gap of few gradients is not the rank.

    Thin networks have a few strong directions. Cost: a row for each long step.
    """
    steps_heard, loud_share = 16, 0.1  # long steps, and how much of a gradient they show where directions are missing
    if not 0 < rank < ground.dim:
        return False
    directions = np.linalg.svd(sample.rows, full_matrices=False)[2][:rank]
    starts, before = sample.points[-steps_heard:], sample.values[-steps_heard:]
    slope = leak_slopes(ground, directions, starts, before, rng)[0]
    return float(np.sqrt((slope**2).mean())) > loud_share * _gradient_size(sample)


def _gradient_size(sample: _GradientSample) -> float:
    """Median norm of a gradient, over outputs that have one: most are 0 if answers are cut to the largest."""
    sizes = np.linalg.norm(sample.rows, axis=1)
    return float(np.median(sizes[sizes > 0])) if sizes.any() else 0.0


def _change_of_step(bent: float) -> float:
    bent_share = (0.08, 0.25)  # of the steps at a point that may meet a crease: fewer lose digits, more lose rows
    step_factor = 2.0
    if bent > bent_share[1]:
        return 1 / step_factor
    return step_factor if bent < bent_share[0] else 1.0


def _without_outliers(sample: _GradientSample) -> _GradientSample:
    """Leave out gradients that alone make up the weakest direction: a crease that was overlooked does that."""
    weight_of_one = 0.7  # of a singular vector's weight on one gradient: it is no direction that others share
    most_outliers = 4  # at most one gradient in so many is left out
    for _ in range(len(sample.points) // most_outliers):  # none, if there are no gradients
        left, sizes, _ = np.linalg.svd(sample.rows, full_matrices=False)
        rank = _clear_rank(sizes, sample)
        if rank == 0 or (left[:, rank - 1] ** 2).max() < weight_of_one:
            break
        outputs = len(sample.rows) // len(sample.points)
        keep = np.arange(len(sample.points)) != int(np.argmax(left[:, rank - 1] ** 2)) // outputs
        rows = sample.rows[np.repeat(keep, outputs)]
        sample = replace(sample, points=sample.points[keep], values=sample.values[keep], rows=rows)
    return sample


def _noise_edge(sample: _GradientSample) -> float:
    return NOISE_EDGE * sample.sd * float(np.sqrt(sample.rows.shape[0]) + np.sqrt(sample.rows.shape[1]))


def _rank_margin(sizes: NDArray[np.floating[Any]], rank: int, sample: _GradientSample) -> float:
    """What counts as nothing over the weakest direction."""
    rest = max(float(sizes[rank]) if rank < len(sizes) else 0.0, _noise_edge(sample) / NOISE_EDGE)
    return rest / float(sizes[rank - 1]) if rank else 0.0


def _clear_rank(sizes: NDArray[np.floating[Any]], sample: _GradientSample) -> int:
    """Where the last clear gap of the singular values is, above what noise alone would show."""
    clear_gap = 3.0  # between the weakest direction and what creases too weak to be seen leave of themselves
    gaps = sizes[:-1] / np.maximum(sizes[1:], DOUBLE.tiny)
    clear = np.flatnonzero((gaps > clear_gap) & (sizes[:-1] > _noise_edge(sample)))
    return int(clear[-1]) + 1 if len(clear) else int((sizes > _noise_edge(sample)).sum())


def _after_long_steps(
    ground: Ground, found: FoundSpan, stages: int, rng: np.random.Generator, keep: Callable[[FloatArray], None]
) -> FoundSpan:
    """Long-step stages as long as they help."""
    straight_part = 0.5  # of the straight part around a point that a long step may use up
    nearly_longest = 0.25  # of the longest step: a stage after one with such steps has nothing to gain
    least_gain = 0.5  # a stage that leaves more of the error is the last
    for _ in range(stages):
        inside = central_slopes(ground, without_rest(ground, found.basis, found.points), found.basis, found.steps[0])
        good = inside.good
        if good.sum() * inside.value.shape[1] < found.rank:
            break
        length = long_steps(ground, found.steps[good], found.leak, straight_part)
        there = SlopesInside(inside.points[good], inside.value[good], inside.slope[good])
        better = refine_basis(ground, found.basis, there, length, rng)
        leak = float(leak_slopes(ground, better, inside.points, inside.value, rng)[0].max()) / found.size
        if leak > found.leak:
            break
        helped = leak < least_gain * found.leak and np.median(length) < nearly_longest * LONGEST_STEP * ground.scale
        rank = found.rank
        found = _without_silent(ground, replace(found, basis=better, leak=leak), inside.slope[good])
        keep(found.basis)
        if found.rank == 0 or (found.rank == rank and not helped):
            break
    return found


def _without_silent(ground: Ground, found: FoundSpan, slope: FloatArray) -> FoundSpan:
    """Leave out directions inside the span along which long steps change nothing: noise or a crease made them up."""
    after_a_loss = 1e-3  # error to expect of a span that had a direction too many: another stage is due
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
    basis, leak = directions[:rank] @ found.basis, max(found.leak, after_a_loss)
    return replace(found, basis=basis, limit=WEAK_PART * kept, kept=kept, leak=leak)
