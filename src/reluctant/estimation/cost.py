"""`estimate`: the expected queries, time and money for a shape, with a range and its trust.

A range holds the errors that the fit makes on measured shapes of such a size, seen and unseen. Measured runs stand
beside the number, and `Trust` says how far the shape lies from them: a number is worth what was measured around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from math import inf, log
from typing import Any

import numpy as np
from scipy.optimize import nnls

from reluctant.errors import InvalidInput
from reluctant.estimation.formulas import (
    DEPTH_TWO,
    FLOAT32_DIGITS,
    ROUNDED_FLOAT32,
    CostFormula,
    NotMeasured,
    formula_for,
)
from reluctant.estimation.measurements import (
    FLOAT32,
    Answers,
    MeasuredPoint,
    Widths,
    answers_per_parameter,
    as_widths,
    measured_points,
    measured_speeds,
    parameters,
    shape_name,
)
from reluctant.numerics import FLOAT_BYTES, FloatArray
from reluctant.oracles.links import ANSWER_LINKS
from reluctant.oracles.transcript import KEY_BYTES

PER_PRICE = 1000  # queries that a price is for
OPERATIONS_A_WEIGHT = 2  # a product and a sum
GIVEN_SPEED = "the speed given"
LEAST_UNFIXED = 0.01  # of all rows: an error that small counts no more where hardly any are not fixed
AS_LARGE = 0.1  # of the rows: shapes that took as many or more tell how good an estimate is
FEWEST_ALIKE = 4  # of them; else the largest there are
FEWEST_NETWORKS = 10  # of these shapes together: fewer do not show that some need another attempt
NEAR_MEASURED = 1.1  # times the largest that was measured: as good as measured
FARTHEST_MEMORY = 4.0  # times the largest measured run: beyond, memory is not known
NEIGHBOURS = 3


@dataclass(frozen=True)
class Range:
    """An expected value, with the least and the most that measured runs leave open."""

    expected: float
    low: float
    high: float

    def times(self, factor: float) -> Range:
        """The same in other units."""
        return Range(factor * self.expected, factor * self.low, factor * self.high)


# ---- fits


@dataclass(frozen=True)
class FitError:
    """A point with its usual and its most rows over those that a fit without its shape expects, less one.

    `low` and `high` bound its rows in the same way, by that fit and by the fit to all points.
    """

    point: MeasuredPoint
    usual: float
    most: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """The point as a measured neighbour: plain data."""
        point = self.point
        return {
            "shape": point.shape, "name": point.name, "precision": str(point.answers), "networks": point.networks,
            "recovered": point.ok, "queries": point.queries, "most queries": point.most_queries,
            "answers per parameter": point.per_parameter, "error": point.most_out,
            "over expected": self.usual, "source": point.source,
        }  # fmt: skip


@dataclass(frozen=True)
class Fit:
    """A formula, and the points that its terms are fitted to: errors count relative to the rows that are not fixed."""

    formula: CostFormula
    points: tuple[MeasuredPoint, ...]

    @cached_property
    def sizes(self) -> FloatArray:
        """Rows for each occurrence of each term, none below zero."""
        rows = np.array([point.queries for point in self.points])
        fixed = np.array([sum(self.formula.fixed(point.widths, point.answers).values()) for point in self.points])
        counts = np.array([self.formula.counts(point.widths, point.answers) for point in self.points])
        unit = np.maximum(rows - fixed, LEAST_UNFIXED * rows)
        return np.asarray(nnls(counts / unit[:, None], (rows - fixed) / unit)[0])

    def parts(self, widths: Widths, answers: Answers) -> dict[str, float]:
        """Rows to expect, by what they are for."""
        sizes = self.sizes * np.array(self.formula.counts(widths, answers))
        return {**self.formula.fixed(widths, answers), **dict(zip(self.formula.terms, sizes.tolist(), strict=True))}

    def rows(self, widths: Widths, answers: Answers) -> float:
        """Rows to expect."""
        return sum(self.parts(widths, answers).values())

    @cached_property
    def errors(self) -> tuple[FitError, ...]:
        """How far off the fit is at each point, with and without its shape."""
        return tuple(map(self._error, self.points))

    def _error(self, point: MeasuredPoint) -> FitError:
        kind = (point.widths, point.answers)
        others = Fit(self.formula, tuple(each for each in self.points if (each.widths, each.answers) != kind))
        unseen, seen = (fit.rows(point.widths, point.answers) for fit in (others, self))
        usual, most = point.queries / unseen - 1, point.most_queries / unseen - 1
        low, high = min(usual, point.queries / seen - 1), max(most, point.most_queries / seen - 1)
        return FitError(point, usual, most, low, high)

    def alike(self, widths: Widths, answers: Answers) -> list[FitError]:
        """Errors of shapes that took a tenth of its rows or more: a few rows are much for a small network alone.

        At least four shapes and ten networks, the largest there are. Where crowds of neurons take other attempts, also
        those that are most nearly as wide, ten networks at least.
        """

        def apart(error: FitError) -> float:
            return abs(float(np.log(error.point.widths[1] / widths[1])))

        by_size = sorted(self.errors, key=lambda error: -error.point.queries)
        as_large = sum(error.point.queries >= AS_LARGE * self.rows(widths, answers) for error in by_size)
        chosen = by_size[: max(as_large, FEWEST_ALIKE, _enough_networks(by_size))]
        if self.formula.crowds:
            by_width = sorted(self.errors, key=apart)
            farthest = apart(by_width[: _enough_networks(by_width)][-1])
            chosen += [error for error in by_width if apart(error) <= farthest and error not in chosen]
        return chosen

    def range(self, widths: Widths, answers: Answers) -> Range:
        """Rows to expect, with the largest errors on shapes of such a size.

        Rounded float32 takes the steps of float32 with more noise, and was measured on smaller networks: its range ends
        no earlier.
        """
        rows, alike = self.rows(widths, answers), self.alike(widths, answers)
        high = rows * (1 + max(0.0, *(error.high for error in alike)))
        if self.formula is ROUNDED_FLOAT32:
            high = max(high, fitted(FLOAT32_DIGITS).range(widths, Answers(FLOAT32)).high)
        return Range(rows, rows * (1 + min(0.0, *(error.low for error in alike))), high)


def _enough_networks(errors: Sequence[FitError]) -> int:
    """How many of them have enough networks together."""
    networks = np.cumsum([error.point.networks for error in errors])
    return int(np.searchsorted(networks, FEWEST_NETWORKS)) + 1


@cache
def fitted(formula: CostFormula) -> Fit:
    """The formula with all points of its kind."""

    def belongs(point: MeasuredPoint) -> bool:
        try:
            return formula_for(point.widths, point.answers) is formula
        except NotMeasured:  # tried, and no two runs alike
            return False

    return Fit(formula, tuple(filter(belongs, measured_points())))


def _memory(fit: Fit, widths: Widths) -> float | None:
    """GiB of the whole process on a host, None where nothing near was measured.

    Base points are chosen among some for each neuron, with a number for each neuron; gradients have one for each input.
    """
    known = [point for point in fit.points if point.memory is not None]
    if fit.formula is not DEPTH_TWO or not known:
        return None

    def counts(d: int, h: int, m: int) -> list[float]:
        return [1.0, h * h / 1e6, (h + m) * d / 1e6, float(m)]

    measured, here = np.array([counts(*point.widths) for point in known]), np.array(counts(*widths))
    if np.any(here > FARTHEST_MEMORY * measured.max(axis=0)):
        return None
    sizes = nnls(measured[:, :3], np.array([point.memory for point in known]))[0]
    return float(np.dot(sizes, here[:3]))


# ---- how far a shape lies from measured ones


@dataclass(frozen=True)
class Trust:
    """`level`: "measured", "between measured shapes" or "extrapolated"; `reasons` say in which way."""

    level: str
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.level}: {'; '.join(self.reasons)}" if self.reasons else self.level
        return f"{text[0].upper()}{text[1:]}."


def _sizes(widths: Widths) -> dict[str, float]:
    """The sizes of a shape, and for one hidden layer how wide it is for its inputs."""
    return {
        "parameters": parameters(widths),
        "parameters with several outputs": parameters(widths) if widths[-1] > 1 else 0,
        "inputs": widths[0],
        "neurons in the first layer": widths[1],
        "neurons in a deeper layer": max(widths[2:-1], default=0),
        "hidden layers": len(widths) - 2,
        "outputs": widths[-1],
        "neurons for each input": widths[1] / widths[0] if len(widths) == 3 else 0,
    }


def _trust(widths: Widths, answers: Answers, fit: Fit) -> Trust:
    reasons = (*_outside(widths, fit), *_other_noise(answers, fit))
    if reasons:
        return Trust("extrapolated", reasons)
    same = any(point.widths == widths and point.answers == answers for point in fit.points)
    return Trust("measured", ("this very shape was run",)) if same else Trust("between measured shapes")


def _outside(widths: Widths, fit: Fit) -> Iterator[str]:
    """Each size that no measured shape reaches, or that all of them pass."""
    here, every = _sizes(widths), [_sizes(point.widths) for point in fit.points]
    for name in fit.formula.sizes or here:
        least, most = min(each[name] for each in every), max(each[name] for each in every)
        if here[name] > NEAR_MEASURED * most > 0:  # where no measured network has several outputs, their number says so
            times = here[name] / most
            yield f"{times:,.{0 if times >= 10 else 1}f}× more {name} than any measured network ({_in_words(most)})"
        elif NEAR_MEASURED * here[name] < least:
            yield f"fewer {name} than any measured network ({_in_words(least)})"


def _other_noise(answers: Answers, fit: Fit) -> Iterator[str]:
    noises = [point.answers.noise for point in fit.points]
    if answers.steady_noise and not min(noises) <= answers.noise <= max(noises):
        yield f"noise of {answers.noise:.1e} where {min(noises):.1e} to {max(noises):.1e} was measured"


def _in_words(size: float) -> str:
    return f"{size:,}" if isinstance(size, int) else f"{size:.2g}"


def _nearest(widths: Widths, answers: Answers, fit: Fit) -> tuple[FitError, ...]:
    """The measured shapes that are most like this one, by the logarithms of sizes and noise, the nearest first."""

    def place(widths: Widths, answers: Answers) -> list[float]:
        sizes = [size for name, size in _sizes(widths).items() if name != "neurons for each input"]
        return [*(log(max(size, 1)) for size in sizes), log(answers.noise) if answers.steady_noise else 0.0]

    def distance(error: FitError) -> float:
        there = place(error.point.widths, error.point.answers)
        return sum((a - b) ** 2 for a, b in zip(place(widths, answers), there, strict=True))

    by_networks = sorted(fit.errors, key=lambda error: error.point.networks)
    best = {(error.point.widths, error.point.answers): error for error in by_networks}  # of two the one with more
    return tuple(sorted(best.values(), key=distance)[:NEIGHBOURS])


def _accuracy(answers: Answers, fit: Fit, nearest: Sequence[FitError]) -> Range:
    """Error of the nearest measured shapes, of the output's deviation; sine of the angle for a span."""

    def unit(measured: Answers) -> float:  # noise that stays the same decides the error
        return measured.noise if measured.steady_noise else 1.0

    kinds = {(error.point.widths, error.point.answers) for error in nearest}
    known = [point for point in fit.points if (point.widths, point.answers) in kinds and point.out]
    usual = [float(point.out or 0) / unit(point.answers) for point in known]
    most = [float(point.most_out or 0) / unit(point.answers) for point in known]
    return Range(float(np.median(usual)), min(usual), max(most)).times(unit(answers))


