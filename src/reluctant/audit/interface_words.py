"""Sentences about an interface for the record of the first schema."""

from __future__ import annotations

from collections.abc import Sequence

from reluctant.interface import Interface
from reluctant.interface.digits import rounded_to
from reluctant.interface.whole_numbers import Whole
from reluctant.oracles.base import Kind

__all__ = [
    "AS_A_CLASS",
    "IN_STEPS",
    "LABELS_OR_ROUNDED",
    "MAYBE_WHOLE",
    "OTHER_ANSWERS",
    "RECAST",
    "SAME_NEAR",
    "STEPWISE",
    "class_numbers",
    "digits",
    "likeness",
]

RECAST = "Open the model in float64: precision='float64' (--precision float64)."
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
        sigmoid = health.are_probabilities and health.answers is not Kind.PROBABILITIES
        return f"{'probabilities of a sigmoid' if sigmoid else health.answers}{_unit(health)}"
    k = health.told.largest
    largest = "largest probability" if k == 1 else f"{k} largest probabilities"
    others = "other" if health.told.all_but_one else "others"
    return f"the {largest} of {health.told.classes} classes{_unit(health)}, the {others} not told"


def class_numbers(columns: Sequence[int]) -> str:
    """Which outputs may be numbers of classes."""
    which = ", ".join(map(str, columns))
    return f"Output {which} answers {AS_A_CLASS}" if len(columns) == 1 else f"Outputs {which} answer {AS_A_CLASS}"


def _unit(health: Interface) -> str:
    return " in percent" if health.percent else ""
