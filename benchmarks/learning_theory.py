"""What the theorem on learning any one-hidden-layer network asks for, beside what its algorithms take on a real grid.

    python -m benchmarks learning-theory

Every figure of docs/learning-theory.md: the parameters side by side for a bump in three dimensions, the cost as the
bump gets narrower, the theorem's numbers for the worst-case families.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import reluctant as rl
from reluctant.learning import paper, theory
from reluctant.networks import ReLUNetwork
from reluctant.testing import WORST_CASE
from reluctant.testing.planted import planted

FIRST_SEED = 50_000  # nothing was tuned on these
SEEDS = 20
EPS, DELTA = 1e-6, 0.01
DIM = 3
START = 0.5  # of the bump, from the origin
REACH = 20.0
INTERVALS_PER_BUMP = 8  # its two halves are longer than two intervals each, as the theorem wants
SAMPLES = 4000
TOL = 1e-13  # answers are of order one, in float64
WIDTHS = (0.3, 0.1, 0.03, 0.01)
TEST_ROWS = 200_000
FOUND = 1e-6  # the relative square error up to which a bump counts as found
FAMILIES = ("bump 0.1", "generic 30", "generic 100", "clusters 1e-05", "duplicates", "stairs")
ACCURACIES = (1e-2, 1e-6)


def main() -> None:
    side_by_side(WIDTHS[0])
    narrower()
    families()


def bump(seed: int, width: float) -> ReLUNetwork:
    """Example 1.2 of the paper, across a random direction."""
    u = np.random.default_rng(seed).standard_normal(DIM)
    u /= np.linalg.norm(u)
    return ReLUNetwork([np.array([u, u, 2 * u]), [[1, 1, -1]]], [[-START, -START - width, -2 * START - width], [0]])


def side_by_side(width: float) -> None:
    true = bump(FIRST_SEED, width)
    constants, grid = setting(true, width)
    found = paper.learn_from_queries(true, constants, grid, SAMPLES, TOL, np.random.default_rng(FIRST_SEED))
    asked = theory.theorem(constants)
    spent = paper.spent(constants, grid, SAMPLES, found.widths[1])
    print(f"A bump of width {width}: {constants}, relative square error {relative_error(found, true):.0e}\n")
    print(theory.table(theory.beside(asked, spent)))
    print(f"\nthe theorem's grid can be written in float64: {'yes' if asked.fits_float64 else 'no'}\n")


def setting(true: ReLUNetwork, width: float) -> tuple[theory.Constants, paper.Grid]:
    constants = theory.Constants.of(true, EPS, DELTA)
    return constants, paper.Grid.of(constants, width / INTERVALS_PER_BUMP, REACH)


def narrower() -> None:
    print(f"| width | r | queries | found, of {SEEDS} | median error | worst error |\n|---:|---:|---:|---:|---:|---:|")
    for width in WIDTHS:
        asked, errors = zip(*bumps(width), strict=True)
        found = sum(error <= FOUND for error in errors)
        r = width / INTERVALS_PER_BUMP
        figures = f"{max(asked):,} | {found} | {np.median(errors):.0e} | {max(errors):.0e}"
        print(f"| {width} | {r:g} | {figures} |", flush=True)
    print()


def bumps(width: float) -> Iterator[tuple[int, float]]:
    """Queries and relative square error, for each seed."""
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        true = bump(seed, width)
        constants, grid = setting(true, width)
        oracle = rl.open_oracle(true)
        found = paper.learn_from_queries(oracle.query, constants, grid, SAMPLES, TOL, np.random.default_rng(seed))
        yield oracle.queries, relative_error(found, true)


def relative_error(found: ReLUNetwork, true: ReLUNetwork) -> float:
    x = np.random.default_rng(7).standard_normal((TEST_ROWS, true.dim))
    y = true(x)
    return float(np.mean((found(x) - y) ** 2) / np.mean(y**2))


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