# ---- the estimate


@dataclass(frozen=True)
class Estimate:
    """What an attack would cost. `ok`: there is a number; else `reason` says why there is none.

    Arguments:
        widths: of the target.
        precision: what its answers give.
        reason: why there is no number.
        method: what would be run.
        gives: its result.
        queries: rows to ask.
        parts: the same, by what they are for.
        seconds: at the rate given.
        money: at the price given.
        currency: of the price.
        arithmetic: seconds of the target's own arithmetic, by what computes it.
        memory: GiB on our side, None where that was not measured.
        transcript: bytes on disk.
        accuracy: largest error of the nearest measured shapes.
        recovered: of the measured networks of this kind, how many were, and of how many.
        trust: how far the shape lies from measured ones.
        neighbours: measured shapes nearest to it.
    """

    widths: Widths
    precision: str
    reason: str = ""
    method: str = ""
    gives: str = ""
    queries: Range | None = None
    parts: dict[str, float] = field(default_factory=dict)
    seconds: Range | None = None
    money: Range | None = None
    currency: str = ""
    arithmetic: dict[str, float] = field(default_factory=dict)
    memory: float | None = None
    transcript: float | None = None
    accuracy: Range | None = None
    recovered: tuple[int, int] = (0, 0)
    trust: Trust | None = None
    neighbours: tuple[FitError, ...] = ()

    @property
    def ok(self) -> bool:
        """There is a number."""
        return self.queries is not None

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return parameters(self.widths)

    @property
    def shape(self) -> str:
        """Widths as they are written."""
        return shape_name(self.widths)

    @property
    def per_parameter(self) -> Range | None:
        """Answers for each parameter: a row brings one for each output, or one label."""
        each = Answers.parse(self.precision).in_a_row(self.widths[-1])
        return None if self.queries is None else self.queries.times(answers_per_parameter(1, self.widths, each))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        ranges = {
            "queries": self.queries, "answers per parameter": self.per_parameter, "seconds": self.seconds,
            "money": self.money, "error": self.accuracy,
        }  # fmt: skip
        return {
            "shape": self.shape, "widths": list(self.widths), "parameters": self.parameters,
            "precision": self.precision, "ok": self.ok, "reason": self.reason, "method": self.method,
            "gives": self.gives, **{name: None if each is None else asdict(each) for name, each in ranges.items()},
            "queries by part": dict(self.parts), "currency": self.currency,
            "arithmetic seconds": dict(self.arithmetic), "memory GiB": self.memory,
            "transcript bytes": self.transcript,
            "recovered": {"networks": self.recovered[1], "ok": self.recovered[0]},
            "trust": None if self.trust is None else {"level": self.trust.level, "reasons": list(self.trust.reasons)},
            "measured": [neighbour.to_dict() for neighbour in self.neighbours],
        }  # fmt: skip


