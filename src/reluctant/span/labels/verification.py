"""Is a span from labels all, and all there? Asked at boundary points between inputs that nothing was found with.

A long step outside the span must leave every crossing where it is; a step along every direction inside must move some.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.geometry.samples import BoolArray
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.results import Outcome
from reluctant.span.ground import RULE_OF_THREE, UNCLEAR_MARGIN, as_long_as_allowed, moves_outside
from reluctant.span.labels.boundary import Boundary, LabelledPoints
from reluctant.span.labels.field import Field
from reluctant.span.labels.flicker import changed_labels
from reluctant.span.labels.stages import normals_inside

__all__ = ["Checked", "verify"]

FRESH, MOST_FRESH, OF_EACH_LABEL = 256, 2048, 8  # inputs: as many more as it takes to see every label a few times
CHECKED = 64  # boundary points
LOCATED = 1e-3  # first boundary points, of a typical coordinate
NORMALS, SPARE = 2, 8  # for each direction and besides
BITS, STEP = 12.0, 1e-4  # how well normals are measured, and how far aside
OTHER_STEP = 0.7  # of the step: normals measured again, to see how far they can be trusted
ASIDE, OFFSET = 2.0, 0.004  # a direction is silent if such a step along it leaves every point within the offset
WEAKEST = 0.02  # part of a normal outside the span that verification must not overlook
EXPLAINED = 100.0  # times the error to expect of a span, if that is not half the digits: a larger shift is a direction
MOST_FOUND = 0.5  # of the boundary points: if fewer are found again, nothing is verified
ROOM = 4.0  # times what a crossing can be placed to: less room inside bounds shows nothing


@dataclass(frozen=True)
class Checked:
    """How a span stands up: the outcome, the directions that are there, margin, angle, and the inputs drawn for it."""

    outcome: Outcome
    basis: FloatArray
    margin: float
    angle: float
    fresh: LabelledPoints
    evidence: dict[str, object]


def verify(
    oracle: Counting, field: Field, seen: LabelledPoints, basis: FloatArray, left: float, rng: np.random.Generator
) -> Checked:
    """Check a span whose directions should be off by no more than `left`. Cost: about 5000 rows and 13·k²."""
    fresh = _fresh_inputs(oracle, seen, rng)
    changed = changed_labels(oracle, fresh)
    boundary = Boundary.between(field, fresh.pairs(CHECKED, rng), LOCATED * field.scale)
    boundary, found = boundary.inside(field, basis, LOCATED * field.scale, field.resolution)
    boundary = boundary[found]
    there, weakest, noise = _moving(field, boundary, basis)
    shift = _shifts(field, boundary, there, rng)
    leak, lost = float(np.nanmax(shift, initial=0.0)), int(np.isnan(shift).sum() + (~found).sum())
    margin, angle = (max(leak, left, noise) / weakest, max(leak / weakest, left)) if weakest > 0 else (np.inf, np.inf)
    explained = max(EXPLAINED * left, float(np.sqrt(field.resolution / field.typical)))
    silent = leak <= min(WEAKEST * weakest, explained) and not np.isnan(shift).any() and found.mean() > MOST_FOUND
    outcome = _outcome(field, changed, silent, margin, len(basis), len(there))
    limits = _limits(fresh, max(leak, field.resolution / field.typical), field.reach)
    evidence = {
        "leak": leak, "lost": lost, "weakest": weakest, "changed labels": changed,
        "directions that move nothing": len(basis) - len(there), "limits": limits,
    }  # fmt: skip
    return Checked(outcome, there, margin if silent else np.inf, angle, fresh, evidence)


def _outcome(field: Field, changed: int, silent: bool, margin: float, rank: int, there: int) -> Outcome:
    """What the numbers amount to, for so many directions of which so many move the boundary."""
    if changed:
        return Outcome.TOO_NOISY
    if not silent:
        return Outcome.SPAN_PARTIAL
    if margin > UNCLEAR_MARGIN or there < rank == field.dim:
        return Outcome.RANK_UNCLEAR
    return Outcome.FULL_RANK if there == field.dim else Outcome.SPAN_RECOVERED


def _limits(fresh: LabelledPoints, leak: float, reach: float) -> str:
    """What could have been missed, and by which inputs that is judged."""
    return (
        f"Asked: {fresh.source.describe(fresh.scale)}, and steps of {reach:g} times their norm. Could have been "
        f"missed: a region of another label that holds less than {RULE_OF_THREE / len(fresh.points):.1%} of them, "
        f"a direction that matters on less than {RULE_OF_THREE / CHECKED:.0%} of the boundary, or is less than "
        f"{leak:.0e} of its normals."
    )


def _fresh_inputs(oracle: Counting, seen: LabelledPoints, rng: np.random.Generator) -> LabelledPoints:
    """New inputs until every label was seen a few times; for labels too rare for that, the old ones as well."""
    found = seen.more(oracle, FRESH, rng)
    while len(found.points) < MOST_FRESH and found.rare(seen.names, OF_EACH_LABEL):
        found += seen.more(oracle, len(found.points), rng)
    rare = np.isin(seen.labels, list(found.rare(seen.names, OF_EACH_LABEL)))
    return found + seen[rare]


def _moving(field: Field, boundary: Boundary, basis: FloatArray) -> tuple[FloatArray, float, float]:
    """The directions that move the boundary, the part of a normal that the weakest has, and what is only noise."""
    step, some = field.step(STEP), slice(min(len(boundary), NORMALS * len(basis) + SPARE))
    points, normals = normals_inside(field, boundary[some], basis, step, BITS)
    if len(points) < len(basis):
        return basis, 0.0, np.inf
    noise = 0.0
    if len(basis) == field.dim:  # nothing is outside, so nothing outside tells how good the directions are
        again, others = normals_inside(field, points, basis, OTHER_STEP * step, BITS)
        noise = float(np.linalg.norm(others - normals, 2)) if len(again) == len(points) else np.inf
    _, sizes, directions = np.linalg.svd(normals, full_matrices=False)
    rank = len(basis)
    while rank and _is_silent(field, boundary, directions[rank - 1] @ basis):
        rank -= 1
    unit = float(np.sqrt(len(normals)))
    weakest = float(sizes[rank - 1]) / unit if rank else 0.0
    return (basis if rank == len(basis) else directions[:rank] @ basis), weakest, noise / unit


def _is_silent(field: Field, boundary: Boundary, direction: FloatArray) -> bool:
    """Whether a step along a direction leaves every boundary point where it is. Cost: 4 rows a point."""
    moves = np.tile(ASIDE * field.scale * direction, (len(boundary), 1))
    moves = as_long_as_allowed(field.domain, boundary.points, moves)
    before, after = _stays(field, boundary, np.zeros_like(moves)), _stays(field, boundary, moves)
    return bool((after | ~before).all())


def _stays(field: Field, boundary: Boundary, moves: FloatArray) -> BoolArray:
    """Whether the boundary, moved aside, is within the offset of where it was."""
    lines, offset = boundary.lines(moves), np.full(len(boundary), OFFSET * field.scale)
    return np.asarray(lines.before(field.ask, -offset) & ~lines.before(field.ask, offset))


def _shifts(field: Field, boundary: Boundary, basis: FloatArray, rng: np.random.Generator) -> FloatArray:
    """How far (n,) crossings move on a long step outside, as the sine that would explain it; NaN where lost."""
    if len(basis) == field.dim:
        return np.zeros(len(boundary))
    moves = moves_outside(basis, boundary.points, field.reach * field.typical, field.domain, rng)
    length = np.linalg.norm(moves, axis=1)
    least = field.resolution * np.maximum(1.0, length / field.typical)
    lines = boundary.lines(moves)
    enough = field.room(lines) > ROOM * least
    shift = field.crossings(lines[enough], 0.0, least[enough], least[enough], WEAKEST * length[enough])
    return np.asarray(np.abs(shift) * np.sqrt(field.dim - len(basis)) / length[enough])
