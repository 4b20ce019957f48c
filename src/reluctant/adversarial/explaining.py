"""Why nothing flipped, where the answers tell: labels, few digits, noise, probabilities that are not read as such."""

from __future__ import annotations

import numpy as np

from reluctant.adversarial.search import Search, in_words
from reluctant.adversarial.sources import Queried
from reluctant.adversarial.units import own_threshold
from reluctant.health.answers import (
    answer_kind,
    find_decimals,
    format_noise,
    in_unit,
    is_one_hot,
    narrowest_format,
    rounded_to,
)
from reluctant.numerics import FloatArray
from reluctant.oracles import Facts, Kind, Oracle
from reluctant.oracles.link import link_of
from reluctant.results import Outcome

__all__ = ["CONSTANT", "explained", "look_like_labels", "of_labels", "without_link"]

CERTAIN = 1e-3  # a probability that far from 0 or 1 is one of a class that is certain
ON_A_COPY = (
    "The step can be found on a network that was recovered from them, or trained on them (rl.train_student), "
    "network= (flip --network)."
)
LABELS = f"{Outcome.PIECEWISE_CONSTANT.happened} They have no gradient. {ON_A_COPY}"
PERHAPS_NUMBERS = "If they are numbers, say where they change side, threshold= (--threshold)."
CONSTANT = f"{Outcome.CONSTANT} If it answers labels: {ON_A_COPY[0].lower()}{ON_A_COPY[1:]}"
OF_CERTAIN = f"The target does not change around this input, as answers do not that are certain. {ON_A_COPY}"
WITHIN_NOISE = "On the way from this input answers come no farther beyond the boundary than their noise or rounding."
CHANCES = (
    "The answers lie between 0 and 1: if they are probabilities, one half is the boundary, threshold=0.5 "
    "(--threshold 0.5), or read them through their link, link='sigmoid' (--link sigmoid)."
)
AT_ZERO = "One output that does not change side at 0 has a threshold of its own, threshold= (--threshold)."
UNREADABLE = (
    "A probability is exactly 0 or 1 where it was asked, and its link cannot read it. Without the link one half is the "
    "boundary, threshold=0.5 (--threshold 0.5)."
)
UNREADABLE_TANH = (
    "An answer is exactly -1 or 1 where it was asked, and its link cannot read it. Without the link 0 is the boundary."
)
CLASSES = "The answers look like probabilities: read them through their link, link='softmax' (--link softmax)."


def look_like_labels(answers: FloatArray, kind: Kind, *, still: bool) -> bool:
    """True of labels, and of whole numbers that look like them; still: they did not change under small steps."""
    if kind is Kind.LABELS or is_one_hot(answers):
        return True
    whole = answers.shape[1] == 1 and np.array_equal(answers, np.round(answers)) and (answers.min() >= 0 or still)
    return bool(whole and (still or find_decimals(answers) is None))


def of_labels(answers: FloatArray) -> str:
    """What is said of labels (n, m), which may be numbers where there is one of them."""
    return f"{LABELS} {PERHAPS_NUMBERS}" if answers.shape[1] == 1 else LABELS


def explained(search: Search, source: Queried, answers: FloatArray, steps: int, threshold: float | None) -> Search:
    """Say what the answers (n, m) look like, where that is why nothing flipped."""
    if search.outcome is Outcome.FLAT:
        return _without_gradient(search, source, answers)
    if search.outcome is not Outcome.NOT_FLIPPED:
        return search
    happened, advice = in_words(search.outcome, steps)
    unread = _unread(answers, source.oracle.facts, threshold)
    if unread:
        return search.because(f"{happened} {unread}")
    if source.probe.coarse and search.evidence["smallest margin"] <= source.least:
        return search.because(f"{WITHIN_NOISE} {_digits(source, answers)}. {advice}", Outcome.TOO_NOISY)
    facts = source.oracle.facts
    at_zero = facts.outputs == 1 and not facts.saturates and own_threshold(threshold, facts) == 0
    return search.because(f"{happened} {advice} {AT_ZERO if at_zero else ''}".strip())


def without_link(oracle: Oracle) -> dict[str, str]:
    """The reason where one answer is at its end, exactly, so that its link has nothing to read."""
    facts, reason = oracle.facts, UNREADABLE_TANH if link_of(oracle) == "tanh" else UNREADABLE
    return {"reason": reason} if facts.saturates and not facts.reference and facts.outputs == 1 else {}


def _without_gradient(search: Search, source: Queried, answers: FloatArray) -> Search:
    """Labels, too few digits for one, or none there."""
    if look_like_labels(answers, source.oracle.facts.kind, still=source.probe.still):
        return search.because(of_labels(answers), Outcome.PIECEWISE_CONSTANT)
    certain = _are_certain(source.values)
    if not certain and (source.probe.coarse or find_decimals(answers) is not None):
        digits = _digits(source, answers)
        return search.because(f"{digits}: not enough for a gradient here. {ON_A_COPY}", Outcome.TOO_NOISY)
    return search.because(OF_CERTAIN) if certain else search


def _are_certain(p: FloatArray) -> bool:
    return in_unit(p) and bool((np.minimum(p, 1 - p) < CERTAIN).all())


def _unread(answers: FloatArray, facts: Facts, threshold: float | None) -> str:
    """How probabilities could be read that were taken for values; empty where they are none."""
    if facts.saturates or own_threshold(threshold, facts):
        return ""
    if answers.shape[1] == 1:
        return CHANCES if in_unit(answers) else ""
    return CLASSES if answer_kind(answers) is Kind.PROBABILITIES else ""


def _digits(source: Queried, answers: FloatArray) -> str:
    """What limits the digits of the answers."""
    behind = source.behind
    if behind is not None and behind.noise:
        return f"The {behind.noun} behind the link are {behind.told}"
    decimals = find_decimals(answers)
    if decimals is not None:
        return f"The answers are {rounded_to(decimals)}"
    if source.sd <= 2 * format_noise(answers) * float(np.abs(answers).max()):
        return f"The answers are in {narrowest_format(answers)}"
    return f"The answers have noise of {source.sd:.1e}"
