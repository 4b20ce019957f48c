"""Prospects of an interface: which methods its digits, noise and range allow, and what `extract` would do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluctant.interface.diagnoses import FAR_ENOUGH, NOISIEST_READ, digits_limit, unreadable_values, what_is_left
from reluctant.interface.kinds import IntegerKind, Shape
from reluctant.messages import Diagnosis, Remedy
from reluctant.messages.catalogue import FLOAT64
from reluctant.numerics import DOUBLE
from reluctant.oracles.base import Facts, Kind
from reluctant.results import Outcome

if TYPE_CHECKING:
    from reluctant.interface.health import Interface

VERIFIABLE = 1e-6  # of the output's deviation: an exact network must be verifiable to this
WOULD_REFUSE = Diagnosis("would-refuse")


def answers_labels(health: Interface) -> bool:
    """True if the target answers labels, as numbers or as one 1 among 0s, wherever it is asked."""
    clear = health.answers is Kind.LABELS and health.integers in (None, IntegerKind.LABELS)
    return clear and health.shape is Shape.PIECEWISE_CONSTANT


def exact_refusal(health: Interface) -> Outcome | None:
    """The outcome that exact extraction would end with at once, or None."""
    if health.refusal is not None:
        return health.refusal
    verifiable = DOUBLE.deviations * health.noise.at(health.spread) <= VERIFIABLE * health.spread
    if health.number_format != "float64" or not verifiable:
        return Outcome.LOW_PRECISION
    if health.largest_scale is not None and health.largest_scale < FAR_ENOUGH:
        return Outcome.OUT_OF_REACH
    return None


def has_noticeable_noise(health: Interface) -> bool:
    """True if there is noise that exact methods can work with, but are not made for."""
    noticed_noise = 1e-8  # of the output's deviation: from here on the method for few digits has the first attempt
    noise = DOUBLE.deviations * health.noise.at(health.spread)
    return exact_refusal(health) is None and noise > noticed_noise * health.spread


def answered_far_out(health: Interface) -> bool:
    """True if the target gave finite answers far from the origin."""
    return health.largest_scale is not None and health.largest_scale >= FAR_ENOUGH


def saturates(health: Interface, facts: Facts) -> bool:
    """True if probabilities are what keeps a method from looking far out, and it could do with less."""
    refusal = exact_refusal(health)
    near = refusal in (Outcome.OUT_OF_REACH, Outcome.NON_FINITE)
    may = near or (refusal is Outcome.LOW_PRECISION and not answered_far_out(health))
    return may and facts.saturates and facts.domain.is_space


def few_digits_are_enough(health: Interface, facts: Facts) -> bool:
    """True if the method for few digits can look: far out, or inside a box where enough of them are left."""
    if health.number_format == "float16":
        return False
    if facts.domain.is_space:
        return answered_far_out(health)
    return facts.domain.is_box and enough_inside_bounds(health)


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


def extraction_prospects(health: Interface, facts: Facts) -> tuple[Diagnosis, ...]:
    """What `extract` would do; nothing where the diagnosis of the interface says why it refuses the target."""
    refusal = exact_refusal(health)
    if health.raw is not None and health.raw.too_coarse:
        fitted = health.raw.may_be_fitted(facts.outputs)
        return (Diagnosis("fits-probabilities") if fitted else WOULD_REFUSE,)  # the interface says why
    noisy = health.raw is not None and not health.deterministic and health.refusal is None
    if saturates(health, facts) or noisy:  # noise far out leaves some probabilities that are not 0 or 1
        assert health.raw is not None
        if health.raw.certain:
            return ()
        if health.noise.absolute > NOISIEST_READ * health.spread:
            return (WOULD_REFUSE, too_few_digits(health, tried=False))
        return (Diagnosis("inside-a-box", remedies=_more_digits(health)),)
    if answers_labels(health):
        return (Diagnosis("from-labels"),)
    if health.refusal is not None:
        return ()
    if refusal is None:
        return (Diagnosis("exact-weights"),)
    if refusal is not Outcome.LOW_PRECISION:
        return (WOULD_REFUSE, refusal.diagnosis)
    if few_digits_are_enough(health, facts):
        return (Diagnosis("with-few-digits", remedies=_more_digits(health)),)
    return (WOULD_REFUSE, too_few_digits(health, tried=False))


def _more_digits(health: Interface) -> tuple[Remedy, ...]:
    return (FLOAT64,) if health.more_digits else ()


def too_few_digits(health: Interface, *, tried: bool) -> Diagnosis:
    """Why a target ended with too few digits; tried: the method for few digits did not succeed."""
    if health.raw is not None and health.raw.too_coarse:
        return unreadable_values(health)
    fields = digits_limit(health) | {"tried": tried}
    return Diagnosis("too-few-digits", fields, _more_digits(health) or what_is_left(health))
