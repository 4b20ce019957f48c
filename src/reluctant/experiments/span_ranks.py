"""Figures 1 and 2 of the span paper: the rank of gradients against their number.

Analytic gradients of the first output at Gaussian inputs, and the paper's rank: singular values above 1e-5 of the
largest. Beside them stand gradients by queries, and what `recover_span` finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reluctant.experiments.experiment import Experiment
from reluctant.experiments.finding import Check, Finding
from reluctant.experiments.images import Images, digits, mnist
from reluctant.experiments.papers import SPAN
from reluctant.experiments.training import accuracy, train
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import open_oracle
from reluctant.span import Subspace, recover_span
from reluctant.span.paper import RANK_RULE, compute_gradient
from reluctant.testing import planted

__all__ = ["MODERATE_FIGURE", "THIN_FIGURE", "span_moderate", "span_thin"]

INPUTS, RANK = 784, 80
THIN = ((6, 3), (6, 5, 4, 3), (4, 3, 2), (3, 3, 3), (2, 2, 2))
MODERATE = ((40,), (40, 30), (40, 30, 20), (40, 30, 20, 10))
FEW, MANY = (20, 40, 60, 80, 90, 100), (300, 1000, 3000)
NETWORKS, TRAINED = 10, 2
BLOCK = 50  # gradients computed together
COLUMNS = ("hidden", "weights", "networks", "dead", *(f"at {count}" for count in (*FEW, *MANY)), "by queries", "span")


@dataclass(frozen=True)
class Ranks:
    """Median rank of the first gradients for each count; rank by queries and by `recover_span` of the first network."""

    hidden: str
    weights: str
    networks: int
    dead: int
    medians: tuple[float, ...]
    by_queries: int
    span: int
    shape: tuple[int, int]

    def row(self) -> tuple[Any, ...]:
        """One row of the table."""
        return (self.hidden, self.weights, self.networks, self.dead, *self.medians, self.by_queries, self.span)


def span_thin(
    *,
    hidden: tuple[tuple[int, ...], ...] = THIN,
    networks: int = NETWORKS,
    inputs: int = INPUTS,
    rank: int = RANK,
    mnist_folder: str | Path | None = None,
    rng: Rng = 0,
) -> Finding:
    """Thin layers recover part of the span, and all of it with more gradients."""
    found = _measure(hidden, networks, inputs, rank, mnist_folder, rng)
    random = [ranks for ranks in found if ranks.weights == "random" and ranks.dead < ranks.networks]
    return Finding(
        name="span-thin",
        title=f"Rank of gradients against their number, {inputs}-{rank}-… with thin layers",
        claim="Full recovery is not always possible, and deteriorates as layers get thinner and more.",
        measured=f"Of the worst random shape the median rank at 100 gradients is {_worst(random, len(FEW) - 1):.0%} of "
        f"the whole, at {MANY[-1]} {_worst(random, -1):.0%}: more samples find the rest.",
        **_shown(found),
        checks=(
            Check("thinnest random networks: median rank at 100, of the whole", _worst(random, len(FEW) - 1), 0, 0.95),
            Check("the same at 3000", _worst(random, -1), 0.99, 1.0),
        ),
        notes=(
            "What is missing at 100 gradients is not missing for lack of rank: many gradients of a thin network are "
            "zero, and with more the median network that is not dead gets there. "
            "Medians over networks that are not dead.",
        ),
    )


def span_moderate(
    *,
    hidden: tuple[tuple[int, ...], ...] = MODERATE,
    networks: int = NETWORKS,
    inputs: int = INPUTS,
    rank: int = RANK,
    mnist_folder: str | Path | None = None,
    rng: Rng = 0,
) -> Finding:
    """With moderate widths 100 gradients recover the whole span."""
    found = _measure(hidden, networks, inputs, rank, mnist_folder, rng)
    random = [ranks for ranks in found if ranks.weights == "random"]
    trained = [ranks for ranks in found if ranks.weights != "random"]
    return Finding(
        name="span-moderate",
        title=f"Rank of gradients against their number, {inputs}-{rank}-… with moderate widths",
        claim="Full recovery with less than 100 samples in all settings.",
        measured=f"100 gradients give at least {_worst(random, len(FEW) - 1):.0%} of the rank in every random shape, "
        f"and at least {_worst(trained, len(FEW) - 1):.0%} in every trained one.",
        **_shown(found),
        checks=(
            Check("random networks: smallest median rank at 100, of the whole", _worst(random, len(FEW) - 1), 1.0, 1.0),
        ),
    )


def _shown(found: list[Ranks]) -> dict[str, Any]:
    """Table and picture, which both figures have alike."""
    return {
        "columns": COLUMNS,
        "rows": tuple(ranks.row() for ranks in found),
        "draw": lambda figure: _draw(figure, found),
    }


def _worst(found: list[Ranks], count: int) -> float:
    return min(ranks.medians[count] / ranks.shape[1] for ranks in found)


def _measure(
    hidden: tuple[tuple[int, ...], ...],
    networks: int,
    inputs: int,
    rank: int,
    mnist_folder: str | Path | None,
    rng: Rng,
) -> list[Ranks]:
    generator = as_generator(rng)
    images = digits() if mnist_folder is None else mnist(mnist_folder)
    found = []
    for layers in hidden:
        drawn = [
            planted((inputs, rank, *layers, 1), generator, bias=0.0, zero_output_bias=True) for _ in range(networks)
        ]
        found.append(_ranks(layers, "random", drawn, generator))
        found.append(_trained(images, (rank, *layers), min(networks, TRAINED), generator))
    return found


def _trained(images: Images, hidden: tuple[int, ...], networks: int, rng: np.random.Generator) -> Ranks:
    trained = [train(images, hidden, int(rng.integers(2**31))) for _ in range(networks)]
    right = np.mean([accuracy(network, images) for network in trained])
    return _ranks(hidden[1:], f"{images.name}, {right:.0%} right", trained, rng)


def _ranks(hidden: tuple[int, ...], weights: str, networks: list[ReLUNetwork], rng: np.random.Generator) -> Ranks:
    ranks = np.array([_analytic(network, rng) for network in networks])
    live = ranks[:, -1] > 0
    first = networks[int(np.argmax(live))]
    medians = np.median(ranks[live], axis=0) if live.any() else np.zeros(ranks.shape[1])
    return Ranks(
        "-".join(map(str, hidden)), weights, len(networks), int((~live).sum()), tuple(map(float, medians)),
        _by_queries(first, rng), recover_span(open_oracle(first), rng=0, fine=False).rank,
        (first.dim, min(first.widths[:2])),
    )  # fmt: skip


def rank_of(gradients: FloatArray) -> int:
    """The paper's rank."""
    sizes = np.linalg.svd(gradients, compute_uv=False)
    return int((sizes > RANK_RULE * sizes[0]).sum()) if sizes[0] > 0 else 0


