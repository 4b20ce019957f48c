"""`reluctant estimate`: the expected cost of an attack on a shape, without a query."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from reluctant._files import write_text
from reluctant._version import __version__
from reluctant.cli.files import check_record_path, write_record
from reluctant.estimation import Estimate, Range
from reluctant.estimation import estimate as estimate_cost
from reluctant.estimation.cost import FitError
from reluctant.estimation.measurements import KINDS
from reluctant.report.numbers import UNKNOWN, bytes_, count, duration, money

SCHEMA = "reluctant-estimate/1"
LABEL = 28  # characters of a line's name, at least
NO_DECIMALS_FROM = 100.0  # from here on decimals say nothing


def estimate(
    shapes: Annotated[
        list[str],
        typer.Argument(metavar="SHAPE...", help="Widths from inputs to outputs: 784-128-1.", show_default=False),
    ],
    precision: Annotated[str, typer.Option(help=f"What an answer gives: {', '.join(KINDS)}.")] = "float64",
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
    rest is fitted to measured runs, which come with the package and are listed beside the estimate. The range is the
    largest error of the fit on measured shapes of such a size, seen and unseen. The line "trust" says how far this
    shape is from all of them. Where nothing was measured there is no number, and exit status 1. Measured networks have
    random weights; trained ones may need another attempt.

    784-128-1 has 784 inputs, 128 hidden neurons and one output. decimals=3 is a float64 model that rounds its answers,
    float32,decimals=3 a float32 model that does, as most served ones are. noise=1e-4 is noise of that part of the
    output's deviation. labels give the directions that a target looks at, and no copy. Probabilities (--link softmax)
    have no estimate.

    Example: reluctant estimate 784-128-1 --rate 200 --price 0.5

    Example: reluctant estimate 784-128-10 3072-2048-10 --precision float32 --json -
    """
    check_record_path(where)
    found = [
        estimate_cost(shape, precision=precision, link=link, rate=rate, price=price, currency=currency, flops=flops)
        for shape in shapes
    ]
    write_record(Written(found), where)
    if where != "-":
        print("\n\n".join("\n".join(_lines(each, Given(rate, price))) for each in found))
    return 0 if all(each.ok for each in found) else 1


@dataclass(frozen=True)
class Written:
    """Estimates as one JSON object."""

    estimates: Sequence[Estimate]

    def to_json(self) -> str:
        """The object."""
        each = [one.to_dict() for one in self.estimates]
        return json.dumps({"schema": SCHEMA, "reluctant": __version__, "estimates": each}, indent=1, allow_nan=False)

    def write(self, path: Path) -> None:
        """Write it."""
        write_text(path, self.to_json() + "\n")


@dataclass(frozen=True)
class Given:
    """What was said of the target."""

    rate: float | None
    price: float | None


def _lines(found: Estimate, given: Given) -> Iterator[str]:
    yield f"{found.shape}: {count(found.parameters)} parameters, answers in {found.precision}"
    if found.queries is None or found.trust is None:
        yield f"No estimate. {found.reason}"
        return
    yield f"{found.method[0].upper()}{found.method[1:]}: {found.gives}."
    yield ""
    figures = [*_figures(found, given), ("trust", str(found.trust))]
    width = max(LABEL, *(len(name) + 2 for name, _ in figures))
    yield from (f"{name:<{width}}{value}" for name, value in figures)
    yield ""
    yield from _table(found.neighbours)


def _figures(found: Estimate, given: Given) -> Iterator[tuple[str, str]]:
    """Names and values, with their range."""
    assert found.queries is not None
    yield "queries", _ranged(found.queries, count)
    yield "answers for each parameter", _ranged(found.per_parameter, _ratio)
    if found.seconds is not None:
        yield f"at {_given(given.rate)} rows a second", _ranged(found.seconds, duration)
    if found.money is not None:
        priced = f"at {_given(given.price)} {found.currency}".rstrip()
        yield f"{priced} a thousand", _ranged(found.money, lambda value: money(value, found.currency))
    yield "target's own arithmetic", ", ".join(f"{duration(time)} on {what}" for what, time in found.arithmetic.items())
    yield "our memory", "not measured" if found.memory is None else f"{found.memory:,.1f} GiB"
    yield "transcript on disk", bytes_(found.transcript)
    yield "error", _ranged(found.accuracy, lambda value: f"{value:.0e}")
    yield "recovered", f"{found.recovered[0]} of {found.recovered[1]} measured networks of this kind"


def _ratio(value: float) -> str:
    return count(value) if value >= NO_DECIMALS_FROM else f"{value:.3f}"


def _given(number: float | None) -> str:
    """A number as it was given, with commas and without a power of ten."""
    return UNKNOWN if number is None else f"{number:,.10g}"


def _ranged(value: Range | None, written: Callable[[float], str]) -> str:
    if value is None:
        return UNKNOWN
    return f"{written(value.expected)}  ({written(value.low)} to {written(value.high)})"


def _table(neighbours: Sequence[FitError]) -> Iterator[str]:
    head = ("measured nearby", "recovered", "queries", "answers/P", "error", "over expected")
    rows = [head, *(_row(neighbour) for neighbour in neighbours)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    for row in rows:
        first, *others = (cell.ljust(width) if not column else cell.rjust(width + 3)
                          for column, (cell, width) in enumerate(zip(row, widths, strict=True)))  # fmt: skip
        yield first + "".join(others)


def _row(neighbour: FitError) -> tuple[str, ...]:
    point = neighbour.point
    out = UNKNOWN if point.most_out is None else f"{point.most_out:.0e}"
    return (
        point.name,
        f"{point.ok} of {point.networks}",
        count(point.queries),
        _ratio(point.per_parameter),
        out,
        f"{neighbour.usual:+.1%}",
    )
