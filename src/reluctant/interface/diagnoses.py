"""Why a target is refused, in words: one reason, by what was measured of it, and what can be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reluctant.interface.digits import ENOUGH_DECIMALS, rounded_to
from reluctant.interface.whole_numbers import Whole
from reluctant.networks.network import ELEMENTWISE_LINKS
from reluctant.oracles.base import Kind
from reluctant.oracles.links import PERCENT, AnswerLink
from reluctant.results import Outcome

if TYPE_CHECKING:
    from reluctant.interface.interface import Interface

__all__ = [
    "AS_A_CLASS",
    "IN_ORDER",
    "IN_STEPS",
    "LABELS_OR_ROUNDED",
    "MAYBE_WHOLE",
    "NOISIEST_READ",
    "OTHER_ANSWERS",
    "RECAST",
    "SAME_NEAR",
    "STEPWISE",
    "TOO_COARSE",
    "TRAIN",
    "beside_values",
    "class_numbers",
    "coarse_behind",
    "digits",
    "ends_at_0_and_1",
    "likeness",
    "too_noisy",
    "what_is_left",
    "why_refused",
]

PERCENT_DECIMALS = 2  # that a percentage has fewer than the fraction
NOISIEST_READ = 1e-6  # of the output's deviation: more noise hides what lines inside a box have to tell

TRAIN = "A network can be trained on them (rl.train_student, audit)."
TRAIN_UNLINKED = "A network can be trained on them, without the link (rl.train_student, audit)."
NO_WEIGHTS = "No weights and no gradients can be read from them."
SPAN = "The span can be taken from labels (labels=True, span --labels)."
RECAST = "Open the model in float64: precision='float64' (--precision float64)."
TOO_COARSE = (
    "The values before the link cannot be read from so few digits (link=, --link): what such numbers lead to changes "
    f"in steps, and is infinite where rounding leaves one certain. {TRAIN_UNLINKED} {SPAN}"
)
COARSE = (
    "Without all digits extract may not recover the network through its link (reluctant extract {options}). One can be "
    "trained on them, without the link (rl.train_student, audit)."
)
TOO_NOISY_TO_READ = f"The values before the link cannot be read from them (link=, --link). {TRAIN_UNLINKED}"
READ_THEM = (
    "Read them through their link, {keywords} (reluctant extract {options}; span has it too): where they saturate, a "
    "box is found in which they do not."
)
READ_THEM_RECAST = (
    "Read them through their link, and open the model in float64, so that they have all their digits: {keywords}, "
    "precision='float64' (reluctant extract {options} --precision float64; span has both too)."
)
NOTHING_TO_READ = (
    "All {noun} behind the link were exactly {ends}. Labels are like that, and no link can read them: leave it out "
    "(link='identity'). Where {noun} saturate, ask nearer to the origin (--domain LOW,HIGH)."
)
SOME_CERTAIN = (
    "Some {noun} behind the link are exactly {ends} where they were asked, so that no value can be read from "
    "them. Ask nearer to the origin (--domain LOW,HIGH); extract looks for such a box by itself."
)
ENDS_AT_0_AND_1 = (
    "Far out they are 0 or {top}: they may be probabilities of a sigmoid{unit}, which extract reads with {keywords} "
    "(reluctant extract {options}) if they have the digits for it, or values that are clipped."
)
MAYBE_SIGMOIDS = (
    "They lie between 0 and {top}: if each is the probability of a sigmoid{unit}, extract reads them through it, "
    "{keywords} (reluctant extract {options}); if not, a network can be trained on them (rl.train_student, audit)."
)
TOO_FEW_TOLD = (
    "Where more than one is missing no value can be read from the others (link='top-k', --link top-k). A network can "
    "be trained on them, without the link (rl.train_student, audit)."
)
LABELS_OR_ROUNDED = "labels, or values rounded to whole numbers"
MAYBE_WHOLE = (
    "The answers are whole numbers, which do not change under small steps: numbers of classes, or rounded values. It "
    "cannot be told which."
)
SAME_NEAR = (
    "The target gave the same answer everywhere near the origin, and others far out. Methods here begin near it: give "
    "the range of inputs that it expects (domain=, --domain LOW,HIGH)."
)
AS_A_CLASS = "whole numbers, as the number of a class is, or a count"
OTHER_ANSWERS = "answers of another kind"
STEPWISE = "that change in steps"
IN_STEPS = (
    "The answers are piecewise constant: they change in steps, as those of trees do, and quantised numbers, or answers "
    "to inputs that are rounded. Methods here read no weights and no gradients from them."
)
IN_ORDER = "The answers are whole numbers that change in order: rounded values, or levels of a score."
UNTOLD_IS_NAN = (
    "The answers look like {likeness} (NaN). audit reads that as 0; for all else let the target answer 0 there."
)


def why_refused(health: Interface) -> str:
    """Why an exact method cannot work on this target, and what can be done; empty if it can."""
    refusal, behind = health.refusal, health.behind
    if refusal is Outcome.CONSTANT and health.others_far:
        return SAME_NEAR
    if refusal in (Outcome.NOT_PIECEWISE_LINEAR, Outcome.TOO_NOISY) and health.are_of_a_link:
        return _of_a_link(health)
    if refusal is Outcome.NOT_PIECEWISE_LINEAR and health.may_be_sigmoids and not health.curved_odds:
        return f"{refusal.happened} {_filled(MAYBE_SIGMOIDS, health)}"
    if refusal is Outcome.NON_FINITE and health.told is not None:
        return UNTOLD_IS_NAN.format(likeness=likeness(health))
    if refusal is Outcome.PIECEWISE_CONSTANT and health.answers is Kind.LABELS:
        are_labels = "The answers are labels, which do not change under small steps."
        return f"{MAYBE_WHOLE if health.whole is Whole.UNTOLD else are_labels} {NO_WEIGHTS} {TRAIN} {SPAN}"
    if refusal is Outcome.PIECEWISE_CONSTANT and health.in_steps:
        return f"{IN_STEPS} {what_is_left(health)}"
    if refusal in (Outcome.NON_FINITE, Outcome.TOO_NOISY) and behind is not None and behind.too_coarse:
        return coarse_behind(health)
    if refusal is Outcome.NON_FINITE and behind is not None:
        return (NOTHING_TO_READ if behind.certain else SOME_CERTAIN).format(noun=behind.noun, ends=behind.ends())
    if refusal is Outcome.TOO_NOISY:
        return too_noisy(health)
    return str(refusal) if refusal else ""


def coarse_behind(health: Interface) -> str:
    """Of probabilities behind a link that have too few digits for it."""
    return f"{digits(health)}. {RECAST if health.more_digits else TOO_COARSE}"


def too_noisy(health: Interface) -> str:
    """Of answers whose digits are too few against their spread."""
    return f"{digits(health)}: with a spread of {health.spread:.2g}, no structure can be seen. {what_is_left(health)}"


def what_is_left(health: Interface) -> str:
    """What can be done with answers that no exact method reads; labels of those with noise flicker."""
    train = TRAIN if health.behind is None else TRAIN_UNLINKED
    return f"{train} {SPAN}" if health.deterministic else train


def digits(health: Interface) -> str:
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
    return f"{'The answers' if behind is None else f'The {behind.noun} behind the link'} are {told}"


def likeness(health: Interface) -> str:
    """What answers look like: values, of a tanh, labels, or probabilities, all or the largest, in percent or not."""
    if health.tanh:
        return "values of a tanh"
    if health.answers is Kind.LABELS and health.whole is Whole.UNTOLD:
        return LABELS_OR_ROUNDED
    if health.told is None:
        sigmoid = health.are_probabilities and _link(health) == "sigmoid"
        return f"{'probabilities of a sigmoid' if sigmoid else health.answers}{_unit(health)}"
    k = health.told.largest
    largest = "largest probability" if k == 1 else f"{k} largest probabilities"
    others = "other" if health.told.all_but_one else "others"
    return f"the {largest} of {health.told.classes} classes{_unit(health)}, the {others} not told"


def class_numbers(columns: Sequence[int]) -> str:
    """Which outputs may be numbers of classes."""
    which = ", ".join(map(str, columns))
    return f"Output {which} answers {AS_A_CLASS}" if len(columns) == 1 else f"Outputs {which} answer {AS_A_CLASS}"


def beside_values(columns: Sequence[int]) -> str:
    """What to do about them."""
    return f"{class_numbers(columns)}, beside {OTHER_ANSWERS}: look at one kind alone (output=, --output INDEX)."


def ends_at_0_and_1(health: Interface) -> str:
    """Of answers that may be those of sigmoids by where they end."""
    return _filled(ENDS_AT_0_AND_1, health)


def _unit(health: Interface) -> str:
    return " in percent" if health.percent else ""


def _link(health: Interface) -> AnswerLink:
    """What would undo these answers."""
    if health.told is not None:
        return "top-k"
    if health.answers is Kind.PROBABILITIES:
        return "softmax"
    return "tanh" if health.tanh else "sigmoid"


def _filled(said: str, health: Interface) -> str:
    """With the link of these answers, as keywords and as options."""
    link = _link(health)
    keywords = f"percent=True, link='{link}'" if health.percent else f"link='{link}'"
    options = f"--percent --link {link}" if health.percent else f"--link {link}"
    top = PERCENT if health.percent else 1.0
    return said.format(keywords=keywords, options=options, top=f"{top:g}", unit=_unit(health))


def _decimals(health: Interface) -> int | None:
    """Of probabilities as fractions."""
    return None if health.decimals is None else health.decimals + PERCENT_DECIMALS * health.percent


def _of_a_link(health: Interface) -> str:
    """Of answers that only a link explains: what can be read through it."""
    link, decimals, told = _link(health), _decimals(health), f"The answers are {likeness(health)}"
    if health.told is not None and not health.told.all_but_one:
        return f"{told}. {TOO_FEW_TOLD}"
    if health.decimals is not None and decimals is not None:
        said = TOO_COARSE if decimals < ENOUGH_DECIMALS else _filled(COARSE, health)
        return f"{told}{'' if health.told is None else ','} {rounded_to(health.decimals)}. {said}"
    if health.number_format == "float16" and not health.more_digits:
        return f"{told} in float16. {TOO_COARSE}"
    noisy = health.noise.absolute > NOISIEST_READ * health.spread
    if noisy and (health.number_format == "float64" or not health.deterministic):
        return f"{told} with noise of {health.noise.absolute:.1e}. {TOO_NOISY_TO_READ}"
    if link in ELEMENTWISE_LINKS and health.number_format != "float64" and not health.more_digits:
        return f"{told} in {health.number_format}. {_filled(COARSE, health)}"
    hidden = ", by less than their noise at small scale" if health.curves_hidden else ""
    read = READ_THEM_RECAST if health.more_digits else READ_THEM
    return f"{told}, which are curved{hidden}. {_filled(read, health)}"
