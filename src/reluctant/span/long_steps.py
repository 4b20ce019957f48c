"""Long steps orthogonal to a span: they test for missing directions and correct the known ones.

Orthogonal to the true span nothing changes, however long the step. Where something does, the part of the step
along which the answers change most is worth a gradient. Orthogonal to a rough span the function hardly moves, so
steps there may be a million times as long as those of a gradient. With V the rough basis and W the rest, the true
span is V + E W for some small E, and a step h along W changes the answer by h·(gradient along V)·E: one equation
for each point and output. Solved and added, E leaves an error that is smaller by the length of the step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reluctant.geometry.gradients import gradients, row_batches
from reluctant.numerics import DOUBLE, FloatArray
from reluctant.results import Outcome
from reluctant.span.first_look import Ground, as_long_as_allowed, moves_outside
from reluctant.span.subspace import Subspace


@dataclass(frozen=True)
class FoundSpan:
    """Directions and the points whose gradients brought them.

    size: of a gradient; leak and limit are in this unit. margin: what counted as nothing over the weakest direction;
    infinite if more is there than could be measured. leak: what long steps still show outside. limit: what they may,
    and the weakest direction that could not have been overlooked.
    """

    basis: FloatArray  # (k, d)
    points: FloatArray  # (p, d)
    values: FloatArray  # (p, m): answers there
    steps: FloatArray  # (p,): within which the function is straight there
    size: float
    margin: float
    leak: float
    limit: float
    gradients: int
    kept: float = float("inf")  # part of a gradient that brought the weakest direction

    @property
    def angle(self) -> float:
        """How far directions are off at most: the error shows in gradients, times the part that the weakest has."""
        return min(self.leak / self.kept, 1.0) if np.isfinite(self.kept) and self.kept > 0 else float("nan")

    @property
    def rank(self) -> int:
        """Number of directions."""
        return len(self.basis)


@dataclass(frozen=True)
class SpanEnding:
    """How a search ended: the basis, how clear its rank is, how far it is off, and the numbers behind it.

    basis: None where there is nothing beyond what the run had kept. typical: norm of an input.
    """

    outcome: Outcome
    basis: FloatArray | None = None
    margin: float = np.inf
    angle: float = np.nan
    evidence: dict[str, Any] = field(default_factory=dict)
    typical: float = 0.0

    @classmethod
    def of(cls, outcome: Outcome, found: FoundSpan, evidence: dict[str, Any], typical: float) -> SpanEnding:
        """With directions, and what brought them."""
        evidence |= {"gradients": found.gradients, "leak": found.leak, "limit": found.limit}
        return cls(outcome, found.basis, found.margin, found.angle, evidence, typical)


LEAST_NEW = 1e-5  # part of a gradient outside the span that may be a direction; those so far are not exact either
LONG_STEPS = 32  # long steps
LONG_STEPS_IN_BOUNDS = 128  # long steps where bounds make them short


@dataclass(frozen=True)
class Heard:
    """Largest leak of the long steps, and places on the loudest where a gradient may be new."""

    leak: float
    points: FloatArray
    values: FloatArray


def leak_slopes(
    ground: Ground, basis: FloatArray, starts: FloatArray, before: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Change (n,) of the answers on a long step from each start, as a slope along one direction; moves and noise too.

    The step is random, so a direction is met by its length over √(n - k) only: the slope counts that. Cost: 1 row each.
    """
    moves = moves_outside(basis, starts, ground.reach * ground.typical, ground.domain, rng)
    after = ground.ask(starts + moves)
    met = np.linalg.norm(moves, axis=1) / np.sqrt(max(1, ground.dim - len(basis)))
    sd = np.sqrt(2) * ground.sd(starts + moves) / met
    with np.errstate(over="ignore"):  # answers close to the largest number: an infinite slope
        slope = np.linalg.norm(after - before, axis=1) / met
    return slope, moves, sd


def span_tilt(ground: Ground, found: FoundSpan, rng: np.random.Generator) -> float:
    """How far directions are off, in gradients: what short steps outside show where they were measured.

    Weak directions, which long steps would meet as well, are part of the gradients there. Cost: 1 row a point.
    """
    moves = moves_outside(found.basis, found.points, found.steps, ground.domain, rng)
    change = np.linalg.norm(ground.ask(found.points + moves) - found.values, axis=1)
    slope = change / np.linalg.norm(moves, axis=1) * np.sqrt(ground.dim - found.rank)
    return float(slope.max()) / found.size


