"""Theorems 1 to 3 of the extraction paper: exact recovery, and queries beside the proved number.

The theorems count up to a constant. Each table divides what was asked by the theorem's expression: the quotient
must stay below a small number, however large the network (with two layers queries are bounded by parameters
instead). Logarithms are to base two, δ is the largest for which a network is δ-regular (the first of its layers,
with two). An `ExactCell` is all networks of one shape: a row of the table, and points of the picture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluctant.domains import Domain
from reluctant.estimation.formulas import parameters, shape_name
from reluctant.networks import ReLUNetwork
from reluctant.numerics import Rng, as_generator
from reluctant.papers.exact import regularity
from reluctant.papers.experiments.experiment import EXTRACTION_PAPER, Check, Experiment, Finding, label_axes
from reluctant.papers.experiments.trials import WRONG_ERROR, ExactRun, exact_run
from reluctant.report.text import size
from reluctant.testing import planted

Shapes = Mapping[tuple[int, ...], int]

EXACT_COLUMNS = ("network", "P", "networks", "recovered", "wrong", "queries", "queries / P", "log 1/δ", "theorem",
           "queries / theorem", "largest error")  # fmt: skip


@dataclass(frozen=True)
class ExactCell:
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
        return sum(run.ok and error > WRONG_ERROR for run, error in zip(self.runs, self.errors, strict=True))

    @property
    def worst(self) -> float:
        """The largest error of a recovered network; 0 if none was."""
        return max((error for run, error in zip(self.runs, self.errors, strict=True) if run.ok), default=0.0)

    @property
    def queries(self) -> float:
        """The median."""
        return float(np.median([run.queries for run in self.runs]))

    @property
    def recovering(self) -> float:
        """The median without the rows of verification."""
        return float(np.median([run.queries - run.stages.get("verify", 0) for run in self.runs]))

    def row(self) -> tuple[Any, ...]:
        """What the table has of it, under `EXACT_COLUMNS`."""
        p = parameters(self.widths)
        return (
            shape_name(self.widths), p, len(self.runs), self.recovered, self.wrong, round(self.queries),
            self.queries / p, self.log_delta, round(self.theorem), self.queries / self.theorem, self.worst,
        )  # fmt: skip


def measured_cells(
    networks: Shapes,
    rng: Rng,
    bias: float,
    run: Callable[[ReLUNetwork, int], ExactRun],
    error: Callable[[ExactRun], float],
    theorem: Callable[[tuple[int, ...], float], float],
) -> list[ExactCell]:
    """Networks of each shape, recovered; `theorem` is its expression of the widths and of log 1/δ."""
    generator, cells = as_generator(rng), []
    for widths, count in networks.items():
        runs = [run(planted(widths, generator, bias=bias), int(generator.integers(2**31))) for _ in range(count)]
        log_delta = float(np.median([-np.log2(regularity(each.true).delta) for each in runs]))
        cells.append(ExactCell(widths, runs, [error(each) for each in runs], log_delta, theorem(widths, log_delta)))
    return cells


def draw_cells(figure: Any, cells: Sequence[ExactCell], expression: str) -> None:
    """Queries beside the theorem's expression, and the error of every network that was recovered."""
    cost, error = figure.subplots(1, 2)
    p = [parameters(cell.widths) for cell in cells]
    order = np.argsort(p)
    cost.plot(p, [cell.queries for cell in cells], "o", label="queries")
    cost.plot(np.array(p)[order], np.array([cell.theorem for cell in cells])[order], "k:", label=expression)
    cost.plot(np.array(p)[order], np.array(p)[order], "-", color="0.6", label="one a parameter")
    for cell in cells:
        good = [each for run, each in zip(cell.runs, cell.errors, strict=True) if run.ok]
        error.plot([parameters(cell.widths)] * len(good), good, "o", color="C0", alpha=0.5, markersize=4)
    label_axes(cost, "parameters", "queries", log="xy", fontsize=8)
    label_axes(error, "parameters", "largest error", log="xy")


