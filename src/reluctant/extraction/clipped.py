"""Targets that were not recovered in all of space because they clip their inputs: the range, and what to say of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, TargetError
from reluctant.health import Health
from reluctant.health.clipping import clipped_range
from reluctant.oracles import Counting
from reluctant.results import Outcome

__all__ = ["evidence_of_clipping", "seems_clipped"]

HAPPENED = {Outcome.LOW_PRECISION: "The method for few digits did not succeed."}  # where it was tried


def evidence_of_clipping(
    oracle: Counting, health: Health, outcome: Outcome, rng: np.random.Generator
) -> dict[str, Any]:
    """Of a run that ended so: the range that inputs seem to be clipped to, and the reason; nothing if there is none.

    Cost: nothing where answers change far out, or are those of a link that saturates; else up to 1002 rows. The stage
    that a run ended in stays what it was.
    """
    if health.constant_beyond is None or health.saturated or not oracle.facts.domain.is_space:
        return {}
    ended_in = oracle.ledger.last_stage
    try:
        box = clipped_range(oracle, health, rng)
    except (BudgetExhausted, TargetError):
        return {}  # it is only a word more
    finally:
        oracle.ledger.last_stage = ended_in
    if box is None:
        return {}
    low, high = _bounds(box)
    use = f"Use extract inside: domain=({low}, {high}) (reluctant extract --domain={low},{high})."
    reason = f"{HAPPENED.get(outcome, outcome.happened)} {seems_clipped(box)} {use}"
    return {"clipped": (float(box.low), float(box.high)), "reason": reason}


def seems_clipped(box: Domain) -> str:
    """What a range that inputs seem to be clipped to means."""
    low, high = _bounds(box)
    return (
        f"Inputs seem to be clipped to [{low}, {high}]: farther out nothing changes, and what bends at these bounds is "
        "no neuron."
    )


def _bounds(box: Domain) -> tuple[str, str]:
    return f"{float(box.low):.10g}", f"{float(box.high):.10g}"
