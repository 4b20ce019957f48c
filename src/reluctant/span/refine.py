"""Long-step refinement: orthogonal to a rough span the function hardly moves, so steps there may be long.

With V the rough basis and W the rest, the true span is V + E W for some small E. A step h along W changes the answer by
h·(gradient along V)·E: one equation for each point and output. Solved and added, E leaves an error that is smaller by
the length of the step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry.gradients import gradients
from reluctant.numerics import FloatArray
from reluctant.span.ground import Ground, batches
from reluctant.span.subspace import Subspace

__all__ = ["Refined", "refine"]

LONGEST = 1e3  # of a long step, in typical coordinates: further out answers lose the digits that the step gains
INSIDE = 0.1  # of the straight part around a point that a long step may use up, by the error it is there to find


@dataclass(frozen=True)
class Refined:
    """The better basis, the correction it took and how well the equations fixed it."""

    basis: FloatArray
    correction: float
    condition: float


def refine(
    ground: Ground, basis: FloatArray, points: FloatArray, steps: FloatArray, angle: float, rng: np.random.Generator
) -> Refined:
    """One stage. Cost: d + 2 rows a point."""
    outside = Subspace(basis).null_basis
    inside = gradients(ground.ask, *_bases(ground, basis, points, steps), ground.noise, rng, domain=ground.domain)
    good = inside.good
    length = np.clip(INSIDE * steps / max(angle, 1e-300), steps, LONGEST * ground.scale)
    across = _across(ground, inside.points[good], inside.value[good], outside, length[good])
    slopes = inside.slope[good].reshape(-1, len(basis))
    correction, _, _, sizes = np.linalg.lstsq(slopes, across.reshape(-1, len(outside)), rcond=None)
    better = np.linalg.qr((basis + correction @ outside).T)[0].T
    return Refined(better, float(np.linalg.norm(correction, 2)), float(sizes[0] / sizes[-1]) if sizes[-1] > 0 else np.inf)


def _bases(
    ground: Ground, basis: FloatArray, points: FloatArray, steps: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Points to start from: in all of space without their invisible part, which only costs digits."""
    return ((points @ basis.T) @ basis if ground.domain.is_space else points), basis, steps


def _across(
    ground: Ground, points: FloatArray, values: FloatArray, outside: FloatArray, length: FloatArray
) -> FloatArray:
    """Slopes (p, m, n - k) over long steps along the directions outside."""
    slopes = np.empty((len(points), values.shape[1], len(outside)))
    for some in batches(len(points), len(outside), ground.dim):
        starts = points[some, None]
        taken = _lengths(ground, starts, outside, length[some])
        answers = ground.ask((starts + taken[:, :, None] * outside).reshape(-1, ground.dim))
        change = answers.reshape(*taken.shape, -1) - values[some, None]
        slopes[some] = np.swapaxes(change / taken[:, :, None], 1, 2)
    return slopes


def _lengths(ground: Ground, starts: FloatArray, outside: FloatArray, length: FloatArray) -> FloatArray:
    """Signed lengths (p, n - k) of the steps, to the side with more room where there are bounds."""
    if ground.domain.is_space:
        return np.repeat(length[:, None], len(outside), axis=1)
    ahead = np.minimum(ground.domain.room(starts, outside[None]), length[:, None])
    behind = np.minimum(ground.domain.room(starts, -outside[None]), length[:, None])
    return np.where(ahead >= behind, ahead, -behind)
