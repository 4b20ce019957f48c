"""How exact copies are: a power of neurons and inputs for one hidden layer, what was measured elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from reluctant.estimation.answers import Answers
from reluctant.estimation.depth_two import DEPTH_TWO
from reluctant.estimation.measured import Point
from reluctant.estimation.model import Fitted, Range
from reluctant.estimation.shapes import Widths
from reluctant.numerics import FloatArray

__all__ = ["accuracy"]

Features = Callable[[Widths], tuple[float, ...]]


def accuracy(fit: Fitted, widths: Widths, answers: Answers) -> Range:
    """Largest error over Gaussian inputs to expect, of the output's deviation; sine of the angle for a span.

    The range holds the measured shapes of such a size, by a fit to all and by one that had not seen them.
    """
    features = _powers if fit.model is DEPTH_TWO else _constant
    told = [point for point in fit.points if point.out]
    unit = answers.noise if answers.steady_noise else 1.0
    expected = unit * _fitted(features, told)(widths)
    alike = [error.point for error in fit.alike(widths, answers) if error.point.out]
    errors = [_error(features, some, point) for point in alike for some in (told, _others(told, point))]
    usual, most = zip(*errors, strict=True)
    return Range(expected, expected * min(1.0, *usual), expected * max(1.0, *most))


def _powers(widths: Widths) -> tuple[float, ...]:
    return 1.0, float(np.log(widths[1])), float(np.log(widths[0]))


def _constant(widths: Widths) -> tuple[float, ...]:
    return (1.0,)


def _fitted(features: Features, points: Sequence[Point]) -> Callable[[Widths], float]:
    """Least squares in the logarithm; with noise that stays the same errors count in units of it."""
    rows: FloatArray = np.array([features(point.widths) for point in points])
    logs = np.array([np.log(_in_units(point, point.out)) for point in points])
    powers = np.linalg.lstsq(rows, logs, rcond=None)[0]
    return lambda widths: float(np.exp(np.dot(features(widths), powers)))


def _in_units(point: Point, out: float | None) -> float:
    return float(out or np.nan) / (point.answers.noise if point.answers.steady_noise else 1.0)


def _error(features: Features, points: Sequence[Point], point: Point) -> tuple[float, float]:
    """Usual and largest error of a point over what a fit to these points expects."""
    expected = _fitted(features, points)(point.widths)
    return _in_units(point, point.out) / expected, _in_units(point, point.most_out) / expected


def _others(points: Sequence[Point], point: Point) -> list[Point]:
    """All but those of its shape."""
    return [other for other in points if not other.same_as(point)]
