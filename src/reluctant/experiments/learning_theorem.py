"""What the learning paper's theorem asks, beside what its own algorithms use on a grid that a computer can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluctant.experiments.experiment import Experiment
from reluctant.experiments.finding import Check, Finding
from reluctant.experiments.papers import LEARNING
from reluctant.experiments.sweeps.paper_bump import FOUND, PaperRun, paper_run
from reluctant.learning.magnitudes import Magnitude
from reluctant.numerics import Rng, as_generator
from reluctant.report.words import size

__all__ = ["THEOREM", "learn_theorem"]

Runs = dict[float, list[PaperRun]]

WIDTHS = (0.3, 0.1, 0.03, 0.01)
NETWORKS = 20
WIDE = 0.03  # bumps as wide as this are found, all of them; of narrower ones the share is told


def learn_theorem(*, widths: tuple[float, ...] = WIDTHS, networks: int = NETWORKS, rng: Rng = 0) -> Finding:
    """LEARNFROMQUERIES on a bump: the theorem's parameters beside those really used, and the cost as it narrows."""
    generator = as_generator(rng)
    runs = {
        width: [paper_run(int(seed), width) for seed in generator.integers(2**31, size=networks)] for width in widths
    }
    first, errors = runs[widths[0]][0], [run.error for some in runs.values() for run in some]
    wide = {width: some for width, some in runs.items() if width >= WIDE}
    narrow = {width: some for width, some in runs.items() if width < WIDE}
    return Finding(
        name="learn-theorem",
        title=f"A bump of width {widths[0]:g} in three dimensions: what the theorem asks, what was used",
        claim="GETNEURONS and LEARNFROMQUERIES learn it with queries polynomial in d, k, R, B, 1/ε and log(1/δ).",
        measured=f"The polynomial comes to {first.asked.queries} queries on a grid that float64 cannot write. With "
        f"{first.queries:,} and more, on a grid of eight intervals a bump, the algorithms find "
        f"{' and '.join(_found(part) for part in (wide, narrow) if part)}; square error "
        f"{size(float(np.median(errors)), 1)} of the bump's (median), {size(max(errors), 1)} (worst).",
        columns=("symbol", "meaning", "the theorem asks", "really used"),
        rows=tuple(
            (row.symbol, row.meaning, str(row.theorem), "" if row.used is None else str(Magnitude.of(row.used)))
            for row in first.beside()
        ),
        draw=lambda figure: _draw(figure, runs),
        checks=(Check(f"share of bumps at least {WIDE:g} wide that are found", _share(wide), 1, 1),) if wide else (),
        notes=(
            "Constants that the paper leaves open are taken as one. What a coarser grid gives up is the guarantee: a "
            "bump narrower than two intervals may be missed without a trace.",
            f"Found: a square error of at most {size(FOUND, 1)} of the bump's. The narrowest lose digits: steps are "
            "shorter there, and fewer samples fall on them.",
        ),
    )


def _share(runs: Runs) -> float:
    return float(np.mean([run.error <= FOUND for some in runs.values() for run in some]))


def _found(runs: Runs) -> str:
    """How many of them, in words."""
    every, widths = (
        sum(map(len, runs.values())),
        f"{min(runs):g} to {max(runs):g}" if len(runs) > 1 else f"{max(runs):g}",
    )
    return f"{round(_share(runs) * every)} of {every} bumps {widths} wide"


def _draw(figure: Any, runs: Runs) -> None:
    cost, error = figure.subplots(1, 2)
    widths = np.array(list(runs))
    queries = np.array([some[0].queries for some in runs.values()])
    cost.plot(widths, queries, "o-", label="asked")
    cost.plot(widths, queries[-1] * widths[-1] / widths, "k:", label="1 / width")
    cost.set_ylabel("queries")
    cost.legend(frameon=False)
    for width, some in runs.items():
        error.plot([width] * len(some), [run.error for run in some], "o", color="C0", alpha=0.5)
    error.set_ylabel("square error, of the bump's")
    for axes in (cost, error):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.invert_xaxis()
        axes.set_xlabel("width of the bump")


THEOREM = Experiment(
    "learn-theorem", LEARNING, "Theorem 1.1 and Algorithms 1 to 4", learn_theorem,
    quick={"widths": (0.3, 0.1, 0.03), "networks": 4},
)  # fmt: skip
