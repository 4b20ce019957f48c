"""Cost models: rows that a method's own settings fix, and a few terms whose sizes are fitted to measured runs.

One hidden layer: nearly every row follows from the settings of `DepthTwo`; only the search of the line depends on
where creases lie, about five rows a crease and more where they crowd. Two hidden layers and more: what is fixed is
small, and the fitted terms say what the rest grows with. Few digits: with noise that stays the same however large
the answer, the exact method from afar, then biases again, nearer and nearer; float32 costs so much a neuron for a
line and a subspace, and a fixed number of steps for every other direction. Labels alone: every bit of every
direction of the span has to be asked for, and no copy comes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.optimize import nnls

from reluctant.estimation.measurements import Answers, MeasuredPoint, Widths, parameters
from reluctant.extraction.any_depth.completion import CHECKED, FEWEST_CHECKED
from reluctant.extraction.any_depth.method import MANY_INPUTS
from reluctant.extraction.attempts import FAR_POINTS, FEW_NEURONS, HEALTH_LINES, POINTS_FOR_DEEP, points_worth
from reluctant.extraction.bounded.exploration import BATCH_POINTS as EXPLORED
from reluctant.extraction.bounded.exploration import QUIET_BATCHES
from reluctant.extraction.depth_two.assembly import refit_rows
from reluctant.extraction.depth_two.base_points import points_needed
from reluctant.extraction.depth_two.method import FEW_PARAMETERS, POLISHED_SHARE, directions_worth
from reluctant.extraction.depth_two.scaffold import PROBE_POINTS as PROBED
from reluctant.extraction.depth_two.scaffold import stretch_of_regions
from reluctant.extraction.few_digits.extension import starting_points
from reluctant.extraction.few_digits.method import (
    MANY_PARAMETERS,
    MANY_RANDOM_SHARE,
    RANDOM_SHARE,
    SHARE_OF_SPENT,
    FewDigits,
)
from reluctant.extraction.few_digits.noisy_line import CROWDED_LINE, MOST_SPARE, ROWS_A_WEIGHT, SPARE_SHARE
from reluctant.extraction.few_digits.view import (
    FARTHER_LOOKS,
    NEAR_AND_FAR,
    NOISE_LINES,
    NOISE_POINTS,
    SPREAD_ROWS,
    exact_distance,
    nearby_shares,
    rounded_distance,
)
from reluctant.interface.health_check import ROWS_PER_LINE
from reluctant.numerics import FloatArray, unit_roundoff
from reluctant.verification.comparison import SCALES
from reluctant.verification.precision import rows_held_out

__all__ = [
    "ANY_DEPTH",
    "DEPTH_THREE",
    "DEPTH_TWO",
    "FLOAT32_DIGITS",
    "LABELS_ONLY",
    "ROUNDED_FLOAT32",
    "STEADY_NOISE",
    "CostModel",
    "FitError",
    "FittedModel",
    "Range",
    "first_look",
    "fixed_stages",
]

LEAST_UNFIXED = 0.01  # of all rows: an error that small counts no more where hardly any are not fixed
AS_LARGE = 0.1  # of the rows: shapes that took as many or more tell how good an estimate is
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
class CostModel:
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

    def fitted(self, points: Sequence[MeasuredPoint]) -> FittedModel:
        """With sizes of the terms that suit these points."""
        return FittedModel(self, tuple(points))


@dataclass(frozen=True)
class FitError:
    """A point with its usual and its most rows over those expected, less one."""

    point: MeasuredPoint
    usual: float
    most: float


@dataclass(frozen=True)
class FittedModel:
    """A model and the points that it was fitted to: errors count relative to the rows that are not fixed."""

    model: CostModel
    points: tuple[MeasuredPoint, ...]

    @cached_property
    def sizes(self) -> FloatArray:
        """Rows for each occurrence of each term, none below zero."""
        rows = np.array([point.queries for point in self.points])
        fixed = np.array([self._fixed(point.widths, point.answers) for point in self.points])
        features = np.array([self.model.features(point.widths, point.answers) for point in self.points])
        unit = np.maximum(rows - fixed, LEAST_UNFIXED * rows)
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
    def errors(self) -> tuple[FitError, ...]:
        """How far off a fit without its shape is, for each point."""
        return tuple(self._error(point, self._without(point)) for point in self.points)

    def _without(self, point: MeasuredPoint) -> FittedModel:
        return FittedModel(self.model, tuple(other for other in self.points if not other.same_as(point)))

    @staticmethod
    def _error(point: MeasuredPoint, fit: FittedModel) -> FitError:
        rows = fit.rows(point.widths, point.answers)
        return FitError(point, point.queries / rows - 1, point.most_queries / rows - 1)

    def alike(self, widths: Widths, answers: Answers) -> Sequence[FitError]:
        """Errors of shapes that took a tenth of its rows or more: a few rows are much for a small network alone.

        At least four shapes and ten networks, the largest there are. Where crowds of neurons take other attempts, also
        those that are most nearly as wide, ten networks at least.
        """
        by_size = sorted(self.errors, key=lambda error: -error.point.queries)
        rows = self.rows(widths, answers)
        alike = sum(error.point.queries >= AS_LARGE * rows for error in by_size)
        large = by_size[: max(alike, FEWEST_ALIKE, _enough_networks(by_size))]
        return large + [error for error in self._as_wide(widths) if error not in large] if self.model.crowds else large

    def _as_wide(self, widths: Widths) -> Sequence[FitError]:
        """Errors of the shapes that are most nearly as wide."""

        def apart(error: FitError) -> float:
            return abs(float(np.log(error.point.widths[1] / widths[1])))

        by_width = sorted(self.errors, key=apart)
        farthest = apart(by_width[: _enough_networks(by_width)][-1])
        return [error for error in by_width if apart(error) <= farthest]

    def range(self, widths: Widths, answers: Answers) -> Range:
        """Rows to expect, with the largest errors on shapes of such a size, whether the model had seen them or not."""
        rows = self.rows(widths, answers)
        errors = [each for error in self.alike(widths, answers) for each in (error, self._error(error.point, self))]
        least = min(0.0, *(error.usual for error in errors))
        most = max(0.0, *(error.most for error in errors))
        return Range(rows, rows * (1 + least), rows * (1 + most))


def _enough_networks(errors: Sequence[FitError]) -> int:
    """How many of them have enough networks together."""
    networks = np.cumsum([error.point.networks for error in errors])
    return int(np.searchsorted(networks, FEWEST_NETWORKS)) + 1


ROWS_OF_OUTPUTS = 2  # a neuron, where there are several outputs
ROWS_A_CREASE = 5  # rows of the line, about: what `neurons_on_a_line` says of its cost
HEALTH_ROWS = float(ROWS_PER_LINE * HEALTH_LINES)


def fixed_stages(widths: Widths, answers: Answers) -> dict[str, float]:
    """Rows of every stage but the line."""
    d, h, m = widths
    return _with_verification(
        {"health": HEALTH_ROWS, **first_look(d, h, m), **_weight_rows(d, h, m)}, h, m, _is_small(d, h, m)
    )


def _is_small(d: int, h: int, m: int) -> bool:
    return h * (d + 1 + m) <= FEW_PARAMETERS


def first_look(d: int, creases: int, m: int) -> dict[str, float]:
    """What an attempt spends before it can be seen to fail, besides the line: also on a target with more layers."""
    if _is_small(d, creases, m):
        return {
            "scaffold": _line_regions(creases, m) * d if d > 1 else 0.0,
            "biases": refit_rows(creases, m, POLISHED_SHARE),
        }
    directions = min(directions_worth(d, m, creases), d - 1)
    return {"scaffold": _line_regions(creases, m) * (directions + 1) if directions else 0.0, "probe": PROBED}


def _line_regions(creases: int, m: int) -> float:
    """Pieces of the line that are looked at: with several outputs the first, the last, and some between."""
    if m == 1:
        return creases + 1
    nearest, farthest = stretch_of_regions(m)
    between = 2 * (creases - farthest) / (nearest + farthest)
    return 2 + max(1.0, between) if between > 0 else 2


def _weight_rows(d: int, h: int, m: int) -> dict[str, float]:
    """The main pass and what follows it; a small network has none."""
    if _is_small(d, h, m):
        return {}
    outputs = {"outputs": float(ROWS_OF_OUTPUTS * h)} if m > 1 else {}
    return {"main pass": float(points_needed(h, m) * (d + 1)), **outputs, "biases": float(refit_rows(h, m))}


def _with_verification(stages: dict[str, float], h: int, m: int, small: bool) -> dict[str, float]:
    points = len(SCALES) * points_worth(int(sum(stages.values()) + ROWS_A_CREASE * h))
    on_creases = h if m == 1 or small else 0  # with several outputs those are kept from before
    return {**stages, "verify": float(points + on_creases + (FAR_POINTS if h <= FEW_NEURONS else 0))}


def _depth_two_features(widths: Widths, answers: Answers) -> tuple[float, ...]:
    h = widths[1]
    return float(h), float(h) ** 2


DEPTH_TWO = CostModel(
    "exact extraction, one hidden layer",
    "an exact copy",
    fixed_stages,
    ("line", "close creases"),
    _depth_two_features,
)


def _fixed_ends(widths: Widths) -> dict[str, float]:
    """Health, the attempt at one hidden layer that comes to nothing, and verification."""
    neurons = sum(widths[1:-1])
    lost = sum(first_look(widths[0], neurons, widths[-1]).values())
    return {"health": HEALTH_ROWS, "one layer first": lost, "verify": float(len(SCALES) * POINTS_FOR_DEEP + neurons)}


def _fixed_three(widths: Widths, answers: Answers) -> dict[str, float]:
    _, h, _, m = widths
    above = (h + parameters(widths[1:])) / m  # a row each, for the last fit
    return {**_fixed_ends(widths), "exploration": float(EXPLORED * (QUIET_BATCHES + 1)), "fit": above}


def _features_three(widths: Widths, answers: Answers) -> tuple[float, ...]:
    d, h, k, _ = widths
    return float(h * d), float(h * (h + k)), float(h + k)


def _fixed_any(widths: Widths, answers: Answers) -> dict[str, float]:
    return {**_fixed_ends(widths), "check": max(float(FEWEST_CHECKED), CHECKED * parameters(widths))}


def _features_any(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Coefficients of all hidden neurons, neurons, and, with many inputs, first weights by themselves.

    A crease is followed in every layer that it could belong to, so neurons count once for each layer after the first.
    """
    coefficients = sum(out * (into + 1) for into, out in pairwise(widths[:-1]))
    first = widths[0] * widths[1] if widths[0] >= MANY_INPUTS else 0
    neurons, later = sum(widths[1:-1]), len(widths) - 3
    return float(coefficients - first), float(neurons * later), float(first)


