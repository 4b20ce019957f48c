"""`recover_span`, from values or from labels, and `Span`, its result.

From values: a first look, directions one by one (many digits) or together (few digits), refinement by long steps, and
verification: long steps from fresh inputs outside the span must change nothing. Where probabilities saturate, a span
is recovered inside a box around the origin. A neuron that is never active there has directions that nothing inside
shows, so raw answers are compared at typical inputs too: they need no link there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from reluctant.domains import Domain
from reluctant.errors import InvalidInput, NonFiniteAnswer, NonFiniteGradient, words
from reluctant.geometry.boundary import check_threshold
from reluctant.interface import Interface
from reluctant.interface.gradient_kinds import trusted, undefined_at
from reluctant.interface.kinds import Shape
from reluctant.interface.noise import digits_noise
from reluctant.interface.reach import FARTHEST, find_link, smaller, unsaturated_box
from reluctant.messages import Diagnosis, Notes
from reluctant.messages.catalogue import SPAN_FROM_LABELS, TRAIN
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting, Kind, Rows
from reluctant.oracles.input_units import FEWEST_SAMPLES, checked_samples
from reluctant.oracles.keywords import OpeningKeywords
from reluctant.oracles.links import raw_answers
from reluctant.oracles.open import Target, in_units, opened_target
from reluctant.results import Ended, Outcome, Run, split_reason
from reluctant.span.directions import search_directions
from reluctant.span.first_look import (
    LABEL_REACH,
    REACH,
    RULE_OF_THREE,
    UNCLEAR_ANGLE,
    UNCLEAR_MARGIN,
    FirstLook,
    Inputs,
    first_look,
)
from reluctant.span.gradient_span import from_gradients
from reluctant.span.label_span import from_labels
from reluctant.span.singular_values import oversampled_span
from reluctant.span.subspace import (
    LONG_STEPS,
    LONG_STEPS_IN_BOUNDS,
    FoundSpan,
    SpanEnding,
    Subspace,
    leak_slopes,
    long_steps,
    loud_places,
    refine_basis,
    slopes_along,
    slopes_inside,
    span_tilt,
)

ATTEMPTS = 3  # times that fresh inputs may show more
LEAST_WEAK = 1e-9  # part of a gradient outside a fine span that may be a direction


def from_values(
    oracle: Counting,
    inputs: Inputs,
    rng: np.random.Generator,
    keep: Callable[[FloatArray], None],
    *,
    fine: bool,
    reach: float,
) -> SpanEnding:
    """Recover the span of a ReLU network of any depth from its values."""
    few_digits = 1e-11  # noise over spread of the answers: above, directions are not found one by one
    seen = first_look(oracle, inputs, rng, reach)
    evidence: dict[str, object] = {"health": seen.health, "live share": seen.live_share}
    refusal = Outcome.CONSTANT if seen.is_constant else values_refusal(seen.health)
    if refusal is not None:
        return SpanEnding(refusal, evidence=evidence)
    way = _few_digits if _noise_share(seen.health) > few_digits else _many_digits
    outcome, found = way(oracle, seen, rng, keep, fine)
    looked_at = LONG_STEPS if seen.ground.domain.is_space else LONG_STEPS_IN_BOUNDS
    share = RULE_OF_THREE / (looked_at * max(seen.live_share, 1 / looked_at))
    ground = seen.ground
    missed = Diagnosis("missed-direction", {"share": min(share, 1.0), "weakest": found.limit})
    evidence["limits"] = Notes((ground.inputs.asked(ground.drawn, ground.reach), missed))
    return SpanEnding.of(outcome, found, evidence, seen.ground.typical)


def values_refusal(health: Interface) -> Outcome | None:
    """Why values give no span, or None.

    Curves that digits hide are no reason: gradients of a sigmoid are in the span too, and verification tells whether
    digits were enough. Nor are digits that are too few to read values exactly through a link.
    """
    too_few_digits = 1e-3
    if health.shape is Shape.CONSTANT:
        return Outcome.PIECEWISE_CONSTANT
    hidden = health.curves_hidden and health.answers is Kind.VALUES
    coarse = health.raw is not None and health.raw.too_coarse and np.isfinite(health.spread)
    refusal = None if hidden or coarse else health.refusal
    return Outcome.TOO_NOISY if refusal is None and _noise_share(health) > too_few_digits else refusal


def _noise_share(health: Interface) -> float:
    return health.noise.at(health.spread) / health.spread if health.spread > 0 else 0.0


def _many_digits(
    oracle: Counting, seen: FirstLook, rng: np.random.Generator, keep: Callable[[FloatArray], None], fine: bool
) -> tuple[Outcome, FoundSpan]:
    """Directions one by one, then one long-step stage; again as long as fresh inputs show more directions.

    The search for weak ones follows if long steps still change answers.
    """
    start: FoundSpan | None = None
    for _ in range(ATTEMPTS):
        with oracle.stage("search"):
            seen = seen if start is None else _where_loud(seen, start, rng)
            start = found = search_directions(seen, rng, keep, start=start)
        finer = _finer(oracle, seen, found, rng) if fine else found
        keep(finer.basis)
        outcome, checked = _verified(oracle, seen, finer, rng)
        if outcome is not Outcome.SPAN_PARTIAL or not np.isfinite(checked.margin) or not found.rank:
            break
    unclear = (outcome is Outcome.SPAN_RECOVERED and checked.leak > LEAST_WEAK) or outcome is Outcome.RANK_UNCLEAR
    if not fine or not unclear or not 0 < found.rank < oracle.dim:
        return outcome, checked
    weak = _weak(oracle, seen, found, rng, keep)
    if weak.rank == found.rank:  # none: those found are the clearer for it
        finer = replace(finer, margin=weak.margin, limit=weak.limit)
    else:
        finer = _finer(oracle, seen, weak, rng)
    keep(finer.basis)
    return _verified(oracle, seen, finer, rng)


def _few_digits(
    oracle: Counting, seen: FirstLook, rng: np.random.Generator, keep: Callable[[FloatArray], None], fine: bool
) -> tuple[Outcome, FoundSpan]:
    """All directions together; as long as verification still sees others, finely and by twice as many gradients.

    The first of them where long steps change the answers: a rare direction in one gradient alone looks like a crease.
    """
    gradients = 0
    for _ in range(ATTEMPTS):
        with oracle.stage("gradients"):
            found = oversampled_span(seen, rng, keep, fine=fine, least=2 * gradients)
        keep(found.basis)
        outcome, found = _verified(oracle, seen, found, rng)
        if outcome is not Outcome.SPAN_PARTIAL:
            break
        if not fine:  # the rest may be the error of coarse directions: fine ones cost less than twice as many
            fine = True
            continue
        gradients = max(found.gradients, 1)
        with oracle.stage("gradients"):
            seen = _where_loud(seen, found, rng)
    return outcome, found


def _where_loud(seen: FirstLook, found: FoundSpan, rng: np.random.Generator) -> FirstLook:
    """The first look, led by places where long steps outside the span change the answers."""
    active = found.points, found.values
    heard = loud_places(seen.ground, found.basis, *active, found.size, found.limit, rng)
    if not len(heard.points):
        return seen
    points, values = np.concatenate([heard.points, seen.points]), np.concatenate([heard.values, seen.values])
    return replace(seen, points=points, values=values, live=np.append(np.ones(len(heard.points), bool), seen.live))


def _weak(
    oracle: Counting, seen: FirstLook, found: FoundSpan, rng: np.random.Generator, keep: Callable[[FloatArray], None]
) -> FoundSpan:
    """Directions that are weak but stronger than what the error of those found looks like.

    From the search, not from the long-step stage: that one takes what a weak direction does for an error of the others.
    """
    beyond_tilt = 30.0  # times the error of directions, from which another one differs from it
    with oracle.stage("weak directions"):
        least = max(LEAST_WEAK, beyond_tilt * span_tilt(seen.ground, found, rng))
        return search_directions(seen, rng, keep, start=found, least=least) if least < found.limit else found


def _finer(oracle: Counting, seen: FirstLook, found: FoundSpan, rng: np.random.Generator) -> FoundSpan:
    """One long-step stage; what was found before, if it made things worse (a target may clip far inputs)."""
    if not 0 < found.rank < oracle.dim:
        return found
    with oracle.stage("refinement", expected=len(found.points) * (oracle.dim + 2)):
        inside, steps = slopes_inside(seen.ground, found.basis, found.points, found.steps, rng)
        better = refine_basis(seen.ground, found.basis, inside, long_steps(seen.ground, steps, found.leak), rng)
        leak = float(leak_slopes(seen.ground, better, inside.points, inside.value, rng)[0].max()) / found.size
    return replace(found, basis=better, leak=leak) if leak <= found.leak else found


def _all_matter(oracle: Counting, seen: FirstLook, found: FoundSpan) -> bool:
    """Whether a long step along every direction of the basis changes the answers."""
    second_looks = 40  # points from which a direction is followed before it counts as none
    open_ = np.arange(found.rank)
    with oracle.stage("verification"):
        for start in range(min(second_looks, len(found.points))):  # a direction does not matter everywhere
            which = (open_ + start) % len(found.points)
            sides = (-1.0) ** start * found.basis[open_]
            shown = slopes_along(seen.ground, sides, found.points[which], found.values[which])
            open_ = open_[shown <= found.limit * found.size]
            if not len(open_):
                return True
    return False


def _verified(
    oracle: Counting, seen: FirstLook, found: FoundSpan, rng: np.random.Generator
) -> tuple[Outcome, FoundSpan]:
    """Long steps from fresh points must change nothing, long steps along every direction must change something."""
    noise = 30.0  # deviations that a long step may show without a leak
    silent = found.rank > 0
    if found.rank < oracle.dim:
        fresh = LONG_STEPS if seen.ground.domain.is_space else LONG_STEPS_IN_BOUNDS
        with oracle.stage("verification", expected=2 * fresh):
            starts = seen.ground.sample(fresh, rng)
            slope, _, sd = leak_slopes(seen.ground, found.basis, starts, oracle.query(starts), rng)
        allowed = np.maximum(found.limit * found.size, noise * sd)
        leak = max(found.leak, float(slope.max()) / found.size) if found.size else np.inf
        strength = float(np.median(allowed)) / found.size if found.size else np.inf  # bounds cut some steps short
        found = replace(found, leak=leak, limit=strength, margin=max(found.margin, strength / found.kept))
        silent = silent and bool((slope <= allowed).all())
    if found.margin > UNCLEAR_MARGIN and np.isfinite(found.margin):
        return Outcome.RANK_UNCLEAR, found
    if silent and found.rank < oracle.dim and found.angle > UNCLEAR_ANGLE:
        return Outcome.RANK_UNCLEAR, found
    if not (silent and np.isfinite(found.margin) and _all_matter(oracle, seen, found)):
        return Outcome.SPAN_PARTIAL, found
    return (Outcome.FULL_RANK if found.rank == oracle.dim else Outcome.SPAN_RECOVERED), found


GOOD_OUTCOMES = (Outcome.SPAN_RECOVERED, Outcome.FULL_RANK)


@dataclass(frozen=True, eq=False)
class Span(Ended):
    """Outcome of `recover_span`.

    subspace: the directions found; partial unless `ok`.
    margin: the strongest direction left out over the weakest one kept: the rank is clear if it is far below 1, unknown
        if it is infinite.
    angle: largest angle between found and true directions, as a sine: the effect of long steps along the others, over
        the weakest direction.
    stage: where the run ended.
    evidence: the numbers that decided.
    rows: counts by stage.
    followed: how far, as a norm, steps along directions left out went.
    domain: the range of all queries.
    """

    outcome: Outcome
    subspace: Subspace
    rows: Mapping[str, Rows]
    margin: float = float("inf")
    angle: float = float("nan")
    stage: str = ""
    evidence: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    followed: float = float("inf")
    domain: Domain = field(default_factory=Domain)
    reason: Diagnosis | None = None

    @property
    def ok(self) -> bool:
        """True only if nothing more was seen along the directions left out."""
        return self.outcome in GOOD_OUTCOMES

    @property
    def rank(self) -> int:
        """Number of directions found."""
        return self.subspace.rank

    @property
    def basis(self) -> FloatArray:
        """Orthonormal rows (rank, d)."""
        return self.subspace.basis

    def save(self, path: str | Path) -> None:
        """Write the subspace as `.npz`."""
        self.subspace.save(path)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the basis itself is left to `save`."""
        return {
            **self.ending(),
            "rank": self.rank,
            "inputs": self.subspace.dim,
            "invisible share": self.subspace.invisible_share,
            "margin": self.margin,
            "angle": self.angle,
        }

    def shown_facts(self) -> dict[str, object]:
        """The directions that were found, and how clear they are."""
        space = self.subspace
        seen = {"invisible share": f"{space.invisible_share:.1%}", "margin": self.margin, "largest angle": self.angle}
        return {"rank": f"{self.rank} of {space.dim} inputs", **(seen if self.ok else {})}

    def __repr__(self) -> str:
        return f"Span({self.outcome.slug}, rank {self.rank} of {self.subspace.dim}, queries={self.queries})"


