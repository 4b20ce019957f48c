"""Answers that say more than a prediction: gradients (Milli et al., 2019), and logits of a wide output (Carlini et al.)

The first counts queries to gradients against the width, the second reads the width of the last layer from the rank of
logits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reluctant.estimation.formulas import shape_name
from reluctant.extraction import DepthTwo, extract
from reluctant.extraction.depth_two.jump_lines import STAGE, JumpLines
from reluctant.numerics import Rng, as_generator
from reluctant.oracles.links import LINK_FUNCTIONS
from reluctant.papers.experiments.experiment import (
    GRADIENTS_PAPER,
    LOGITS_PAPER,
    Check,
    Experiment,
    Finding,
    label_axes,
)
from reluctant.span import output_space
from reluctant.testing.planted import largest_true_error, planted

WIDTHS = (8, 16, 32, 64, 128, 256)
INPUTS = (100, 400)
METHOD = DepthTwo(by_gradients=JumpLines(few_neurons=1))  # no dense line for narrow ridges of small networks
SLOPES = (0.8, 1.25)  # of log queries by log h: 1 for h, about 1.2 for h log h
EXACT = 1e-9  # error of a copy, of the output's deviation
SAME_COST = 1.15  # times the queries of fewer inputs
HEADS = ((40, 16, 500), (40, 64, 1000), (50, 64, 4096), (64, 32, 16, 100))
WITHIN = 20  # queries beside the rank, of one hidden layer
GAP = 1e-3  # margin: what counted as nothing over the weakest direction


def milli_gradients(
    *, widths: tuple[int, ...] = WIDTHS, inputs: tuple[int, ...] = INPUTS, networks: int = 3, rng: Rng = 0
) -> Finding:
    """One hidden layer from gradients: queries against its width h, and whether they depend on the inputs."""
    generator = as_generator(rng)
    rows = [(d, h, *_from_gradients(d, h, networks, generator)) for d in inputs for h in widths]
    slopes = {d: _slope([(h, cost) for at, h, cost, *_ in rows if at == d]) for d in inputs}
    few, many = (sum(cost for at, _, cost, *_ in rows if at == d) for d in (inputs[0], inputs[-1]))
    wrong = sum(runs - right for *_, right, runs, _ in rows)
    return Finding(
        title=f"Networks with one hidden layer, {networks} of each width, asked for gradients",
        claim="A network with one hidden layer of h ReLUs is recovered with O(h log h) queries to its gradients, "
        "whatever the number of inputs.",
        measured=f"queries grow as h to the power {min(slopes.values()):.2f} to {max(slopes.values()):.2f}; "
        f"{inputs[-1]} inputs take {many / few:.2f} times the queries of {inputs[0]}; {wrong} networks not recovered.",
        columns=("inputs", "h", "queries", "of h", "recovered", "networks", "error"),
        rows=tuple((d, h, cost, cost / h, *rest) for d, h, cost, *rest in rows),
        draw=lambda figure: _draw_slopes(figure, rows, inputs),
        checks=(
            *(Check(f"power of h, {d} inputs", slope, *SLOPES) for d, slope in slopes.items()),
            Check("queries of many inputs over those of few", many / few, 0, SAME_COST),
            Check("networks not recovered", wrong, 0, 0),
            Check("largest error of a copy", max(row[-1] for row in rows), 0, EXACT),
        ),
        notes=("Queries are those of the search. The check of the interface and verification come besides.",),
    )


def _from_gradients(d: int, h: int, networks: int, rng: np.random.Generator) -> tuple[float, int, int, float]:
    """Median queries of the search, networks recovered, networks, and their largest error."""
    costs, errors = [], []
    for _ in range(networks):
        network = planted((d, h, 1), rng)
        found = extract(network, METHOD, gradients=True, rng=int(rng.integers(2**31)))
        costs.append(found.rows[STAGE].queries)
        if found.ok and found.network is not None:
            errors.append(largest_true_error(found.network, network))
    return float(np.median(costs)), len(errors), networks, max(errors, default=np.nan)


def _slope(points: list[tuple[int, float]]) -> float:
    h, cost = np.log(np.array(points, dtype=float)).T
    return float(np.polyfit(h, cost, 1)[0])


def _draw_slopes(figure: Any, rows: list[tuple[Any, ...]], inputs: tuple[int, ...]) -> None:
    axes = figure.subplots()
    for d in inputs:
        mine = [(h, cost) for at, h, cost, *_ in rows if at == d]
        axes.plot(*zip(*mine, strict=True), "o-", label=f"{d} inputs")
    widths = np.array(sorted({row[1] for row in rows}), dtype=float)
    axes.plot(widths, 2 * widths, ":", color="gray", label="2 h")
    axes.plot(widths, widths * np.log2(widths), "--", color="gray", label="h log₂ h")
    label_axes(axes, "hidden neurons h", "queries", log="xy")


def logit_rank(*, heads: tuple[tuple[int, ...], ...] = HEADS, networks: int = 3, rng: Rng = 0) -> Finding:
    """The width of the last hidden layer, from the rank of logits: values, float32 and log-probabilities."""
    generator = as_generator(rng)
    spectra: dict[str, np.ndarray] = {}
    rows = [
        (shape_name(widths), way, *_ranks(widths, way, networks, generator, spectra))
        for widths in heads
        for way in WAYS
    ]
    wrong = sum(runs - right for _, _, _, right, runs, *_ in rows)
    one_layer = [extra for (name, _, _, _, _, extra, _) in rows if name.count("-") == 2]
    return Finding(
        title=f"Networks with more outputs than hidden neurons, {networks} of each kind",
        claim="Full logits lie in a space whose rank is the width of the last hidden layer: the singular values of "
        "somewhat more answers than that fall to nothing there.",
        measured=f"{wrong} of {networks * len(rows)} ranks wrong; at most {max(one_layer):.0f} queries beside the rank "
        f"with one hidden layer, and a margin of at most {max(row[-1] for row in rows):.1g}.",
        columns=("network", "answers", "rank", "right", "networks", "queries beside the rank", "margin"),
        rows=tuple(rows),
        draw=lambda figure: _draw_spectra(figure, spectra),
        checks=(
            Check("ranks that are wrong", wrong, 0, 0),
            Check("queries beside the rank, one hidden layer", max(one_layer), 0, WITHIN),
            Check("largest margin", max(row[-1] for row in rows), 0, GAP),
        ),
        notes=("With several hidden layers, neurons of the last one may be on at few inputs: those are asked longer.",),
    )


WAYS = ("float64", "float32", "log-softmax")


def _ranks(
    widths: tuple[int, ...], way: str, networks: int, rng: np.random.Generator, spectra: dict[str, np.ndarray]
) -> tuple[int, int, int, int, float]:
    """The true rank, how many were right, of how many; most queries beside it, and the largest margin."""
    runs, log_softmax = [], LINK_FUNCTIONS["log-softmax"]
    for _ in range(networks):
        network = planted(widths, rng)
        seed = int(rng.integers(2**31))
        if way == "log-softmax":
            found = output_space(lambda x, network=network: log_softmax(network(x)), dim=widths[0], rng=seed)
        else:
            found = output_space(lambda x, network=network: network(x).astype(way), dim=widths[0], rng=seed)
        runs.append(found)
    if way == WAYS[0]:
        spectra[shape_name(widths)] = runs[0].singular
    rank = widths[-2]
    right = sum(found.ok and found.rank == rank for found in runs)
    return rank, right, networks, max(found.queries - rank for found in runs), max(found.margin for found in runs)


def _draw_spectra(figure: Any, spectra: dict[str, np.ndarray]) -> None:
    axes = figure.subplots()
    for name, singular in spectra.items():
        axes.plot(np.arange(1, len(singular) + 1), np.maximum(singular / singular[0], 1e-18), label=name)
    label_axes(axes, "number of the singular value", "size, of the largest", log="xy")


MILLI = Experiment(
    "milli-gradients", GRADIENTS_PAPER, "Theorem 1", milli_gradients,
    quick={"widths": WIDTHS[:4], "inputs": (50, 150), "networks": 2},
)  # fmt: skip
LOGIT_RANK = Experiment(
    "logit-rank", LOGITS_PAPER, "Section 4", logit_rank, quick={"heads": (HEADS[0], HEADS[2]), "networks": 1}
)