DEPTH_THREE = CostModel(
    "exact extraction, two hidden layers",
    "an exact copy",
    _fixed_three,
    ("first weights", "hyperplanes", "creases"),
    _features_three,
)
ANY_DEPTH = CostModel(
    "exact extraction by following creases",
    "an exact copy",
    _fixed_any,
    ("following creases", "lines and attempts", "first weights"),
    _features_any,
)

NOISE_LOOK = NOISE_LINES * NOISE_POINTS  # rows of one look at the noise
LOOKS_FROM_HERE = NEAR_AND_FAR + FARTHER_LOOKS  # looks that choose where to stand
LOOKS_FROM_THERE = LOOKS_FROM_HERE + NEAR_AND_FAR  # and those at that place
ROWS_A_LINE, ROWS_A_SUBSPACE = (
    75.0,
    105.0,
)  # rows a neuron, about: what `read_line` and three directions of growth say of theirs


def _noise_and_precision(h: int, looks: int) -> dict[str, float]:
    return {"noise": float(looks * NOISE_LOOK + SPREAD_ROWS), "precision": float(rows_held_out(h))}


def _fixed_from_afar(widths: Widths, answers: Answers) -> dict[str, float]:
    distance = exact_distance(answers.noise / unit_roundoff("float64"))
    return {
        **fixed_stages(widths, answers),
        **_noise_and_precision(widths[1], LOOKS_FROM_THERE),
        "biases nearby": _nearby_rows(widths, distance),
    }