TYPICAL_POINTS = 64


def seen_from_typical_inputs(oracle: Counting, found: Subspace, box: Domain, rng: np.random.Generator) -> float | None:
    """Share of typical inputs where a step along a direction left out changes the answer; None if none is left out.

    Cost: 192 rows, none where typical inputs lie in the box, or nothing is left out.
    """
    if np.max(box.high) >= FARTHEST or found.rank == found.dim:
        return None
    start = Domain().sample(rng, TYPICAL_POINTS, oracle.dim)
    away = rng.standard_normal((TYPICAL_POINTS, found.dim - found.rank)) @ found.null_basis
    with oracle.stage("verify", expected=3 * TYPICAL_POINTS), raw_answers(oracle) as raw:
        oracle.answer(np.concatenate([start, start, start + away]))
    here, again, there = np.split(np.nan_to_num(np.concatenate(raw)), 3)
    clear_change = 1e-3  # of the deviation of the answers: what directions off by a little change is less
    clear_noise = 8.0  # times that of an answer
    fresh = float(np.abs(again - here).max())
    least = max(clear_noise * max(fresh, digits_noise(here)), clear_change * float(here.std(axis=0).max()))
    changed = np.abs(there - here).max(axis=1) > least
    return float(changed.mean())


def recover_span(
    oracle: Target,
    *,
    labels: bool = False,
    rng: Rng = 0,
    fine: bool = True,
    threshold: float | None = None,
    reach: float | None = None,
    inputs: ArrayLike | None = None,
    seconds: float | None = None,
    **opening: Unpack[OpeningKeywords],
) -> Span:
    """Find every input direction that changes the answers of a target.

    Arguments:
        oracle: the target, or anything that `open_oracle` takes: a ReLU network of any depth from values, any smooth or
            ReLU network from labels.
        labels: use labels alone: the largest of several outputs. One output is a label if it is a whole number,
            otherwise its side of the threshold is.
        rng: seed of all random choices.
        fine: spend about as many rows again on the last digits. Without effect on labels.
        threshold: for labels of one output; 0.5 by default.
        reach: how far to check that directions outside change nothing, in typical inputs: 15 by default, 3 from labels.
        inputs: typical rows (n, d). Half of the queries are drawn around them. Without them all queries are random, and
            a direction that matters on real inputs alone can be missed.
        seconds: most processor time. The result has the directions found until then. No limit by default.
        opening: keywords of `open_oracle`, for this call: dim, budget, link, ...

    Cost: for k directions in n dimensions about k·n rows from values (2·k·n if fine, 15·k·n in float32), and 60 to
    250·k·n from labels. Small networks cost some hundred rows more, and 5000 more from labels. With gradients about
    k + 50 rows.
    """
    reach = (LABEL_REACH if labels else REACH) if reach is None else reach
    with opened_target(oracle, opening, seconds) as opened:
        enough = inputs is not None and len(np.atleast_2d(np.asarray(inputs))) >= FEWEST_SAMPLES
        rows = checked_samples(inputs, opened.dim, opened.facts.domain) if enough else None
        target, units = in_units(opened, rows)
        if units is None or (units.are_plain and opened.facts.samples is None):
            return _recover(opened, labels, rng, fine, threshold, reach, inputs)
        given = target.facts.samples if rows is None else units.reduced(rows)
        found = _recover(target, labels, rng, fine, threshold, reach, given)
        # Small angles grow by no more than the ratio of the scales.
        basis = units.directions(found.basis)
        return replace(found, subspace=Subspace(basis), angle=found.angle * units.scale.max() / units.scale.min())