def slopes_along(ground: Ground, directions: FloatArray, starts: FloatArray, before: FloatArray) -> FloatArray:
    """Change (n,) of the answers on a long step along each direction (n, d) from its start, as a slope.

    A direction that a crease made up shows nothing here. Cost: 1 row each.
    """
    moves = as_long_as_allowed(ground.domain, starts, ground.reach * ground.scale * directions)
    change = np.linalg.norm(ground.ask(starts + moves) - before, axis=1)
    return np.asarray(change / np.linalg.norm(moves, axis=1))


def loud_places(
    ground: Ground,
    basis: FloatArray,
    active: FloatArray,
    values: FloatArray,
    size: float,
    least: float,
    rng: np.random.Generator,
) -> Heard:
    """Long steps from points known to be active and from others; the places on the loudest, none if all are silent."""
    places_on_a_step = 8  # sampled on a step that changes the answers
    loudest = 4  # steps that are followed
    fewest = LONG_STEPS if ground.domain.is_space else LONG_STEPS_IN_BOUNDS
    others = ground.sample(max(fewest - len(active), fewest // 4), rng)
    answers = ground.ask(others)
    starts = np.concatenate([active, others])
    before = np.concatenate([values.reshape(-1, answers.shape[1]), answers])
    slope, moves, sd = leak_slopes(ground, basis, starts, before, rng)
    loud = slope > np.maximum(least * size, DOUBLE.in_line * sd)
    leak = float(slope.max() / size) if size > 0 else 0.0
    if not loud.any():
        return Heard(leak, np.empty((0, ground.dim)), np.empty((0, 0)))
    chosen = np.flatnonzero(loud)[np.argsort(-slope[loud])[:loudest]]
    shares = (np.arange(places_on_a_step) + rng.uniform(0, 1, (len(chosen), places_on_a_step))) / places_on_a_step
    places = (starts[chosen, None] + shares[:, :, None] * moves[chosen, None]).reshape(-1, ground.dim)
    return Heard(leak, places, ground.ask(places))


LONGEST_STEP = 1e3  # of a long step, in typical coordinates: further out answers lose the digits that the step gains
STRAIGHT_SHARE = 0.1  # of the straight part around a point that a long step may use up, by the error it looks for


@dataclass(frozen=True)
class SlopesInside:
    """Points with their values and the slopes along a basis there."""

    points: FloatArray  # (p, d)
    value: FloatArray  # (p, m)
    slope: FloatArray  # (p, m, k)


def refine_basis(
    ground: Ground, basis: FloatArray, inside: SlopesInside, length: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """A better basis by one stage, with steps of these lengths (p,). Cost: d - k rows a point."""
    outside = Subspace(basis).null_basis
    across = np.empty((*inside.value.shape, len(outside)))
    for some in row_batches(len(inside.points), len(outside), ground.dim):
        starts = inside.points[some, None]
        taken = _step_lengths(ground, starts, outside, length[some], rng)
        answers = ground.ask((starts + taken[:, :, None] * outside).reshape(-1, ground.dim))
        change = answers.reshape(*taken.shape, -1) - inside.value[some, None]
        across[some] = np.swapaxes(change / taken[:, :, None], 1, 2)
    slopes = inside.slope.reshape(-1, len(basis))
    correction = np.linalg.lstsq(slopes, across.reshape(-1, len(outside)), rcond=None)[0]
    return np.asarray(np.linalg.qr((basis + correction @ outside).T)[0].T)


def slopes_inside(
    ground: Ground, basis: FloatArray, points: FloatArray, steps: FloatArray, rng: np.random.Generator
) -> tuple[SlopesInside, FloatArray]:
    """Slopes along the basis by forward differences, and the steps. Cost: k + 2 rows a point."""
    starts = without_rest(ground, basis, points)
    found = gradients(ground.ask, starts, basis, steps, ground.noise, rng, domain=ground.domain)
    good = found.good
    return SlopesInside(starts[good], found.value[good], found.slope[good]), found.step[good]


def long_steps(ground: Ground, straight: FloatArray, angle: float, share: float = STRAIGHT_SHARE) -> FloatArray:
    """How long steps across may be beside points that are straight so far, with a span so far off."""
    longest = LONGEST_STEP * ground.scale
    return np.clip(
        np.divide(share * straight, angle, out=np.full_like(straight, longest), where=angle > 0), straight, longest
    )


def without_rest(ground: Ground, basis: FloatArray, points: FloatArray) -> FloatArray:
    """Points in all of space without their invisible part, which only costs digits."""
    return (points @ basis.T) @ basis if ground.domain.is_space else points


def _step_lengths(
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
