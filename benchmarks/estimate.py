"""The cost model as it is fitted: its terms, how far off it is on shapes it has not seen, sizes nobody can run.

python -m benchmarks estimate               prints the tables of docs/estimate.md; asks nothing
python scripts/estimate_tables.py           writes them there
"""

from __future__ import annotations

from collections.abc import Sequence

from reluctant.estimation import Estimate, estimate
from reluctant.estimation.cost import fitted
from reluctant.estimation.formulas import (
    ANY_DEPTH,
    DEPTH_THREE,
    DEPTH_TWO,
    FLOAT32_DIGITS,
    FROM_LABELS,
    LABELS_ONLY,
    ROUNDED_FLOAT32,
    STEADY_NOISE,
    CostFormula,
    parameters,
    shape_name,
)
from reluctant.report.text import bytes_, count, duration

MODELS = (DEPTH_TWO, DEPTH_THREE, ANY_DEPTH, STEADY_NOISE, FLOAT32_DIGITS, ROUNDED_FLOAT32, FROM_LABELS, LABELS_ONLY)
COUNTS = {
    DEPTH_TWO: ("neurons", "neurons²"),
    DEPTH_THREE: ("first weights", "h·(h + k)", "neurons"),
    ANY_DEPTH: ("weights after the first", "neurons × later layers", "first weights of 50 inputs and more"),
    STEADY_NOISE: ("neurons",),
    FLOAT32_DIGITS: ("neurons", "neurons × spare lines", "a run"),
    ROUNDED_FLOAT32: ("neurons", "a run"),
    FROM_LABELS: ("(n − 8)·(k + m − 1)", "k·(m − 1)", "a run"),
    LABELS_ONLY: ("k·(n − k)", "k³", "a run"),
}
SIZES = (
    ("784-1024-10", "float64"),
    ("3072-4096-10", "float64"),
    ("12288-8192-1000", "float64"),
    ("150528-4096-1000", "float64"),
    ("784-512-256-10", "float64"),
    ("3072-1024-512-10", "float64"),
    ("784-64-64-64-10", "float64"),
    ("784-512-10", "float32"),
    ("784-128-10", "float32,decimals=3"),
    ("784-1024-10", "decimals=4"),
    ("784-128-64-10", "labels"),
)
RATE, PRICE = 200.0, 0.5


def main() -> None:
    for head, rows in (model_table(), size_table()):
        widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
        for row in (head, *rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
        print()


Table = tuple[Sequence[str], list[tuple[str, ...]]]


def model_table() -> Table:
    """What is fitted, to how many shapes, and the errors on each without itself."""
    head = ("model", "fitted rows", "shapes", "largest", "over expected, unseen", "most of a run")
    return head, [model_row(model) for model in MODELS]


def model_row(model: CostFormula) -> tuple[str, ...]:
    fit = fitted(model)
    terms = (f"{size:.3g} × {what}" for size, what in zip(fit.sizes, COUNTS[model], strict=True))
    usual, most = [error.usual for error in fit.errors], max(error.high for error in fit.errors)
    largest = max(fit.points, key=lambda point: parameters(point.widths))
    shapes = {(point.widths, point.answers) for point in fit.points}
    between = f"{min(usual):+.1%} to {max(usual):+.1%}"
    return model.name, ", ".join(terms), str(len(shapes)), shape_name(largest.widths), between, f"{most:+.0%}"


def size_table() -> Table:
    """Shapes beyond what can be run here."""
    head = ("shape", "answers", "parameters", "queries", "time", "money", "transcript", "beyond measured shapes by")
    return head, [size_row(estimate(shape, precision=asked, rate=RATE, price=PRICE)) for shape, asked in SIZES]


def size_row(found: Estimate) -> tuple[str, ...]:
    if found.queries is None or found.seconds is None or found.money is None:
        return found.shape, found.precision, count(found.parameters), "none", "", "", "", str(found.reason)
    queries = f"{rounded(found.queries.low)} to {rounded(found.queries.high)}"
    return (
        found.shape, found.precision, count(found.parameters), queries, duration(found.seconds.expected),
        count(found.money.expected), bytes_(found.transcript), farthest(found),
    )  # fmt: skip


def farthest(found: Estimate) -> str:
    """Sizes beyond measured shapes, the largest first."""
    times = sorted(found.beyond.items(), key=lambda item: -item[1])
    return ", ".join(f"{times:,.{0 if times >= 10 else 1}f}× {name}" for name, times in times) or "none"


def rounded(rows: float) -> str:
    """Rows to three digits."""
    return count(float(f"{rows:.3g}"))
