"""Why a target is refused, in words: one reason, by what was measured of it, and what can be done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluctant.health.answers import rounded_to
from reluctant.health.behind import ENOUGH_DECIMALS
from reluctant.oracles.base import Kind
from reluctant.results import Outcome

if TYPE_CHECKING:
    from reluctant.health.summary import Health

__all__ = [
    "NOISIEST_READ",
    "RECAST",
    "TOO_COARSE",
    "TRAIN",
    "TRAIN_OR_SPAN",
    "coarse_behind",
    "digits",
    "too_noisy",
    "why_refused",
]

NOISIEST_READ = 1e-6  # of the output's deviation: more noise hides what lines inside a box have to tell

TRAIN = "A network can be trained on them (rl.train_student, audit)."
TRAIN_OR_SPAN = (
    "A network can be trained on them (rl.train_student, audit), and the span can be taken from labels (labels=True, "
    "span --labels)."
)
RECAST = "Open the model in float64: precision='float64' (--precision float64)."
TOO_COARSE = (
    "The values before the link cannot be read from so few digits (link=, --link): log-ratios of such numbers change "
    "in steps, and are infinite where one is rounded to 0. A network can be trained on them, without the link "
    "(rl.train_student, audit), and the span can be taken from labels (labels=True, span --labels)."
)
COARSE = (
    "Without all digits extract may not recover the network through its link (reluctant extract --link {link}). One "
    "can be trained on them, without the link (rl.train_student, audit)."
)
TOO_NOISY_TO_READ = (
    "The values before the link cannot be read from them (link=, --link). A network can be trained on them, without "
    "the link (rl.train_student, audit)."
)
READ_THEM = (
    "Read them through their link, link='{link}' (reluctant extract --link {link}; span has it too): where they "
    "saturate, a box is found in which they do not."
)
READ_THEM_RECAST = (
    "Read them through their link, and open the model in float64, so that they have all their digits: link='{link}', "
    "precision='float64' (reluctant extract --link {link} --precision float64; span has both too)."
)
NOTHING_TO_READ = (
    "Every probability behind the link was exactly 0 or 1. Labels are like that, and no link can read them: leave it "
    "out (link='identity'). Where probabilities saturate, ask nearer to the origin (--domain LOW,HIGH)."
)
SOME_CERTAIN = (
    "Some probabilities behind the link are exactly 0 or 1 where they were asked, so that no value can be read from "
    "them. Ask nearer to the origin (--domain LOW,HIGH); extract looks for such a box by itself."
)
ENDS_AT_0_AND_1 = (
    "Far out they are 0 or 1: they may be probabilities of a sigmoid, which extract reads with link='sigmoid' "
    "(reluctant extract --link sigmoid) if they have the digits for it, or values that are clipped."
)
MAYBE_SIGMOIDS = (
    "They lie between 0 and 1: if each is the probability of a sigmoid, extract reads them through it, link='sigmoid' "
    "(reluctant extract --link sigmoid); if not, a network can be trained on them (rl.train_student, audit)."
)


def why_refused(health: Health) -> str:
    """Why an exact method cannot work on this target, and what can be done; empty if it can."""
    refusal, behind = health.refusal, health.behind
    if refusal in (Outcome.NOT_PIECEWISE_LINEAR, Outcome.TOO_NOISY) and health.are_probabilities:
        return _of_probabilities(health)
    if refusal is Outcome.NOT_PIECEWISE_LINEAR and health.may_be_sigmoids:
        return f"{refusal.happened} {MAYBE_SIGMOIDS}"
    if refusal is Outcome.PIECEWISE_CONSTANT and health.answers is Kind.LABELS:
        return f"The answers are labels, which do not change under small steps. {refusal.advice}"
    if refusal in (Outcome.NON_FINITE, Outcome.TOO_NOISY) and behind is not None and behind.too_coarse:
        return coarse_behind(health)
    if refusal is Outcome.NON_FINITE and behind is not None:
        return NOTHING_TO_READ if behind.certain else SOME_CERTAIN
    if refusal is Outcome.TOO_NOISY:
        return too_noisy(health)
    return str(refusal) if refusal else ""


def coarse_behind(health: Health) -> str:
    """Of probabilities behind a link that have too few digits for it."""
    return f"{digits(health)}. {RECAST if health.more_digits else TOO_COARSE}"


def too_noisy(health: Health) -> str:
    """Of answers whose digits are too few against their spread; labels of rounded ones do not flicker."""
    advice = TRAIN_OR_SPAN if health.deterministic else TRAIN
    return f"{digits(health)}: with a spread of {health.spread:.2g}, no structure can be seen. {advice}"


def digits(health: Health) -> str:
    """What limits the digits of the answers: decimals, noise or the number format, the coarsest of them."""
    behind = health.behind
    decimals, number_format = (
        (health.decimals, health.number_format) if behind is None else (behind.decimals, behind.number_format)
    )
    read = "The answers" if behind is None else "The values read through the link"
    if decimals is None and not health.deterministic:
        return f"{read} change by {health.fresh_noise:.1e} when they are asked for again"
    if decimals is None and number_format == "float64":
        return f"{read} have noise of {health.noise.absolute:.1e}"
    told = f"in {number_format}" if decimals is None else rounded_to(decimals)
    return f"{'The answers' if behind is None else 'The probabilities behind the link'} are {told}"


def _of_probabilities(health: Health) -> str:
    """Of answers that only a link explains: what can be read through it."""
    link = "softmax" if health.answers is Kind.PROBABILITIES else "sigmoid"
    told = "The answers are probabilities" + ("" if link == "softmax" else " of a sigmoid")
    if health.decimals is not None:
        said = TOO_COARSE if health.decimals < ENOUGH_DECIMALS else COARSE.format(link=link)
        return f"{told} {rounded_to(health.decimals)}. {said}"
    if health.number_format == "float16" and not health.more_digits:
        return f"{told} in float16. {TOO_COARSE}"
    noisy = health.noise.absolute > NOISIEST_READ * health.spread
    if noisy and (health.number_format == "float64" or not health.deterministic):
        return f"{told} with noise of {health.noise.absolute:.1e}. {TOO_NOISY_TO_READ}"
    if link == "sigmoid" and health.number_format != "float64" and not health.more_digits:
        return f"{told} in {health.number_format}. {COARSE.format(link=link)}"
    hidden = ", by less than their noise at small scale" if health.curves_hidden else ""
    read = READ_THEM_RECAST if health.more_digits and health.number_format != "float64" else READ_THEM
    return f"{told}, which are curved{hidden}. {read.format(link=link)}"
