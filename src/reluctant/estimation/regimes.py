"""Which cost model is for which target, and where there is none: no number without measured points. Beside the
rows: how exact a copy would be, the target's arithmetic, our memory, and the transcript on disk.

Exactness is a power of neurons and inputs for one hidden layer, and what was measured elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from scipy.optimize import nnls

from reluctant.estimation.cost_model import (
    ANY_DEPTH,
    DEPTH_THREE,
    DEPTH_TWO,
    LABELS_ONLY,
    ROUNDED_FLOAT32,
    STEADY_NOISE,
    CostModel,
    FittedModel,
    Range,
)
from reluctant.estimation.cost_model import FLOAT32_DIGITS as SINGLE
from reluctant.estimation.measurements import (
    DECIMALS,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    ROUNDED_SINGLE,
    Answers,
    MeasuredPoint,
    Widths,
    measured_runs,
    parameters,
)
from reluctant.estimation.measurements import LABELS as LABELS_ALONE
from reluctant.numerics import FLOAT_BYTES, FloatArray
from reluctant.oracles.transcript import KEY_BYTES

__all__ = [
    "GIVEN_SPEED",
    "NotMeasured",
    "arithmetic_seconds",
    "expected_accuracy",
    "expected_memory",
    "failed_tries",
    "fitted",
    "model_for",
    "rows_to_expect",
    "transcript_bytes",
]

MOST_HIDDEN = 3  # layers of any network that was measured


class NotMeasured(Exception):
    """There is no number for such a target, and why."""


def model_for(widths: Widths, answers: Answers, link: str = "identity") -> CostModel:
    """The model of what `extract` would do, or `recover_span` from labels; NotMeasured where there is none."""
    hidden = len(widths) - 2
    if link != "identity" and answers.kind != LABELS_ALONE:
        raise NotMeasured(
            f"Not modelled: answers behind a {link}. Where they saturate, values are read inside a box, which "
            "takes some times as many rows; that was measured for few shapes (python -m benchmarks probabilities). "
            "Without a link there are numbers for the values."
        )
    if answers.kind == LABELS_ALONE:
        return LABELS_ONLY
    if answers.kind == FLOAT64:
        return _exact_model(widths, hidden)
    if answers.between:
        raise NotMeasured(_why_between(answers))
    if answers.kind == FLOAT16:
        raise NotMeasured("float16 has three digits: extraction refuses such answers (low-precision).")
    if hidden > 1:
        raise NotMeasured(
            f"With {hidden} hidden layers and few digits extraction refuses (low-precision): only one hidden layer has "
            "been recovered from such answers."
        )
    return {FLOAT32: SINGLE, ROUNDED_SINGLE: ROUNDED_FLOAT32}.get(answers.kind, STEADY_NOISE)


def _why_between(answers: Answers) -> str:
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


def _exact_model(widths: Widths, hidden: int) -> CostModel:
    if hidden > MOST_HIDDEN:
        raise NotMeasured(
            f"Not measured: {hidden} hidden layers. Extraction tries any depth, but no network with more than "
            f"{MOST_HIDDEN} hidden layers is among the measured ones, and what it costs grows in no way that is known."
        )
    if hidden == 1:
        return DEPTH_TWO
    return DEPTH_THREE if hidden == 2 and widths[1] <= widths[0] else ANY_DEPTH


@cache
def fitted(model: CostModel) -> FittedModel:
    """The model with all points of its kind."""
    return model.fitted(tuple(point for point in measured_runs().points if _is_of_model(point, model)))


def rows_to_expect(model: CostModel, widths: Widths, answers: Answers) -> Range:
    """Rows of a shape. Of rounded float32 up to as many as of float32 at least.

    It takes the same steps with more noise, and was measured on smaller networks: what wide ones of float32 at times
    take more, another attempt included, its own points cannot show.
    """
    found = fitted(model).range(widths, answers)
    if model is not ROUNDED_FLOAT32:
        return found
    unrounded = fitted(SINGLE).range(widths, Answers(FLOAT32))
    return replace(found, high=max(found.high, unrounded.high))


def failed_tries(model: CostModel) -> tuple[MeasuredPoint, ...]:
    """Shapes of this kind that were tried and not recovered."""
    return tuple(point for point in measured_runs().failed if _is_of_model(point, model))


def _is_of_model(point: MeasuredPoint, model: CostModel) -> bool:
    try:
        return model_for(point.widths, point.answers) is model
    except NotMeasured:  # tried, and no two runs alike
        return False


WidthFeatures = Callable[[Widths], tuple[float, ...]]


def expected_accuracy(fit: FittedModel, widths: Widths, answers: Answers) -> Range:
    """Largest error over Gaussian inputs to expect, of the output's deviation; sine of the angle for a span.

    The range holds the measured shapes of such a size, by a fit to all and by one that had not seen them.
    """
    features = _power_features if fit.model is DEPTH_TWO else _constant_feature
    told = [point for point in fit.points if point.out]
    unit = answers.noise if answers.steady_noise else 1.0
    expected = unit * _fitted_error(features, told)(widths)
    alike = [error.point for error in fit.alike(widths, answers) if error.point.out]
    errors = [_errors_over_fit(features, some, point) for point in alike for some in (told, _other_shapes(told, point))]
    usual, most = zip(*errors, strict=True)
    return Range(expected, expected * min(1.0, *usual), expected * max(1.0, *most))


def _power_features(widths: Widths) -> tuple[float, ...]:
    return 1.0, float(np.log(widths[1])), float(np.log(widths[0]))


def _constant_feature(widths: Widths) -> tuple[float, ...]:
    return (1.0,)


def _fitted_error(features: WidthFeatures, points: Sequence[MeasuredPoint]) -> Callable[[Widths], float]:
    """Least squares in the logarithm; with noise that stays the same errors count in units of it."""
    rows: FloatArray = np.array([features(point.widths) for point in points])
    logs = np.array([np.log(_error_in_units(point, point.out)) for point in points])
    powers = np.linalg.lstsq(rows, logs, rcond=None)[0]
    return lambda widths: float(np.exp(np.dot(features(widths), powers)))


def _error_in_units(point: MeasuredPoint, out: float | None) -> float:
    return float(out or np.nan) / (point.answers.noise if point.answers.steady_noise else 1.0)


def _errors_over_fit(
    features: WidthFeatures, points: Sequence[MeasuredPoint], point: MeasuredPoint
) -> tuple[float, float]:
    """Usual and largest error of a point over what a fit to these points expects."""
    expected = _fitted_error(features, points)(point.widths)
    return _error_in_units(point, point.out) / expected, _error_in_units(point, point.most_out) / expected


def _other_shapes(points: Sequence[MeasuredPoint], point: MeasuredPoint) -> list[MeasuredPoint]:
    """All but those of its shape."""
    return [other for other in points if not other.same_as(point)]


OPERATIONS_A_WEIGHT = 2  # a product and a sum
A_MILLION = 1e6
FARTHEST_MEMORY = 4.0  # times the largest measured run: beyond, memory is not known
GIVEN_SPEED = "the speed given"


def arithmetic_seconds(widths: Widths, rows: float, speeds: Mapping[str, float]) -> dict[str, float]:
    """Time that the target's own arithmetic takes, at each speed in operations a second."""
    operations = OPERATIONS_A_WEIGHT * parameters(widths) * rows
    return {where: operations / speed for where, speed in speeds.items()}


