"""Figures 1 to 3 of the span paper: the rank of gradients, and noise that a network does not see.

Figures 1 and 2 take gradients of the first output at Gaussian inputs, and the paper's rank: singular values above
1e-5 of the largest. The gradients are measured twice at the same inputs, from the weights and from answers alone.
Beside them is the result of `recover_span`. Figure 3 shows images under noise in the null space.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray, Rng, as_generator
from reluctant.oracles import open_oracle
from reluctant.papers.experiments.experiment import SPAN_PAPER, Check, Experiment, Finding, label_axes
from reluctant.papers.experiments.image_classifiers import Images, hit_rate, load_digits, load_mnist, train_classifier
from reluctant.papers.span_algorithms import RANK_RULE, compute_gradient
from reluctant.report.text import size
from reluctant.span import Subspace, check_obfuscation, obfuscate, recover_span
from reluctant.testing import planted

RANK_INPUTS, RANK_NEURONS = 784, 80
THIN_SHAPES = ((6, 3), (6, 5, 4, 3), (4, 3, 2), (3, 3, 3), (2, 2, 2))
MODERATE_SHAPES = ((40,), (40, 30), (40, 30, 20), (40, 30, 20, 10))
FEW, MANY = (20, 40, 60, 80, 90, 100), (300, 1000, 3000)
RANK_NETWORKS, TRAINED_NETWORKS = 10, 2
GRADIENT_BLOCK = 50  # gradients computed together
MOST_CROSSED = 5  # of 100 gradients whose difference quotient steps across a crease, and adds a direction to the rank
CROSSED_NOTE = (
    "A gradient by queries is a difference quotient. One whose step crosses a crease points out of the span and adds "
    "one to the rank: by queries it can come out above the number of neurons. `recover_span` tests for that."
)
RANK_COUNTS = (*FEW, *MANY)
RANK_COLUMNS = ("hidden", "weights", "networks", "dead", "gradients", *(f"at {count}" for count in RANK_COUNTS), "span")


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
    hidden: tuple[tuple[int, ...], ...] = THIN_SHAPES,
    networks: int = RANK_NETWORKS,
    inputs: int = RANK_INPUTS,
    rank: int = RANK_NEURONS,
    mnist_folder: str | Path | None = None,
    rng: Rng = 0,
) -> Finding:
    """Thin layers recover part of the span, and all of it with more gradients."""
    found = _measure_ranks(hidden, networks, inputs, rank, mnist_folder, rng)
    random = [ranks for ranks in found if ranks.weights == "random" and ranks.dead < ranks.networks]
    return Finding(
        title=f"Rank of gradients against their number, {inputs}-{rank}-… with thin layers",
        claim="Full recovery is not always possible, and deteriorates as layers get thinner and more.",
        measured=f"Of the worst random shape the median rank at 100 gradients is {_worst(random, len(FEW) - 1):.0%} of "
        f"the whole, at {MANY[-1]} {_worst(random, -1):.0%}: more samples find the rest.",
        **_ranks_shown(found),
        checks=(
            Check("thinnest random networks: median rank at 100, of the whole", _worst(random, len(FEW) - 1), 0, 0.95),
            Check("the same at 3000", _worst(random, -1), 0.99, 1.0),
            *_by_queries_too(found),
        ),
        notes=(
            "Directions missing at 100 gradients are not a lack of rank: many gradients of a thin network are "
            "zero, and with more the median network that is not dead gets there. "
            "Medians over networks that are not dead.",
            CROSSED_NOTE,
        ),
    )


def span_moderate(
    *,
    hidden: tuple[tuple[int, ...], ...] = MODERATE_SHAPES,
    networks: int = RANK_NETWORKS,
    inputs: int = RANK_INPUTS,
    rank: int = RANK_NEURONS,
    mnist_folder: str | Path | None = None,
    rng: Rng = 0,
) -> Finding:
    """With moderate widths 100 gradients recover the whole span."""
    found = _measure_ranks(hidden, networks, inputs, rank, mnist_folder, rng)
    random = [ranks for ranks in found if ranks.weights == "random"]
    trained = [ranks for ranks in found if ranks.weights != "random"]
    return Finding(
        title=f"Rank of gradients against their number, {inputs}-{rank}-… with moderate widths",
        claim="Full recovery with less than 100 samples in all settings.",
        measured=f"100 gradients give at least {_worst(random, len(FEW) - 1):.0%} of the rank in every random shape, "
        f"and at least {_worst(trained, len(FEW) - 1):.0%} in every trained one.",
        **_ranks_shown(found),
        checks=(
            Check("random networks: smallest median rank at 100, of the whole", _worst(random, len(FEW) - 1), 1.0, 1.0),
            *_by_queries_too(found),
        ),
        notes=(CROSSED_NOTE,),
    )


def _ranks_shown(found: list[Ranks]) -> dict[str, Any]:
    """Table and picture, which both figures have alike."""
    return {
        "columns": RANK_COLUMNS,
        "rows": tuple(row for ranks in found for row in ranks.rows()),
        "draw": lambda figure: _draw_ranks(figure, found),
    }


def _worst(found: list[Ranks], count: int) -> float:
    return min(ranks.analytic[count] / ranks.whole for ranks in found)


def _by_queries_too(found: list[Ranks]) -> tuple[Check, Check]:
    """Answers show what the weights show; a difference across a crease shows a direction that is not there."""
    return (
        Check("rank by queries: falls short of the analytic one by", max(ranks.short for ranks in found), 0, 0),
        Check("rank by queries: exceeds the analytic one by", max(ranks.over for ranks in found), 0, MOST_CROSSED),
    )


def _measure_ranks(
    hidden: tuple[tuple[int, ...], ...],
    networks: int,
    inputs: int,
    rank: int,
    mnist_folder: str | Path | None,
    rng: Rng,
) -> list[Ranks]:
    generator = as_generator(rng)
    images = load_digits() if mnist_folder is None else load_mnist(mnist_folder)
    found = []
    for layers in hidden:
        drawn = [
            planted((inputs, rank, *layers, 1), generator, bias=0.0, zero_output_bias=True) for _ in range(networks)
        ]
        found.append(_ranks(layers, "random", drawn, generator))
        found.append(_trained_ranks(images, (rank, *layers), min(networks, TRAINED_NETWORKS), generator))
    return found


def _trained_ranks(images: Images, hidden: tuple[int, ...], networks: int, rng: np.random.Generator) -> Ranks:
    trained = [train_classifier(images, hidden, int(rng.integers(2**31))) for _ in range(networks)]
    right = np.mean([hit_rate(network, images) for network in trained])
    return _ranks(hidden[1:], f"{images.name}, {right:.0%} right", trained, rng)


def _ranks(hidden: tuple[int, ...], weights: str, networks: list[ReLUNetwork], rng: np.random.Generator) -> Ranks:
    points = rng.standard_normal((max(MANY), networks[0].dim))
    analytic = np.array([_analytic_ranks(network, points) for network in networks])
    asked = np.array([_ranks_by_queries(network, points[: FEW[-1]]) for network in networks])
    live = analytic[:, -1] > 0
    first = networks[int(np.argmax(live))]
    span = recover_span(open_oracle(first), rng=0, fine=False)
    return Ranks(
        "-".join(map(str, hidden)), weights, len(networks), int((~live).sum()), _median_ranks(analytic[live]),
        _median_ranks(asked[live]), max(0, int((analytic[:, : len(FEW)] - asked).max())),
        max(0, int((asked - analytic[:, : len(FEW)]).max())),
        f"{span.rank} ({span.outcome.slug})", min(first.widths[:2]),
    )  # fmt: skip


def _median_ranks(ranks: FloatArray) -> tuple[float, ...]:
    return tuple(map(float, np.median(ranks, axis=0))) if len(ranks) else (0.0,) * ranks.shape[1]


def rank_of(gradients: FloatArray) -> int:
    """The paper's rank."""
    sizes = np.linalg.svd(gradients, compute_uv=False)
    return int((sizes > RANK_RULE * sizes[0]).sum()) if sizes[0] > 0 else 0


