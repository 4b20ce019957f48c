"""How cost grows: answers per parameter and CPU over the target's own, against the number of parameters.

python -m benchmarks growth            measures the small shapes, reads the large ones from benchmarks/results, draws
                                       docs/images/growth.svg; --save keeps what was measured
GROWTH_KEPT=1 python -m benchmarks growth    measures nothing: all from benchmarks/results

q/P depends on inputs and neurons and not on P alone, so shapes come in families; each line is the model of
`reluctant estimate`, fitted to all kept results. `from` says whose result it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.calibration import median_stages
from benchmarks.depth_two import one
from benchmarks.results import Results, read_results
from reluctant.estimation import estimate
from reluctant.estimation.formulas import parameters, shape_name
from reluctant.report.drawings import COLOURS

FAMILIES: dict[str, tuple[tuple[int, int, int], ...]] = {
    "784 inputs": tuple((784, h, 1) for h in (2, 8, 32, 128, 512, 700, 1024, 8192)),
    "3072 inputs": tuple((3072, h, 1) for h in (2, 16, 256, 2048, 16384)),
    "100 inputs": tuple((100, h, 1) for h in (10, 100, 400, 1000)),
    "10 inputs": tuple((10, h, 1) for h in (80, 100, 300)),
    "as many neurons as inputs": tuple((n, n, 1) for n in (32, 100, 300, 1000, 1500)),
}
OTHERS = ("depth-two", "large", "gpu")  # benchmarks whose results are read, the first that has a shape
LARGE = 500_000  # parameters: one network instead of two
SEEDS = 2
FLAT_FROM = 1e5  # parameters, from which on it is said how flat it is
SMALL_INPUTS = ("10 inputs", "100 inputs")
LINE = np.geomspace(1e3, 5e7, 60)  # parameters at which the model is drawn
WIDEST = 2 * 8192  # neurons up to which the model is drawn
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "growth.svg"
RESULTS = Results("growth")


@dataclass(frozen=True)
class Shown:
    """One shape: answers per parameter, CPU over the target's own and error where they are known."""

    family: str
    widths: tuple[int, int, int]
    ok: int
    networks: int
    cost: float
    cpu: float | None
    out: float | None
    source: str

    @property
    def parameters(self) -> int:
        return parameters(self.widths)


def main() -> None:
    print(
        f"{'network':<14}{'P':>12}{'ok':>7}{'q/P':>9}{'model':>9}{'floor':>8}{'CPU':>8}{'out':>10}  {'from':<11}family"
    )
    rows = []
    for row in every_shape(kept=bool(os.environ.get("GROWTH_KEPT"))):
        rows.append(row)
        print(line(row), flush=True)
    for sentence in flatness(rows):
        print(sentence)
    draw(rows)


def every_shape(*, kept: bool) -> Iterator[Shown]:
    """All shapes: kept by another benchmark, else measured here, or kept by this one before."""
    for family, shapes in FAMILIES.items():
        for widths in shapes:
            found = from_others(family, widths, (*OTHERS, "growth") if kept else OTHERS)
            if found is None and not kept:
                found = from_row(family, widths, fresh(widths), "growth")
            if found is not None:
                yield found


def from_others(family: str, widths: tuple[int, int, int], sources: Sequence[str]) -> Shown | None:
    """The first kept result of a shape, None if nobody has one."""
    rows = ((source, read_results(source).get(shape_name(widths))) for source in sources)
    return next((from_row(family, widths, row, source) for source, row in rows if row is not None), None)


def from_row(family: str, widths: tuple[int, int, int], row: dict[str, Any], source: str) -> Shown:
    cost = row["cost"] if "cost" in row else row["queries"] / parameters(widths)
    return Shown(
        family, widths, row["ok"], row["networks"], cost, row.get("cpu"), row.get("out_max"), source
    )  # fmt: skip


