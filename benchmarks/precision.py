"""Targets of few digits: float32, decimals, noise. What comes back, how far off, at which cost.

    python -m benchmarks precision                          3 networks of each kind
    PRECISION_SEEDS=10 PRECISION_ONLY=784-32-1 python -m benchmarks precision
    PRECISION_FROM=5 ...                                    seeds from the sixth on: a long row in parts
    PUBLIC_TARGETS=folder PRECISION_ONLY=safenlp ...        public networks as onnxruntime serves them
    PRECISION_TABLE=layers PRECISION_PROCESSES=16 ...       rows of two hidden layers and more, runs side by side
    PRECISION_SECONDS=240 ...                               processor time of one run, at most

`own` is the target's largest error against the exact network of the same weights, over 10 000 Gaussian inputs,
relative to the output's deviation, and over all seeds; `out` that of the recovered networks. Behind a softmax both are
of the probabilities. q/P is rows, q·m/P answers, for each parameter, the mean over all seeds; --save keeps the median
over the recovered ones, which estimates are fitted to. Wrong: said to be recovered, and off by more than five times the
target's own error.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import reluctant as rl
from benchmarks.results import Results
from benchmarks.trained_digits import NETWORKS, trained_network
from reluctant.bundled import digits_model
from reluctant.numerics import FloatArray
from reluctant.testing import in_float32, planted, single_precision

FIRST_SEED = 70_000  # nothing was tuned on these
POINTS = 10_000
WRONG = 5.0
BIAS = 0.5
RESULTS = Results("precision")

Made = tuple[Any, rl.ReLUNetwork]  # what is asked, and what it should be


@dataclass(frozen=True)
class Row:
    """One kind of target: a name, and a function of a seed."""

    name: str
    make: Callable[[int], Made]


def planted_network(widths: tuple[int, ...], seed: int) -> rl.ReLUNetwork:
    return planted(widths, FIRST_SEED + seed, bias=BIAS)


def float32(*widths: int) -> Row:
    def make(seed: int) -> Made:
        true = planted_network(widths, seed)
        return in_float32(true), single_precision(true)

    return Row(f"{'-'.join(map(str, widths))}, float32", make)


def rounded(digits: int, single: Row) -> Row:
    """float32 answers that are rounded too, as a server that prints few decimals gives them."""

    def make(seed: int) -> Made:
        answer, true = single.make(seed)
        return (lambda x: np.round(answer(x), digits)), true

    return Row(f"{single.name}, {digits} decimals", make)


def probabilities(*widths: int) -> Row:
    """A classifier that computes in float32 from its inputs to its probabilities."""

    def make(seed: int) -> Made:
        true = single_precision(planted_network(widths, seed))
        return Probabilities(in_float32(true)), true

    return Row(f"{'-'.join(map(str, widths))} softmax, float32", make)


@dataclass(frozen=True)
class Probabilities:
    """Softmax in float32 of values in float32."""

    values: Callable[[FloatArray], FloatArray]

    def __call__(self, x: FloatArray) -> FloatArray:
        return softmax_of(self.values(x))


def decimals(digits: int, *widths: int) -> Row:
    def make(seed: int) -> Made:
        true = planted_network(widths, seed)
        return (lambda x: np.round(true(x), digits)), true

    return Row(f"{'-'.join(map(str, widths))}, {digits} decimals", make)


def noise(relative: float, *widths: int) -> Row:
    def make(seed: int) -> Made:
        true, rng = planted_network(widths, seed), np.random.default_rng(seed)
        sd = relative * true(inputs(true)).std(axis=0)
        return (lambda x: true(x) + sd * rng.standard_normal((len(x), true.outputs))), true

    return Row(f"{'-'.join(map(str, widths))}, noise {relative:g}", make)


def served(name: str, path: Path) -> Row:
    return Row(name, lambda seed: (path, rl.ReLUNetwork.load(path)))


def softmax_of(values: FloatArray) -> FloatArray:
    sizes = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(sizes / sizes.sum(axis=1, keepdims=True))


def inputs(true: rl.ReLUNetwork) -> FloatArray:
    rows = np.random.default_rng(7).standard_normal((POINTS, true.dim))
    return rows.astype(np.float32).astype(np.float64)


def trained() -> Row:
    """Two hidden layers trained on digits, in float32."""

    def make(seed: int) -> Made:
        network = trained_network(seed % NETWORKS)
        return in_float32(network), single_precision(network)

    return Row("digits 64-32-16-10, float32", make)


def layers_rows() -> list[tuple[Row, int]]:
    """Rows of two hidden layers and more, one layer beside them; each with its number of networks."""
    return [
        (trained(), 10),
        (float32(64, 32, 16, 1), 10),
        *((row, 5) for row in public_rows() if "784-10-10-10" in row.name),
        (decimals(4, 64, 32, 16, 1), 10),
        (noise(1e-6, 64, 32, 16, 1), 10),
        (float32(20, 10, 10, 1), 40),
        (float32(20, 10, 10, 3), 10),
        (probabilities(64, 32, 16, 10), 10),
        (probabilities(20, 10, 10, 3), 10),
        (float32(30, 64, 32, 2), 2),
        (float32(20, 15, 10, 5, 1), 10),
        (float32(784, 16, 16, 16, 1), 2),
        (float32(784, 32, 16, 1), 10),
        (float32(784, 128, 1), 10),
    ]


def public_rows() -> list[Row]:
    folder = os.environ.get("PUBLIC_TARGETS")
    paths = sorted(Path(folder).glob("*.onnx")) if folder else []
    return [served(f"{path.stem}, float32", path) for path in paths if rl.ReLUNetwork.load(path).depth <= 3]


def rows() -> list[Row]:
    found = [
        float32(784, 32, 1),
        float32(784, 32, 10),
        served("digits 64-32-10, float32", digits_model()),
        float32(10, 50, 1),
        float32(784, 128, 1),
        float32(784, 128, 10),
        float32(20, 10, 10, 1),
        float32(20, 10, 10, 3),
        float32(64, 32, 16, 1),
        float32(784, 32, 16, 1),
        trained(),
        decimals(3, 784, 32, 1),
        noise(1e-4, 784, 32, 1),
        decimals(6, 784, 128, 1),
        noise(1e-6, 784, 128, 1),
        decimals(4, 64, 32, 16, 1),
        noise(1e-6, 64, 32, 16, 1),
        *(rounded(digits, float32(20, 16, 3)) for digits in (2, 3, 4, 5)),
        *(rounded(3, float32(*widths)) for widths in ((10, 50, 1), (50, 40, 1), (64, 32, 10), (784, 32, 1))),
    ]
    return found + public_rows()


def table() -> list[tuple[Row, list[int]]]:
    """The rows that were asked for, each with its seeds."""
    seeds, first = os.environ.get("PRECISION_SEEDS"), int(os.environ.get("PRECISION_FROM", "0"))
    named = layers_rows() if os.environ.get("PRECISION_TABLE") == "layers" else [(row, 3) for row in rows()]
    only = os.environ.get("PRECISION_ONLY", "")
    return [
        (row, list(range(first, first + (count if seeds is None else int(seeds)))))
        for row, count in named
        if only in row.name
    ]


def main() -> None:
    titles = f"{'recovered':>10}{'wrong':>6}{'out':>9}{'own':>9}{'q/P':>7}{'q·m/P':>7}{'noise':>7}{'CPU s':>7}"
    print(f"{'target':<30}{titles}  ended")
    for row, runs in finished_rows(table()):
        print(one_row(row, runs), flush=True)


def finished_rows(wanted: list[tuple[Row, list[int]]]) -> Iterator[tuple[Row, list[dict[str, Any]]]]:
    """Rows in their order, with their runs: one after another, or side by side in processes."""
    processes = int(os.environ.get("PRECISION_PROCESSES", "1"))
    if processes == 1:
        for row, seeds in wanted:
            yield row, [reported(row, seed) for seed in seeds]
        return
    tasks = [(number, seed) for number, (_, seeds) in enumerate(wanted) for seed in seeds]
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        runs = pool.imap(one_task, tasks, chunksize=1)
        for row, seeds in wanted:
            yield row, [next(runs) for _ in seeds]


def one_task(task: tuple[int, int]) -> dict[str, Any]:
    """A run of a process of its own: number of the row, and the seed."""
    number, seed = task
    return reported(table()[number][0], seed)


def one_row(row: Row, runs: list[dict[str, Any]]) -> str:
    good = [run for run in runs if run["ok"]]
    out, ratio = (max((run[key] for run in good), default=float("nan")) for key in ("out", "ratio"))
    own = max(run["own"] for run in runs)
    wrong = sum(run["ok"] and run["out"] > WRONG * run["own"] for run in runs)
    cost, answers, cpu = (float(np.mean([run[key] for run in runs])) for key in ("q", "qm", "cpu"))
    keep(row.name, runs, wrong)
    ended = ", ".join(f"{count} {name}" for name, count in Counter(run["outcome"] for run in runs).most_common())
    return (
        f"{row.name:<30}{len(good):>7}/{len(runs):<2}{wrong:>6}{out:>9.1e}{own:>9.1e}"
        f"{cost:>7.2f}{answers:>7.2f}{ratio:>6.2f}×{cpu:>7.1f}  {ended}"
    )


def keep(name: str, runs: list[dict[str, Any]], wrong: int) -> None:
    """Keep a row: rows asked of those that were recovered, or of all if none was."""
    good = [run for run in runs if run["ok"]]
    queries, outs = ([run[key] for run in good or runs] for key in ("queries", "out"))
    RESULTS.keep(
        name, widths=runs[0]["widths"], networks=len(runs), ok=len(good), wrong=wrong,
        parameters=runs[0]["parameters"], queries=np.median(queries), queries_max=max(queries), out=np.median(outs),
        out_max=max(outs), own_max=max(run["own"] for run in runs), seconds=np.median([run["cpu"] for run in runs]),
    )  # fmt: skip


def reported(row: Row, seed: int) -> dict[str, Any]:
    """One run, told on stderr: a long row is worth watching."""
    run = one(*row.make(seed), seed)
    print(
        row.name,
        seed,
        {key: float(f"{value:.3g}") if isinstance(value, float) else value for key, value in run.items()},
        file=sys.stderr,
        flush=True,
    )
    return run


def one(target: Any, true: rl.ReLUNetwork, seed: int) -> dict[str, Any]:
    softmax = isinstance(target, Probabilities)
    if isinstance(target, Path):
        opened = rl.open_oracle(target)
    else:
        opened = rl.open_oracle(target, dim=true.dim, link="softmax" if softmax else None)
    start = time.process_time()
    limit = os.environ.get("PRECISION_SECONDS")
    result = rl.extract(opened, rng=seed, seconds=None if limit is None else float(limit))
    cpu, x = time.process_time() - start, inputs(true)
    right, answers, found = true(x), None, None
    if softmax:
        right, answers = softmax_of(right), target(x)
        found = None if result.network is None else rl.open_oracle(result.network.before_link("softmax")).query(x)
    else:
        answers = opened.query(x)
        found = None if result.network is None else result.network(x)
    spread = right.std(axis=0)
    own = float((np.abs(answers - right) / spread).max())
    out = float((np.abs(found - right) / spread).max()) if found is not None else float("nan")
    cost = result.queries / true.parameters
    check = result.evidence.get("precision")
    ratio = check.ratio if check is not None else float("nan")
    return {
        "ok": result.ok, "out": out, "own": own, "q": cost, "qm": cost * true.outputs, "cpu": cpu, "ratio": ratio,
        "outcome": result.outcome.slug, "queries": result.queries, "widths": list(true.widths),
        "parameters": true.parameters, "failures": result.evidence.get("failures", [])[-3:],
    }  # fmt: skip
