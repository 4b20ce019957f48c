"""What the health of a target allows: exact weights, few digits, a box in which probabilities do not saturate,
nothing.

These decisions ask nothing. The one exception is a look for the range that a target clips its inputs to, after a
run in all of space did not recover it: up to 1002 rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, TargetError
from reluctant.interface import Interface
from reluctant.interface.diagnoses import NOISIEST_READ, RECAST, TOO_COARSE, coarse_behind, digits, what_is_left
from reluctant.interface.interface import FAR_ENOUGH
from reluctant.interface.reach import clipped_range
from reluctant.oracles import Counting, Oracle
from reluctant.results import Outcome
from reluctant.verification.comparison import NOISE_FACTOR

__all__ = [
    "IN_A_BOX",
    "IN_STEPS",
    "WITH_FEW_DIGITS",
    "answered_far_out",
    "enough_inside_bounds",
    "evidence_of_clipping",
    "exact_refusal",
    "few_digits_are_enough",
    "has_noticeable_noise",
    "in_few_bits",
    "saturates",
    "seems_clipped",
    "shows_too_little",
    "too_few_digits",
    "what_extraction_would_do",
]

EXACT_TOLERANCE = 1e-6  # of the output's deviation: an exact network must be verifiable to this
NOTICED_NOISE = 1e-8  # of the output's deviation: from here on the method for few digits has the first attempt

IN_A_BOX = "Far out its answers saturate: extract looks by itself inside a box in which they do not."
WOULD_REFUSE = "Exact extraction would refuse this target."
IN_STEPS = f"The answers behind the link change in steps: they are rounded. {TOO_COARSE}"
WITH_FEW_DIGITS = (
    "Too few digits for exact extraction: extract takes its method for few digits by itself, which recovers one hidden "
    "layer as exactly as the answers are."
)


def exact_refusal(health: Interface) -> Outcome | None:
    """The outcome that exact extraction would end with at once, or None."""
    if health.refusal is not None:
        return health.refusal
    verifiable = NOISE_FACTOR * health.noise.at(health.spread) <= EXACT_TOLERANCE * health.spread
    if health.number_format != "float64" or not verifiable:
        return Outcome.LOW_PRECISION
    if health.largest_scale is not None and health.largest_scale < FAR_ENOUGH:
        return Outcome.OUT_OF_REACH
    return None


def has_noticeable_noise(health: Interface) -> bool:
    """True if there is noise that exact methods would be told of, but are not made for."""
    return (
        exact_refusal(health) is None and NOISE_FACTOR * health.noise.at(health.spread) > NOTICED_NOISE * health.spread
    )


def answered_far_out(health: Interface) -> bool:
    """True if the target gave finite answers far from the origin."""
    return health.largest_scale is not None and health.largest_scale >= FAR_ENOUGH


def saturates(health: Interface, oracle: Oracle) -> bool:
    """True if probabilities are what keeps a method from looking far out, and it could do with less."""
    refusal, facts = exact_refusal(health), oracle.facts
    near = refusal in (Outcome.OUT_OF_REACH, Outcome.NON_FINITE)
    may = near or (refusal is Outcome.LOW_PRECISION and not answered_far_out(health))
    return may and facts.saturates and facts.domain.is_space


def few_digits_are_enough(health: Interface, oracle: Oracle) -> bool:
    """True if the method for few digits can look: far out, or inside a box where enough of them are left."""
    if health.number_format == "float16":
        return False
    if oracle.facts.domain.is_space:
        return answered_far_out(health)
    return oracle.facts.domain.is_box and enough_inside_bounds(health)


def enough_inside_bounds(health: Interface) -> bool:
    """True if the method for few digits could read lines inside bounds."""
    return health.noise.at(health.spread) <= NOISIEST_READ * health.spread


def in_few_bits(health: Interface) -> bool:
    """True if probabilities behind a link have no more digits than a number format below float64 holds."""
    return health.behind is not None and health.behind.number_format != "float64"


def shows_too_little(outcome: Outcome, health: Interface) -> bool:
    """True if a box shows nothing for its place: next to certainty probabilities with all their digits lose them."""
    if health.behind is None or health.behind.decimals is not None or not health.deterministic:
        return False
    nothing = outcome in (Outcome.CONSTANT, Outcome.PIECEWISE_CONSTANT, Outcome.LOW_PRECISION)
    return nothing and not in_few_bits(health)


def what_extraction_would_do(health: Interface, oracle: Oracle) -> str:
    """A sentence where it would not look for exact weights: refuse the target, or do with few digits; else empty."""
    refusal = exact_refusal(health)
    if health.behind is not None and health.behind.too_coarse:
        return WOULD_REFUSE  # why is said of the answers
    noisy = health.behind is not None and not health.deterministic and health.refusal is None
    if saturates(health, oracle) or noisy:  # noise far out leaves some probabilities that are not 0 or 1
        return _inside_a_box(health)
    if refusal is None or health.refusal is not None:
        return ""
    if refusal is Outcome.LOW_PRECISION and few_digits_are_enough(health, oracle):
        return f"{WITH_FEW_DIGITS} {RECAST}" if health.more_digits else WITH_FEW_DIGITS
    why = too_few_digits(health, tried=False) if refusal is Outcome.LOW_PRECISION else str(refusal)
    return f"{WOULD_REFUSE} {why}"


def _inside_a_box(health: Interface) -> str:
    """Of probabilities that saturate far out: what extraction would do nearer to the origin."""
    assert health.behind is not None
    if health.behind.certain:
        return ""
    if health.noise.absolute > NOISIEST_READ * health.spread:
        return f"{WOULD_REFUSE} {too_few_digits(health, tried=False)}"
    return f"{IN_A_BOX} {RECAST}" if health.more_digits else IN_A_BOX


def too_few_digits(health: Interface, *, tried: bool) -> str:
    """Why a target ended with too few digits, whether the method for them was tried or not, and what can be done."""
    if health.behind is not None and health.behind.too_coarse:
        return coarse_behind(health)
    method = "the method for them, which recovers one hidden layer, did not succeed"
    failed = method if tried else "for the method for few digits"
    advice = RECAST if health.more_digits else what_is_left(health)
    return f"{digits(health)}: too few digits for exact extraction, and {failed}. {advice}"


HAPPENED = {Outcome.LOW_PRECISION: "The method for few digits did not succeed."}  # where it was tried


def evidence_of_clipping(
    oracle: Counting, health: Interface, outcome: Outcome, rng: np.random.Generator
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
    low, high = _range_text(box)
    use = f"Use extract inside: domain=({low}, {high}) (reluctant extract --domain={low},{high})."
    reason = f"{HAPPENED.get(outcome, outcome.happened)} {seems_clipped(box)} {use}"
    return {"clipped": (float(box.low), float(box.high)), "reason": reason}


def seems_clipped(box: Domain) -> str:
    """What a range that inputs seem to be clipped to means."""
    low, high = _range_text(box)
    return (
        f"Inputs seem to be clipped to [{low}, {high}]: farther out nothing changes, and what bends at these bounds is "
        "no neuron."
    )


def _range_text(box: Domain) -> tuple[str, str]:
    return f"{float(box.low):.10g}", f"{float(box.high):.10g}"
