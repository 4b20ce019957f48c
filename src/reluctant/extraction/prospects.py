"""The prospects of extraction from the health of a target: exact weights, few digits, inside a box, or none.

These decisions ask nothing. The one exception is a look for the range that a target clips its inputs to, after a
run in all of space did not recover it: up to 1002 rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reluctant.domains import Domain
from reluctant.errors import BudgetExhausted, TargetError
from reluctant.interface import Interface
from reluctant.interface.diagnoses import FAR_ENOUGH, NOISIEST_READ, digits_limit, unreadable_values, what_is_left
from reluctant.interface.reach import clipped_range
from reluctant.messages import Diagnosis, Remedy
from reluctant.messages.catalogue import FLOAT64, SPAN_FROM_LABELS, TRAIN_WITHOUT_LINK
from reluctant.oracles import Counting, Oracle
from reluctant.results import Outcome
from reluctant.verification.comparison import NOISE_FACTOR

EXACT_TOLERANCE = 1e-6  # of the output's deviation: an exact network must be verifiable to this
NOTICED_NOISE = 1e-8  # of the output's deviation: from here on the method for few digits has the first attempt

IN_STEPS = Diagnosis("link-in-steps", remedies=(TRAIN_WITHOUT_LINK, SPAN_FROM_LABELS))
WOULD_REFUSE = Diagnosis("would-refuse")


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
    return health.raw is not None and health.raw.number_format != "float64"


def shows_too_little(outcome: Outcome, health: Interface) -> bool:
    """True if a box shows nothing for its place: next to certainty probabilities with all their digits lose them."""
    if health.raw is None or health.raw.decimals is not None or not health.deterministic:
        return False
    nothing = outcome in (Outcome.CONSTANT, Outcome.PIECEWISE_CONSTANT, Outcome.LOW_PRECISION)
    return nothing and not in_few_bits(health)


def what_extraction_would_do(health: Interface, oracle: Oracle) -> tuple[Diagnosis, ...]:
    """Where it would not look for exact weights: that it refuses the target, and why, or does with few digits."""
    refusal = exact_refusal(health)
    if health.raw is not None and health.raw.too_coarse:
        return (WOULD_REFUSE,)  # the interface says why
    noisy = health.raw is not None and not health.deterministic and health.refusal is None
    if saturates(health, oracle) or noisy:  # noise far out leaves some probabilities that are not 0 or 1
        return _inside_a_box(health)
    if refusal is None or health.refusal is not None:
        return ()
    if refusal is not Outcome.LOW_PRECISION:
        return (WOULD_REFUSE, refusal.diagnosis)
    if few_digits_are_enough(health, oracle):
        return (Diagnosis("with-few-digits", remedies=_more_digits(health)),)
    return (WOULD_REFUSE, too_few_digits(health, tried=False))


def _inside_a_box(health: Interface) -> tuple[Diagnosis, ...]:
    """Of probabilities that saturate far out: what extraction would do nearer to the origin."""
    assert health.raw is not None
    if health.raw.certain:
        return ()
    if health.noise.absolute > NOISIEST_READ * health.spread:
        return (WOULD_REFUSE, too_few_digits(health, tried=False))
    return (Diagnosis("inside-a-box", remedies=_more_digits(health)),)


def _more_digits(health: Interface) -> tuple[Remedy, ...]:
    return (FLOAT64,) if health.more_digits else ()


def too_few_digits(health: Interface, *, tried: bool) -> Diagnosis:
    """Why a target ended with too few digits; tried: the method for few digits did not succeed."""
    if health.raw is not None and health.raw.too_coarse:
        return unreadable_values(health)
    fields = digits_limit(health) | {"tried": tried}
    return Diagnosis("too-few-digits", fields, _more_digits(health) or what_is_left(health))


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
    reason = clipped_inputs(box, outcome)
    return {"clipped": (reason.fields["low"], reason.fields["high"]), "reason": reason}


def clipped_inputs(box: Domain, outcome: Outcome | None = None) -> Diagnosis:
    """Inputs that the target seems to clip: inside their bounds there is more to find."""
    low, high = float(box.low), float(box.high)
    ended = {} if outcome is None else {"outcome": outcome.slug}
    inside = Remedy("inside-range", "extract", {"domain": (low, high)})
    return Diagnosis("clipped-inputs", {"low": low, "high": high, **ended}, (inside,))


def seems_clipped(box: Domain) -> str:
    """What a range that inputs seem to be clipped to means."""
    return clipped_inputs(box).happened
