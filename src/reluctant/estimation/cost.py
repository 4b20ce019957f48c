"""`estimate`: the expected queries, time and money of an attack on a shape, from measured runs.

The terms of a formula are fitted to measured runs (measured.json, which `scripts/measured_points.py` writes from
benchmarks/results). The range is the largest error of the fit on measured shapes of a tenth of the size or more, each
predicted with and without its own runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from typing import Any

import numpy as np
from scipy.optimize import nnls

from reluctant.errors import InvalidInput
from reluctant.estimation.formulas import (
    FEWEST_LAYERS,
    FLOAT32,
    FLOAT32_DIGITS,
    ROUNDED_FLOAT32,
    Answers,
    CostFormula,
    Rows,
    Widths,
    answers_per_parameter,
    as_widths,
    formula_for,
    parameters,
    shape_name,
)
from reluctant.messages import Diagnosis
from reluctant.numerics import FLOAT_BYTES, FloatArray
from reluctant.oracles.links import ANSWER_LINKS
from reluctant.oracles.transcript import KEY_BYTES

PER_PRICE = 1000  # queries that a price is for
OPERATIONS_A_WEIGHT = 2  # a product and a sum
LEAST_UNFIXED = 0.01  # of all rows: smaller errors count no more where hardly any row is fitted
AS_LARGE, FEWEST_ALIKE = 0.1, 4  # a range is of shapes with this share of the rows or more, at least four of them
NEAR_MEASURED = 1.1  # times the largest that was measured: as good as measured
NEAREST = 3  # measured shapes beside an estimate


@dataclass(frozen=True)
class MeasuredPoint:
    """What one shape took, over its networks.

    Arguments:
        name: as the benchmark calls it.
        widths: of the networks.
        answers: what they were asked for.
        networks: how many there were.
        ok: how many were recovered and verified.
        queries: median of the rows.
        most_queries: of the network that took the most.
        out: median error over the output's deviation; sine of the angle for spans.
        most_out: the largest.
        source: the kept results it comes from.
    """

    name: str
    widths: Widths
    answers: Answers
    networks: int
    ok: int
    queries: float
    most_queries: float
    out: float | None
    most_out: float | None
    source: str

    @property
    def per_parameter(self) -> float:
        """Answers for each parameter."""
        return answers_per_parameter(self.queries, self.widths, self.answers.in_a_row(self.widths[-1]))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "shape": shape_name(self.widths), "name": self.name, "precision": str(self.answers),
            "networks": self.networks, "recovered": self.ok, "queries": self.queries,
            "most queries": self.most_queries, "answers per parameter": self.per_parameter, "error": self.most_out,
            "source": self.source,
        }  # fmt: skip


@cache
def _measured() -> Any:
    return json.loads(resources.files("reluctant.estimation").joinpath("measured.json").read_text("utf-8"))


@cache
def measured_points() -> tuple[MeasuredPoint, ...]:
    """Every shape that was measured."""
    return tuple(
        MeasuredPoint(**{**row, "widths": tuple(row["widths"]), "answers": Answers.parse(row["answers"])})
        for row in _measured()["points"]
    )


def measured_speeds() -> Mapping[str, float]:
    """Operations a second of a target's arithmetic, by what computes it."""
    return dict(_measured()["speeds"])


@dataclass(frozen=True)
class Range:
    """An expected value, with the least and the most that measured runs leave open."""

    expected: float
    low: float
    high: float

    def times(self, factor: float) -> Range:
        """The range in other units."""
        return Range(factor * self.expected, factor * self.low, factor * self.high)


@dataclass(frozen=True)
class FitError:
    """Rows of a measured shape over expected ones, less one.

    usual: the median run against a fit without the shape. low, high: the median and the most expensive run, against
    that fit and the fit to all points.
    """

    point: MeasuredPoint
    usual: float
    low: float
    high: float


