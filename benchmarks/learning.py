"""Any one-hidden-layer network: `learn` on the worst-case families, the exact method alone beside it.

    python -m benchmarks learning     prints the tables of docs/learning.md and draws docs/images/learning-eps.svg

Errors are square errors relative to the target's variance, importance-sampled near the true creases; the worst of all
seeds is shown. LEARNING_SEEDS changes their number, LEARNING_FIRST_SEED the first.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.figure import Figure

from reluctant.papers.experiments.trials import CLOSE, LearnCase, LearnRun, extract_run, family_case, learn_run, worst
from reluctant.testing import WORST_CASE
from reluctant.testing.families import bump, cancelling_clusters
from reluctant.testing.faults import in_float32, rounded

FIRST_SEED = int(os.environ.get("LEARNING_FIRST_SEED", "110000"))  # nothing was tuned on these
SEEDS = int(os.environ.get("LEARNING_SEEDS", "10"))
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "learning-eps.svg"


def cases() -> list[LearnCase]:
    found = [family_case(name) for name in WORST_CASE]
    found.append(LearnCase("generic 30 in float32", WORST_CASE["generic 30"], CLOSE, target=in_float32))
    for decimals in (6, 4):
        name = f"generic 30, {decimals} decimals"
        found.append(LearnCase(name, WORST_CASE["generic 30"], 1e-6, target=partial(rounded, decimals=decimals)))
    return found


def main() -> None:
    table()
    growth()
    dependence()


def table() -> None:
    print(f"{'family':<26}{'ok':>7}{'worst error':>13}{'queries':>10}{'(max)':>9}{'CPU s':>8}", end="")
    print(f"   {'exact alone':>13}{'worst error':>13}{'queries':>10}")
    for case in cases():
        seeds = [FIRST_SEED + k for k in range(SEEDS)]
        ours, exact = [learn_run(case, seed) for seed in seeds], [extract_run(case, seed) for seed in seeds]
        cost = [run.queries for run in ours]
        print(
            f"{case.name:<26}{sum(run.ok for run in ours):>4}/{SEEDS:<2}{worst(ours):>13.0e}"
            f"{np.median(cost):>10.0f}{max(cost):>9}{np.median([run.seconds for run in ours]):>8.2f}   "
            f"{sum(run.ok for run in exact):>10}/{SEEDS:<2}{worst(exact):>13.0e}"
            f"{np.median([run.queries for run in exact]):>10.0f}",
            flush=True,
        )


WIDTHS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)


def growth() -> None:
    """The cost of not missing a bump."""
    print(f"\n{'bump of width':<16}{'found':>7}{'worst error':>13}{'queries':>10}{'queries × width':>18}")
    for width in WIDTHS:
        case = LearnCase("bump", partial(bump, width=width), narrowest=width)
        runs = [learn_run(case, FIRST_SEED + k) for k in range(SEEDS)]
        cost = float(np.median([run.queries for run in runs]))
        print(f"{width:<16g}{sum(run.ok for run in runs):>4}/{SEEDS:<2}{worst(runs):>13.0e}{cost:>10.0f}"
              f"{cost * width:>18.0f}", flush=True)  # fmt: skip


NARROWEST = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
ACCURACIES = (1e-3, 1e-6, 1e-9, 1e-11, 1e-13, 1e-15)


def dependence() -> None:
    """Error against queries: a bump by the narrowest width asked for, a cluster by eps."""
    bumps = [LearnCase("", partial(bump, width=0.01, others=8), 1e-14, width) for width in NARROWEST]
    clusters = [LearnCase("", partial(cancelling_clusters, angle=1e-5), eps) for eps in ACCURACIES]
    print(f"\n{'bump 0.01 with 8 neurons: narrowest':<38}{'error':>10}{'(worst)':>10}{'queries':>10}")
    first = [point(case, case.narrowest) for case in bumps]
    print(f"\n{'clusters 1e-05: eps':<38}{'error':>10}{'(worst)':>10}{'queries':>10}")
    second = [point(case, case.eps) for case in clusters]
    draw({"narrowest": dict(zip(NARROWEST, first, strict=True)), "ε": dict(zip(ACCURACIES, second, strict=True))})


def point(case: LearnCase, asked: float) -> list[LearnRun]:
    runs = [learn_run(case, FIRST_SEED + k) for k in range(SEEDS)]
    errors, cost = [run.error for run in runs], float(np.median([run.queries for run in runs]))
    print(f"{asked:<38g}{np.median(errors):>10.0e}{max(errors):>10.0e}{cost:>10.0f}", flush=True)
    return runs


def draw(panels: dict[str, dict[float, list[LearnRun]]]) -> None:
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