def _nearby_rows(widths: Widths, distance: float) -> float:
    """Rows that fit biases anew, from so far away down to the scale of use."""
    d, h, m = widths
    return float(sum(refit_rows(h, m, share) for share in nearby_shares(distance, d)))


def _fixed_rounded(widths: Widths, answers: Answers) -> dict[str, float]:
    distance = rounded_distance(answers.noise, unit_roundoff("float32"))
    return {
        **_fixed_float32(widths, answers),
        **_noise_and_precision(widths[1], LOOKS_FROM_THERE),
        "biases nearby": _nearby_rows(widths, distance),
        "lines to choose from": ROWS_A_LINE * widths[1] * _spare_lines(widths),
    }


def _fixed_float32(widths: Widths, answers: Answers) -> dict[str, float]:
    d, h, m = widths
    short, long = starting_points(h, m)
    others = max(0, d - 1 - FewDigits().directions)
    extension = float(others * (2 * short + long))
    share = MANY_RANDOM_SHARE if h * (d + 1 + m) >= MANY_PARAMETERS else RANDOM_SHARE
    spent = extension + (ROWS_A_LINE + ROWS_A_SUBSPACE) * h
    polish = max(share * h * (d + 1 + m) / m, SHARE_OF_SPENT * spent)
    far = FAR_POINTS if h <= FEW_NEURONS else 0
    verify = float(len(SCALES) * points_worth(int(spent + polish)) + h + far)
    return {
        "health": HEALTH_ROWS, **_noise_and_precision(h, LOOKS_FROM_HERE), "extension": extension, "polish": polish,
        "verify": verify,
    }  # fmt: skip


