"""How methods end, as the owner of a model reads it: what happened, and what the one who audits can do about it.

The advice of an outcome is for the one who asks a target that is not theirs to change. An owner is not told to ask for
values instead of labels, nor for options that an audit does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reluctant.audit.closeness import is_near
from reluctant.audit.directions import MORE
from reluctant.audit.settling import is_unlucky
from reluctant.interface import Interface
from reluctant.interface.diagnoses import IN_STEPS, MAYBE_WHOLE, NOISIEST_READ, RECAST, SAME_NEAR, digits
from reluctant.interface.digits import ENOUGH_DECIMALS, rounded_to
from reluctant.interface.whole_numbers import Whole
from reluctant.oracles import Kind
from reluctant.results import Ended, Outcome

__all__ = [
    "GIVE_DOMAIN",
    "GIVE_PERCENT",
    "GIVE_SIGMOID",
    "GIVE_TANH",
    "MAYBE_ROUNDED",
    "MAY_BE_CLIPPED",
    "RARE",
    "ROUNDED",
    "UNEXPLAINED",
    "UNEXPLAINED_INSIDE",
    "coarse",
    "happened",
    "lacks",
    "reason",
    "refused_interface",
    "told",
    "told_of",
]

GIVE_DOMAIN = "If it answers in some range only, give that: domain=(low, high) (--domain LOW,HIGH)."
GIVE_RANGE = "Give the range of inputs that it expects: domain=(low, high) (--domain LOW,HIGH)."
OTHERS = "others, if there are any, are rare or elsewhere."
ALL_THE_SAME = f"The target gave the same answer everywhere it was asked at first: {OTHERS}"

# Where the outcome's own advice is of no use to an owner.
ADVICE: Mapping[Outcome, str] = {
    Outcome.NOT_ACCURATE: "",
    Outcome.OUT_OF_BUDGET: "Raise the budget (--budget), which steps share; with a transcript nothing is paid twice.",
    Outcome.UNVERIFIED: "Another seed (--seed) may settle it.",
    Outcome.SPAN_PARTIAL: "Another seed (--seed), or the range of its inputs (--domain LOW,HIGH), may settle it.",
    Outcome.LOW_PRECISION: "",
    Outcome.RANK_UNCLEAR: "",
    Outcome.CONSTANT: GIVE_RANGE,
    Outcome.ONE_LABEL: GIVE_RANGE,
    Outcome.NOT_PIECEWISE_LINEAR: "If a softmax, sigmoid or tanh made its answers, say which: --link.",
    Outcome.PIECEWISE_CONSTANT: "",
    Outcome.OUT_OF_REACH: GIVE_DOMAIN,
    Outcome.TOO_NOISY: "",
    Outcome.NOT_FLIPPED: "",
    Outcome.ON_BOUNDARY: "",
    Outcome.FLAT: "",
}

OF_DIGITS = (Outcome.LOW_PRECISION, Outcome.RANK_UNCLEAR)  # outcomes that more digits would change

# What an interface gives where it is refused: said of each step that can do nothing with it.
GIVES: Mapping[Outcome, str] = {
    Outcome.CONSTANT: "First answers that are all the same",
    Outcome.NON_FINITE: "Answers that are NaN or inf",
    Outcome.NOT_PIECEWISE_LINEAR: "Curved answers",
    Outcome.PIECEWISE_CONSTANT: "Answers that do not change under small steps",
    Outcome.TOO_NOISY: "Answers with so much noise",
}
GIVE_SIGMOID = (
    "The answers lie between 0 and 1: if each is the probability of a sigmoid, give --link sigmoid, and the values "
    "before it are looked at."
)
GIVE_PERCENT = (
    "The answers lie between 0 and 100: if each is the probability of a sigmoid in percent, give --percent --link "
    "sigmoid, and the values before it are looked at."
)
GIVE_TANH = "The answers are those of a tanh: give --link tanh, and the values before it are looked at."
MAYBE_ROUNDED = (
    "Its answers are whole numbers, which may be rounded values as well as numbers of classes: what methods for values "
    "would find with more digits is left open."
)
ROUNDED = (
    "Its answers are whole numbers that change in order, as rounded values do, or levels of a score: what methods for "
    "values would find with more digits is left open."
)
MAY_BE_CLIPPED = (
    "Far out its answers no longer change, as if inputs or answers were clipped: give the range of its inputs "
    "(--domain LOW,HIGH), and nothing is asked outside."
)
UNEXPLAINED = (
    "They end far out, as if something stood after the values that no link was seen to undo. If it is a tanh, give "
    "--link tanh; if they are probabilities in another form, audit them as numbers between 0 and 1, one for each class."
)
UNEXPLAINED_INSIDE = (
    "They are curved in this range, by smooth neurons, or by something after the values that no link was seen to undo: "
    "give the values before it, if you have them."
)
LABELS = "Labels"
MAYBE_LABELS = "Whole numbers that may be labels"
ALIKE = "Answers that are nearly all alike"
RARE = (
    "The first look saw the same answer everywhere; others are rare, and came later. Another seed (--seed), or the "
    "range of its inputs (--domain LOW,HIGH), may settle it."
)
ARE_LABELS = "The answers are labels: they do not change under small steps."


# What happened as a step of an audit tells it: what it has of the budget is a share of it.
OF_A_STEP: Mapping[Outcome, str] = {
    Outcome.CONSTANT: f"A step met the same answer everywhere it asked: {OTHERS}",
    Outcome.ONE_LABEL: f"A step met the same label everywhere it asked: {OTHERS}",
    Outcome.OUT_OF_BUDGET: "Its share of the query budget ran out.",
    Outcome.NOT_ACCURATE: "No network was learned that is accurate enough.",
    Outcome.FLAT: (
        "Around this input the target does not change by more than its noise or rounding, so there is no gradient to "
        "follow."
    ),
}

# Where a link reads answers, it is their values that end.
SATURATED: Mapping[Outcome, str] = {
    Outcome.OUT_OF_REACH: (
        "Far from the origin, where creases have to be looked for, its answers are certain, to the last digit or "
        "in their noise: no value can be read there."
    ),
    Outcome.NON_FINITE: (
        "Where it was asked some of its answers are certain, to the last digit or in their noise: no value can be read "
        "there."
    ),
}
CERTAIN = "Answers that are certain, to the last digit or in their noise,"
A_COPY = "A network was trained on the answers that is close enough to be called a copy."
NO_COPY = "A network was trained on the answers; it is not close enough to be called a copy."
PERHAPS_A_COPY = (
    "A network was trained on the answers that is close enough to be called a copy as measured, and may not be by "
    "chance. Another seed (--seed) may settle it."
)
ON_FEWER = (
    "Its share of the query budget ran out: a network was trained on the answers there were. It is not close enough to "
    "be called a copy."
)
WITH_THE_COPY = (
    "Random inputs showed all directions but {}, known from the recovered network: few inputs show that they count."
)


def happened(outcome: Outcome, *, saturates: bool = False) -> str:
    """What happened; saturates: values were read from answers through a link."""
    said = OF_A_STEP.get(outcome, outcome.happened)
    return SATURATED.get(outcome, said) if saturates else said


def told(outcome: Outcome, *, saturates: bool = False) -> str:
    """What happened, and what to do."""
    said = happened(outcome, saturates=saturates)
    advice = "" if saturates and outcome in SATURATED else ADVICE.get(outcome, outcome.advice)
    return f"{said} {advice}".strip()


def told_of(run: Ended, interface: Interface | None = None, *, saturates: bool = False) -> str:
    """The same of a run: a network that was trained is one, whether it is a copy or not."""
    trained = "training" in run.evidence
    if trained and run.outcome is Outcome.LEARNED:
        return A_COPY
    if trained and run.outcome is Outcome.NOT_ACCURATE:
        return PERHAPS_A_COPY if is_near(run) else NO_COPY
    if trained and run.outcome is Outcome.OUT_OF_BUDGET:
        return ON_FEWER
    if MORE in run.evidence:
        return WITH_THE_COPY.format(run.evidence[MORE])
    said, health = coarse(run, interface) or told(run.outcome, saturates=saturates), run.evidence.get("health")
    more_digits = run.outcome in OF_DIGITS and health is not None and health.more_digits
    return f"{said} {RECAST}" if more_digits else said


def coarse(run: Ended, interface: Interface | None = None) -> str:
    """Why answers with few digits gave nothing, refused or tried; empty where it was not that.

    interface: its numbers are told where it is refused for the same, so that they are the same of every step.
    """
    if is_unlucky(run):
        return UNLUCKY
    health = run.evidence.get("health")
    if run.outcome is Outcome.TOO_NOISY and health is not None:
        refused = interface is not None and interface.refusal is Outcome.TOO_NOISY
        return _too_much(interface if interface is not None and refused else health)
    if run.outcome is not Outcome.LOW_PRECISION or health is None:
        return ""
    if health.behind is not None and health.behind.too_coarse:
        return f"Its {health.behind.noun} are {health.behind.told}: {UNREADABLE}"
    return f"{digits(health)}: {REFUSED}{_inside_bounds(health)}."


UNLUCKY = (
    "The answers carry too few digits for exact extraction, and the method for few digits did not succeed. Another "
    "seed (--seed) may settle it."
)
REFUSED = "too few digits for exact extraction, and for the method for few digits"
UNREADABLE = "the values before the link cannot be read from so few digits."


def _inside_bounds(health: Interface) -> str:
    """Where nothing is asked far out: how little noise lines inside bounds are read with, and how much there is."""
    noise = health.noise.at(health.spread) / health.spread if health.spread > 0 else 0.0
    if health.largest_scale is not None or noise <= NOISIEST_READ:
        return ""
    return f" (inside bounds that takes noise of at most {NOISIEST_READ:.0e} of their deviation; this is {noise:.1e})"


def _too_much(health: Interface) -> str:
    """What hides the structure of answers: noise, or few decimals; empty where it is neither."""
    if not health.deterministic:
        return f"Its answers have noise of {health.fresh_noise:.1e}, too much against their spread to see structure."
    if health.decimals is None:
        return ""
    return f"Its answers are {rounded_to(health.decimals)}: too coarse against their spread to see structure."


def reason(health: Interface, *, saturates: bool = False) -> str:
    """Why an interface is refused, in a sentence; empty where it is not."""
    if health.refusal is None:
        return ""
    if health.refusal is Outcome.PIECEWISE_CONSTANT and health.answers is Kind.LABELS:
        return MAYBE_WHOLE if health.whole is Whole.UNTOLD else ARE_LABELS
    if health.in_steps:
        return IN_STEPS
    if health.refusal is Outcome.CONSTANT:
        return SAME_NEAR if health.others_far else f"{ALL_THE_SAME} {GIVE_RANGE}"
    of_a_link = health.refusal is Outcome.NOT_PIECEWISE_LINEAR and health.are_of_a_link
    if of_a_link and health.decimals is not None and health.decimals < ENOUGH_DECIMALS:
        return f"Its {health.noun} are {rounded_to(health.decimals)}: {UNREADABLE}"
    rounded = _too_much(health) if health.refusal is Outcome.TOO_NOISY else ""
    return rounded or happened(health.refusal, saturates=saturates)


def refused_interface(health: Interface, *, saturates: bool = False, changes: bool = False) -> dict[str, Any]:
    """What an interface gives that a step can do nothing with, as fields: a slug under "gives", and its digits."""
    if changes:
        return {"gives": "alike"}
    if saturates and health.refusal is Outcome.NON_FINITE:
        return {"gives": "certain"}
    if health.answers is Kind.LABELS and health.refusal is not Outcome.CONSTANT:
        return {"gives": "labels-or-numbers" if health.whole is Whole.UNTOLD else "labels"}
    if health.refusal is Outcome.TOO_NOISY and health.deterministic:
        return {"gives": "coarse", "decimals": health.decimals}
    if health.refusal is Outcome.NOT_PIECEWISE_LINEAR and health.are_of_a_link and health.decimals is not None:
        return {"gives": "rounded-link", "noun": health.noun, "decimals": health.decimals}
    return {"gives": "nothing" if health.refusal is None else health.refusal.slug}


def lacks(health: Interface, missing: str, *, saturates: bool = False, changes: bool = False) -> str:
    """What a step misses in an interface that is refused: "Labels have no creases to find."."""
    if changes:
        return f"{ALIKE} have {missing}."
    if saturates and health.refusal is Outcome.NON_FINITE:
        return f"{CERTAIN} have {missing}."
    if health.answers is Kind.LABELS and health.refusal is not Outcome.CONSTANT:
        given = MAYBE_LABELS if health.whole is Whole.UNTOLD else LABELS
    elif health.refusal is Outcome.TOO_NOISY and health.deterministic:
        given = "Answers so coarse"
    elif health.refusal is Outcome.NOT_PIECEWISE_LINEAR and health.are_of_a_link and health.decimals is not None:
        given = f"{health.noun.capitalize()} {rounded_to(health.decimals)}"
    else:
        given = GIVES.get(health.refusal, "Such answers") if health.refusal is not None else "Such answers"
    return f"{given} have {missing}."
