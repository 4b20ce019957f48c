"""The last resort: where nothing was rebuilt, a network is trained on the answers, in the span where it is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reluctant.audit.comparing import TO_REFERENCE
from reluctant.audit.known import Known, Skip, skip_where
from reluctant.audit.leak import narrow_basis
from reluctant.audit.shares import TRAINING
from reluctant.interface import Interface
from reluctant.interface.whole_numbers import Whole
from reluctant.learning.student import ROWS, STEPS, rows_like, train_student
from reluctant.numerics import as_generator
from reluctant.oracles import Counting, Kind
from reluctant.results import Outcome, Result

__all__ = ["train_network", "training_limits"]

LONGER = 2  # than in the sweep, where there is one for each defense
NOT_TRIED = (
    "Training another network on the answers was not tried; it may give a close copy where these methods do not."
)
ONE_RECIPE = (
    "Networks were trained on the answers by one recipe, small ones for seconds: larger ones, longer training or "
    "inputs like those of real users may do better."
)


def train_network(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """A student on the answers as they are, where there is no copy."""
    if known.copy is not None:
        raise Skip("copy-exists", "There is a copy already.")
    if known.health is None:
        raise Skip("interface-unknown", "Nothing is known of the interface.", settles=False)
    skip_where(known.as_answered, Outcome.CONSTANT, Outcome.NON_FINITE)
    rows = rows_like(known.given.inputs, oracle.facts.domain, ROWS, as_generator(seed).spawn(1)[0])
    seconds = TRAINING * known.given.seconds
    basis = narrow_basis(known.span)
    result = train_student(
        oracle, inputs=rows, span=basis, steps=LONGER * STEPS, seconds=seconds,
        whole=_whole(known.as_answered.health), rng=seed,
    )  # fmt: skip
    found = {"training": _as_seen(result, known)}
    hurried = "training" in result.evidence and result.evidence["training"].hurried
    return found | ({"timed_out": (*known.timed_out, "training")} if hurried and not result.ok else {})


def _whole(answered: Interface | None) -> Whole | None:
    """What whole numbers are; those that were seen to be values, among few answers, are so among many."""
    if answered is None:
        return None
    return Whole.SCORES if answered.answers is Kind.VALUES and answered.decimals == 0 else answered.whole


def training_limits(known: Known) -> str:
    """What can be said of training, in a sentence."""
    swept = known.sweep is not None and any(row.trained is not None for row in known.sweep.rows)
    return ONE_RECIPE if swept or known.training is not None else NOT_TRIED


def _as_seen(result: Result, known: Known) -> Result:
    """The student as other steps see the target: log-ratios behind a softmax; apart where they see no values."""
    reads = result.evidence.get("answers")
    as_they_are = known.link == "identity" or known.given.output is not None
    if result.network is None or (reads == Kind.VALUES.value and as_they_are):
        return result
    softmax = result.evidence.get("link") in TO_REFERENCE
    if reads == Kind.PROBABILITIES.value and known.link in TO_REFERENCE and softmax:
        return replace(result, network=result.network.log_ratios())
    if reads == Kind.PROBABILITIES.value and known.link == "sigmoid":
        return result
    own = result.evidence["link"] if reads == Kind.PROBABILITIES.value else "identity"
    return replace(result, evidence={**result.evidence, "own link": own})
