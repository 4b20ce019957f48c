"""Claims of the learning paper: its bump, its clusters, and the cost of its theorem.

The last one compares what the theorem asks with what the paper's own algorithms use on a grid that a computer can hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from reluctant.numerics import Rng, as_generator
from reluctant.papers import learning_theory as theory
from reluctant.papers.experiments.experiment import LEARNING_PAPER, Check, Experiment, Finding, label_axes
from reluctant.papers.experiments.trials import (
    CLOSE,
    EXACT,
    FOUND,
    LearnCase,
    LearnRun,
    PaperRun,
    extract_run,
    family_case,
    learn_run,
    paper_run,
    worst,
)
from reluctant.papers.learning_theory import Magnitude
from reluctant.report.text import size
from reluctant.testing.families import bump

BUMP_WIDTHS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
CLUSTER_FAMILIES = ("clusters 0.001", "clusters 1e-05", "clusters 1e-07", "clusters 1e-09", "duplicates", "stairs",
            "linear dependence", "tiny norms", "far thresholds")  # fmt: skip
FAMILY_NETWORKS = 10
THEOREM_FAILURE = 0.01  # that the theorem may fail with
NARROW_BUMP, LEAST_MISSED = 0.01, 0.8  # a line meets so narrow a bump by chance: the exact method misses nearly all
LEAST_LEARNED = 0.95  # of the networks at least
BUMP_COLUMNS = ("width", "bumps", "learned", "worst error", "queries", "queries × width", "exact alone missed",
                "theorem's queries")  # fmt: skip
CLUSTER_COLUMNS = ("family", "networks", "asked", "learned", "worst error", "queries", "exact alone: short",
                   "its worst error", "theorem's queries")  # fmt: skip
FEWEST_QUERIES, MOST_QUERIES = 1.0, 200.0  # times 1/width: queries for a bump, of which one has to meet its slab


@dataclass(frozen=True)
class _FamilyRuns:
    """One family: `learn`, the exact method alone, and the theorem's number of queries."""

    case: LearnCase
    ours: list[LearnRun]
    exact: list[LearnRun]
    asked: theory.TheoremParameters

    @property
    def queries(self) -> float:
        return float(np.median([run.queries for run in self.ours]))

    @property
    def learned(self) -> int:
        """Said to be learned, and true."""
        return sum(run.ok and run.error <= self.case.eps for run in self.ours)

    @property
    def unseen(self) -> int:
        """The exact method found no network that is good enough."""
        return sum(run.error > self.case.eps for run in self.exact)

    @property
    def lies(self) -> int:
        """Said to be learned, and not."""
        return sum(run.ok and run.error > self.case.eps for run in self.ours)


def _measure_families(cases: list[LearnCase], networks: int, rng: np.random.Generator) -> list[_FamilyRuns]:
    cells = []
    for case in cases:
        seeds = [int(seed) for seed in rng.integers(2**31, size=networks)]
        asked = theory.theorem(theory.Constants.of(case.planted(seeds[0]), case.eps, THEOREM_FAILURE))
        ours, exact = [learn_run(case, seed) for seed in seeds], [extract_run(case, seed) for seed in seeds]
        cells.append(_FamilyRuns(case, ours, exact, asked))
    return cells


def learn_bump(*, widths: tuple[float, ...] = BUMP_WIDTHS, networks: int = FAMILY_NETWORKS, rng: Rng = 0) -> Finding:
    """The bump that bisection never sees: queries to learn it against its width."""
    cases = [LearnCase(f"{width:g}", partial(bump, width=width), narrowest=width) for width in widths]
    cells = _measure_families(cases, networks, as_generator(rng))
    scaled = [cell.queries * cell.case.narrowest for cell in cells]
    found, every = sum(cell.learned for cell in cells), networks * len(cells)
    return Finding(
        title=f"A bump of three neurons in 12 dimensions, {networks} of each width",
        claim="Zero but in a slab of width δ: search by bisection fails, and any method needs Ω(1/δ) queries. "
        "Polynomially many suffice.",
        measured=f"{found} of {every} bumps learned, worst square error {_largest(cells)} of the variance, with "
        f"{min(scaled):.0f}/δ to {max(scaled):.0f}/δ queries. The exact method alone missed "
        f"{sum(cell.unseen for cell in cells)}.",
        columns=BUMP_COLUMNS,
        rows=tuple(_bump_row(cell) for cell in cells),
        draw=lambda figure: _draw_bump(figure, cells),
        checks=(
            Check("share of bumps learned", found / every, 1, 1),
            *_missed_checks(cells),
            Check("fewest queries × width", min(scaled), FEWEST_QUERIES, MOST_QUERIES),
            Check("most queries × width", max(scaled), FEWEST_QUERIES, MOST_QUERIES),
        ),
        notes=("The theorem's queries are what its proof asks for, constants set to one: see learn-theorem.",),
    )


