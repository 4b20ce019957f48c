"""`reluctant estimate`: the expected cost of an attack on a shape, without a query."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from reluctant._version import __version__
from reluctant.cli.files import check_record_path, write_record
from reluctant.estimation import Estimate, Range
from reluctant.estimation import estimate as estimate_cost
from reluctant.estimation.cost import MeasuredPoint
from reluctant.estimation.formulas import KINDS
from reluctant.report.text import UNKNOWN, bytes_, count, duration, money

SCHEMA = "reluctant-estimate/2"
LABEL = 28  # characters of a line's name, at least
NO_DECIMALS_FROM = 100.0  # from here on decimals say nothing


def estimate(
    shapes: Annotated[
        list[str],
        typer.Argument(metavar="SHAPE...", help="Widths from inputs to outputs: 784-128-1.", show_default=False),
    ],
    precision: Annotated[str, typer.Option(help=f"What an answer gives: {', '.join(KINDS)}.")] = "float64",
    labels: Annotated[bool, typer.Option("--labels", help="The same as --precision labels.")] = False,
    link: Annotated[
        str,
        typer.Option(help="softmax, sigmoid, log-softmax, top-k, tanh: answers of which there is no number yet."),
    ] = "identity",
    rate: Annotated[float | None, typer.Option(help="Rows a second that the target answers.")] = None,
    price: Annotated[float | None, typer.Option(help="Of a thousand queries.")] = None,
    currency: Annotated[str, typer.Option(help="Of the price.")] = "",
    flops: Annotated[
        float | None,
        typer.Option(help="Operations a second the target computes with; else a measured CPU core and GPU."),
    ] = None,
    where: Annotated[
        str | None, typer.Option("--json", metavar="FILE|-", help="Write the estimates as JSON; - is standard output.")
    ] = None,
) -> int:
    """Estimate what an attack on a network of a given shape costs.

    It asks nothing and runs nothing. Most rows follow from the settings of the method that `extract` would use; the
    rest is fitted to measured runs, which come with the package; the nearest are listed. The range is the largest error
    of the fit on measured shapes of such a size, seen and unseen. The line "extrapolated" says how far the shape goes
    beyond all of them. Where nothing was measured there is no number, and exit status 1. Measured networks have random
    weights; trained ones may need another attempt.

    The shape 784-128-1 has 784 inputs, 128 hidden neurons and one output. The precision decimals=3 is a float64 model
    that rounds its answers; float32,decimals=3 is a float32 model that rounds, as most served ones do. With noise=1e-4
    the noise is that part of the output's deviation. With labels the copy has the same decision boundary; of several
    hidden layers the estimate covers the directions that change a label, not a copy. Probabilities (--link softmax)
    have no estimate.

    Example: reluctant estimate 784-128-1 --rate 200 --price 0.5

    Example: reluctant estimate 784-32-1 --labels --rate 100

    Example: reluctant estimate 784-128-10 3072-2048-10 --precision float32 --json -
    """
    check_record_path(where)
    precision = "labels" if labels else precision
    found = [
        estimate_cost(shape, precision=precision, link=link, rate=rate, price=price, currency=currency, flops=flops)
        for shape in shapes
    ]
    write_record(EstimateRecord(found), where)
    if where != "-":
        print("\n\n".join("\n".join(_lines(each, rate, price)) for each in found))
    return 0 if all(each.ok for each in found) else 1


@dataclass(frozen=True)
class EstimateRecord:
    """Estimates as one JSON object."""

    estimates: Sequence[Estimate]

    def to_json(self) -> str:
        """The object."""
        each = [one.to_dict() for one in self.estimates]
        return json.dumps({"schema": SCHEMA, "reluctant": __version__, "estimates": each}, indent=1, allow_nan=False)


def _lines(found: Estimate, rate: float | None, price: float | None) -> Iterator[str]:
    yield f"{found.shape}: {count(found.parameters)} parameters, answers in {found.precision}"
    if found.queries is None:
        yield f"No estimate. {found.reason}"
        return
    yield f"{found.method[0].upper()}{found.method[1:]}: {found.gives}."
    yield ""
    figures = list(_figures(found, rate, price))
    width = max(LABEL, *(len(name) + 2 for name, _ in figures))
    yield from (f"{name:<{width}}{value}" for name, value in figures)
    yield ""
    yield from _table(found.nearest)


def _figures(found: Estimate, rate: float | None, price: float | None) -> Iterator[tuple[str, str]]:
    """Names and values, with their range."""
    yield "queries", _ranged(found.queries, count)
    yield "answers for each parameter", _ranged(found.per_parameter, _ratio)
    if found.seconds is not None:
        yield f"at {rate:,.10g} rows a second", _ranged(found.seconds, duration)
    if found.money is not None:
        priced = f"at {price:,.10g} {found.currency}".rstrip()
        yield f"{priced} a thousand", _ranged(found.money, lambda value: money(value, found.currency))
    yield "target's own arithmetic", ", ".join(f"{duration(time)} on {what}" for what, time in found.arithmetic.items())
    yield "transcript on disk", bytes_(found.transcript)
    yield "largest error measured", UNKNOWN if found.error is None else f"{found.error:.0e}"
    yield "recovered", f"{found.recovered[0]} of {found.recovered[1]} measured networks of this kind"
    if found.beyond:
        times = [f"{times:,.{0 if times >= 10 else 1}f} times the {name}" for name, times in found.beyond.items()]
        yield "extrapolated", f"{', '.join(times)} of any measured network"


def _ratio(value: float) -> str:
    return count(value) if value >= NO_DECIMALS_FROM else f"{value:.3f}"


def _ranged(value: Range | None, written: Callable[[float], str]) -> str:
    if value is None:
        return UNKNOWN
    return f"{written(value.expected)}  ({written(value.low)} to {written(value.high)})"


def _table(nearest: Sequence[MeasuredPoint]) -> Iterator[str]:
    head = ("measured nearby", "recovered", "queries", "answers/P", "error")
    rows = [head, *(_row(point) for point in nearest)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        first, *others = (cell.ljust(width) if not column else cell.rjust(width + 3)
                          for column, (cell, width) in enumerate(zip(row, widths, strict=True)))  # fmt: skip
        yield first + "".join(others)


def _row(point: MeasuredPoint) -> tuple[str, ...]:
    error = UNKNOWN if point.most_out is None else f"{point.most_out:.0e}"
    recovered = f"{point.ok} of {point.networks}"
    return point.name, recovered, count(point.queries), _ratio(point.per_parameter), error
