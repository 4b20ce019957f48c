"""The first steps: what the interface gives, and which directions of its input the target looks at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reluctant.audit.known import Known, Skip, skip_where
from reluctant.audit.owner import lacks
from reluctant.domains import Domain
from reluctant.errors import ReluctantError, TargetError
from reluctant.health import Health, check_health
from reluctant.health.reach import answered_box
from reluctant.health.summary import FAR_ENOUGH
from reluctant.numerics import as_generator
from reluctant.oracles import Counting, Kind, Linked, Selected
from reluctant.oracles.link import AnswerLink
from reluctant.results import Outcome
from reluctant.span import recover_span

__all__ = ["look_at_health", "look_for_span", "seen"]

FROM_LABELS = (Outcome.PIECEWISE_CONSTANT, Outcome.NOT_PIECEWISE_LINEAR, Outcome.OUT_OF_REACH)


def seen(oracle: Counting, link: AnswerLink, output: int | None, inside: Domain | None = None) -> Counting:
    """The same target as it is looked at: its probabilities turned back into values, one output of many, in a range."""
    values = oracle.inner if link == "identity" else Linked(oracle.inner, link)
    chosen = values if output is None else Selected(values, output)
    return Counting(chosen, oracle.ledger, oracle.facts.domain if inside is None else inside)


def look_at_health(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any]:
    """Check the interface as it answers, then as it is looked at: behind a link, or one output. Cost: 102 or 204 rows.

    Where it does not answer far out, a range is looked for in which it does, and checked again: from then on nothing is
    asked outside. Cost: at most 240 rows more, and the check.
    """
    try:
        found = _check(oracle, known, seed)
    except TargetError:
        inside = _check_inside(oracle, known, seed)
        if inside is None:
            raise
        return inside
    limited = oracle.facts.domain.is_space and _answers_near_alone(found["served"])
    return (_check_inside(oracle, known, seed) if limited else None) or found


def _answers_near_alone(served: Health) -> bool:
    """True if no method could look far enough."""
    near = served.largest_scale is not None and served.largest_scale < FAR_ENOUGH
    return near or served.refusal is Outcome.NON_FINITE


def _check_inside(oracle: Counting, known: Known, seed: int) -> Mapping[str, Any] | None:
    """The check inside the range that is answered; None where there is none."""
    links: tuple[AnswerLink, ...] = ("identity", "softmax") if known.link == "identity" else (known.link,)
    found: Mapping[str, Any] | None = None
    for link in links if oracle.facts.domain.is_space else ():
        box = answered_box(seen(oracle, link, known.given.output), as_generator(seed))
        if box is None:
            break
        inside = _check(seen(oracle, "identity", None, box), known, seed)
        found = inside | {"reach": box, "given": known.given.inside(box, seed)}
        if inside["served"].answers is not Kind.PROBABILITIES:
            break  # else once more: where a class is certain to the last digit there is no value behind it
    return found


def _check(oracle: Counting, known: Known, seed: int) -> dict[str, Any]:
    """Probabilities are read through their softmax also where nobody said so."""
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
    skip_where(known, Outcome.CONSTANT, Outcome.NON_FINITE, missing="no directions to tell apart")
    labels = known.refusal in FROM_LABELS
    if labels and oracle.outputs == 1 and known.health is not None and known.health.answers is not Kind.LABELS:
        raise Skip(f"{lacks(known.health, 'no span to take')} One output has no label to look at instead.")
    # Coarse directions of few digits do not pass verification, and finding them anew costs more.
    few = known.health is not None and known.health.number_format != "float64"
    return {"span": recover_span(oracle, labels=labels, fine=few, rng=seed)}