def _bump_row(cell: _FamilyRuns) -> tuple[Any, ...]:
    width = cell.case.narrowest
    return (
        width, len(cell.ours), cell.learned, worst(cell.ours), round(cell.queries), cell.queries * width, cell.unseen,
        str(cell.asked.queries),
    )  # fmt: skip


def _missed_checks(cells: list[_FamilyRuns]) -> list[Check]:
    """Nothing is checked where no bump is narrow."""
    narrow = [cell.unseen / len(cell.exact) for cell in cells if cell.case.narrowest <= NARROW_BUMP]
    name = f"share up to {NARROW_BUMP:g} wide that the exact method alone missed"
    return [Check(name, float(np.mean(narrow)), LEAST_MISSED, 1)] if narrow else []


def _largest(cells: list[_FamilyRuns]) -> str:
    """The worst error of all."""
    return size(max(worst(cell.ours) for cell in cells), 1)


def learn_clusters(
    *, families: tuple[str, ...] = CLUSTER_FAMILIES, networks: int = FAMILY_NETWORKS, rng: Rng = 0
) -> Finding:
    """Neurons that nearly or wholly cancel, repeat or depend: learned where general position fails."""
    cells = _measure_families([family_case(name) for name in families], networks, as_generator(rng))
    clusters = [cell for cell in cells if cell.case.eps == CLOSE] or cells
    found, every = sum(cell.learned for cell in cells), networks * len(cells)
    lies = sum(cell.lies for cell in cells)
    return Finding(
        title=f"Networks without general position in 12 dimensions, {networks} of each family",
        claim="Any network with one hidden layer is learned to square error ε under Gaussian inputs, however its "
        "neurons lie, with queries polynomial in d, k, R, B and 1/ε.",
        measured=f"{found} of {every} networks learned to {size(CLOSE, 1)} (clusters) or {size(EXACT, 1)} of the "
        f"variance, {lies} claimed wrongly; clusters to {_largest(clusters)} at worst. The exact method alone fell "
        f"short on {sum(cell.unseen for cell in cells)}.",
        columns=CLUSTER_COLUMNS,
        rows=tuple(_cluster_row(cell) for cell in cells),
        draw=lambda figure: _draw_clusters(figure, cells),
        checks=(
            Check("share of networks learned", found / every, LEAST_LEARNED, 1),
            Check("networks said to be learned that are not", lies, 0, 0),
        ),
        notes=(
            "Errors are square errors over the variance, importance-sampled near the true creases.",
            "Clusters: three groups of neurons this far apart whose outputs add up to zero.",
        ),
    )


def _cluster_row(cell: _FamilyRuns) -> tuple[Any, ...]:
    return (
        cell.case.name, len(cell.ours), cell.case.eps, cell.learned, worst(cell.ours), round(cell.queries), cell.unseen,
        worst(cell.exact), str(cell.asked.queries),
    )  # fmt: skip


def _draw_bump(figure: Any, cells: list[_FamilyRuns]) -> None:
    axes = figure.add_subplot()
    for cell in cells:
        width = cell.case.narrowest
        axes.plot([width] * len(cell.ours), [run.queries for run in cell.ours], "o", color="C0", alpha=0.5)
    widths = np.array([cell.case.narrowest for cell in cells])
    floor = cells[-1].queries * widths[-1]
    axes.plot(widths, floor / widths, "k:", label=f"{floor:.0f} / width")
    label_axes(axes, "width of the bump", "queries", log="xy")
    axes.invert_xaxis()


def _draw_clusters(figure: Any, cells: list[_FamilyRuns]) -> None:
    axes = figure.add_subplot()
    for number, cell in enumerate(cells):
        for runs, colour, label in ((cell.exact, "C1", "exact method alone"), (cell.ours, "C0", "learn")):
            errors = [max(run.error, np.finfo(float).tiny) for run in runs]
            shown = label if number == 0 else None
            axes.plot(errors, [number] * len(errors), "o", color=colour, alpha=0.6, markersize=5, label=shown)
    label_axes(axes, "square error, of the variance", log="x", fontsize=8)
    axes.set_yticks(range(len(cells)), [cell.case.name for cell in cells])
    axes.invert_yaxis()