def _recover(
    opened: Counting,
    labels: bool,
    rng: Rng,
    fine: bool,
    threshold: float | None,
    reach: float,
    inputs: ArrayLike | None,
) -> Span:
    _check_settings(opened, labels, fine, threshold, reach)
    source = Inputs.of(opened.facts.domain, opened.dim, inputs)
    nothing = np.empty((0, opened.dim))
    run = Run.begin(opened, "span", rng, nothing, non_finite=Outcome.NON_FINITE)
    recovery, generator = _Recovery(run, source, reach), as_generator(rng)

    def work() -> Span:
        if labels:
            return recovery.result(from_labels(opened, source, generator, run.keep, threshold=threshold, reach=reach))
        if opened.facts.saturates and opened.facts.domain.is_space:
            return recovery.unsaturated(generator, fine)
        return recovery.behind_link(recovery.values(generator, fine), generator, fine)

    return run.finish(work, lambda outcome: recovery.result(SpanEnding(outcome, evidence=run.evidence)))


def _check_settings(oracle: Counting, labels: bool, fine: bool, threshold: float | None, reach: float) -> None:
    """Settings that would be without effect are refused like ones that make no sense."""
    for name, flag in (("labels", labels), ("fine", fine)):
        if not isinstance(flag, bool | np.bool_):
            raise InvalidInput.about(name, got=repr(flag), expected="True or False")
    if not _is_number(reach) or not 0 < reach < np.inf:
        raise InvalidInput.about("reach", got=repr(reach), expected="a finite number above 0")
    if threshold is None:
        return
    if not labels:
        raise InvalidInput.about(
            "threshold", got=threshold, expected="none without labels", fix=words("Pass {labels}.", labels=True)
        )
    check_threshold(oracle, threshold)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


