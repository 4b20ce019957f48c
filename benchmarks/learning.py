"""Any one-hidden-layer network: `learn` on the worst-case families, the exact method alone beside it.

    python -m benchmarks learning     prints the tables of docs/learning.md and draws docs/images/learning-eps.svg

Errors are square errors relative to the target's variance, importance-sampled near the true creases; the worst of all
seeds is shown. LEARNING_SEEDS changes their number, LEARNING_FIRST_SEED the first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.figure import Figure

import reluctant as rl
from reluctant.testing import WORST_CASE, relative_square_error
from reluctant.testing.faults import in_float32, rounded
from reluctant.testing.planted import bump, cancelling_clusters

FIRST_SEED = int(os.environ.get("LEARNING_FIRST_SEED", "110000"))  # nothing was tuned on these
SEEDS = int(os.environ.get("LEARNING_SEEDS", "10"))
MOST_QUERIES = 100_000  # of the exact method alone, which does not know when to stop on a bump
EXACT, CLOSE = 1e-12, 1e-8  # what is asked for, where digits are left and where neurons cancel
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "learning-eps.svg"


@dataclass(frozen=True)
class Case:
    """A family of targets, and what `learn` is asked for."""

    name: str
    planted: Callable[[int], rl.ReLUNetwork]
    eps: float = EXACT
    narrowest: float = 0.01
    target: Callable[[rl.ReLUNetwork], Any] = lambda network: network


@dataclass(frozen=True)
class Run:
    ok: bool
    error: float
    queries: int
    seconds: float = 0.0


def cases() -> list[Case]:
    found = [Case(name, family, *asked(name)) for name, family in WORST_CASE.items()]
    found.append(Case("generic 30 in float32", WORST_CASE["generic 30"], CLOSE, target=in_float32))
    for decimals in (6, 4):
        name = f"generic 30, {decimals} decimals"
        found.append(Case(name, WORST_CASE["generic 30"], 1e-6, target=partial(rounded, decimals=decimals)))
    return found


def asked(name: str) -> tuple[float, float]:
    """eps and the narrowest width, by the name of a family."""
    return CLOSE if name.startswith("clusters") else EXACT, 1e-3 if name == "bump 0.001" else 0.01


def main() -> None:
    table()
    growth()
    dependence()


def table() -> None:
    print(f"{'family':<26}{'ok':>7}{'worst error':>13}{'queries':>10}{'(max)':>9}{'CPU s':>8}", end="")
    print(f"   {'exact alone':>13}{'worst error':>13}{'queries':>10}")
    for case in cases():
        seeds = [FIRST_SEED + k for k in range(SEEDS)]
        ours, exact = [learned(case, seed) for seed in seeds], [extracted(case, seed) for seed in seeds]
        cost = [run.queries for run in ours]
        print(
            f"{case.name:<26}{sum(run.ok for run in ours):>4}/{SEEDS:<2}{worst(ours):>13.0e}"
            f"{np.median(cost):>10.0f}{max(cost):>9}{np.median([run.seconds for run in ours]):>8.2f}   "
            f"{sum(run.ok for run in exact):>10}/{SEEDS:<2}{worst(exact):>13.0e}"
            f"{np.median([run.queries for run in exact]):>10.0f}",
            flush=True,
        )


def worst(runs: Sequence[Run]) -> float:
    return max(run.error for run in runs)


def learned(case: Case, seed: int) -> Run:
    true = case.planted(seed)
    start = time.process_time()
    found = rl.learn(oracle(case, true), eps=case.eps, rng=seed, narrowest=case.narrowest)
    return Run(found.ok, error(found, true), found.queries, time.process_time() - start)


def extracted(case: Case, seed: int) -> Run:
    """The exact method alone; where it gives nothing the error is that of a constant."""
    true = case.planted(seed)
    found = rl.extract(oracle(case, true, budget=MOST_QUERIES), rl.DepthTwo(), rng=seed)
    return Run(found.ok, error(found, true), found.queries)


def oracle(case: Case, true: rl.ReLUNetwork, budget: int | None = None) -> rl.Oracle:
    return rl.open_oracle(case.target(true), dim=true.dim, budget=budget)


def error(found: rl.Result, true: rl.ReLUNetwork) -> float:
    return 1.0 if found.network is None else relative_square_error(found.network, true)


WIDTHS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)


def growth() -> None:
    """The cost of not missing a bump."""
    print(f"\n{'bump of width':<16}{'found':>7}{'worst error':>13}{'queries':>10}{'queries × width':>18}")
    for width in WIDTHS:
        case = Case("bump", partial(bump, width=width), narrowest=width)
        runs = [learned(case, FIRST_SEED + k) for k in range(SEEDS)]
        cost = float(np.median([run.queries for run in runs]))
        print(f"{width:<16g}{sum(run.ok for run in runs):>4}/{SEEDS:<2}{worst(runs):>13.0e}{cost:>10.0f}"
              f"{cost * width:>18.0f}", flush=True)  # fmt: skip


NARROWEST = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
ACCURACIES = (1e-3, 1e-6, 1e-9, 1e-11, 1e-13, 1e-15)


def dependence() -> None:
    """Error against queries: a bump by the narrowest width asked for, a cluster by eps."""
    bumps = [Case("", partial(bump, width=0.01, others=8), 1e-14, width) for width in NARROWEST]
    clusters = [Case("", partial(cancelling_clusters, angle=1e-5), eps) for eps in ACCURACIES]
    print(f"\n{'bump 0.01 with 8 neurons: narrowest':<38}{'error':>10}{'(worst)':>10}{'queries':>10}")
    first = [point(case, case.narrowest) for case in bumps]
    print(f"\n{'clusters 1e-05: eps':<38}{'error':>10}{'(worst)':>10}{'queries':>10}")
    second = [point(case, case.eps) for case in clusters]
    draw({"narrowest": dict(zip(NARROWEST, first, strict=True)), "ε": dict(zip(ACCURACIES, second, strict=True))})


def point(case: Case, asked: float) -> list[Run]:
    runs = [learned(case, FIRST_SEED + k) for k in range(SEEDS)]
    errors, cost = [run.error for run in runs], float(np.median([run.queries for run in runs]))
    print(f"{asked:<38g}{np.median(errors):>10.0e}{max(errors):>10.0e}{cost:>10.0f}", flush=True)
    return runs


def draw(panels: dict[str, dict[float, list[Run]]]) -> None:
    figure = Figure(figsize=(7.6, 3.4), layout="constrained")
    titles = "bump of width 0.01 beside 8 neurons", "three clusters of neurons 1e-5 apart"
    for axes, title, (name, runs) in zip(figure.subplots(1, 2), titles, panels.items(), strict=True):
        colours = colormaps["viridis"](np.linspace(0, 0.9, len(runs)))
        for colour, (asked, some) in zip(colours, runs.items(), strict=True):
            queries, errors = [run.queries for run in some], [run.error for run in some]
            axes.plot(queries, errors, "o", markersize=4, alpha=0.7, color=colour, label=f"{name} {asked:g}")
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("queries")
        axes.set_ylabel("relative square error")
        axes.set_yscale("log")
        axes.legend(frameon=False, fontsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    with rc_context({"svg.hashsalt": "learning"}):
        figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
