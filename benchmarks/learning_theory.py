"""What the theorem on learning any one-hidden-layer network asks for, beside what its algorithms take on a real grid.

    python -m benchmarks learning-theory

Every figure of docs/learning-theory.md: the parameters side by side for a bump in three dimensions, the cost as the
bump gets narrower, the theorem's numbers for the worst-case families.
"""

from __future__ import annotations

import numpy as np

from reluctant.papers import learning_theory as theory
from reluctant.papers.experiments.trials import FOUND, INTERVALS_PER_BUMP, paper_run
from reluctant.testing import WORST_CASE
from reluctant.testing.planted import planted

FIRST_SEED = 50_000  # nothing was tuned on these
SEEDS = 20
DELTA = 0.01
WIDTHS = (0.3, 0.1, 0.03, 0.01)
FAMILIES = ("bump 0.1", "generic 30", "generic 100", "clusters 1e-05", "duplicates", "stairs")
ACCURACIES = (1e-2, 1e-6)


def main() -> None:
    side_by_side(WIDTHS[0])
    narrower()
    families()


def side_by_side(width: float) -> None:
    run = paper_run(FIRST_SEED, width)
    print(f"A bump of width {width}: {run.constants}, relative square error {run.error:.0e}\n")
    print(theory.table(run.beside()))
    print(f"\nthe theorem's grid can be written in float64: {'yes' if run.asked.fits_float64 else 'no'}\n")


def narrower() -> None:
    print(f"| width | r | queries | found, of {SEEDS} | median error | worst error |\n|---:|---:|---:|---:|---:|---:|")
    for width in WIDTHS:
        runs = [paper_run(seed, width) for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)]
        errors = [run.error for run in runs]
        found = sum(error <= FOUND for error in errors)
        r = width / INTERVALS_PER_BUMP
        figures = f"{max(run.queries for run in runs):,} | {found} | {np.median(errors):.0e} | {max(errors):.0e}"
        print(f"| {width} | {r:g} | {figures} |", flush=True)
    print()


def families() -> None:
    print("| network | k | d | ε | Δ | r | queries on the line | samples |\n|---|---:|---:|---:|---:|---:|---:|---:|")
    networks = {name: WORST_CASE[name](FIRST_SEED) for name in FAMILIES}
    networks["200 neurons"] = planted((100, 200, 1), FIRST_SEED)
    for name, network in networks.items():
        for eps in ACCURACIES:
            constants = theory.Constants.of(network, eps, DELTA)
            t = theory.theorem(constants)
            sizes = f"{constants.k} | {constants.d} | {eps:g}"
            print(f"| {name} | {sizes} | {t.separation} | {t.interval} | {t.search_queries} | {t.samples} |")
