"""The first steps: what the interface gives, and which directions of its input the target looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reluctant.audit.known import Known, Skip
from reluctant.errors import ReluctantError
from reluctant.health import Health, check_health
from reluctant.oracles import Counting, Kind, Linked
from reluctant.oracles.link import AnswerLink
from reluctant.results import Outcome
from reluctant.span import recover_span

__all__ = ["look_at_health", "look_for_span", "through"]

FROM_LABELS = (Outcome.PIECEWISE_CONSTANT, Outcome.NOT_PIECEWISE_LINEAR, Outcome.OUT_OF_REACH)


def through(oracle: Counting, link: AnswerLink) -> Counting:
    """The same target, its probabilities turned back into values."""
    if link == "identity":
        return oracle
    return Counting(Linked(oracle.inner, link), oracle.ledger, oracle.facts.domain)


def look_at_health(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """Check the interface; where it answers probabilities, check also what is behind them. Cost: 102 or 204 rows."""
    served = check_health(oracle, rng=seed)
    if served.answers is not Kind.PROBABILITIES:
        return {"served": served, "health": served}
    behind = _behind(oracle, seed)
    if behind is None or behind.refusal is not None:
        return {"served": served, "health": served}
    return {"served": served, "health": behind, "link": "softmax"}


def _behind(oracle: Counting, seed: int) -> Health | None:
    """Health of the values behind probabilities, None where they cannot be read."""
    try:
        return check_health(through(oracle, "softmax"), rng=seed)
    except ReluctantError:
        return None


def look_for_span(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """From values; from labels where values are no pieces of linear functions."""
    refusal = None if known.health is None else known.health.refusal
    if refusal in (Outcome.CONSTANT, Outcome.NON_FINITE):
        raise Skip(str(refusal))
    labels = refusal in FROM_LABELS
    if labels and oracle.outputs == 1 and known.health is not None and known.health.answers is not Kind.LABELS:
        raise Skip(f"{refusal} One output has no label to look at.")
    return {"span": recover_span(oracle, labels=labels, fine=False, rng=seed)}
