"""A cost model: rows that a method's own settings fix, and a few terms whose sizes are fitted to measured runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import nnls

from reluctant.estimation.answers import Answers
from reluctant.estimation.measured import Point
from reluctant.estimation.shapes import Widths
from reluctant.numerics import FloatArray

__all__ = ["Error", "Fitted", "Model", "Range"]

LEAST_SHARE = 0.01  # of all rows: an error that small counts no more where hardly any are not fixed
SMALLER = 0.1  # of the rows: shapes that took as many or more tell how good an estimate is
FEWEST_ALIKE = 4  # of them; else the largest there are
FEWEST_NETWORKS = 10  # of these shapes together: fewer do not show that some need another attempt


@dataclass(frozen=True)
class Range:
    """An expected value, with the least and the most that measured runs leave open."""

    expected: float
    low: float
    high: float

    def times(self, factor: float) -> Range:
        """The same in other units."""
        return Range(factor * self.expected, factor * self.low, factor * self.high)


@dataclass(frozen=True)
class Model:
    """How many rows a method asks.

    Arguments:
        name: of the method.
        gives: what comes of it.
        fixed: rows by stage that follow from the settings.
        terms: what the fitted terms count, in words.
        features: how often each of them occurs.
        sizes: of a shape that matter to it; all if there are none.
        crowds: the wider a network is, the more often it takes another attempt.
    """

    name: str
    gives: str
    fixed: Callable[[Widths, Answers], Mapping[str, float]]
    terms: tuple[str, ...]
    features: Callable[[Widths, Answers], tuple[float, ...]]
    sizes: tuple[str, ...] = ()
    crowds: bool = False

    def fitted(self, points: Sequence[Point]) -> Fitted:
        """With sizes of the terms that suit these points."""
        return Fitted(self, tuple(points))


@dataclass(frozen=True)
class Error:
    """A point with its usual and its most rows over those expected, less one."""

    point: Point
    usual: float
    most: float


@dataclass(frozen=True)
class Fitted:
    """A model and the points that it was fitted to: errors count relative to the rows that are not fixed."""

    model: Model
    points: tuple[Point, ...]

    @cached_property
    def sizes(self) -> FloatArray:
        """Rows for each occurrence of each term, none below zero."""
        rows = np.array([point.queries for point in self.points])
        fixed = np.array([self._fixed(point.widths, point.answers) for point in self.points])
        features = np.array([self.model.features(point.widths, point.answers) for point in self.points])
        unit = np.maximum(rows - fixed, LEAST_SHARE * rows)
        return np.asarray(nnls(features / unit[:, None], (rows - fixed) / unit)[0])

    def rows(self, widths: Widths, answers: Answers) -> float:
        """Rows to expect."""
        return sum(self.parts(widths, answers).values())

    def parts(self, widths: Widths, answers: Answers) -> dict[str, float]:
        """Rows to expect, by what they are for."""
        sizes = self.sizes * np.array(self.model.features(widths, answers))
        return {**self.model.fixed(widths, answers), **dict(zip(self.model.terms, sizes.tolist(), strict=True))}

    def _fixed(self, widths: Widths, answers: Answers) -> float:
        return sum(self.model.fixed(widths, answers).values())

    @cached_property
    def errors(self) -> tuple[Error, ...]:
        """How far off a fit without its shape is, for each point."""
        return tuple(self._error(point, self._without(point)) for point in self.points)

    def _without(self, point: Point) -> Fitted:
        return Fitted(self.model, tuple(other for other in self.points if not other.same_as(point)))

    @staticmethod
    def _error(point: Point, fit: Fitted) -> Error:
        rows = fit.rows(point.widths, point.answers)
        return Error(point, point.queries / rows - 1, point.most_queries / rows - 1)

    def alike(self, widths: Widths, answers: Answers) -> Sequence[Error]:
        """Errors of shapes that took a tenth of its rows or more: a few rows are much for a small network alone.

        At least four shapes and ten networks, the largest there are. Where crowds of neurons take other attempts, also
        those that are most nearly as wide, ten networks at least.
        """
        by_size = sorted(self.errors, key=lambda error: -error.point.queries)
        rows = self.rows(widths, answers)
        alike = sum(error.point.queries >= SMALLER * rows for error in by_size)
        large = by_size[: max(alike, FEWEST_ALIKE, _enough(by_size))]
        return large + [error for error in self._as_wide(widths) if error not in large] if self.model.crowds else large

    def _as_wide(self, widths: Widths) -> Sequence[Error]:
        """Errors of the shapes that are most nearly as wide."""

        def apart(error: Error) -> float:
            return abs(float(np.log(error.point.widths[1] / widths[1])))

        by_width = sorted(self.errors, key=apart)
        farthest = apart(by_width[: _enough(by_width)][-1])
        return [error for error in by_width if apart(error) <= farthest]

    def range(self, widths: Widths, answers: Answers) -> Range:
        """Rows to expect, with the largest errors on shapes of such a size, whether the model had seen them or not."""
        rows = self.rows(widths, answers)
        errors = [each for error in self.alike(widths, answers) for each in (error, self._error(error.point, self))]
        least = min(0.0, *(error.usual for error in errors))
        most = max(0.0, *(error.most for error in errors))
        return Range(rows, rows * (1 + least), rows * (1 + most))


def _enough(errors: Sequence[Error]) -> int:
    """How many of them have enough networks together."""
    networks = np.cumsum([error.point.networks for error in errors])
    return int(np.searchsorted(networks, FEWEST_NETWORKS)) + 1
