"""Inputs that the target clips: what bends at their bounds is no neuron, and inside them there is more to find."""

from __future__ import annotations

from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, TargetError
from reluctant.health.clipping import clipped_range
from reluctant.numerics import as_generator
from reluctant.oracles import Counting
from reluctant.results import Outcome, Result

__all__ = ["clipped_to", "clipped_words"]

LED_ASTRAY = (Outcome.PARTIAL, Outcome.UNVERIFIED)  # endings that bounds may be the reason of; they hide no digits


def clipped_to(oracle: Counting, run: Result, seed: int) -> Domain | None:
    """The range that inputs seem to be clipped to, where extraction failed for that; else None.

    Cost: nothing where answers change far out; else up to 1002 rows.
    """
    health = run.evidence.get("health")
    if run.outcome not in LED_ASTRAY or health is None or health.constant_beyond is None:
        return None
    if health.saturated or not oracle.facts.domain.is_space:
        return None
    try:
        return clipped_range(oracle, health, as_generator(seed).spawn(1)[0])
    except (BudgetExhausted, TargetError):
        return None  # the outcome of extraction stands for itself


def clipped_words(box: Domain) -> str:
    """What that means for an audit, and the option that helps."""
    low, high = (f"{float(bound):.10g}" for bound in (box.low, box.high))
    return (
        f"Inputs seem to be clipped to [{low}, {high}]: farther out nothing changes, and what bends at these bounds is "
        f"no neuron. Run the audit inside: --domain={low},{high}."
    )
