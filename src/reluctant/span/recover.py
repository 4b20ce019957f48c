"""`recover_span`, from values or from labels, and `Span`, its result.

Where probabilities saturate, a span is recovered inside a box around the origin. A neuron that is never active
there has directions that nothing inside shows, so the answers as the target gives them are compared at typical
inputs too: they need no link there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from reluctant.domains import Domain
from reluctant.errors import InvalidInput, NonFiniteAnswer
from reluctant.interface.digits import digits_noise
from reluctant.interface.reach import FARTHEST, smaller, unsaturated_box
from reluctant.messages import Diagnosis
from reluctant.messages.catalogue import SPAN_FROM_LABELS, TRAIN
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import Counting, Rows
from reluctant.oracles.keywords import OpeningKeywords
from reluctant.oracles.links import raw_answers
from reluctant.oracles.open import Target, opened_target
from reluctant.results import Ended, Outcome, Run, split_reason
from reluctant.span.first_look import Inputs
from reluctant.span.label_span import from_labels
from reluctant.span.subspace import Subspace
from reluctant.span.values import from_values

GOOD_OUTCOMES = (Outcome.SPAN_RECOVERED, Outcome.FULL_RANK)


@dataclass(frozen=True, eq=False)
class Span(Ended):
    """Outcome of `recover_span`.

    subspace: what was found; partial unless `ok`. margin: what counted as nothing over the weakest that counted as a
    direction: the rank is clear if it is far below 1, not known if it is infinite. angle: how far the directions are
    from true ones at most, as a sine: what long steps along the others show, over the weakest direction. stage: where
    the run ended. evidence: the numbers that decided. rows: counts by stage. followed: how
    far, as a norm, directions left out were followed, and domain: inside which.
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
    """Share of typical inputs at which a step along what is left out changes the answer; None where there is none such.

    Cost: 192 rows, none where typical inputs lie in the box, or nothing is left out.
    """
    if np.max(box.high) >= FARTHEST or found.rank == found.dim:
        return None
    start = Domain().sample(rng, TYPICAL_POINTS, oracle.dim)
    away = rng.standard_normal((TYPICAL_POINTS, found.dim - found.rank)) @ found.null_basis
    with oracle.stage("verify", expected=3 * TYPICAL_POINTS), raw_answers(oracle) as told:
        oracle.answer(np.concatenate([start, start, start + away]))
    here, again, there = np.split(np.nan_to_num(np.concatenate(told)), 3)
    changed = np.abs(there - here).max(axis=1) > _least_change(here, again)
    return float(changed.mean())


def _least_change(here: FloatArray, again: FloatArray) -> float:
    """The smallest change that is one: beyond noise, and what errors of the directions may do."""
    clear_change = 1e-3  # of the deviation of the answers: what directions off by a little change is less
    clear_noise = 8.0  # times that of an answer
    fresh = float(np.abs(again - here).max())
    return max(clear_noise * max(fresh, digits_noise(here)), clear_change * float(here.std(axis=0).max()))


