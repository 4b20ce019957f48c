"""The span from labels alone: boundary points, normals, news, long-step stages, verification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from reluctant.numerics import FloatArray
from reluctant.oracles import Counting
from reluctant.results import Outcome
from reluctant.span.complement import Complement
from reluctant.span.ground import guarded, moves_outside, scale_of
from reluctant.span.labels.boundary import Boundary, LabelledPoints, label_points, resolution
from reluctant.span.labels.field import Field
from reluctant.span.labels.search import find_directions
from reluctant.span.labels.stages import Refined, choose_points, refine_from_labels
from reluctant.span.labels.wall import only_labels

__all__ = ["FromLabels", "from_labels"]

LOCATED = 1e-3  # first boundary points, of a typical coordinate
FLICKER = 1e-2  # resolution, of a typical input, from which labels say nothing about directions
SHARP = 1e-5  # resolution, of a typical input, up to which a full rank is believed; float32 is far below
ROUNDS = 4  # times that verification may send the search back for more directions
CHECKED = 32  # fresh boundary points in the verification
NEARLY_EXACT = 1e-3  # last correction of a span in which a direction is missing that shows far out alone
FADED = 10.0  # times weaker after the refinement than before is a direction that it has all but taken away
WEAKEST = 0.02  # part of a normal outside the span that verification must not overlook


@dataclass(frozen=True)
class FromLabels:
    """How it ended, the basis found, how clear its rank is, how far it is off, and the numbers behind it."""

    outcome: Outcome
    basis: FloatArray
    margin: float = np.inf
    angle: float = np.nan
    evidence: dict[str, Any] = field(default_factory=dict)


def from_labels(
    oracle: Counting,
    rng: np.random.Generator,
    keep: Callable[[FloatArray], None],
    *,
    threshold: float | None,
    reach: float,
) -> FromLabels:
    """Recover the span of a smooth or ReLU network from nothing but labels."""
    labels = only_labels(oracle, threshold)
    nothing = np.empty((0, oracle.dim))
    with labels.stage("look"):
        seen = label_points(labels, rng)
        if seen.one_label:
            return FromLabels(Outcome.ONE_LABEL, nothing)
        domain = labels.facts.domain
        scale = scale_of(domain, seen.points, seen.scale)
        ground = Field(guarded(labels.query, domain), labels.dim, domain, scale, reach=reach)
        first = Boundary.between(ground, seen.pairs(CHECKED // 4, rng), LOCATED * ground.scale)
        ground = replace(ground, resolution=resolution(ground, first, rng))
    evidence = {"labels": len(np.unique(seen.labels)), "resolution": ground.resolution}
    if ground.resolution > FLICKER * ground.typical:
        return FromLabels(Outcome.TOO_NOISY, nothing, evidence=evidence)
    return _Run(labels, ground, seen, rng, keep, evidence).go()


@dataclass
class _Run:
    """Search, refinement and verification, again if something was overlooked."""

    oracle: Counting
    field: Field
    seen: LabelledPoints
    rng: np.random.Generator
    keep: Callable[[FloatArray], None]
    evidence: dict[str, Any]

    def go(self) -> FromLabels:
        complement, known = Complement(self.oracle.dim), 0  # so many directions, the first, have been refined
        ended = FromLabels(Outcome.SPAN_PARTIAL, complement.basis, evidence=self.evidence)
        for _ in range(ROUNDS):
            before = complement.rank
            with self.oracle.stage("search"):
                quiet = find_directions(self.field, self.seen, complement, self.rng, self.keep, sharp=known > 0)
            if complement.rank == self.oracle.dim:
                # Where labels flicker, every direction seems to matter.
                if self.field.resolution > SHARP * self.field.typical:
                    return replace(ended, outcome=Outcome.RANK_UNCLEAR, basis=complement.basis)
                return replace(ended, outcome=Outcome.FULL_RANK, basis=complement.basis, margin=0.0)
            if not quiet or not complement.rank:
                return replace(ended, basis=complement.basis)
            known = 0 if complement.rank == before else known  # nothing new: the digits are at fault, other points help
            ended, refined = self.refined(complement.basis, known)
            if ended.outcome is not Outcome.SPAN_PARTIAL:
                return ended
            if refined:
                complement, known = Complement.of(ended.basis), len(ended.basis)
            with self.oracle.stage("look"):
                self.seen = self.seen.with_farther(self.oracle, self.field.reach, self.rng)
        return ended

    def refined(self, basis: FloatArray, known: int) -> tuple[FromLabels, bool]:
        """Better digits for the directions found, whether they are all, and whether the digits are better at all."""
        partial = FromLabels(Outcome.SPAN_PARTIAL, basis, evidence=self.evidence)
        with self.oracle.stage("normals"):
            chosen = choose_points(self.field, self.seen, basis, known, self.rng)
        if chosen is None:
            return partial, False
        frame, sizes = chosen
        with self.oracle.stage("refinement"):
            better = refine_from_labels(self.field, frame)
        self.evidence |= {"corrections": list(better.corrections), "condition": better.condition}
        if not better.good:
            exact = len(better.corrections) > 1 and better.corrections[-1] < NEARLY_EXACT
            return (replace(partial, basis=better.basis), True) if exact else (partial, False)
        self.keep(better.basis)
        with self.oracle.stage("verification"):
            return self.verified(better, float(sizes[len(frame.basis) - 1] / sizes[0])), True

    def verified(self, better: Refined, weakest: float) -> FromLabels:
        """Fresh boundary points must stay where they are on long steps outside the span."""
        shift = self.shifts(better.basis)
        leak = float(np.nanmax(shift, initial=0.0))
        lost = int(np.isnan(shift).sum())
        margin = max(leak, better.left) / weakest
        self.evidence |= {"leak": leak, "lost": lost, "weakest": weakest}
        silent = leak <= WEAKEST * weakest and lost <= len(shift) // 4
        outcome = Outcome.SPAN_RECOVERED if silent else Outcome.SPAN_PARTIAL
        if silent and better.condition * weakest > FADED:  # made of errors: values rounded before they were compared
            outcome = Outcome.RANK_UNCLEAR
        return FromLabels(outcome, better.basis, margin if silent else np.inf, max(leak, better.left), self.evidence)

    def shifts(self, basis: FloatArray) -> FloatArray:
        """How far (n,) crossings move on a long step outside, as the sine that would explain it; NaN where lost."""
        field = self.field
        near = LOCATED * field.scale
        boundary = Boundary.between(field, self.seen.pairs(CHECKED, self.rng), near)
        inside = (boundary.along @ basis.T) @ basis
        along = inside / np.linalg.norm(inside, axis=1, keepdims=True)
        boundary, found = boundary.turned(field, along, near, field.resolution)
        boundary = boundary[found]
        moves = moves_outside(basis, boundary.points, field.reach * field.typical, field.domain, self.rng)
        length = np.linalg.norm(moves, axis=1)
        least = field.resolution * np.maximum(1.0, length / field.typical)
        shift = field.crossings(boundary.lines(moves), 0.0, least, least, WEAKEST * length)
        return np.asarray(np.abs(shift) * np.sqrt(field.dim - len(basis)) / length)
