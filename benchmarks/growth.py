"""How cost grows: queries per parameter and CPU over the target's own, against the number of parameters.

python -m benchmarks growth     prints the table and draws docs/images/growth.svg
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.depth_two import one
from reluctant.experiments.sweeps.exact import ExactRun, parameters, shape

SHAPES = (
    (30, 30, 1),
    (64, 40, 1),
    (100, 80, 1),
    (300, 60, 1),
    (784, 64, 1),
    (784, 128, 1),
    (784, 512, 1),
    (1500, 600, 1),
)
SEEDS = 2
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "growth.svg"


def main() -> None:
    print(f"{'network':<13}{'P':>10}{'ok':>6}{'q/P':>9}{'floor':>8}{'CPU':>7}{'out':>10}{'restarts':>10}")
    rows = []
    for widths in SHAPES:
        runs = [one(widths, seed) for seed in range(SEEDS)]
        rows.append((parameters(widths), *summary(runs)))
        p, cost, cpu, out = rows[-1]
        name, good, restarts = (
            shape(widths),
            sum(run.ok for run in runs),
            sum(run.restarts for run in runs),
        )
        figures = f"{cost:>9.4f}{floor(widths):>8.4f}{cpu:>7.2f}{out:>10.1e}{restarts:>10}"
        print(f"{name:<13}{p:>10}{good:>4}/{SEEDS}{figures}", flush=True)
    draw(np.array(rows), [floor(widths) for widths in SHAPES])


def floor(widths: tuple[int, int, int]) -> float:
    d, h, _ = widths
    return (h + 1) * (d + 1) / parameters(widths)


def summary(runs: list[ExactRun]) -> tuple[float, float, float]:
    return (
        float(np.median([run.per_parameter for run in runs])),
        float(np.median([run.cpu for run in runs])),
        max(run.out for run in runs),
    )


def draw(rows: np.ndarray, floors: list[float]) -> None:
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    cost, cpu = figure.subplots(1, 2)
    cost.plot(rows[:, 0], rows[:, 1], "o-", label="queries per parameter")
    cost.plot(rows[:, 0], floors, "k:", label="floor")
    cpu.plot(rows[:, 0], rows[:, 2], "o-", label="CPU over the target's own")
    cpu.set_yscale("log")
    for axes in (cost, cpu):
        axes.set_xscale("log")
        axes.set_xlabel("parameters")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, metadata={"Date": None})
