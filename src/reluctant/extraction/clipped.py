"""What to say of a target that was not recovered in all of space because it clips its inputs."""

from __future__ import annotations

import numpy as np

from reluctant.errors import BudgetExhausted, TargetError
from reluctant.health import Health
from reluctant.health.clipping import clipped_range
from reluctant.oracles import Counting

__all__ = ["where_inputs_are_clipped"]


def where_inputs_are_clipped(oracle: Counting, health: Health, rng: np.random.Generator) -> str:
    """The range that inputs seem to be clipped to, and what to do; empty if there is none.

    Cost: nothing where answers change far out, or are those of a link that saturates; else up to 1002 rows. The stage
    that a run ended in stays what it was.
    """
    if health.constant_beyond is None or health.saturated or not oracle.facts.domain.is_space:
        return ""
    ended_in = oracle.ledger.last_stage
    try:
        box = clipped_range(oracle, health, rng)
    except (BudgetExhausted, TargetError):
        return ""  # it is only a word more
    finally:
        oracle.ledger.last_stage = ended_in
    if box is None:
        return ""
    low, high = (f"{float(bound):.10g}" for bound in (box.low, box.high))
    return (
        f"Inputs seem to be clipped to [{low}, {high}]: farther out nothing changes, and what bends at these bounds is "
        f"no neuron. Use extract inside: domain=({low}, {high}) (reluctant extract --domain={low},{high})."
    )