@dataclass
class _Recovery:
    """The search of one call; the partial result of its run are the directions so far."""

    run: Run[FloatArray]
    inputs: Inputs
    reach: float

    @property
    def oracle(self) -> Counting:
        """The target."""
        return self.run.oracle

    def values(self, rng: np.random.Generator, fine: bool) -> Span:
        ended = self.by_gradients(rng)
        if ended is None:
            ended = from_values(self.oracle, self.inputs, rng, self.run.keep, fine=fine, reach=self.reach)
        return self.result(replace(ended, evidence=self.run.evidence | ended.evidence))

    def by_gradients(self, rng: np.random.Generator) -> SpanEnding | None:
        """From gradients, where the target answers them and they are clear; None elsewhere."""
        if self.oracle.explained is None:
            return None
        oracle, reading = trusted(self.oracle, rng)
        if reading is not None and reading.diagnosis is not None:
            self.run.evidence["gradients are"] = reading.diagnosis
        if oracle.explained is None:
            return None
        try:
            ended = from_gradients(oracle, self.inputs, rng, self.run.keep, self.reach)
        except NonFiniteGradient as error:
            self.run.evidence["gradients are"] = undefined_at(error)
            return None
        if ended is None or ended[0] not in GOOD_OUTCOMES:
            return None
        scale = self.inputs.scale_of(ended[1].points, self.inputs.unit)
        return SpanEnding.of(*ended, {}, scale * float(np.sqrt(oracle.dim)))

    def behind_link(self, span: Span, rng: np.random.Generator, fine: bool) -> Span:
        """The span, or that of the values behind the link that refused answers show."""
        health = span.evidence.get("health")
        read = None if health is None or span.ok else find_link(self.oracle, health, rng)
        if read is None:
            return span
        self.run.oracle = read.oracle
        saturates = read.oracle.facts.saturates and read.oracle.facts.domain.is_space
        found = self.unsaturated(rng, fine) if saturates else self.values(rng, fine)
        return replace(found, evidence={**found.evidence, **read.evidence()})

    def unsaturated(self, rng: np.random.Generator, fine: bool) -> Span:
        """Inside a box in which no probability saturates; inside a smaller one where that was not so."""
        most_boxes = 3  # tried where probabilities saturate
        box = unsaturated_box(self.oracle, rng)
        for _ in range(most_boxes):
            if box is None:
                break
            self.inputs = self.inputs.within(box)
            try:
                return self.at_use(self.values(rng, fine), box, rng)
            except NonFiniteAnswer:
                box = smaller(box)
        return self.result(SpanEnding(Outcome.OUT_OF_REACH))

    def at_use(self, span: Span, box: Domain, rng: np.random.Generator) -> Span:
        """A part alone, where typical inputs outside the box see what it leaves out."""
        share = seen_from_typical_inputs(self.oracle, span.subspace, box, rng) if span.ok else None
        if not share:
            return replace(span, rows=self.run.spent())
        reason = Diagnosis("span-beyond-box", {"box": box.describe(), "share": share}, (SPAN_FROM_LABELS,))
        evidence = {**span.evidence, "seen at typical inputs": share}
        rows = self.run.spent()
        return replace(span, outcome=Outcome.SPAN_PARTIAL, rows=rows, evidence=evidence, angle=np.nan, reason=reason)

    def result(self, ended: SpanEnding) -> Span:
        outcome, margin, angle = ended.outcome, ended.margin, ended.angle
        basis = self.run.partial if ended.basis is None else ended.basis
        if not len(basis) and outcome is Outcome.CONSTANT:
            margin, angle = 0.0, 0.0
        if outcome is Outcome.FULL_RANK:
            angle = 0.0
        left, reason = split_reason(outcome, ended.evidence)
        changed = ended.evidence.get("changed labels")
        if reason is None and outcome is Outcome.TOO_NOISY and changed is not None:  # no boundary could be followed
            fields = {"changed": changed} if changed else {}
            reason = Diagnosis("labels-changed" if changed else "labels-flicker", fields, (TRAIN,))
        return Span(
            outcome, Subspace(basis), self.run.spent(), margin, angle, self.run.stage, left,
            followed=self.reach * ended.typical, domain=self.inputs.domain, reason=reason,
        )  # fmt: skip