BUMP = Experiment(
    "learn-bump", LEARNING_PAPER, "Example 1.2 and Remark 1.3", learn_bump,
    quick={"widths": (0.1, 0.03, 0.01, 0.003, 0.001), "networks": 5},
)  # fmt: skip
CLUSTERS = Experiment("learn-clusters", LEARNING_PAPER, "Theorem 1.1", learn_clusters, quick={"networks": 3})

BumpRuns = dict[float, list[PaperRun]]

THEOREM_WIDTHS = (0.3, 0.1, 0.03, 0.01)
THEOREM_NETWORKS = 20
WIDE_BUMP = 0.03  # bumps as wide as this are found, all of them; of narrower ones, a share


def learn_theorem(
    *, widths: tuple[float, ...] = THEOREM_WIDTHS, networks: int = THEOREM_NETWORKS, rng: Rng = 0
) -> Finding:
    """LEARNFROMQUERIES on a bump: the theorem's parameters beside those really used, and the cost as it narrows."""
    generator = as_generator(rng)
    runs = {
        width: [paper_run(int(seed), width) for seed in generator.integers(2**31, size=networks)] for width in widths
    }
    first, errors = runs[widths[0]][0], [run.error for some in runs.values() for run in some]
    wide = {width: some for width, some in runs.items() if width >= WIDE_BUMP}
    narrow = {width: some for width, some in runs.items() if width < WIDE_BUMP}
    return Finding(
        title=f"A bump of width {widths[0]:g} in three dimensions: what the theorem asks, what was used",
        claim="GETNEURONS and LEARNFROMQUERIES learn it with queries polynomial in d, k, R, B, 1/ε and log(1/δ).",
        measured=f"The polynomial comes to {first.asked.queries} queries on a grid that float64 cannot write. With "
        f"{first.queries:,} and more, on a grid of eight intervals a bump, the algorithms find "
        f"{' and '.join(_found_in_words(part) for part in (wide, narrow) if part)}; square error "
        f"{size(float(np.median(errors)), 1)} of the bump's (median), {size(max(errors), 1)} (worst).",
        columns=("symbol", "meaning", "the theorem asks", "really used"),
        rows=tuple(
            (row.symbol, row.meaning, str(row.theorem), "" if row.used is None else str(Magnitude.of(row.used)))
            for row in first.beside()
        ),
        draw=lambda figure: _draw_theorem(figure, runs),
        checks=(Check(f"share of bumps at least {WIDE_BUMP:g} wide that are found", _found_share(wide), 1, 1),)
        if wide
        else (),
        notes=(
            "Constants that the paper leaves open are set to one. What a coarser grid gives up is the guarantee: a "
            "bump narrower than two intervals may be missed without a trace.",
            f"Found: a square error of at most {size(FOUND, 1)} of the bump's. The narrowest lose digits: steps are "
            "shorter there, and fewer samples fall on them.",
        ),
    )


def _found_share(runs: BumpRuns) -> float:
    return float(np.mean([run.error <= FOUND for some in runs.values() for run in some]))


def _found_in_words(runs: BumpRuns) -> str:
    """How many of them, in words."""
    every = sum(map(len, runs.values()))
    widths = f"{min(runs):g} to {max(runs):g}" if len(runs) > 1 else f"{max(runs):g}"
    return f"{round(_found_share(runs) * every)} of {every} bumps {widths} wide"


def _draw_theorem(figure: Any, runs: BumpRuns) -> None:
    cost, error = figure.subplots(1, 2)
    widths = np.array(list(runs))
    queries = np.array([some[0].queries for some in runs.values()])
    cost.plot(widths, queries, "o-", label="asked")
    cost.plot(widths, queries[-1] * widths[-1] / widths, "k:", label="1 / width")
    for width, some in runs.items():
        error.plot([width] * len(some), [run.error for run in some], "o", color="C0", alpha=0.5)
    for axes, name in ((cost, "queries"), (error, "square error, of the bump's")):
        label_axes(axes, "width of the bump", name, log="xy")
        axes.invert_xaxis()


THEOREM = Experiment(
    "learn-theorem", LEARNING_PAPER, "Theorem 1.1 and Algorithms 1 to 4", learn_theorem,
    quick={"widths": (0.3, 0.1, 0.03), "networks": 4},
)  # fmt: skip
