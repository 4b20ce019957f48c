"""Exact extraction of one hidden layer: queries, exactness and CPU time, with the floor and the peers beside.

    python -m benchmarks depth-two                     20 networks of each small shape, 2 of each large one
    DEPTH_TWO_SEEDS=20 python -m benchmarks depth-two  as many of every shape
    DEPTH_TWO_SHAPES=784-1024-1,3072-256-1 ...         these shapes only

One default setting, verification included in the count, seeds that nothing was tuned on. P = hd + h + hm + m.
`floor` is what any method must spend: as many answers as free parameters. `out` is the largest error over
10 000 Gaussian inputs relative to the output's standard deviation. CPU is the whole run over the target's
share of it, with one BLAS thread.
"""

from __future__ import annotations

import os
import resource

import numpy as np

from benchmarks.results import Results
from reluctant.estimation.formulas import parameters, shape_name
from reluctant.papers.experiments.trials import ExactRun, exact_run
from reluctant.testing import planted

SMALL = ((784, 128, 1), (784, 32, 1), (784, 128, 10), (10, 100, 1), (64, 40, 1), (64, 32, 10))
LARGE = ((100, 1000, 1), (784, 1024, 1), (3072, 256, 1))
FIRST_SEED = 20_000
BIAS = 0.5
RESULTS = Results("depth-two")

PEERS = """\
Peers, not run here: the paper behind google-research/cryptanalytic-model-extraction (CRYPTO'20) states 2^21.5
queries for 784-128-1, q/P 29.5, at error 2^-25."""


def main() -> None:
    every = os.environ.get("DEPTH_TWO_SEEDS")
    print(
        f"{'network':<12}{'ok':>7}{'q·m/P':>9}{'(max)':>9}{'floor':>8}{'out':>10}{'(max)':>10}{'CPU':>9}{'restarts':>10}"
    )
    for widths in chosen():
        seeds = int(every) if every else (20 if widths in SMALL else 2)
        print(row(widths, [one(widths, seed) for seed in range(seeds)]), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"Peak memory over all of it: {peak:.0f} MiB.")
    print(PEERS)


def chosen() -> tuple[tuple[int, int, int], ...]:
    """The shapes asked for, all by default."""
    names = os.environ.get("DEPTH_TWO_SHAPES")
    every = (*SMALL, *LARGE)
    return every if names is None else tuple(w for w in every if shape_name(w) in names.split(","))


def one(widths: tuple[int, int, int], seed: int) -> ExactRun:
    return exact_run(planted(widths, FIRST_SEED + seed, bias=BIAS), seed)


def row(widths: tuple[int, int, int], runs: list[ExactRun]) -> str:
    d, h, m = widths
    floor = (h * d + h * m + m * d + m) / parameters(widths)  # a skip term is free, scales of neurons are not
    cost, out = [run.per_parameter for run in runs], [run.out for run in runs]
    name, ok, cpu = shape_name(widths), sum(run.ok for run in runs), np.median([run.cpu for run in runs])
    restarts = sum(run.restarts for run in runs)
    RESULTS.keep(
        name, networks=len(runs), ok=ok, parameters=parameters(widths), cost=np.median(cost), cost_max=max(cost),
        floor=floor, out=np.median(out), out_max=max(out), cpu=cpu, restarts=restarts,
    )  # fmt: skip
    return (
        f"{name:<12}{ok:>3}/{len(runs):<3}"
        f"{np.median(cost):>9.4f}{max(cost):>9.4f}{floor:>8.4f}{np.median(out):>10.1e}{max(out):>10.1e}"
        f"{cpu:>9.2f}{restarts:>10}"
    )