ONE_LAYER_NETWORKS: Shapes = {(20, 10, 1): 20, (10, 100, 1): 20, (64, 40, 1): 20, (300, 60, 1): 20, (784, 32, 1): 20,
                      (784, 128, 1): 10, (784, 512, 1): 2, (1500, 600, 1): 1}  # fmt: skip
ORTHANT_NETWORKS: Shapes = {(10, 20, 1): 20, (10, 100, 1): 20, (64, 40, 1): 20, (300, 60, 1): 10, (784, 32, 1): 5,
                    (784, 128, 1): 2}  # fmt: skip
TWO_LAYERS_NETWORKS: Shapes = {(10, 10, 10, 1): 20, (20, 10, 20, 1): 20, (20, 10, 35, 1): 20, (80, 40, 20, 1): 20,
                       (784, 32, 16, 1): 5, (784, 64, 32, 1): 3}  # fmt: skip
ONE_BIAS, TWO_BIAS = 0.5, 0.3  # deviation of biases, of a layer's input
LEAST_RECOVERED = 0.95  # of the networks are recovered; the rest has to be refused
MOST_ERROR = 1e-8  # of the output's deviation: the largest error of a recovered network
MOST_OVER_THEOREM = 2.0  # in front of the theorem's expression
# Two layers: the theorem's polynomial is so large that no number of queries would exceed it. The check instead is
# that queries grow no faster than parameters, from no more than this many a parameter in the smallest networks on.
MOST_PER_PARAMETER, MOST_POWER = 20.0, 1.0
ORTHANT_BOUNDS = (0.0, np.inf)
EVERYWHERE_NOTE = "Errors are measured at three scales and beside every crease of the first layer."


def exact_one_layer(*, networks: Shapes | None = None, rng: Rng = 0) -> Finding:
    """One hidden layer of any width, recovered exactly: queries beside d₁·d + d₁·log(1/δ)."""
    cells = measured_cells(
        networks or ONE_LAYER_NETWORKS,
        rng,
        ONE_BIAS,
        run=lambda true, seed: exact_run(true, seed),
        error=lambda run: run.worst,
        theorem=lambda widths, log_delta: widths[1] * (widths[0] + log_delta),
    )
    return _exact_finding(
        cells,
        title="Random networks d-d₁-1 recovered from their answers",
        claim="A δ-regular network with one hidden layer of any width is recovered exactly with O(d₁·d + d₁·log(1/δ)) "
        "queries.",
        expression="d₁·d + d₁·log(1/δ)",
        cost=_below_theorem(cells),
        notes=(
            EVERYWHERE_NOTE,
            "The floor is one query a free parameter: queries / P falls to it as networks grow.",
        ),
    )


def exact_orthant(*, networks: Shapes | None = None, rng: Rng = 0) -> Finding:
    """One hidden layer from non-negative inputs alone: queries beside d·d₁·log(1/δ) + d₁·d."""
    domain = Domain.of(ORTHANT_BOUNDS)
    cells = measured_cells(
        networks or ORTHANT_NETWORKS,
        rng,
        ONE_BIAS,
        run=lambda true, seed: exact_run(true, seed, domain=ORTHANT_BOUNDS),
        error=lambda run: float(run.errors_in(domain).max()),
        theorem=lambda widths, log_delta: widths[1] * widths[0] * (1 + log_delta),
    )
    return _exact_finding(
        cells,
        title="Random networks d-d₁-1 recovered by queries inside the positive orthant alone",
        claim="Restricted to inputs without negative numbers, a δ-regular network is recovered with "
        "O(d·d₁·log(1/δ) + d₁·d) queries.",
        expression="d·d₁·log(1/δ) + d₁·d",
        cost=_below_theorem(cells),
        notes=("Errors are those over 20 000 points of the orthant. A neuron whose crease no query met is missing.",),
    )


