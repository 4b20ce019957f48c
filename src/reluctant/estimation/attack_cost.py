"""`estimate`:

what an attack on a shape would cost, with the measured points beside it, and how far the shape lies from them, in
words: a number is worth what was measured around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, log
from typing import Any

from reluctant.errors import InvalidInput
from reluctant.estimation.cost_model import FittedModel, Range
from reluctant.estimation.measurements import (
    Answers,
    MeasuredPoint,
    Widths,
    answers_per_parameter,
    as_widths,
    measured_runs,
    parameters,
    shape_name,
)
from reluctant.estimation.regimes import (
    GIVEN_SPEED,
    NotMeasured,
    arithmetic_seconds,
    expected_accuracy,
    expected_memory,
    failed_tries,
    fitted,
    model_for,
    rows_to_expect,
    transcript_bytes,
)
from reluctant.oracles.links import ANSWER_LINKS

__all__ = ["PER_PRICE", "Estimate", "Neighbour", "Trust", "estimate", "nearest_points", "trust_in"]

MEASURED_LEVEL, BETWEEN_LEVEL, EXTRAPOLATED_LEVEL = "measured", "between measured shapes", "extrapolated"
NO_DECIMALS_FROM = 10.0  # times: how much larger a shape is, in words
NEAR_MEASURED = 1.1  # times the largest that was measured: as good as measured
NEIGHBOURS = 3


@dataclass(frozen=True)
class Trust:
    """`level`: "measured", "between measured shapes" or "extrapolated"; `reasons` say in which way."""

    level: str
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.level}: {'; '.join(self.reasons)}" if self.reasons else self.level
        return f"{text[0].upper()}{text[1:]}."


def trust_in(widths: Widths, answers: Answers, fit: FittedModel, failed: Sequence[MeasuredPoint]) -> Trust:
    """Compare a shape with the points of its kind, and with those that were tried and not recovered."""
    points = fit.points
    outside = _outside_reasons(widths, points, fit.model.sizes)
    reasons = (*outside, *_noise_reasons(answers, points), *_failed_reasons(widths, points, failed))
    if reasons:
        return Trust(EXTRAPOLATED_LEVEL, reasons)
    same = [point for point in points if point.widths == widths and point.answers == answers]
    return Trust(MEASURED_LEVEL, ("this very shape was run",)) if same else Trust(BETWEEN_LEVEL)


def _shape_sizes(widths: Widths) -> dict[str, int]:
    """What a shape is measured by."""
    return {
        "parameters": parameters(widths),
        "parameters with several outputs": parameters(widths) if widths[-1] > 1 else 0,
        "inputs": widths[0],
        "neurons in the first layer": widths[1],
        "neurons in a deeper layer": max(widths[2:-1], default=0),
        "hidden layers": len(widths) - 2,
        "outputs": widths[-1],
    }


def _compared_sizes(widths: Widths) -> dict[str, float]:
    """Sizes, and for one hidden layer how wide it is for its inputs: each may be measured, and not the two together."""
    hidden = len(widths) - 2
    return {**_shape_sizes(widths), "neurons for each input": widths[1] / widths[0] if hidden == 1 else 0}


def _outside_reasons(widths: Widths, points: Sequence[MeasuredPoint], names: Sequence[str]) -> Iterator[str]:
    """Each size that no measured shape reaches, or that all of them pass."""
    every = [_compared_sizes(point.widths) for point in points]
    here = _compared_sizes(widths)
    for name in names or here:
        size = here[name]
        least, most = min(each[name] for each in every), max(each[name] for each in every)
        if size > NEAR_MEASURED * most > 0:  # where no measured network has several outputs, their number says so
            yield f"{_times(size / most)} more {name} than any measured network ({_size_in_words(most)})"
        elif NEAR_MEASURED * size < least:
            yield f"fewer {name} than any measured network ({_size_in_words(least)})"


def _size_in_words(size: float) -> str:
    return f"{size:,}" if isinstance(size, int) else f"{size:.2g}"


def _times(factor: float) -> str:
    return f"{factor:,.0f}×" if factor >= NO_DECIMALS_FROM else f"{factor:.1f}×"


def _noise_reasons(answers: Answers, points: Sequence[MeasuredPoint]) -> Iterator[str]:
    """Noise that is larger or smaller than any that was measured."""
    if not answers.steady_noise:
        return
    noises = [point.answers.noise for point in points]
    if not min(noises) <= answers.noise <= max(noises):
        yield f"noise of {answers.noise:.1e} where {min(noises):.1e} to {max(noises):.1e} was measured"


def _failed_reasons(widths: Widths, points: Sequence[MeasuredPoint], failed: Sequence[MeasuredPoint]) -> Iterator[str]:
    """A try at a shape that is no larger and was not recovered, where nothing as wide was."""
    widest = max(point.widths[1] for point in points)
    for point in failed:
        if widths[1] > widest and point.widths[1] > widest:
            yield f"{point.shape} was tried and not recovered ({point.why})"


def nearest_points(widths: Widths, answers: Answers, points: Sequence[MeasuredPoint]) -> list[MeasuredPoint]:
    """The measured points that are most like a shape, the nearest first."""
    here = _place_of(widths, answers)

    def distance(point: MeasuredPoint) -> float:
        there = _place_of(point.widths, point.answers)
        return sum((a - b) ** 2 for a, b in zip(here, there, strict=True))

    best: dict[tuple[Widths, Answers], MeasuredPoint] = {}
    for point in sorted(points, key=lambda point: point.networks):  # of two results for a shape the one with more
        best[point.widths, point.answers] = point
    return sorted(best.values(), key=distance)[:NEIGHBOURS]


def _place_of(widths: Widths, answers: Answers) -> tuple[float, ...]:
    """Sizes and noise in their logarithms."""
    noise = log(answers.noise) if answers.steady_noise else 0.0
    return (*(log(max(size, 1)) for size in _shape_sizes(widths).values()), noise)


PER_PRICE = 1000  # queries that a price is for


@dataclass(frozen=True)
class Neighbour:
    """A measured shape, and what it took over what a model expects that has not seen it, less one.

    As a range is given: +0.05 took a twentieth more than expected.
    """

    point: MeasuredPoint
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
    fit: FittedModel, widths: Widths, answers: Answers, rate: float | None, price: float | None, flops: float | None
) -> Estimate:
    model, points = fit.model, fit.points
    rows, failed = rows_to_expect(model, widths, answers), failed_tries(model)
    speeds = measured_runs().speeds if flops is None else {GIVEN_SPEED: flops}
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
        memory=expected_memory(model, points, widths),
        transcript=transcript_bytes(rows.expected, answers.in_a_row(widths[-1])),
        accuracy=expected_accuracy(fit, widths, answers),
        recovered=(sum(point.ok for point in tried), sum(point.networks for point in tried)),
        trust=trust_in(widths, answers, fit, failed),
        neighbours=tuple(_neighbour(fit, point) for point in nearest_points(widths, answers, points)),
    )


def _neighbour(fit: FittedModel, point: MeasuredPoint) -> Neighbour:
    return Neighbour(point, next(error.usual for error in fit.errors if error.point is point))