def recover_span(
    oracle: Target,
    *,
    labels: bool = False,
    rng: Rng = 0,
    fine: bool = True,
    threshold: float | None = None,
    reach: float = 3.0,
    inputs: ArrayLike | None = None,
    **opening: Unpack[OpeningKeywords],
) -> Span:
    """Find every direction of input space that changes the answers of a target.

    Arguments:
        oracle: the target, or anything that `open_oracle` takes: from values a ReLU network of any depth, from labels
            any smooth or ReLU network.
        labels: use nothing but labels: the largest of several outputs; one output is a label if it is a whole number,
            else it is compared with the threshold.
        rng: seed of all random choices.
        fine: spend about as many rows again on the last digits; nothing changes for labels, where digits cost little.
        threshold: for labels of one output; 0.5 if not given.
        reach: how far the directions left out are followed to see that nothing changes, in typical inputs.
        inputs: rows (n, d) of the kind that the target is for: half of what is asked is drawn around them. Without them
            random inputs of the domain stand for all, and a direction that matters on real ones alone can be missed.
        opening: keywords of `open_oracle`, for this call: dim, budget, link, ...

    Cost: a span of k directions in n dimensions takes about k·n rows from values (2·k·n if fine, 15·k·n in float32),
    and 60 to 250·k·n from labels; small networks some hundred rows besides, and 5000 from labels.
    """
    with opened_target(oracle, opening) as opened:
        return _recover(opened, labels, rng, fine, threshold, reach, inputs)


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
            return recovery.labels(generator, threshold)
        if opened.facts.saturates and opened.facts.domain.is_space:
            return recovery.unsaturated(generator, fine)
        return recovery.values(generator, fine)

    return run.finish(work, lambda outcome: recovery.result(outcome, run.partial, evidence=run.evidence))


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
        raise InvalidInput.about("threshold", got=threshold, expected="none without labels", fix="Pass labels=True.")
    if not _is_number(threshold) or not np.isfinite(threshold):
        raise InvalidInput.about("threshold", got=repr(threshold), expected="a finite number")
    if oracle.outputs > 1:
        raise InvalidInput.about(
            "threshold", got=f"{threshold} for {oracle.outputs} outputs", expected="none: the largest is the label",
            fix="Open one output with output=0 to compare it with a threshold.",
        )  # fmt: skip


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
        ended = from_values(self.oracle, self.inputs, rng, self.run.keep, fine=fine, reach=self.reach)
        if ended.found is None:
            return self.result(ended.outcome, self.run.partial, evidence=ended.evidence)
        found = ended.found
        return self.result(ended.outcome, found.basis, found.margin, found.angle, ended.evidence, ended.typical)

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
        return self.result(Outcome.OUT_OF_REACH, self.run.partial)

    def at_use(self, span: Span, box: Domain, rng: np.random.Generator) -> Span:
        """A part alone, where typical inputs outside the box see what it leaves out."""
        share = seen_from_typical_inputs(self.oracle, span.subspace, box, rng) if span.ok else None
        if not share:
            return replace(span, rows=self.run.spent())
        reason = Diagnosis("span-beyond-box", {"box": box.describe(), "share": share}, (SPAN_FROM_LABELS,))
        evidence = {**span.evidence, "seen at typical inputs": share}
        rows = self.run.spent()
        return replace(span, outcome=Outcome.SPAN_PARTIAL, rows=rows, evidence=evidence, angle=np.nan, reason=reason)

    def labels(self, rng: np.random.Generator, threshold: float | None) -> Span:
        ended = from_labels(self.oracle, self.inputs, rng, self.run.keep, threshold=threshold, reach=self.reach)
        return self.result(ended.outcome, ended.basis, ended.margin, ended.angle, ended.evidence, ended.typical)

    def result(
        self,
        outcome: Outcome,
        basis: FloatArray,
        margin: float = np.inf,
        angle: float = np.nan,
        evidence: Mapping[str, Any] = MappingProxyType({}),
        typical: float = 0.0,
    ) -> Span:
        spent = self.run.spent()
        rank = len(basis)
        if rank == 0 and outcome is Outcome.CONSTANT:
            margin, angle = 0.0, 0.0
        if outcome is Outcome.FULL_RANK:
            angle = 0.0
        left, reason = split_reason(outcome, evidence)
        reason = _of_labels(outcome, evidence) if reason is None else reason
        return Span(
            outcome, Subspace(basis), spent, margin, angle, self.run.stage, left,
            followed=self.reach * typical, domain=self.inputs.domain, reason=reason,
        )  # fmt: skip


def _of_labels(outcome: Outcome, evidence: Mapping[str, Any]) -> Diagnosis | None:
    """Why no boundary between labels could be followed; None where that was not asked."""
    changed = evidence.get("changed labels")
    if outcome is not Outcome.TOO_NOISY or changed is None:
        return None
    if changed:
        return Diagnosis("labels-changed", {"changed": changed}, (TRAIN,))
    return Diagnosis("labels-flicker", remedies=(TRAIN,))