def transcript_bytes(rows: float, answers: int) -> float:
    """Size on disk of rows with so many answers each: the key of the row, and its answers."""
    return rows * (KEY_BYTES + FLOAT_BYTES * answers)


def expected_memory(model: CostModel, points: Sequence[MeasuredPoint], widths: Widths) -> float | None:
    """GiB of the whole process on a host, None where that was not measured, nor anything near.

    Base points are chosen among some for each neuron, with a number for each neuron; gradients have one for each input.
    """
    told = [point for point in points if point.memory is not None]
    if model is not DEPTH_TWO or not told:
        return None
    sizes = nnls(
        np.array([_memory_features(point.widths) for point in told]), np.array([point.memory for point in told])
    )[0]
    return float(np.dot(sizes, _memory_features(widths))) if _is_near_measured(widths, told) else None


def _is_near_measured(widths: Widths, points: Sequence[MeasuredPoint]) -> bool:
    """True if nothing that memory could grow with, outputs included, is far beyond the measured runs."""
    largest = np.max([_growth_features(point.widths) for point in points], axis=0)
    return bool(np.all(np.array(_growth_features(widths)) <= FARTHEST_MEMORY * largest))


def _growth_features(widths: Widths) -> tuple[float, ...]:
    return (*_memory_features(widths), float(widths[-1]))


def _memory_features(widths: Widths) -> tuple[float, float, float]:
    d, h, m = widths
    return 1.0, h * h / A_MILLION, (h + m) * d / A_MILLION
