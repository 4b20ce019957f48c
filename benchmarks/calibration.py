"""What the cost model is fitted to besides the other kept results: more shapes, rows by stage.

    python -m benchmarks calibration                      3 networks of each shape, 9 of those with few digits
    CALIBRATION_PARTS=deep,digits,labels ...              these parts only
    CALIBRATION_SHAPES=40-20-10-1,6-10-10-1 ...           these shapes only

`deep`: two hidden layers and more, values in float64. `digits`: one hidden layer, float32 and rounded answers.
`labels`: the span from labels alone, of networks with tanh, softplus and ReLU in turn; `out` is the largest sine to the
true span. Rows are medians over the networks, with the most that any of them took. Seeds that nothing was tuned on.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from benchmarks.results import Results
from reluctant.estimation.formulas import parameters, shape_name
from reluctant.papers.experiments.trials import ExactRun, SpanRun, exact_run, label_network
from reluctant.testing import in_float32, planted, single_precision

DEEP = (
    (30, 30, 10, 1),
    (40, 20, 10, 1),
    (60, 30, 15, 3),
    (100, 20, 20, 1),
    (300, 30, 30, 1),
    (6, 10, 10, 1),
    (8, 12, 6, 1),
    (15, 20, 10, 1),
    (12, 10, 8, 6, 1),
    (30, 12, 8, 4, 1),
    (100, 10, 8, 6, 1),
    (300, 12, 10, 8, 1),
)
LABELS = (
    (30, 5, 8, 1),
    (50, 8, 16, 1),
    (50, 20, 8, 1),
    (64, 32, 8, 1),
    (100, 10, 10, 1),
    (200, 10, 10, 1),
    (150, 40, 1),
    (400, 15, 1),
    (784, 20, 20, 1),
)
DIGITS = (
    ("float32", (20, 6, 1)),
    ("float32", (40, 16, 1)),
    ("float32", (30, 10, 5)),
    ("decimals=4", (30, 10, 1)),
    ("decimals=4", (150, 30, 1)),
    ("decimals=4", (100, 100, 1)),
    ("decimals=4", (60, 20, 5)),
)
ACTIVATIONS = ("tanh", "softplus", "relu")
NETWORKS, MORE_NETWORKS = 3, 9  # small float32 networks often need a second attempt
FIRST_SEED = 210_000
BIAS = 0.3
RESULTS = Results("calibration")


def main() -> None:
    parts = os.environ.get("CALIBRATION_PARTS", "deep,digits,labels").split(",")
    print(f"{'network':<26}{'P':>8}{'ok':>7}{'rows':>10}{'(max)':>10}{'out':>10}{'(max)':>10}{'CPU s':>8}")
    for widths in chosen(DEEP if "deep" in parts else ()):
        runs = [exact_run(planted(widths, FIRST_SEED + seed, bias=BIAS), seed) for seed in range(NETWORKS)]
        print(deep_row(widths, runs), flush=True)
    for precision, widths in DIGITS if "digits" in parts else ():
        runs = [few_digits(precision, widths, seed) for seed in range(MORE_NETWORKS)]
        print(deep_row(widths, runs, precision), flush=True)
    for widths in chosen(LABELS if "labels" in parts else ()):
        spans = [
            label_network(widths, ACTIVATIONS[seed % len(ACTIVATIONS)], FIRST_SEED + seed, seed)
            for seed in range(NETWORKS)
        ]
        print(label_row(widths, spans), flush=True)


def chosen(shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The shapes asked for, all by default."""
    names = os.environ.get("CALIBRATION_SHAPES")
    return [widths for widths in shapes if names is None or shape_name(widths) in names.split(",")]


def few_digits(precision: str, widths: tuple[int, ...], seed: int) -> ExactRun:
    """A run on a network that answers with few digits."""
    true = planted(widths, FIRST_SEED + seed, bias=BIAS)
    if precision == "float32":
        true = single_precision(true)
        return exact_run(true, seed, target=in_float32(true))
    decimals = int(precision.partition("=")[2])
    return exact_run(true, seed, target=lambda x: np.round(true(x), decimals))


def deep_row(widths: tuple[int, ...], runs: list[ExactRun], precision: str = "float64") -> str:
    good = [run for run in runs if run.ok] or runs
    ok, wrong = sum(run.ok for run in runs), sum(run.wrong for run in runs)
    rows, out = [run.queries for run in good], [run.out for run in good]
    name = shape_name(widths) if precision == "float64" else f"{shape_name(widths)}, {precision}"
    RESULTS.keep(
        name, kind=precision, widths=list(widths), networks=len(runs), ok=ok, wrong=wrong,
        parameters=parameters(widths), queries=np.median(rows), queries_max=max(rows), out=np.median(out),
        out_max=max(out), stages=median_stages(good), cpu=np.median([run.cpu for run in good]),
    )  # fmt: skip
    return line(name, parameters(widths), ok, len(runs), rows, out, [run.seconds for run in good])


def median_stages(runs: Sequence[ExactRun]) -> dict[str, float]:
    """Rows of every stage: medians over the runs, 0 where a run had no such stage."""
    stages: dict[str, list[int]] = defaultdict(lambda: [0] * len(runs))
    for number, run in enumerate(runs):
        for stage, rows in run.stages.items():
            stages[stage][number] = rows
    return {stage: float(np.median(rows)) for stage, rows in stages.items()}


def label_row(widths: tuple[int, ...], runs: list[SpanRun]) -> str:
    good = [run for run in runs if run.right and not run.dead] or runs
    ok, kn = sum(run.right for run in runs), min(widths[:2]) * widths[0]
    rows, out = [round(run.cost * kn) for run in good], [run.angle for run in good]
    RESULTS.keep(
        f"{shape_name(widths)}, labels", kind="labels", widths=list(widths), networks=len(runs), ok=ok,
        parameters=parameters(widths), queries=np.median(rows), queries_max=max(rows), out=np.median(out),
        out_max=max(out), cpu=np.median([run.cpu for run in good]),
    )  # fmt: skip
    return line(
        f"{shape_name(widths)}, labels", parameters(widths), ok, len(runs), rows, out, [run.seconds for run in good]
    )


def line(
    name: str, p: int, ok: int, of: int, rows: Sequence[int], out: Sequence[float], seconds: Sequence[float]
) -> str:
    return (
        f"{name:<26}{p:>8}{ok:>4}/{of:<2}{np.median(rows):>10.0f}{max(rows):>10}"
        f"{np.median(out):>10.1e}{max(out):>10.1e}{np.median(seconds):>8.2f}"
    )