def _analytic(network: ReLUNetwork, rng: np.random.Generator) -> list[int]:
    """Ranks of the first gradients of the first output, for all counts; in coordinates of the span, to be quick."""
    basis = Subspace.spanned_by(network.weights[0]).basis
    points = rng.standard_normal((max(MANY), network.dim))
    blocks = np.array_split(points, max(MANY) // BLOCK)
    gradients = np.concatenate([network.local_maps(block).gradients[:, 0] @ basis.T for block in blocks])
    return [rank_of(gradients[:count]) for count in (*FEW, *MANY)]


def _by_queries(network: ReLUNetwork, rng: np.random.Generator) -> int:
    """Rank of as many gradients as the paper takes, measured along the coordinates (Algorithm 1)."""
    oracle = open_oracle(network, output=0)
    points = rng.standard_normal((FEW[-1], network.dim))
    return rank_of(np.array([compute_gradient(oracle.query, point) for point in points]))


def _draw(figure: Any, found: list[Ranks]) -> None:
    """Random networks left, trained ones right; the axis goes on beyond the paper's 100 gradients."""
    random, trained = figure.subplots(1, 2)
    for ranks in found:
        axes = random if ranks.weights == "random" else trained
        axes.plot((*FEW, *MANY), ranks.medians, "o-", markersize=3, linewidth=1.2, label=f"…-{ranks.hidden}")
    names = ("random", found[1].weights.partition(",")[0])
    for axes, name in zip((random, trained), names, strict=True):
        axes.axvline(FEW[-1], color="black", linewidth=0.6, linestyle=":")
        axes.set_xscale("log")
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("gradients")
        axes.set_ylabel("rank")
        axes.legend(frameon=False, fontsize=7)


THIN_FIGURE = Experiment("span-thin", SPAN, "Figure 1", span_thin, quick={"networks": 4})
MODERATE_FIGURE = Experiment("span-moderate", SPAN, "Figure 2", span_moderate, quick={"networks": 3})
