"""Figure 1 of the paper on adversarial examples: the smallest change that hides an input from a random layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluctant.adversarial.perturbation import minimal_perturbation, perturbation_law
from reluctant.experiments.experiment import Experiment
from reluctant.experiments.finding import Check, Finding
from reluctant.experiments.papers import ADVERSARIAL
from reluctant.numerics import Rng, as_generator

__all__ = ["SMALLEST", "smallest_perturbation"]

DIM = 10_000
WIDTHS = (10, 50, 100, 500, 1000, 5000, 10_000)
RUNS = 10
LARGEST_Z = 3.0  # standard errors

Row = tuple[int, float, float, float, float | None]


def smallest_perturbation(
    *, dim: int = DIM, widths: tuple[int, ...] = WIDTHS, runs: int = RUNS, rng: Rng = 0
) -> Finding:
    """‖W⁺Wx‖ / ‖x‖ against the number of neurons, beside √(k/d) and the exact law of a run."""
    generator = as_generator(rng)
    rows = [_row(k, dim, runs, generator) for k in widths]
    drawn = {k: z for k, *_, z in rows if z is not None}
    return Finding(
        name="smallest-perturbation",
        title=f"Smallest change that hides an input of {dim} numbers from k random neurons, mean of {runs} runs",
        claim="The smallest change that hides an input from k random neurons is about √(k/d) of its norm.",
        measured=f"Means {min(row[1] for row in rows):.3f} to {max(row[1] for row in rows):.3f}, within "
        f"{max(map(abs, drawn.values()), default=0.0):.1f} standard errors of the law at every k below d: the square "
        "follows "
        "Beta(k/2, (d - k)/2).",
        columns=("k", "mean", "√(k/d)", "law", "z"),
        rows=tuple(rows),
        draw=lambda figure: _draw(figure, rows),
        checks=tuple(Check(f"z at k = {k}", z, -LARGEST_Z, LARGEST_Z) for k, z in drawn.items()),
        notes=("As many neurons as inputs see all of it: 1 by algebra, nothing is drawn.",) if dim in widths else (),
    )


def _row(k: int, dim: int, runs: int, rng: np.random.Generator) -> Row:
    """k, mean, rule, mean of the law, and how many standard errors apart; None where nothing is random."""
    law = perturbation_law(k, dim)
    if k == dim:
        return k, 1.0, 1.0, 1.0, None
    mean = float(np.mean([_ratio(k, dim, rng) for _ in range(runs)]))
    return k, mean, float(np.sqrt(k / dim)), law.mean, (mean - law.mean) / law.sd * float(np.sqrt(runs))


def _ratio(k: int, dim: int, rng: np.random.Generator) -> float:
    """One run. float32 halves the memory and is far more exact than the spread of a run."""
    weights = rng.standard_normal((k, dim), dtype=np.float32)
    x = rng.standard_normal(dim, dtype=np.float32)
    return minimal_perturbation(weights, x) / float(np.linalg.norm(x))


def _draw(figure: Any, rows: list[Row]) -> None:
    k, mean, rule = np.array([row[:3] for row in rows]).T
    axes = figure.add_subplot()
    axes.loglog(k, rule, "-", color="0.6", label="√(k/d)")
    axes.loglog(k, mean, "o", label="measured")
    axes.set_xlabel("neurons k")
    axes.set_ylabel("‖W⁺Wx‖ / ‖x‖")
    axes.legend(frameon=False)


SMALLEST = Experiment(
    "smallest-perturbation", ADVERSARIAL, "Appendix D, Figure 1", smallest_perturbation,
    quick={"widths": (10, 50, 100, 500, 1000, 2000, 10_000)},
)  # fmt: skip
