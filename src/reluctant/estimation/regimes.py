"""Which model is for which target, and where there is none: no number without measured points."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from reluctant.estimation.answers import DECIMALS, FLOAT16, FLOAT32, FLOAT64, ROUNDED_SINGLE, Answers
from reluctant.estimation.answers import LABELS as LABELS_ALONE
from reluctant.estimation.deeper import ANY_DEPTH, DEPTH_THREE
from reluctant.estimation.depth_two import DEPTH_TWO
from reluctant.estimation.few_digits import FLOAT32 as SINGLE
from reluctant.estimation.few_digits import FROM_AFAR, ROUNDED_FLOAT32
from reluctant.estimation.labels import LABELS
from reluctant.estimation.measured import Point, measured
from reluctant.estimation.model import Fitted, Model, Range
from reluctant.estimation.shapes import Widths

__all__ = ["NotMeasured", "failed_tries", "fitted", "model_for", "rows_to_expect"]

MOST_HIDDEN = 3  # layers of any network that was measured


class NotMeasured(Exception):
    """There is no number for such a target, and why."""


def model_for(widths: Widths, answers: Answers, link: str = "identity") -> Model:
    """The model of what `extract` would do, or `recover_span` from labels; NotMeasured where there is none."""
    hidden = len(widths) - 2
    if link != "identity" and answers.kind != LABELS_ALONE:
        raise NotMeasured(
            f"Not modelled: answers behind a {link}. Where they saturate, values are read inside a box, which "
            "takes some times as many rows; that was measured for few shapes (python -m benchmarks probabilities). "
            "Without a link there are numbers for the values."
        )
    if answers.kind == LABELS_ALONE:
        return LABELS
    if answers.kind == FLOAT64:
        return _exact(widths, hidden)
    if answers.between:
        raise NotMeasured(_between(answers))
    if answers.kind == FLOAT16:
        raise NotMeasured("float16 has three digits: extraction refuses such answers (low-precision).")
    if hidden > 1:
        raise NotMeasured(
            f"With {hidden} hidden layers and few digits extraction refuses (low-precision): only one hidden layer has "
            "been recovered from such answers."
        )
    return {FLOAT32: SINGLE, ROUNDED_SINGLE: ROUNDED_FLOAT32}.get(answers.kind, FROM_AFAR)


def _between(answers: Answers) -> str:
    """Why there is no number for so many decimals."""
    if answers.kind == DECIMALS:
        return (
            f"Not measured: answers rounded to {answers.amount:.0f} decimals. Exact methods begin on them and may not "
            "end: what that costs is not known. There are numbers for fewer decimals and for float64."
        )
    return (
        f"Not measured: float32 rounded to {answers.amount:.0f} decimals. Its own digits are seen beside the rounding, "
        "and attempts fail at times: what that costs is not known. There are numbers for fewer decimals, and for "
        "float32 that is not rounded."
    )


def _exact(widths: Widths, hidden: int) -> Model:
    if hidden > MOST_HIDDEN:
        raise NotMeasured(
            f"Not measured: {hidden} hidden layers. Extraction tries any depth, but no network with more than "
            f"{MOST_HIDDEN} hidden layers is among the measured ones, and what it costs grows in no way that is known."
        )
    if hidden == 1:
        return DEPTH_TWO
    return DEPTH_THREE if hidden == 2 and widths[1] <= widths[0] else ANY_DEPTH


@cache
def fitted(model: Model) -> Fitted:
    """The model with all points of its kind."""
    return model.fitted(tuple(point for point in measured().points if _is_of(point, model)))


def rows_to_expect(model: Model, widths: Widths, answers: Answers) -> Range:
    """Rows of a shape. Of rounded float32 up to as many as of float32 at least.

    It takes the same steps with more noise, and was measured on smaller networks: what wide ones of float32 at times
    take more, another attempt included, its own points cannot show.
    """
    found = fitted(model).range(widths, answers)
    if model is not ROUNDED_FLOAT32:
        return found
    unrounded = fitted(SINGLE).range(widths, Answers(FLOAT32))
    return replace(found, high=max(found.high, unrounded.high))


def failed_tries(model: Model) -> tuple[Point, ...]:
    """Shapes of this kind that were tried and not recovered."""
    return tuple(point for point in measured().failed if _is_of(point, model))


def _is_of(point: Point, model: Model) -> bool:
    try:
        return model_for(point.widths, point.answers) is model
    except NotMeasured:  # tried, and no two runs alike
        return False
