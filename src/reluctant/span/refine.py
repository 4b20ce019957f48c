"""Long-step refinement: orthogonal to a rough span the function hardly moves, so steps there may be long.

With V the rough basis and W the rest, the true span is V + E W for some small E. A step h along W changes the answer by
h·(gradient along V)·E: one equation for each point and output. Solved and added, E leaves an error that is smaller by
the length of the step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry.batches import batches
from reluctant.geometry.gradients import gradients
from reluctant.numerics import FloatArray
from reluctant.span.ground import Ground
from reluctant.span.subspace import Subspace

__all__ = ["Inside", "long_steps", "refine", "slopes_inside", "without_rest"]

LONGEST = 1e3  # of a long step, in typical coordinates: further out answers lose the digits that the step gains
INSIDE = 0.1  # of the straight part around a point that a long step may use up, by the error it is there to find


@dataclass(frozen=True)
class Inside:
    """Points with their values and the slopes along a basis there."""

    points: FloatArray  # (p, d)
    value: FloatArray  # (p, m)
    slope: FloatArray  # (p, m, k)


def refine(
    ground: Ground, basis: FloatArray, inside: Inside, length: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """A better basis by one stage, with steps of these lengths (p,). Cost: d - k rows a point."""
    outside = Subspace(basis).null_basis
    across = _across(ground, inside, outside, length, rng)
    slopes = inside.slope.reshape(-1, len(basis))
    correction = np.linalg.lstsq(slopes, across.reshape(-1, len(outside)), rcond=None)[0]
    return np.asarray(np.linalg.qr((basis + correction @ outside).T)[0].T)


def slopes_inside(
    ground: Ground, basis: FloatArray, points: FloatArray, steps: FloatArray, rng: np.random.Generator
) -> tuple[Inside, FloatArray]:
    """Slopes along the basis by forward differences, and the steps taken. Cost: k + 2 rows a point."""
    starts = without_rest(ground, basis, points)
    found = gradients(ground.ask, starts, basis, steps, ground.noise, rng, domain=ground.domain)
    good = found.good
    return Inside(starts[good], found.value[good], found.slope[good]), found.step[good]


def long_steps(ground: Ground, straight: FloatArray, angle: float, share: float = INSIDE) -> FloatArray:
    """How long steps across may be beside points that are straight so far, with a span so far off."""
    longest = LONGEST * ground.scale
    return np.clip(
        np.divide(share * straight, angle, out=np.full_like(straight, longest), where=angle > 0), straight, longest
    )


def without_rest(ground: Ground, basis: FloatArray, points: FloatArray) -> FloatArray:
    """Points in all of space without their invisible part, which only costs digits."""
    return (points @ basis.T) @ basis if ground.domain.is_space else points


def _across(
    ground: Ground, inside: Inside, outside: FloatArray, length: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Slopes (p, m, n - k) over long steps along the directions outside."""
    slopes = np.empty((*inside.value.shape, len(outside)))
    for some in batches(len(inside.points), len(outside), ground.dim):
        starts = inside.points[some, None]
        taken = _lengths(ground, starts, outside, length[some], rng)
        answers = ground.ask((starts + taken[:, :, None] * outside).reshape(-1, ground.dim))
        change = answers.reshape(*taken.shape, -1) - inside.value[some, None]
        slopes[some] = np.swapaxes(change / taken[:, :, None], 1, 2)
    return slopes


def _lengths(
    ground: Ground, starts: FloatArray, outside: FloatArray, length: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Signed lengths (p, n - k) of the steps: to the side with more room where there are bounds, else to either.

    Random sides keep the noise of the value that all steps share from adding up.
    """
    shape = (len(starts), len(outside))
    if ground.domain.is_space:
        return rng.choice([-1.0, 1.0], shape) * length[:, None]
    ahead = np.minimum(ground.domain.room(starts, outside[None]), length[:, None])
    behind = np.minimum(ground.domain.room(starts, -outside[None]), length[:, None])
    return np.where(ahead >= behind, ahead, -behind)