def estimate(
    shape: str | Sequence[int],
    *,
    precision: str = "float64",
    rate: float | None = None,
    price: float | None = None,
    currency: str = "",
    flops: float | None = None,
    link: str = "identity",
) -> Estimate:
    """Queries, time, money, memory and accuracy to expect of an attack on a network of this shape.

    Nothing is asked or run: the numbers come from the method's settings and from runs that were measured.

    Arguments:
        shape: widths of all layers, "784-128-1" or (784, 128, 1).
        precision: what an answer gives: "float64", "float32", "float16", "decimals=3" (of a model that computes in
            float64), "float32,decimals=3", "noise=1e-4" (of the output's deviation) or "labels".
        rate: rows a second that the target answers.
        price: of a thousand queries.
        currency: of the price, in words.
        flops: operations a second that the target computes with; else a measured core and a measured GPU.
        link: what is behind the answers: those of a link ("softmax", "sigmoid", "log-softmax", "top-k", "tanh") have
            no number.
    """
    widths, answers = as_widths(shape), Answers.parse(precision)
    for name, number in (("rate", rate), ("flops", flops)):
        if number is not None and not 0 < number < inf:
            raise InvalidInput.about(name, got=number, expected="a finite number above 0")
    if price is not None and not 0 <= price < inf:
        raise InvalidInput.about("price", got=price, expected="a finite number, at least 0")
    if link not in ANSWER_LINKS:
        raise InvalidInput.about("link", got=repr(link), expected=f"one of {', '.join(ANSWER_LINKS)}")
    asked = Estimate(widths, str(answers), currency=currency)
    try:
        fit = fitted(formula_for(widths, answers, link))
    except NotMeasured as reason:
        return replace(asked, reason=str(reason))
    rows, speeds = fit.range(widths, answers), measured_speeds() if flops is None else {GIVEN_SPEED: flops}
    nearest = _nearest(widths, answers, fit)
    operations = OPERATIONS_A_WEIGHT * parameters(widths) * rows.expected
    return replace(
        asked,
        method=fit.formula.name,
        gives=fit.formula.gives,
        queries=rows,
        parts={part: count for part, count in fit.parts(widths, answers).items() if count},
        seconds=None if rate is None else rows.times(1 / rate),
        money=None if price is None else rows.times(price / PER_PRICE),
        arithmetic={name: operations / speed for name, speed in speeds.items()},
        memory=_memory(fit, widths),
        transcript=transcript_bytes(rows.expected, answers.in_a_row(widths[-1])),
        accuracy=_accuracy(answers, fit, nearest),
        recovered=(sum(point.ok for point in fit.points), sum(point.networks for point in fit.points)),
        trust=_trust(widths, answers, fit),
        neighbours=nearest,
    )


def transcript_bytes(rows: float, answers: int) -> float:
    """Size on disk of rows with so many answers each: the key of the row, and its answers."""
    return rows * (KEY_BYTES + FLOAT_BYTES * answers)
