"""Why there is no copy, or no exact one: how each step ended, and where more would be seen."""

from __future__ import annotations

from reluctant.audit.clipping import clipped_words
from reluctant.audit.known import OF_CREASES, Known
from reluctant.audit.leaks import open_steps
from reluctant.audit.owner import (
    GIVE_DOMAIN,
    GIVE_PERCENT,
    GIVE_SIGMOID,
    GIVE_TANH,
    MAY_BE_CLIPPED,
    MAYBE_ROUNDED,
    RARE,
    ROUNDED,
    UNEXPLAINED,
    UNEXPLAINED_INSIDE,
    coarse,
    happened,
    reason,
)
from reluctant.audit.recovered import accuracy_of
from reluctant.audit.stopped import STOPS, left_by_a_stop, listed
from reluctant.audit.taken import part_taken, perhaps_a_copy, trained_on
from reluctant.interface.whole_numbers import Whole
from reluctant.results import Ended, Outcome, Result

__all__ = ["elsewhere", "no_exact_one", "why_not"]

LONGEST_QUOTE = 300  # characters of what a target says
REBUILDING = ("health", "span", "extraction", "learning", "training")  # steps that say what can be taken


def why_not(known: Known) -> str:
    """Why there is no copy, and what else was left open."""
    stopped = left_by_a_stop(known, REBUILDING)
    if known.health is None:
        return stopped or known.said.get("health", "")
    told = [step for step in REBUILDING if known.states.get(step) not in STOPS and step not in known.short_of_rows]
    ended = [_how_it_ended(known, step) for step in ("extraction", "learning", "training") if step in told]
    ended += [_of_span(known, ended) for step in open_steps(known, "span") if step in told]
    ended += [f"The rows for {listed(known.short_of_rows)} ran out."] if known.short_of_rows else []
    more = (stopped, known.needed, *elsewhere(known))
    return " ".join(dict.fromkeys(said for said in (*ended, *more) if said))


def no_exact_one(known: Known) -> list[str]:
    """Beside a close copy: whether digits are what an exact one lacks."""
    run = known.extraction
    return [coarse(run)] if run is not None and run.outcome is Outcome.LOW_PRECISION else []


def elsewhere(known: Known) -> list[str]:
    """Where more would be seen: inside the range of clipped inputs, behind a link that nobody gave."""
    perhaps = [MAY_BE_CLIPPED] if known.may_be_clipped else []
    clipped = perhaps if known.clipped is None else [clipped_words(known.clipped)]
    clipped += [ROUNDED if known.whole is Whole.SCORES else MAYBE_ROUNDED] if known.perhaps_numbers else []
    percent = known.health is not None and known.health.percent
    give = GIVE_TANH if known.before_a_tanh else GIVE_PERCENT if percent else GIVE_SIGMOID
    ends = known.health is not None and known.health.constant_beyond is not None
    unexplained = UNEXPLAINED if ends else UNEXPLAINED_INSIDE
    return [*clipped, *([give] if known.unread else [unexplained] if known.unexplained else [])]


def _of_span(known: Known, before: list[str]) -> str:
    """Why directions are open: under their name, where no other step has the same reason."""
    said = _how_it_ended(known, "span")
    own = known.span is not None and bool(said) and said not in before
    return f"Directions it looks at: {said}" if own else said


def _how_it_ended(known: Known, step: str) -> str:
    if step == "training" and trained_on(known):
        return perhaps_a_copy(known)  # the rest is told before
    run: Ended | None = {
        "extraction": known.extraction, "learning": known.learning, "training": known.training, "span": known.span,
    }[step]  # fmt: skip
    if known.clipped is not None and step in OF_CREASES:
        return ""  # for a reason that is told of all of them
    if step in known.timed_out:
        return f"The time for {step} ran out."
    if run is not None:
        told = run.outcome is Outcome.PARTIAL and part_taken(known)
        said = coarse(run, known.health) or happened(run.outcome, saturates=known.linked)
        return "" if told else f"{said}{_more(known, run)}"
    if known.health is not None and known.refusal is not None:
        return RARE if known.changes else reason(known.health, saturates=known.linked)
    if known.settled(step):
        return known.said.get(step, "") if step == "extraction" else ""
    return f"{step.capitalize()} did not come to its end: {known.said.get(step) or 'it was not tried.'}"


def _more(known: Known, run: Ended) -> str:
    """What the target said itself, or what would help."""
    if run.outcome is Outcome.NOT_ACCURATE and isinstance(run, Result):
        typical = accuracy_of(run)["typical"]
        return "" if typical is None else f" The best one is off by {typical:.1e} of the output's deviation, rms."
    if run.outcome is Outcome.TARGET_FAILED and run.evidence.get("error"):
        return f" {str(run.evidence['error'])[:LONGEST_QUOTE]}"
    return f" {GIVE_DOMAIN}" if run.outcome is Outcome.OUT_OF_REACH and not known.linked else ""