def exact_two_layers(*, networks: Shapes | None = None, rng: Rng = 0) -> Finding:
    """Two hidden layers, recovered exactly: queries beside d·d₁²·d₂², the largest term of the proof."""
    cells = measured_cells(
        networks or TWO_LAYERS_NETWORKS,
        rng,
        TWO_BIAS,
        run=lambda true, seed: exact_run(true, seed),
        error=lambda run: run.worst,
        theorem=lambda widths, _: float(widths[0] * (widths[1] * widths[2]) ** 2),
    )
    return _exact_finding(
        cells,
        title="Random networks d-d₁-d₂-1 with d₁ ≤ d, recovered from their answers; the depth is unknown",
        claim="A δ-regular network with two hidden layers and d₁ ≤ d is recovered exactly with a number of queries "
        "polynomial in d, d₁, d₂ and log(1/δ).",
        expression="d·d₁²·d₂²",
        cost=_near_parameters(cells),
        notes=(
            EVERYWHERE_NOTE,
            "The theorem names no polynomial. This is the proof's largest term: d₁·d₂ hyperplanes, each tested "
            "against all others with d queries a time, to tell the two layers apart. It is far above the rows asked, "
            "so that the checks compare with the number of parameters.",
        ),
    )


def _below_theorem(cells: Sequence[ExactCell]) -> list[Check]:
    """The theorem counts queries that recover a network: those that verify it, a few hundred at least, are left out."""
    quotient = max(cell.recovering / cell.theorem for cell in cells)
    return [Check("largest quotient of queries without verification and theorem", quotient, 0, MOST_OVER_THEOREM)]


def _near_parameters(cells: Sequence[ExactCell]) -> list[Check]:
    """Queries for each parameter, and the power of the number of parameters that queries follow."""
    p, queries = np.array([(parameters(cell.widths), cell.queries) for cell in cells]).T
    checks = [Check("most queries for each parameter", float(np.max(queries / p)), 0, MOST_PER_PARAMETER)]
    if len(set(p)) > 1:
        power = float(np.polyfit(np.log(p), np.log(queries), 1)[0])
        checks.append(Check("power of the parameters that queries follow", power, 0, MOST_POWER))
    return checks


def _exact_finding(
    cells: list[ExactCell],
    *,
    title: str,
    claim: str,
    expression: str,
    cost: Sequence[Check],
    notes: tuple[str, ...],
) -> Finding:
    every = sum(len(cell.runs) for cell in cells)
    recovered, wrong = sum(cell.recovered for cell in cells), sum(cell.wrong for cell in cells)
    worst, quotient = max(cell.worst for cell in cells), [cell.queries / cell.theorem for cell in cells]
    return Finding(
        title=title,
        claim=claim,
        measured=f"{recovered} of {every} networks recovered and verified, {wrong} of them wrong, largest error "
        f"{size(worst, 1)} of the output's deviation; queries are {min(quotient):.2g} to {max(quotient):.2g} times "
        f"{expression}.",
        columns=EXACT_COLUMNS,
        rows=tuple(cell.row() for cell in cells),
        draw=lambda figure: draw_cells(figure, cells, expression),
        checks=(
            Check("share of networks recovered", recovered / every, LEAST_RECOVERED, 1),
            Check(f"recovered networks off by more than {WRONG_ERROR:g}", wrong, 0, 0),
            Check("largest error of a recovered network", worst, 0, MOST_ERROR),
            *cost,
        ),
        notes=(*notes, "Queries are medians, verification included."),
    )


ONE_LAYER = Experiment(
    "exact-one-layer", EXTRACTION_PAPER, "Theorem 1", exact_one_layer,
    quick={"networks": {(20, 10, 1): 8, (10, 100, 1): 2, (64, 40, 1): 8, (300, 60, 1): 6, (784, 32, 1): 4,
                        (784, 128, 1): 2}},
)  # fmt: skip
ORTHANT = Experiment(
    "exact-orthant", EXTRACTION_PAPER, "Theorem 2", exact_orthant,
    quick={"networks": {(10, 20, 1): 8, (10, 100, 1): 2, (64, 40, 1): 8, (300, 60, 1): 4, (784, 32, 1): 2}},
)  # fmt: skip
TWO_LAYERS = Experiment(
    "exact-two-layers", EXTRACTION_PAPER, "Theorem 3", exact_two_layers,
    quick={"networks": {(10, 10, 10, 1): 8, (20, 10, 20, 1): 6, (20, 10, 35, 1): 4, (80, 40, 20, 1): 4,
                        (784, 32, 16, 1): 2}},
)  # fmt: skip
