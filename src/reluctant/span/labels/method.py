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
from reluctant.span.ground import guarded
from reluctant.span.inputs import Inputs
from reluctant.span.labels.boundary import Boundary, LabelledPoints, label_points
from reluctant.span.labels.field import Field
from reluctant.span.labels.flicker import LOOKED_AT, NEAR, changed_labels, resolution
from reluctant.span.labels.search import find_directions
from reluctant.span.labels.stages import choose_points, refine_from_labels
from reluctant.span.labels.verification import verify
from reluctant.span.labels.wall import only_labels

__all__ = ["FromLabels", "from_labels"]

LOCATED = 1e-3  # first boundary points, of a typical coordinate
FLICKER = NEAR / 8  # resolution, of a typical input, from which labels flicker farther than was looked at
AGAIN = 3  # times that the first inputs are asked again: labels must keep their word
ROUNDS = 4  # times that verification may send the search back for more directions
FARTHER = 64  # inputs far out that are looked at, should something be missing
NEARLY_EXACT = 1e-3  # last correction of a span in which a direction is missing that shows far out alone


@dataclass(frozen=True)
class FromLabels:
    """How it ended, the basis found, how clear its rank is, how far it is off, and the numbers behind it."""

    outcome: Outcome
    basis: FloatArray
    margin: float = np.inf
    angle: float = np.nan
    evidence: dict[str, Any] = field(default_factory=dict)
    typical: float = 0.0  # norm of an input


def from_labels(
    oracle: Counting,
    inputs: Inputs,
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
        seen = label_points(labels, inputs, rng)
        if seen.one_label:
            return FromLabels(Outcome.ONE_LABEL, nothing)
        scale = inputs.scale_of(seen.points, seen.scale)
        ground = Field(guarded(labels.query, inputs.domain), labels.dim, inputs.domain, scale, reach=reach)
        first = Boundary.between(ground, seen.pairs(LOOKED_AT, rng), LOCATED * ground.scale)
        ground = replace(ground, resolution=resolution(ground, first, labels.facts.dtype, rng))
        changed = changed_labels(labels, seen, AGAIN)
    evidence = {"labels": len(seen.names), "resolution": ground.resolution, "changed labels": changed}
    if changed or ground.resolution > FLICKER * ground.typical:
        return FromLabels(Outcome.TOO_NOISY, nothing, evidence=evidence)
    run = _Run(labels, ground, seen, rng, keep, evidence)
    return replace(run.unless_noisy(run.go()), typical=ground.typical)


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
            if not quiet or not complement.rank:
                return replace(ended, basis=complement.basis)
            known = 0 if complement.rank == before else known  # nothing new: the digits are at fault, other points help
            ended, refined = self.refined(complement.basis, known)
            if ended.outcome is not Outcome.SPAN_PARTIAL:
                return ended
            if refined:
                complement, known = Complement.of(ended.basis), len(ended.basis)
            with self.oracle.stage("look"):
                self.seen += self.seen.more(self.oracle, FARTHER, self.rng, farther=self.field.reach)
        return ended

    def unless_noisy(self, ended: FromLabels) -> FromLabels:
        """A span that is not whole may have labels to blame that change when they are asked again."""
        if ended.outcome in (Outcome.SPAN_PARTIAL, Outcome.RANK_UNCLEAR):
            with self.oracle.stage("verification"):
                self.evidence["changed labels"] = changed_labels(self.oracle, self.seen)
            return replace(ended, outcome=Outcome.TOO_NOISY) if self.evidence["changed labels"] else ended
        return ended

    def refined(self, basis: FloatArray, known: int) -> tuple[FromLabels, bool]:
        """Better digits for the directions found, whether they are all, and whether the digits are better at all."""
        partial = FromLabels(Outcome.SPAN_PARTIAL, basis, evidence=self.evidence)
        with self.oracle.stage("normals"):
            chosen = choose_points(self.field, self.seen, basis, known, self.rng)
        if chosen is None:
            return partial, False
        if len(chosen.basis) == self.oracle.dim:
            return self.verified(chosen.basis, 0.0), True
        with self.oracle.stage("refinement"):
            better = refine_from_labels(self.field, chosen)
        self.evidence |= {"corrections": list(better.corrections), "condition": better.condition}
        if not better.good:
            exact = len(better.corrections) > 1 and better.corrections[-1] < NEARLY_EXACT
            return (replace(partial, basis=better.basis), True) if exact else (partial, False)
        self.keep(better.basis)
        return self.verified(better.basis, better.left), True

    def verified(self, basis: FloatArray, left: float) -> FromLabels:
        """How the span stands up at boundary points between inputs that nothing was found with."""
        with self.oracle.stage("verification"):
            checked = verify(self.oracle, self.field, self.seen, basis, left, self.rng)
        self.seen += checked.fresh
        self.evidence |= checked.evidence
        return FromLabels(checked.outcome, checked.basis, checked.margin, checked.angle, self.evidence)