def _analytic_ranks(network: ReLUNetwork, points: FloatArray) -> list[int]:
    """Ranks of the first gradients for all counts, from the weights; in coordinates of the span, to be quick."""
    basis = Subspace.spanned_by(network.weights[0]).basis
    blocks = np.array_split(points, len(points) // GRADIENT_BLOCK)
    gradients = np.concatenate([network.local_maps(block).gradients[:, 0] @ basis.T for block in blocks])
    return [rank_of(gradients[:count]) for count in RANK_COUNTS]


def _ranks_by_queries(network: ReLUNetwork, points: FloatArray) -> list[int]:
    """Ranks for the paper's counts, each gradient measured along the coordinates (Algorithm 1)."""
    oracle = open_oracle(network, output=0)
    gradients = np.array([compute_gradient(oracle.query, point) for point in points])
    return [rank_of(gradients[:count]) for count in FEW]


def _draw_ranks(figure: Any, found: list[Ranks]) -> None:
    """Random networks left, trained ones right, rings by queries; the axis goes on beyond the paper's 100 gradients."""
    random, trained = figure.subplots(1, 2)
    for ranks in found:
        axes = random if ranks.weights == "random" else trained
        (line,) = axes.plot(RANK_COUNTS, ranks.analytic, ".-", markersize=4, linewidth=1.2, label=f"…-{ranks.hidden}")
        axes.plot(FEW, ranks.asked, "o", markersize=7, markerfacecolor="none", color=line.get_color())
    names = ("random", found[1].weights.partition(",")[0])
    for axes, name in zip((random, trained), names, strict=True):
        axes.axvline(FEW[-1], color="black", linewidth=0.6, linestyle=":")
        axes.set_title(name, fontsize=9)
        label_axes(axes, "gradients", "rank", log="x", fontsize=7)


THIN_FIGURE = Experiment("span-thin", SPAN_PAPER, "Figure 1", span_thin, quick={"networks": 4})
MODERATE_FIGURE = Experiment("span-moderate", SPAN_PAPER, "Figure 2", span_moderate, quick={"networks": 3})

DIGITS_HIDDEN, MNIST_HIDDEN = (32, 16), (80, 40, 30, 20)
NOISE_SCALES = (1.0, 10.0, 100.0)
IMAGES_SHOWN, SCALE_SHOWN = 6, 10.0
MOST_LOGIT_CHANGE = 1e-7  # what 100 times the norm of an image may change, in float64
NOISE_COLUMNS = ("noise / image norm", "same class", "largest logit change", "largest logit", "visible part of images")


def span_noise(
    *, hidden: tuple[int, ...] | None = None, mnist_folder: str | Path | None = None, rng: Rng = 0
) -> Finding:
    """Noise of a hundred times an image's norm that changes no answer."""
    images = load_digits() if mnist_folder is None else load_mnist(mnist_folder)
    hidden = hidden or (DIGITS_HIDDEN if mnist_folder is None else MNIST_HIDDEN)
    network = train_classifier(images, hidden, int(as_generator(rng).integers(2**31)))
    oracle = open_oracle(network)
    span = recover_span(oracle, rng=0, reach=max(NOISE_SCALES)).raise_for_status()
    queries = span.queries
    shown = [check_obfuscation(oracle, span, images.test_x, scale, rng=0) for scale in NOISE_SCALES]
    rows = [
        (scale, check.same_label, check.largest_change, check.size, check.visible_share)
        for scale, check in zip(NOISE_SCALES, shown, strict=True)
    ]
    pictures = images.test_x[:IMAGES_SHOWN]
    noisy = obfuscate(span, pictures, SCALE_SHOWN, rng=0)
    return Finding(
        title=f"{images.name}, {'-'.join(map(str, network.widths))}, {hit_rate(network, images):.1%} right: noise in "
        f"the null space of a span recovered by {queries} queries",
        claim="Noise in the null space makes an image unrecognizable, and the prediction stays.",
        measured=f"Noise of {NOISE_SCALES[-1]:g} times an image's norm leaves the class of {rows[-1][1]:.1%} of "
        f"{len(images.test_x)} test images as it was and moves no logit by more than {size(rows[-1][2], 1)}. "
        f"The span took {queries} queries.",
        columns=NOISE_COLUMNS,
        rows=tuple(rows),
        draw=lambda figure: _draw_noise(figure, network, pictures, noisy),
        checks=(
            Check("share of images that keep their class at 100 times their norm", shown[-1].same_label, 1.0, 1.0),
            Check("largest logit change at 100 times the norm", shown[-1].largest_change, 0.0, MOST_LOGIT_CHANGE),
        ),
        notes=(f"The network looks at {span.rank} of {network.dim} directions: "
               f"{span.subspace.invisible_share:.1%} of them are invisible to it.",),
    )  # fmt: skip


def _draw_noise(figure: Any, network: ReLUNetwork, images: FloatArray, noisy: FloatArray) -> None:
    """Images above, the same with noise below; the class and its softmax probability as titles."""
    grid = figure.subplots(2, len(images))
    side = int(np.sqrt(network.dim))
    for row, rows in zip(grid, (images, noisy), strict=True):
        for axes, image, p in zip(row, rows, softmax(network(rows), axis=1), strict=True):
            axes.imshow(image.reshape(side, side), cmap="gray")
            axes.set_title(f"{p.argmax()}  ({p.max():.3f})", fontsize=8)
            axes.set_axis_off()


NOISE_FIGURE = Experiment("span-noise", SPAN_PAPER, "Figure 3", span_noise, quick={})
