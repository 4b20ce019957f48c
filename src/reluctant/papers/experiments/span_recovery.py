"""Algorithms 1 and 2 of the span paper: spans from values and from labels, with their queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reluctant.estimation.formulas import shape_name
from reluctant.numerics import Rng, as_generator
from reluctant.papers.experiments.experiment import SPAN_PAPER, Check, Experiment, Finding, label_axes
from reluctant.papers.experiments.trials import SPAN_DIM, SPAN_RANK, SpanRun, label_network, paper_network
from reluctant.report.text import size

HIDDEN = ((40, 30, 20, 10), (6, 3), (3, 3, 3))
ACTIVATIONS = ("tanh", "softplus", "relu")
NETWORKS = 10
LABELS_SMALL = (50, 8, 16, 1)
LABEL_NETWORKS: dict[tuple[int, ...], int] = {LABELS_SMALL: 10, (SPAN_DIM, 20, 20, 1): 2}
NEARLY_ALL = 0.9  # have the right rank and say so
COARSE, FINE = 1e-6, 1e-11  # largest sine between recovered and true span, by values
BY_LABELS = 1e-11  # and by labels
MOST = {"coarse": 1.05, "fine": 2.1}  # queries over rank × inputs
MOST_LABELS = 140.0
MARGIN = 1.1  # to the right of the largest cost, in the picture
COLUMNS = ("networks", "right", "dead", "angle", "worst angle", "queries / kn", "most")


def span_values(*, hidden: tuple[tuple[int, ...], ...] = HIDDEN, networks: int = NETWORKS, rng: Rng = 0) -> Finding:
    """The span of deep networks from values, the rank not given: queries over k·n, and the angle to the truth."""
    generator = as_generator(rng)
    cells = {
        (layers, way): [_values(layers, way, generator) for _ in range(networks)] for way in MOST for layers in hidden
    }
    rows = [
        (shape_name((SPAN_DIM, SPAN_RANK, *layers, 1)), way, *_summary(runs)) for (layers, way), runs in cells.items()
    ]
    every = [run for runs in cells.values() for run in runs]
    return Finding(
        title=f"Random networks with {SPAN_DIM} inputs and a first layer of rank {SPAN_RANK}, {networks} of each kind",
        claim="Algorithm 1 finds a subspace of dimension at least k/2 with O(k·n·log k) queries, whatever the depth.",
        measured=f"{sum(run.right for run in every)} of {len(every)} spans whole (dead networks named as such), the "
        f"rank not given, with {min(_costs(every)):.2f} to {max(_costs(every)):.2f} times k·n queries and a sine to "
        f"the truth of at most {size(_worst(_of(cells, 'coarse')), 1)} (coarse) or "
        f"{size(_worst(_of(cells, 'fine')), 1)} (fine).",
        columns=("network", "refinement", *COLUMNS),
        rows=tuple(rows),
        draw=lambda figure: _draw(figure, {f"{way} {layers}": runs for (layers, way), runs in cells.items()}),
        checks=(
            Check("share of spans that are whole", sum(run.right for run in every) / len(every), NEARLY_ALL, 1),
            Check("worst sine, coarse", _worst(_of(cells, "coarse")), 0, COARSE),
            Check("worst sine, fine", _worst(_of(cells, "fine")), 0, FINE),
            *(Check(f"median queries over k·n, {way}", float(np.median(_costs(_of(cells, way)))), 0, most)
              for way, most in MOST.items()),
        ),
        notes=(f"k·n·log k is {np.log2(SPAN_RANK):.1f} times k·n here.",),
    )  # fmt: skip


def _values(layers: tuple[int, ...], way: str, rng: np.random.Generator) -> SpanRun:
    return paper_network(layers, rng, int(rng.integers(2**31)), fine=way == "fine")


def _of(cells: dict[tuple[tuple[int, ...], str], list[SpanRun]], way: str) -> list[SpanRun]:
    return [run for (_, each), runs in cells.items() if each == way for run in runs]


def span_labels(
    *, networks: dict[tuple[int, ...], int] | None = None, activations: tuple[str, ...] = ACTIVATIONS, rng: Rng = 0
) -> Finding:
    """The span from 0/1 answers alone, smooth and ReLU networks: queries over k·n, and the angle to the truth."""
    cells = _by_labels(networks or LABEL_NETWORKS, activations, as_generator(rng))
    every = [run for runs in cells.values() for run in runs]
    right, costs = sum(run.right for run in every), _costs(every)
    named = {f"{widths[0]} inputs, {activation}": runs for (widths, activation), runs in cells.items()}
    return Finding(
        title="Random networks thresholded to 0/1, the span from labels alone",
        claim="With twice differentiable activations and a threshold on top, the span is approximated to any ε with "
        "polynomially many queries, although each answer is one bit.",
        measured=f"{right} of {len(every)} spans whole, ReLU networks included, to a sine of at most "
        f"{size(_worst(every), 1)}, with {min(costs):.0f} to {max(costs):.0f} times k·n queries.",
        columns=("network", "activation", *COLUMNS, "floor"),
        rows=tuple((shape_name(key[0]), key[1], *_summary(runs), _floor(key[0], runs)) for key, runs in cells.items()),
        draw=lambda figure: _draw(figure, named),
        checks=(
            Check("share of spans that are whole", right / len(every), NEARLY_ALL, 1),
            Check("worst sine of a whole span", _worst(every), 0, BY_LABELS),
            Check("median queries over k·n", float(np.median(costs)), 0, MOST_LABELS),
        ),
        notes=(
            "Floor: an answer is one bit, so (n − k)/n · log₂(1/angle) times k·n queries are the fewest that can tell "
            "the span apart from its neighbours.",
        ),
    )


def _by_labels(
    counts: dict[tuple[int, ...], int], activations: tuple[str, ...], rng: np.random.Generator
) -> dict[tuple[tuple[int, ...], str], list[SpanRun]]:
    return {
        (widths, activation): [label_network(widths, activation, rng, int(rng.integers(2**31))) for _ in range(count)]
        for widths, count in counts.items()
        for activation in activations
    }


def _floor(widths: tuple[int, ...], runs: Sequence[SpanRun]) -> float:
    n, k = widths[:2]
    angles = [run.angle for run in runs if run.right]
    return float((n - k) / n * -np.log2(np.median(angles))) if angles else np.nan


def _summary(runs: Sequence[SpanRun]) -> tuple[Any, ...]:
    live = [run for run in runs if not run.dead]
    angles, costs = [run.angle for run in live] or [np.nan], _costs(live) or [np.nan]
    dead = len(runs) - len(live)
    return (
        len(runs), sum(run.right for run in runs), dead, float(np.median(angles)), max(angles), float(np.median(costs)),
        max(costs),
    )  # fmt: skip


def _costs(runs: Sequence[SpanRun]) -> list[float]:
    return [run.cost for run in runs if not run.dead]


def _worst(runs: Sequence[SpanRun]) -> float:
    """Largest sine of a span with the right rank."""
    return max((run.angle for run in runs if run.right and not run.dead), default=0.0)


def _draw(figure: Any, cells: dict[str, list[SpanRun]]) -> None:
    angle, cost = figure.subplots(1, 2)
    for number, runs in enumerate(cells.values()):
        live = [run for run in runs if not run.dead]
        angle.plot([run.angle for run in live], [number] * len(live), "o", alpha=0.6, markersize=5)
        cost.plot([run.cost for run in live], [number] * len(live), "o", alpha=0.6, markersize=5)
    label_axes(angle, "sine to the true span", log="x")
    label_axes(cost, "queries over k·n")
    angle.set_yticks(range(len(cells)), [name.replace("(", "").replace(")", "") for name in cells], fontsize=8)
    cost.set_yticks([])
    cost.set_xlim(0, MARGIN * max(run.cost for runs in cells.values() for run in runs))
    for axes in (angle, cost):
        axes.invert_yaxis()


SPAN_VALUES = Experiment(
    "span-values", SPAN_PAPER, "Theorem 3.4, Algorithm 1", span_values, quick={"hidden": HIDDEN[:2], "networks": 2}
)
SPAN_LABELS = Experiment(
    "span-labels", SPAN_PAPER, "Theorem 4.3, Algorithm 2", span_labels, quick={"networks": {(50, 8, 16, 1): 6}}
)