def _features_float32(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Neurons once for the line that is grown, and once for each that is read to choose from."""
    return float(widths[1]), float(widths[1] * _spare_lines(widths)), 1.0


def _spare_lines(widths: Widths) -> int:
    """Lines that are read besides the one that is grown."""
    d, h, _ = widths
    return int(min(MOST_SPARE, SPARE_SHARE * ROWS_A_WEIGHT * d / ROWS_A_LINE)) if h >= CROWDED_LINE else 0


STEADY_NOISE = CostModel(
    "extraction from few digits, looked at from afar",
    "a copy as exact as the noise allows",
    _fixed_from_afar,
    ("line",),
    lambda widths, answers: (float(widths[1]),),
)
FLOAT32_DIGITS = CostModel(
    "extraction from float32",
    "a copy as exact as float32 allows",
    _fixed_float32,
    ("line and subspace", "lines to choose from", "whatever the width"),
    _features_float32,
    crowds=True,
)
ROUNDED_FLOAT32 = CostModel(
    "extraction from float32 of few decimals, looked at from afar",
    "a copy as exact as the decimals allow",
    _fixed_rounded,
    ("line and subspace", "whatever the width"),
    lambda widths, answers: (float(widths[1]), 1.0),
    crowds=True,
)


def _label_features(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Components of the normals outside the span, what it takes inside, and what every run takes.

    The cube is what runs show and no argument: with more directions normals are worse conditioned, and more bits of
    each of k·k components are asked for.
    """
    n, k = widths[0], min(widths[0], widths[1])
    return float(k * (n - k)), float(k) ** 3, 1.0


LABELS_ONLY = CostModel(
    "span from labels alone",
    "the directions of its input that it looks at, and no copy",
    lambda widths, answers: {},
    ("outside the span", "inside the span", "boundary and verification"),
    _label_features,
    sizes=("inputs", "neurons in the first layer", "hidden layers", "outputs"),
)