@dataclass(frozen=True)
class CostFit:
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

    def parts(self, widths: Widths, answers: Answers) -> Rows:
        """Expected rows, by stage or term."""
        sizes = self.sizes * np.array(self.formula.counts(widths, answers))
        return {**self.formula.fixed(widths, answers), **dict(zip(self.formula.terms, sizes.tolist(), strict=True))}

    def rows(self, widths: Widths, answers: Answers) -> float:
        """Expected rows."""
        return sum(self.parts(widths, answers).values())

    @cached_property
    def errors(self) -> tuple[FitError, ...]:
        """Errors at each point, the largest first."""
        found = []
        for point in sorted(self.points, key=lambda point: -point.queries):
            kind = (point.widths, point.answers)
            others = CostFit(self.formula, tuple(each for each in self.points if (each.widths, each.answers) != kind))
            unseen, seen = others.rows(*kind), self.rows(*kind)
            low = point.queries / max(unseen, seen) - 1
            high = point.most_queries / min(unseen, seen) - 1
            found.append(FitError(point, point.queries / unseen - 1, low, high))
        return tuple(found)

    def range(self, widths: Widths, answers: Answers) -> Range:
        """Expected rows, with the largest errors on shapes of such a size.

        Rounded float32 takes the steps of float32 with more noise, and was measured on smaller networks: its range ends
        no earlier.
        """
        rows = self.rows(widths, answers)
        as_large = sum(error.point.queries >= AS_LARGE * rows for error in self.errors)
        alike = self.errors if self.formula.crowds else self.errors[: max(as_large, FEWEST_ALIKE)]
        high = rows * (1 + max(0.0, *(error.high for error in alike)))
        if self.formula is ROUNDED_FLOAT32:
            high = max(high, fitted(FLOAT32_DIGITS).range(widths, Answers(FLOAT32)).high)
        return Range(rows, rows * (1 + min(0.0, *(error.low for error in alike))), high)

    def beyond(self, widths: Widths, answers: Answers) -> dict[str, float]:
        """Sizes of a shape over the largest measured one, and noise over the nearest, where they go beyond."""

        def sizes(widths: Widths) -> dict[str, float]:
            one_layer = len(widths) == FEWEST_LAYERS
            return {
                "parameters": parameters(widths),
                "parameters with several outputs": parameters(widths) if widths[-1] > 1 else 0,
                "inputs": widths[0], "neurons in a layer": max(widths[1:-1]),
                "neurons for each input": widths[1] / widths[0] if one_layer else 0.0,
                "hidden layers": len(widths) - 2, "outputs": widths[-1],
            }  # fmt: skip

        every = [sizes(point.widths) for point in self.points]
        most = {name: max(each[name] for each in every) for name in every[0]}
        times = {name: size / most[name] for name, size in sizes(widths).items() if most[name]}
        if answers.steady_noise:
            noises = [point.answers.noise for point in self.points]
            times["noise"] = answers.noise / max(noises)
            times["freedom from noise"] = min(noises) / answers.noise
        return {name: size for name, size in times.items() if size > NEAR_MEASURED}

    def nearest(self, widths: Widths, answers: Answers) -> tuple[MeasuredPoint, ...]:
        """The measured shapes most like this one, by the logarithms of widths and noise, the nearest first."""

        def distance(point: MeasuredPoint) -> float:
            there = point.widths
            sizes = [(widths[0], there[0]), (sum(widths[1:-1]), sum(there[1:-1])), (widths[-1], there[-1])]
            noises = [(answers.noise, point.answers.noise)] if answers.steady_noise else []
            return sum(math.log(a / b) ** 2 for a, b in (*sizes, (len(widths), len(there)), *noises))

        by_networks = sorted(self.points, key=lambda point: point.networks)
        best = {(point.widths, point.answers): point for point in by_networks}  # of two the one with more networks
        return tuple(sorted(best.values(), key=distance)[:NEAREST])

    def error(self, answers: Answers) -> float:
        """The largest error of a measured network, of the output's deviation; in units of noise where that decides."""

        def unit(of: Answers) -> float:
            return of.noise if of.steady_noise else 1.0

        return unit(answers) * max((point.most_out or 0.0) / unit(point.answers) for point in self.points)


