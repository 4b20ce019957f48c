"""All networks of one shape that were to be recovered: a row of the table, and points of the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.estimation.shapes import parameters, shape_name
from reluctant.experiments.sweeps.exact import WRONG, ExactRun
from reluctant.extraction.regularity import regularity
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Rng, as_generator
from reluctant.testing import planted

__all__ = ["COLUMNS", "Cell", "Shapes", "draw", "measured"]

Shapes = Mapping[tuple[int, ...], int]

COLUMNS = ("network", "P", "networks", "recovered", "wrong", "queries", "queries / P", "log 1/δ", "theorem",
           "queries / theorem", "largest error")  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """All networks of one shape, and what the theorem's expression is for each of them."""

    widths: tuple[int, ...]
    runs: list[ExactRun]
    errors: list[float]
    log_delta: float
    theorem: float

    @property
    def recovered(self) -> int:
        """How many were."""
        return sum(run.ok for run in self.runs)

    @property
    def wrong(self) -> int:
        """How many of these are another function."""
        return sum(run.ok and error > WRONG for run, error in zip(self.runs, self.errors, strict=True))

    @property
    def worst(self) -> float:
        """The largest error of a recovered network; 0 if none was."""
        return max((error for run, error in zip(self.runs, self.errors, strict=True) if run.ok), default=0.0)

    @property
    def queries(self) -> float:
        """The median."""
        return float(np.median([run.queries for run in self.runs]))

    def row(self) -> tuple[Any, ...]:
        """What the table has of it, under `COLUMNS`."""
        p = parameters(self.widths)
        return (
            shape_name(self.widths), p, len(self.runs), self.recovered, self.wrong, round(self.queries),
            self.queries / p, self.log_delta, round(self.theorem), self.queries / self.theorem, self.worst,
        )  # fmt: skip


def measured(
    networks: Shapes,
    rng: Rng,
    bias: float,
    run: Callable[[ReLUNetwork, int], ExactRun],
    error: Callable[[ExactRun], float],
    theorem: Callable[[tuple[int, ...], float], float],
) -> list[Cell]:
    """Networks of each shape, recovered; `theorem` is its expression of the widths and of log 1/δ."""
    generator, cells = as_generator(rng), []
    for widths, count in networks.items():
        runs = [run(planted(widths, generator, bias=bias), int(generator.integers(2**31))) for _ in range(count)]
        log_delta = float(np.median([-np.log2(regularity(each.true).delta) for each in runs]))
        cells.append(Cell(widths, runs, [error(each) for each in runs], log_delta, theorem(widths, log_delta)))
    return cells


def draw(figure: Any, cells: Sequence[Cell], expression: str) -> None:
    """Queries beside the theorem's expression, and the error of every network that was recovered."""
    cost, error = figure.subplots(1, 2)
    p = [parameters(cell.widths) for cell in cells]
    order = np.argsort(p)
    for axes in (cost, error):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("parameters")
    cost.plot(p, [cell.queries for cell in cells], "o", label="queries")
    cost.plot(np.array(p)[order], np.array([cell.theorem for cell in cells])[order], "k:", label=expression)
    cost.plot(np.array(p)[order], np.array(p)[order], "-", color="0.6", label="one a parameter")
    cost.legend(frameon=False, fontsize=8)
    for cell in cells:
        good = [each for run, each in zip(cell.runs, cell.errors, strict=True) if run.ok]
        error.plot([parameters(cell.widths)] * len(good), good, "o", color="C0", alpha=0.5, markersize=4)
    cost.set_ylabel("queries")
    error.set_ylabel("largest error")
