"""Figures 1 and 2 of the span paper: the rank of gradients against their number.

Gradients of the first output at Gaussian inputs, and the paper's rank: singular values above 1e-5 of the largest. The
gradients are taken twice at the same inputs, from the weights and from answers alone. Beside them stands what
`recover_span` finds.
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
MOST_CROSSED = 5  # of 100 gradients whose difference quotient steps across a crease, and adds a direction to the rank
CROSSED = (
    "A gradient by queries is a difference quotient. One whose step crosses a crease points out of the span and adds "
    "one to the rank: by queries it can come out above the number of neurons. `recover_span` tests for that."
)
COUNTS = (*FEW, *MANY)
COLUMNS = ("hidden", "weights", "networks", "dead", "gradients", *(f"at {count}" for count in COUNTS), "span")


@dataclass(frozen=True)
class Ranks:
    """Median ranks of the first gradients over networks that are not dead; what `recover_span` says of the first one.

    analytic: for all counts. asked: for the paper's counts, from answers. short, over: by how much the rank from
    answers falls short of the analytic one and exceeds it, at most.
    """

    hidden: str
    weights: str
    networks: int
    dead: int
    analytic: tuple[float, ...]
    asked: tuple[float, ...]
    short: int
    over: int
    span: str
    whole: int

    def rows(self) -> tuple[tuple[Any, ...], ...]:
        """Two rows of the table."""
        front = (self.hidden, self.weights, self.networks, self.dead)
        unasked = ("–",) * len(MANY)
        return (*front, "analytic", *self.analytic, self.span), (*front, "by queries", *self.asked, *unasked, self.span)


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
            *_by_queries_too(found),
        ),
        notes=(
            "What is missing at 100 gradients is not missing for lack of rank: many gradients of a thin network are "
            "zero, and with more the median network that is not dead gets there. "
            "Medians over networks that are not dead.",
            CROSSED,
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
            *_by_queries_too(found),
        ),
        notes=(CROSSED,),
    )


def _shown(found: list[Ranks]) -> dict[str, Any]:
    """Table and picture, which both figures have alike."""
    return {
        "columns": COLUMNS,
        "rows": tuple(row for ranks in found for row in ranks.rows()),
        "draw": lambda figure: _draw(figure, found),
    }


def _worst(found: list[Ranks], count: int) -> float:
    return min(ranks.analytic[count] / ranks.whole for ranks in found)


def _by_queries_too(found: list[Ranks]) -> tuple[Check, Check]:
    """Answers show what the weights show; a difference across a crease shows a direction that is not there."""
    return (
        Check("rank by queries: falls short of the analytic one by", max(ranks.short for ranks in found), 0, 0),
        Check("rank by queries: exceeds the analytic one by", max(ranks.over for ranks in found), 0, MOST_CROSSED),
    )


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
    points = rng.standard_normal((max(MANY), networks[0].dim))
    analytic = np.array([_analytic(network, points) for network in networks])
    asked = np.array([_by_queries(network, points[: FEW[-1]]) for network in networks])
    live = analytic[:, -1] > 0
    first = networks[int(np.argmax(live))]
    span = recover_span(open_oracle(first), rng=0, fine=False)
    return Ranks(
        "-".join(map(str, hidden)), weights, len(networks), int((~live).sum()), _medians(analytic[live]),
        _medians(asked[live]), max(0, int((analytic[:, : len(FEW)] - asked).max())),
        max(0, int((asked - analytic[:, : len(FEW)]).max())),
        f"{span.rank} ({span.outcome.slug})", min(first.widths[:2]),
    )  # fmt: skip


def _medians(ranks: FloatArray) -> tuple[float, ...]:
    return tuple(map(float, np.median(ranks, axis=0))) if len(ranks) else (0.0,) * ranks.shape[1]


def rank_of(gradients: FloatArray) -> int:
    """The paper's rank."""
    sizes = np.linalg.svd(gradients, compute_uv=False)
    return int((sizes > RANK_RULE * sizes[0]).sum()) if sizes[0] > 0 else 0


def _analytic(network: ReLUNetwork, points: FloatArray) -> list[int]:
    """Ranks of the first gradients for all counts, from the weights; in coordinates of the span, to be quick."""
    basis = Subspace.spanned_by(network.weights[0]).basis
    blocks = np.array_split(points, len(points) // BLOCK)
    gradients = np.concatenate([network.local_maps(block).gradients[:, 0] @ basis.T for block in blocks])
    return [rank_of(gradients[:count]) for count in COUNTS]


def _by_queries(network: ReLUNetwork, points: FloatArray) -> list[int]:
    """Ranks for the paper's counts, each gradient measured along the coordinates (Algorithm 1)."""
    oracle = open_oracle(network, output=0)
    gradients = np.array([compute_gradient(oracle.query, point) for point in points])
    return [rank_of(gradients[:count]) for count in FEW]


def _draw(figure: Any, found: list[Ranks]) -> None:
    """Random networks left, trained ones right, rings by queries; the axis goes on beyond the paper's 100 gradients."""
    random, trained = figure.subplots(1, 2)
    for ranks in found:
        axes = random if ranks.weights == "random" else trained
        (line,) = axes.plot(COUNTS, ranks.analytic, ".-", markersize=4, linewidth=1.2, label=f"…-{ranks.hidden}")
        axes.plot(FEW, ranks.asked, "o", markersize=7, markerfacecolor="none", color=line.get_color())
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
