"""The span from labels: the stages in order, and stage 5, verification.

Verification asks at boundary points between inputs that nothing was found with. A long step outside the span must
leave every crossing where it is; a step along every direction inside must move some. A crossing that still moves has a
direction that is missing: the search goes on, with sharper ears and farther points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reluctant.geometry.boundary import FARTHEST_FLICKER, Boundary, LabelField, boundary_resolution, only_labels
from reluctant.geometry.lines import BoolArray
from reluctant.messages import Diagnosis, Notes
from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.results import Outcome
from reluctant.span.boundary_normals import (
    LabelledPoints,
    changed_labels,
    choose_normals,
    find_directions,
    label_points,
    normals_inside,
    refine_from_labels,
)
from reluctant.span.first_look import (
    RULE_OF_THREE,
    UNCLEAR_MARGIN,
    Inputs,
    as_long_as_allowed,
    asked_inside,
    moves_outside,
)
from reluctant.span.subspace import Complement, SpanEnding

CHECKED_POINTS = 64  # boundary points, at least
SPARE_NORMALS = 8  # fresh normals, besides one for each direction
CHECK_ASIDE, CHECK_OFFSET = 2.0, 0.004  # a silent direction: such a step along it leaves every point in the offset
WEAKEST_SEEN = 0.02  # part of a normal outside the span that verification must not overlook


def verify_label_span(
    oracle: Counting,
    field: LabelField,
    seen: LabelledPoints,
    basis: FloatArray,
    shown: Boundary,
    left: float,
    rng: np.random.Generator,
) -> tuple[SpanEnding, LabelledPoints]:
    """Check a span whose directions should be off by no more than `left`, and the new inputs it was checked at.

    shown: boundary points that every direction was found at. One that few inputs have would seem silent elsewhere.
    Cost: about 5000 rows and 13·k², beyond 56 directions some 80 rows for each besides.
    """
    check_located = 1e-3  # first boundary points, of a typical coordinate
    # Times the error to expect of a span, if that is not half the digits: a larger shift is a direction.
    explained_error = 100.0
    most_found = 0.5  # of the boundary points: if fewer are found again, nothing is verified
    # Inputs: as many more as it takes to see every label a few times.
    fresh_inputs, most_fresh, of_each_label = 256, 2048, 8
    fresh = seen.more(oracle, fresh_inputs, rng)
    while len(fresh.points) < most_fresh and fresh.rare(seen.names, of_each_label):
        fresh += seen.more(oracle, len(fresh.points), rng)
    rare = np.isin(seen.labels, list(fresh.rare(seen.names, of_each_label)))
    fresh = fresh + seen[rare]
    changed = changed_labels(oracle, fresh)
    points = max(CHECKED_POINTS, len(basis) + SPARE_NORMALS)
    boundary = Boundary.between(field.ask, *fresh.pairs(points, rng), check_located * field.scale)
    boundary, found = boundary.inside(field, basis, check_located * field.scale, field.resolution)
    boundary = boundary[found]
    some = boundary[slice(min(len(boundary), len(basis) + SPARE_NORMALS))]
    there, weakest, noise = _moving_directions(field, some + shown, basis)
    shift = _crossing_shifts(field, boundary, there, rng)
    leak, lost = float(np.nanmax(shift, initial=0.0)), int(np.isnan(shift).sum() + (~found).sum())
    margin, angle = (max(leak, left, noise) / weakest, max(leak / weakest, left)) if weakest > 0 else (np.inf, np.inf)
    explained = max(explained_error * left, float(np.sqrt(field.resolution / field.typical)))
    silent = leak <= min(WEAKEST_SEEN * weakest, explained) and not np.isnan(shift).any() and found.mean() > most_found
    outcome = _checked_outcome(field, changed, silent, margin, len(basis), len(there))
    shares = {"region": RULE_OF_THREE / len(fresh.points), "boundary": RULE_OF_THREE / points}
    missed = Diagnosis("missed-label-direction", shares | {"weakest": max(leak, field.resolution / field.typical)})
    limits = Notes((fresh.source.asked(fresh.scale, field.reach), missed))
    evidence: dict[str, Any] = {
        "leak": leak, "lost": lost, "weakest": weakest, "changed labels": changed,
        "directions that move nothing": len(basis) - len(there), "limits": limits,
    }  # fmt: skip
    return SpanEnding(outcome, there, margin if silent else np.inf, angle, evidence), fresh


def _checked_outcome(field: LabelField, changed: int, silent: bool, margin: float, rank: int, there: int) -> Outcome:
    """The outcome for so many directions, of which so many move the boundary."""
    if changed:
        return Outcome.TOO_NOISY
    if not silent:
        return Outcome.SPAN_PARTIAL
    if margin > UNCLEAR_MARGIN or there < rank == field.dim:
        return Outcome.RANK_UNCLEAR
    return Outcome.FULL_RANK if there == field.dim else Outcome.SPAN_RECOVERED


def _moving_directions(field: LabelField, boundary: Boundary, basis: FloatArray) -> tuple[FloatArray, float, float]:
    """The directions that move the boundary, the part of a normal that the weakest has, and the share of noise."""
    check_bits, check_step = 12.0, 1e-4  # how well normals are measured, and how far aside
    other_step = 0.7  # of the step: normals measured again, to see how far they can be trusted
    step = field.step(check_step)
    points, normals = normals_inside(field, boundary, basis, step, check_bits)
    if len(points) < len(basis):
        return basis, 0.0, np.inf
    noise = 0.0
    if len(basis) == field.dim:  # nothing is outside, so nothing outside tells how good the directions are
        again, others = normals_inside(field, points, basis, other_step * step, check_bits)
        noise = float(np.linalg.norm(others - normals, 2)) if len(again) == len(points) else np.inf
    _, sizes, directions = np.linalg.svd(normals, full_matrices=False)
    rank = len(basis)
    while rank and _is_silent(field, boundary, directions[rank - 1] @ basis):
        rank -= 1
    unit = float(np.sqrt(len(normals)))
    weakest = float(sizes[rank - 1]) / unit if rank else 0.0
    return (basis if rank == len(basis) else directions[:rank] @ basis), weakest, noise / unit


def _is_silent(field: LabelField, boundary: Boundary, direction: FloatArray) -> bool:
    """Whether a step along a direction leaves every boundary point where it is. Cost: 4 rows a point."""
    moves = np.tile(CHECK_ASIDE * field.scale * direction, (len(boundary), 1))
    moves = as_long_as_allowed(field.domain, boundary.points, moves)
    before, after = _stays(field, boundary, np.zeros_like(moves)), _stays(field, boundary, moves)
    return bool((after | ~before).all())


def _stays(field: LabelField, boundary: Boundary, moves: FloatArray) -> BoolArray:
    """Whether the boundary, moved aside, is within the offset of where it was."""
    lines, offset = boundary.lines(moves), np.full(len(boundary), CHECK_OFFSET * field.scale)
    return np.asarray(lines.before(field.ask, -offset) & ~lines.before(field.ask, offset))


def _crossing_shifts(field: LabelField, boundary: Boundary, basis: FloatArray, rng: np.random.Generator) -> FloatArray:
    """How far (n,) crossings move on a long step outside, as the sine that would explain it; NaN where lost."""
    least_room = 4.0  # times what a crossing can be placed to: less room inside bounds shows nothing
    if len(basis) == field.dim:
        return np.zeros(len(boundary))
    moves = moves_outside(basis, boundary.points, field.reach * field.typical, field.domain, rng)
    length = np.linalg.norm(moves, axis=1)
    least = field.resolution * np.maximum(1.0, length / field.typical)
    lines = boundary.lines(moves)
    enough = field.room(lines) > least_room * least
    shift = field.crossings(lines[enough], 0.0, least[enough], least[enough], WEAKEST_SEEN * length[enough])
    return np.asarray(np.abs(shift) * np.sqrt(field.dim - len(basis)) / length[enough])


MOST_FLICKER = FARTHEST_FLICKER / 8  # resolution, of a typical input, from which labels flicker farther than was tried


def from_labels(
    oracle: Counting,
    inputs: Inputs,
    rng: np.random.Generator,
    keep: Callable[[FloatArray], None],
    *,
    threshold: float | None,
    reach: float,
) -> SpanEnding:
    """Recover the span of a smooth or ReLU network from nothing but labels."""
    first_located = 1e-3  # first boundary points, of a typical coordinate
    asked_again = 3  # times that the first inputs are asked again: labels must keep their word
    labels = only_labels(oracle, threshold)
    nothing = np.empty((0, oracle.dim))
    with labels.stage("look"):
        seen = label_points(labels, inputs, rng)
        if seen.one_label:
            return SpanEnding(Outcome.ONE_LABEL, nothing)
        scale = inputs.scale_of(seen.points, seen.scale)
        ground = LabelField(asked_inside(labels.query, inputs.domain), labels.dim, inputs.domain, scale, reach=reach)
        first = Boundary.between(ground.ask, *seen.pairs(16, rng), first_located * ground.scale)
        ground = replace(ground, resolution=boundary_resolution(ground, first, labels.facts.dtype, rng))
        changed = changed_labels(labels, seen, asked_again)
    evidence = {"labels": len(seen.names), "resolution": ground.resolution, "changed labels": changed}
    if changed or ground.resolution > MOST_FLICKER * ground.typical:
        return SpanEnding(Outcome.TOO_NOISY, nothing, evidence=evidence)
    run = _LabelRecovery(labels, ground, seen, rng, keep, evidence)
    return replace(run.unless_noisy(run.go()), typical=ground.typical)


@dataclass
class _LabelRecovery:
    """Search, refinement and verification, again if something was overlooked."""

    oracle: Counting
    field: LabelField
    seen: LabelledPoints
    rng: np.random.Generator
    keep: Callable[[FloatArray], None]
    evidence: dict[str, Any]
    shown: Boundary | None = None  # where the directions so far were found

    def go(self) -> SpanEnding:
        most_rounds = 4  # times that verification may send the search back for more directions
        farther_inputs = 64  # inputs far out that are tried, should something be missing
        complement, known = Complement(self.oracle.dim), 0  # so many directions, the first, have been refined
        ended = SpanEnding(Outcome.SPAN_PARTIAL, complement.basis, evidence=self.evidence)
        for _ in range(most_rounds):
            before = complement.rank
            with self.oracle.stage("search"):
                quiet = find_directions(self.field, self.seen, complement, self.rng, self.keep, sharp=known > 0)
            if not quiet or not complement.rank:
                return replace(ended, basis=complement.basis)
            known = 0 if complement.rank == before else known  # nothing new: the digits are at fault, other points help
            ended, refined = self.refined(complement.basis, known)
            if ended.outcome is not Outcome.SPAN_PARTIAL:
                return ended
            if refined and ended.basis is not None:
                complement, known = Complement.of(ended.basis), len(ended.basis)
            with self.oracle.stage("look"):
                self.seen += self.seen.more(self.oracle, farther_inputs, self.rng, farther=self.field.reach)
        return ended

    def unless_noisy(self, ended: SpanEnding) -> SpanEnding:
        """A span that is not whole may have labels to blame that change when they are asked again."""
        if ended.outcome in (Outcome.SPAN_PARTIAL, Outcome.RANK_UNCLEAR):
            with self.oracle.stage("verification"):
                changed = self.evidence["changed labels"] = changed_labels(self.oracle, self.seen)
            return replace(ended, outcome=Outcome.TOO_NOISY) if changed else ended
        return ended

    def refined(self, basis: FloatArray, known: int) -> tuple[SpanEnding, bool]:
        """Better digits for the directions found, whether they are all, and whether the digits are better at all."""
        nearly_exact = 1e-3  # last correction of a span in which a direction is missing that shows far out alone
        partial = SpanEnding(Outcome.SPAN_PARTIAL, basis, evidence=self.evidence)
        with self.oracle.stage("normals"):
            chosen = choose_normals(self.field, self.seen, basis, known, self.rng)
        if chosen is None:
            return partial, False
        shown = self.shown = self.shown + chosen.boundary if self.shown is not None and known else chosen.boundary
        if len(chosen.basis) == self.oracle.dim:
            return self.verified(chosen.basis, shown, 0.0), True
        with self.oracle.stage("refinement"):
            better = refine_from_labels(self.field, chosen)
        self.evidence |= {"corrections": list(better.corrections), "condition": better.condition}
        if not better.good:
            exact = len(better.corrections) > 1 and better.corrections[-1] < nearly_exact
            return (replace(partial, basis=better.basis), True) if exact else (partial, False)
        self.keep(better.basis)
        return self.verified(better.basis, shown, better.left), True

    def verified(self, basis: FloatArray, shown: Boundary, left: float) -> SpanEnding:
        """The test of the span at boundary points between inputs that nothing was found with."""
        with self.oracle.stage("verification"):
            checked, fresh = verify_label_span(self.oracle, self.field, self.seen, basis, shown, left, self.rng)
        self.seen += fresh
        self.evidence |= checked.evidence
        return replace(checked, evidence=self.evidence)