@cache
def fitted(formula: CostFormula) -> CostFit:
    """The formula with all points of its kind."""
    return CostFit(formula, tuple(p for p in measured_points() if formula_for(p.widths, p.answers) is formula))


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
        parts: the same, by stage.
        seconds: at the rate given.
        money: at the price given.
        currency: of the price.
        arithmetic: seconds of the target's own arithmetic, by what computes it.
        transcript: bytes on disk.
        error: the largest of a measured network of this kind.
        recovered: of the measured networks of this kind, how many were, and of how many.
        beyond: sizes of the shape that no measured network reaches, and how many times they are larger.
        nearest: measured shapes most like it.
    """

    widths: Widths
    precision: str
    reason: Diagnosis | None = None
    method: str = ""
    gives: str = ""
    queries: Range | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    seconds: Range | None = None
    money: Range | None = None
    currency: str = ""
    arithmetic: Mapping[str, float] = field(default_factory=dict)
    transcript: float | None = None
    error: float | None = None
    recovered: tuple[int, int] = (0, 0)
    beyond: Mapping[str, float] = field(default_factory=dict)
    nearest: tuple[MeasuredPoint, ...] = ()

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

    def __str__(self) -> str:
        if self.queries is None:
            return str(self.reason)
        ok, networks = self.recovered
        said = {"method": self.method, "gives": self.gives, "precision": self.precision, "shape": self.shape}
        return str(Diagnosis("estimated-cost", said | asdict(self.queries) | {"ok": ok, "networks": networks}))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        ranges = {
            "queries": self.queries, "answers per parameter": self.per_parameter, "seconds": self.seconds,
            "money": self.money,
        }  # fmt: skip
        return {
            "shape": self.shape, "widths": list(self.widths), "parameters": self.parameters,
            "precision": self.precision, "ok": self.ok,
            "reason": None if self.reason is None else {**self.reason.to_dict(), "text": str(self.reason)},
            "method": self.method, "gives": self.gives,
            **{name: None if each is None else asdict(each) for name, each in ranges.items()},
            "queries by part": dict(self.parts), "currency": self.currency,
            "arithmetic seconds": dict(self.arithmetic), "transcript bytes": self.transcript, "error": self.error,
            "recovered": {"networks": self.recovered[1], "ok": self.recovered[0]},
            "times the largest measured": dict(self.beyond), "measured": [point.to_dict() for point in self.nearest],
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
    """Predict queries, time and money of an attack on a network of this shape. No query is sent.

    The numbers come from the settings of the method and from measured runs.

    Arguments:
        shape: widths of all layers, "784-128-1" or (784, 128, 1).
        precision: the answers: "float64", "float32", "float16", "decimals=3" (a model that computes in float64),
            "float32,decimals=3", "noise=1e-4" (in deviations of the output) or "labels".
        rate: rows a second that the target answers.
        price: price of a thousand queries.
        currency: its currency, in words.
        flops: operations a second of the target's machine. By default a measured core and a measured GPU.
        link: the link of the answers. There are no numbers for answers behind a link.
    """
    widths, answers = as_widths(shape), Answers.parse(precision)
    for name, number in (("rate", rate), ("flops", flops)):
        if number is not None and not 0 < number < math.inf:
            raise InvalidInput.about(name, got=number, expected="a finite number above 0")
    if price is not None and not 0 <= price < math.inf:
        raise InvalidInput.about("price", got=price, expected="a finite number, at least 0")
    if link not in ANSWER_LINKS:
        raise InvalidInput.about("link", got=repr(link), expected=f"one of {', '.join(ANSWER_LINKS)}")
    asked, formula = Estimate(widths, str(answers), currency=currency), formula_for(widths, answers, link)
    if isinstance(formula, Diagnosis):
        return replace(asked, reason=formula)
    fit = fitted(formula)
    rows, speeds = fit.range(widths, answers), measured_speeds() if flops is None else {"the speed given": flops}
    operations = OPERATIONS_A_WEIGHT * parameters(widths) * rows.expected
    return replace(
        asked,
        method=formula.name,
        gives=formula.gives,
        queries=rows,
        parts={part: count for part, count in fit.parts(widths, answers).items() if count},
        seconds=None if rate is None else rows.times(1 / rate),
        money=None if price is None else rows.times(price / PER_PRICE),
        arithmetic={name: operations / speed for name, speed in speeds.items()},
        transcript=transcript_bytes(rows.expected, answers.in_a_row(widths[-1])),
        error=fit.error(answers),
        recovered=(sum(point.ok for point in fit.points), sum(point.networks for point in fit.points)),
        beyond=fit.beyond(widths, answers),
        nearest=fit.nearest(widths, answers),
    )


def transcript_bytes(rows: float, answers: int) -> float:
    """Size on disk of rows with so many answers each: the key of the row, and its answers."""
    return rows * (KEY_BYTES + FLOAT_BYTES * answers)
