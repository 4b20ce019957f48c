"""The first steps: what the interface gives, and which directions of its input the target looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reluctant.audit.known import Known, Skip, skip_where
from reluctant.errors import ReluctantError
from reluctant.health import Health, check_health
from reluctant.oracles import Counting, Kind, Linked, Selected
from reluctant.oracles.link import AnswerLink
from reluctant.results import Outcome
from reluctant.span import recover_span

__all__ = ["look_at_health", "look_for_span", "seen"]

FROM_LABELS = (Outcome.PIECEWISE_CONSTANT, Outcome.NOT_PIECEWISE_LINEAR, Outcome.OUT_OF_REACH)


def seen(oracle: Counting, link: AnswerLink, output: int | None) -> Counting:
    """The same target as it is looked at: its probabilities turned back into values, one output of many."""
    values = oracle.inner if link == "identity" else Linked(oracle.inner, link)
    chosen = values if output is None else Selected(values, output)
    return Counting(chosen, oracle.ledger, oracle.facts.domain)


def look_at_health(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """Check the interface as it answers, then as it is looked at: behind a link, or one output. Cost: 102 or 204 rows.

    Probabilities are read through their softmax also where nobody said so.
    """
    served, output = check_health(oracle, rng=seed), known.given.output
    if known.link != "identity" or output is not None:
        return {"served": served, "health": check_health(seen(oracle, known.link, output), rng=seed)}
    if served.answers is not Kind.PROBABILITIES:
        return {"served": served, "health": served}
    behind = _behind(oracle, seed)
    if behind is None or behind.refusal is not None:
        return {"served": served, "health": served}
    return {"served": served, "health": behind, "link": "softmax"}


def _behind(oracle: Counting, seed: int) -> Health | None:
    """Health of the values behind probabilities, None where they cannot be read."""
    try:
        return check_health(seen(oracle, "softmax", None), rng=seed)
    except ReluctantError:
        return None


def look_for_span(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """From values; from labels where values are no pieces of linear functions."""
    skip_where(known, Outcome.CONSTANT, Outcome.NON_FINITE)
    labels = known.refusal in FROM_LABELS
    if labels and oracle.outputs == 1 and known.health is not None and known.health.answers is not Kind.LABELS:
        raise Skip(f"{known.refusal} One output has no label to look at.")
    return {"span": recover_span(oracle, labels=labels, fine=False, rng=seed)}