def fresh(widths: tuple[int, int, int]) -> dict[str, Any]:
    """Measure a shape, and keep it if that is asked for."""
    runs = [one(widths, seed) for seed in range(1 if parameters(widths) > LARGE else SEEDS)]
    good = [run for run in runs if run.ok] or runs
    cost, out = [run.per_parameter for run in good], [run.out for run in good]
    row = {
        "networks": len(runs), "ok": sum(run.ok for run in runs), "parameters": parameters(widths),
        "cost": float(np.median(cost)), "cost_max": max(cost), "out": float(np.median(out)), "out_max": max(out),
        "cpu": float(np.median([run.cpu for run in good])), "restarts": sum(run.restarts for run in runs),
        "stages": median_stages(good),
    }  # fmt: skip
    RESULTS.keep(shape_name(widths), **row)
    return row


def line(row: Shown) -> str:
    d, h, _ = row.widths
    floor = (h + 1) * (d + 1) / row.parameters
    cpu = "-" if row.cpu is None else f"{row.cpu:.2f}"
    out = "-" if row.out is None else f"{row.out:.1e}"
    return (
        f"{shape_name(row.widths):<14}{row.parameters:>12,}{row.ok:>4}/{row.networks:<2}{row.cost:>9.4f}"
        f"{modelled(row.widths):>9.4f}{floor:>8.4f}{cpu:>8}{out:>10}  {row.source:<11}{row.family}"
    )


def modelled(widths: tuple[int, int, int]) -> float:
    """Answers per parameter by the model."""
    found = estimate(widths).per_parameter
    assert found is not None
    return found.expected


def flatness(rows: Sequence[Shown]) -> Iterator[str]:
    """How far q/P is from the same, among recovered networks of 1e5 parameters and more."""
    large = [row for row in rows if row.ok and row.parameters >= FLAT_FROM]
    groups = {family: [row for row in large if row.family == family] for family in FAMILIES}
    groups["all of 784 inputs and more, and as many neurons as inputs"] = [
        row for row in large if row.family not in SMALL_INPUTS
    ]
    groups["all"] = large
    for name, some in groups.items():
        if len(some) > 1:
            least, most = (pick(row.cost for row in some) for pick in (min, max))
            yield f"Above 1e5 parameters, {name}: q/P {least:.4f} to {most:.4f}, flat within {most / least - 1:.1%}."


def draw(rows: Sequence[Shown]) -> None:
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    cost, cpu = figure.subplots(1, 2, width_ratios=(3, 2))
    for colour, family in zip(COLOURS, FAMILIES, strict=False):
        some = [row for row in rows if row.family == family]
        cost.plot(*model_line(some), "-", color=colour, linewidth=0.9)
        good = [row for row in some if row.ok]
        cost.plot([r.parameters for r in good], [r.cost for r in good], "o", color=colour, markersize=4, label=family)
        lost = [row for row in some if not row.ok]
        cost.plot([r.parameters for r in lost], [r.cost for r in lost], "x", color=colour, markersize=7)
        timed = [row for row in good if row.cpu is not None]
        cpu.plot([r.parameters for r in timed], [r.cpu for r in timed], "o-", color=colour, markersize=4)
    cost.plot([], [], "k-", linewidth=0.9, label="model")
    cost.plot([], [], "kx", label="not recovered")
    cost.set(ylabel="answers per parameter, q/P", ylim=(0.97, 2.0))
    cost.legend(frameon=False, fontsize=8)
    cpu.set(ylabel="CPU over the target's own", yscale="log")
    for axes in (cost, cpu):
        axes.set(xscale="log", xlabel="parameters P")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, metadata={"Date": None})


def model_line(some: Sequence[Shown]) -> tuple[list[float], list[float]]:
    """The model along a family: parameters and q/P, from one hidden neuron to twice as many as were ever recovered."""
    square = some[0].widths[0] == some[0].widths[1]
    shapes = [w for w in dict.fromkeys(along(square, some[0].widths[0], p) for p in LINE) if w[1] <= WIDEST]
    return [float(parameters(widths)) for widths in shapes], [modelled(widths) for widths in shapes]


def along(square: bool, inputs: int, p: float) -> tuple[int, int, int]:
    """The shape of a family that has about so many parameters."""
    side = max(1, round(np.sqrt(p)))
    return (side, side, 1) if square else (inputs, max(1, round(p / (inputs + 2))), 1)
