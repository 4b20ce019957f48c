"""How methods end, as the owner of a model reads it: what happened, and what the one who audits can do about it.

The advice of an outcome is for the one who asks a target that is not theirs to change. An owner is not told to ask for
values instead of labels, nor for options that an audit does not have.
"""

from __future__ import annotations

from collections.abc import Mapping

from reluctant.health import Health
from reluctant.oracles import Kind
from reluctant.results import Outcome

__all__ = ["GIVE_DOMAIN", "LABELS", "lacks", "reason", "told"]

GIVE_DOMAIN = "If it answers in some range only, give that: domain=(low, high) (--domain LOW,HIGH)."

# Where the outcome's own advice is of no use to an owner.
ADVICE: Mapping[Outcome, str] = {
    Outcome.NOT_ACCURATE: "",
    Outcome.UNVERIFIED: "Another seed (--seed) may settle it.",
    Outcome.SPAN_PARTIAL: "Another seed (--seed), or inputs of the model's own kind (--inputs), may settle it.",
    Outcome.RANK_UNCLEAR: "A local model can be opened with more digits: --precision float64.",
    Outcome.ONE_LABEL: "Give the domain of its inputs (--domain LOW,HIGH), or inputs of different labels (--inputs).",
    Outcome.NOT_PIECEWISE_LINEAR: "If it answers probabilities, say which: --link softmax or sigmoid.",
    Outcome.PIECEWISE_CONSTANT: "",
    Outcome.OUT_OF_REACH: GIVE_DOMAIN,
    Outcome.TOO_NOISY: "",
    Outcome.NOT_FLIPPED: "",
    Outcome.ON_BOUNDARY: "",
    Outcome.FLAT: "",
}

# What an interface gives where it is refused: said of each step that can do nothing with it.
GIVES: Mapping[Outcome, str] = {
    Outcome.CONSTANT: "Answers that are the same everywhere",
    Outcome.NON_FINITE: "Answers that are NaN or inf",
    Outcome.NOT_PIECEWISE_LINEAR: "Curved answers",
    Outcome.PIECEWISE_CONSTANT: "Answers that do not change under small steps",
    Outcome.TOO_NOISY: "Answers with so much noise",
}
LABELS = "Labels"
ARE_LABELS = "The answers are labels: they do not change under small steps."


def told(outcome: Outcome) -> str:
    """What happened, and what to do."""
    return f"{outcome.happened} {ADVICE.get(outcome, outcome.advice)}".strip()


def reason(health: Health) -> str:
    """Why an interface is refused, in a sentence; empty where it is not."""
    if health.refusal is None:
        return ""
    labels = health.refusal is Outcome.PIECEWISE_CONSTANT and health.answers is Kind.LABELS
    return ARE_LABELS if labels else health.refusal.happened


def lacks(health: Health, missing: str) -> str:
    """What a step misses in an interface that is refused: "Labels have no creases to find."."""
    labels = health.answers is Kind.LABELS and health.refusal is not Outcome.CONSTANT
    given = GIVES.get(health.refusal, "Such answers") if health.refusal is not None else "Such answers"
    return f"{LABELS if labels else given} have {missing}."
