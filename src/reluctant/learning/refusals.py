"""What cannot be learned, by a health check: named, with the reason, before anything else is asked."""

from __future__ import annotations

from reluctant.extraction.prospects import answered_far_out, exact_refusal, too_few_digits
from reluctant.health import Health
from reluctant.health.words import coarse_behind
from reluctant.oracles.base import Kind
from reluctant.results import Outcome

__all__ = ["refusal_of", "unread_behind_link", "unreadable"]

SATURATED = (
    "Where learn looks, far out at the latest, answers saturate and no values can be read from them. Use "
    "extract, which looks by itself inside a box in which they do not (reluctant extract --link)."
)
FLAT = {Outcome.CONSTANT, Outcome.PIECEWISE_CONSTANT, Outcome.TOO_NOISY}  # as a bump looks from outside


def refusal_of(health: Health) -> Outcome | None:
    """Why a target cannot be learned, or None; what looks flat may have a bump."""
    labels = health.answers is Kind.LABELS and health.refusal is not Outcome.CONSTANT
    if health.refusal is not None and (health.refusal not in FLAT or labels):
        return health.refusal
    return Outcome.OUT_OF_REACH if exact_refusal(health) is Outcome.OUT_OF_REACH else None


def unread_behind_link(health: Health) -> tuple[Outcome, str] | None:
    """Why values that a link reads cannot be learned in all of space, or None."""
    if health.behind is not None and health.behind.too_coarse:
        return Outcome.LOW_PRECISION, coarse_behind(health)
    certain = health.refusal is Outcome.NON_FINITE and health.behind is not None and not health.behind.certain
    if not certain and (health.behind is None or health.refusal is not None or answered_far_out(health)):
        return None
    return unreadable(health)


def unreadable(health: Health) -> tuple[Outcome, str]:
    """Of values that a link cannot read everywhere: for noise, or because probabilities saturate."""
    if health.deterministic:
        return Outcome.OUT_OF_REACH, SATURATED
    return Outcome.LOW_PRECISION, too_few_digits(health, tried=False)
