"""The learning paper's own algorithms on its bump, in three dimensions, with a grid that a computer can hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluctant.learning import paper, theory
from reluctant.networks import ReLUNetwork
from reluctant.oracles import open_oracle

__all__ = ["FOUND", "INTERVALS_PER_BUMP", "PaperRun", "flat_bump", "paper_run"]

DIM = 3
START = 0.5  # of the bump, from the origin
EPS, DELTA = 1e-6, 0.01
REACH = 20.0
INTERVALS_PER_BUMP = 8  # its two halves are longer than two intervals each, as the theorem wants
SAMPLES = 4000
TOL = 1e-13  # answers are of order one, in float64
TEST_ROWS, TEST_SEED = 200_000, 7
FOUND = 1e-6  # the relative square error up to which a bump counts as found


@dataclass(frozen=True)
class PaperRun:
    """One bump: what is known of it, the grid, what it took; the square error is over the bump's own."""

    constants: theory.Constants
    grid: paper.Grid
    neurons: int
    queries: int
    error: float

    @property
    def asked(self) -> theory.TheoremParameters:
        """What the theorem asks for such a bump."""
        return theory.theorem(self.constants)

    def beside(self) -> list[theory.Row]:
        """The theorem's numbers beside those used."""
        return theory.beside(self.asked, paper.spent(self.constants, self.grid, SAMPLES, self.neurons))


def flat_bump(seed: int, width: float) -> ReLUNetwork:
    """Example 1.2 of the paper, across a random direction."""
    u = np.random.default_rng(seed).standard_normal(DIM)
    u /= np.linalg.norm(u)
    return ReLUNetwork([np.array([u, u, 2 * u]), [[1, 1, -1]]], [[-START, -START - width, -2 * START - width], [0]])


def paper_run(seed: int, width: float) -> PaperRun:
    """LEARNFROMQUERIES on one bump, eight intervals wide."""
    true = flat_bump(seed, width)
    constants = theory.Constants.of(true, EPS, DELTA)
    grid = paper.Grid.of(constants, width / INTERVALS_PER_BUMP, REACH)
    oracle = open_oracle(true)
    found = paper.learn_from_queries(oracle.query, constants, grid, SAMPLES, TOL, np.random.default_rng(seed))
    return PaperRun(constants, grid, found.widths[1], oracle.queries, _relative_error(found, true))


def _relative_error(found: ReLUNetwork, true: ReLUNetwork) -> float:
    x = np.random.default_rng(TEST_SEED).standard_normal((TEST_ROWS, true.dim))
    y = true(x)
    return float(np.mean((found(x) - y) ** 2) / np.mean(y**2))
