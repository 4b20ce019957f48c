"""`estimate`: what an attack on a shape would cost, with the measured points beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Any

from reluctant.errors import InvalidInput
from reluctant.estimation.accuracy import accuracy
from reluctant.estimation.answers import Answers
from reluctant.estimation.measured import Point, measured
from reluctant.estimation.model import Fitted, Range
from reluctant.estimation.regimes import NotMeasured, failed_tries, fitted, model_for, rows_to_expect
from reluctant.estimation.resources import GIVEN_SPEED, arithmetic_seconds, memory, transcript_bytes
from reluctant.estimation.shapes import Widths, answers_per_parameter, as_widths, parameters, shape_name
from reluctant.estimation.trust import Trust, nearest, trust
from reluctant.oracles.link import ANSWER_LINKS

__all__ = ["PER_PRICE", "Estimate", "Neighbour", "estimate"]

PER_PRICE = 1000  # queries that a price is for


@dataclass(frozen=True)
class Neighbour:
    """A measured shape, and what it took over what a model expects that has not seen it, less one.

    As a range is given: +0.05 took a twentieth more than expected.
    """

    point: Point
    over_expected: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        point = self.point
        return {
            "shape": point.shape, "name": point.name, "precision": str(point.answers), "networks": point.networks,
            "recovered": point.ok, "queries": point.queries, "most queries": point.most_queries,
            "answers per parameter": point.per_parameter, "error": point.most_out,
            "over expected": self.over_expected, "source": point.source,
        }  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """What an attack would cost. `ok`: there is a number; else `reason` says why there is none.

    Arguments:
        widths: of the target.
        precision: what its answers give.
        reason: why there is no number.
        method: what would be run.
        gives: what would come of it.
        queries: rows to ask.
        parts: the same, by what they are for.
        seconds: at the rate given.
        money: at the price given.
        currency: of the price.
        arithmetic: seconds of the target's own arithmetic, by what computes it.
        memory: GiB on our side, None where that was not measured.
        transcript: bytes on disk.
        accuracy: largest error to expect, of the output's deviation; sine of the angle for a span.
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
    neighbours: tuple[Neighbour, ...] = ()

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
        return {
            "shape": self.shape, "widths": list(self.widths), "parameters": self.parameters,
            "precision": self.precision, "ok": self.ok, "reason": self.reason,
            "method": self.method, "gives": self.gives,
            "queries": _plain(self.queries), "answers per parameter": _plain(self.per_parameter),
            "queries by part": dict(self.parts), "seconds": _plain(self.seconds), "money": _plain(self.money),
            "currency": self.currency,
            "arithmetic seconds": dict(self.arithmetic), "memory GiB": self.memory,
            "transcript bytes": self.transcript, "error": _plain(self.accuracy),
            "recovered": {"networks": self.recovered[1], "ok": self.recovered[0]},
            "trust": None if self.trust is None else {"level": self.trust.level, "reasons": list(self.trust.reasons)},
            "measured": [neighbour.to_dict() for neighbour in self.neighbours],
        }  # fmt: skip


def _plain(value: Range | None) -> dict[str, float] | None:
    return None if value is None else asdict(value)


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
    try:
        model = model_for(widths, answers, link)
    except NotMeasured as reason:
        return Estimate(widths, str(answers), reason=str(reason), currency=currency)
    return replace(_estimated(fitted(model), widths, answers, rate, price, flops), currency=currency)


def _estimated(
    fit: Fitted, widths: Widths, answers: Answers, rate: float | None, price: float | None, flops: float | None
) -> Estimate:
    model, points = fit.model, fit.points
    rows, failed = rows_to_expect(model, widths, answers), failed_tries(model)
    speeds = measured().speeds if flops is None else {GIVEN_SPEED: flops}
    tried = (*points, *failed)
    return Estimate(
        widths,
        str(answers),
        method=model.name,
        gives=model.gives,
        queries=rows,
        parts={part: count for part, count in fit.parts(widths, answers).items() if count},
        seconds=None if rate is None else rows.times(1 / rate),
        money=None if price is None else rows.times(price / PER_PRICE),
        arithmetic=arithmetic_seconds(widths, rows.expected, speeds),
        memory=memory(model, points, widths),
        transcript=transcript_bytes(rows.expected, answers.in_a_row(widths[-1])),
        accuracy=accuracy(fit, widths, answers),
        recovered=(sum(point.ok for point in tried), sum(point.networks for point in tried)),
        trust=trust(widths, answers, fit, failed),
        neighbours=tuple(_neighbour(fit, point) for point in nearest(widths, answers, points)),
    )


def _neighbour(fit: Fitted, point: Point) -> Neighbour:
    return Neighbour(point, next(error.usual for error in fit.errors if error.point is point))
