"""The figures of the span paper, drawn again.

    python -m benchmarks span-figures                  into span-figures/ (SPAN_FIGURES names another folder)
    MNIST_DIR=folder python -m benchmarks span-figures trained networks see MNIST; else scikit-learn's digits
    SPAN_NETWORKS=10                                   networks of each kind

Figure 1, thin layers: rank of the gradients against their number; beside it the same networks with more gradients, and
what `recover_span` finds. Figure 2, moderate widths. Figure 3, noise that the network cannot see. The paper's rank:
singular values above 1e-5 of the largest. Random networks have Gaussian weights and no biases; in trained ones the
gradient is that of the first output, as in the paper. Analytic gradients stand beside gradients by queries.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import reluctant as rl
from benchmarks.images import Images, accuracy, images, train
from reluctant.span.paper import RANK_RULE, compute_gradient
from reluctant.testing import planted

INPUTS, RANK = 784, 80
THIN = ((6, 3), (6, 5, 4, 3), (4, 3, 2), (3, 3, 3), (2, 2, 2))
MODERATE = ((40,), (40, 30), (40, 30, 20), (40, 30, 20, 10))
SAMPLES = (20, 40, 60, 80, 90, 100)
MANY = (100, 300, 1000, 3000)
BY_QUERIES = 100  # gradients
FIRST_SEED = 97_000
SHOWN, NOISE = 6, 10.0  # images of Figure 3, and the norm of their noise


def main() -> None:
    out = Path(os.environ.get("SPAN_FIGURES", "span-figures"))
    out.mkdir(parents=True, exist_ok=True)
    data = images()
    networks = int(os.environ.get("SPAN_NETWORKS", "10"))
    figure_1(out, data, networks)
    figure_2(out, data, networks)
    figure_3(out, data)
    print(f"Written: {out.resolve()}")


# ---- ranks


@dataclass(frozen=True)
class Ranks:
    """Ranks of the first gradients, a row a network, and how many networks were dead."""

    name: str
    ranks: np.ndarray  # (networks, counts)
    dead: int


def random_network(hidden: tuple[int, ...], seed: int) -> rl.ReLUNetwork:
    return planted((INPUTS, RANK, *hidden, 1), FIRST_SEED + seed, bias=0.0, zero_output_bias=True)


def rank_of(gradients: np.ndarray) -> int:
    """The paper's rank."""
    sizes = np.linalg.svd(gradients, compute_uv=False)
    return int((sizes > RANK_RULE * sizes[0]).sum()) if sizes[0] > 0 else 0


def analytic(network: rl.ReLUNetwork, counts: tuple[int, ...], seed: int) -> list[int]:
    """Ranks of exact gradients of the first output at Gaussian inputs, in coordinates of the span."""
    points = np.random.default_rng(seed).standard_normal((max(counts), network.dim))
    basis = rl.Subspace.spanned_by(network.weights[0]).basis
    gradients = np.concatenate(
        [network.local_maps(block).gradients[:, 0] @ basis.T for block in np.array_split(points, max(counts) // 50)]
    )
    return [rank_of(gradients[:count]) for count in counts]


def by_queries(network: rl.ReLUNetwork, seed: int) -> int:
    """Rank of gradients measured along the coordinates, as Algorithm 1 does."""
    rng = np.random.default_rng(seed)
    first = rl.open_oracle(network, output=0)
    return rank_of(
        np.array([compute_gradient(first.query, rng.standard_normal(network.dim)) for _ in range(BY_QUERIES)])
    )


def ranks(hidden: tuple[int, ...], networks: list[rl.ReLUNetwork], counts: tuple[int, ...]) -> Ranks:
    found = np.array([analytic(network, counts, seed) for seed, network in enumerate(networks)])
    live = found.max(axis=1) > 0
    return Ranks(f"784-80-{list(hidden)}".replace("784-80", f"{networks[0].dim}-{networks[0].widths[1]}"), found[live],
                 int((~live).sum()))  # fmt: skip


def tell(what: str, found: Ranks, counts: tuple[int, ...], beside: str = "") -> None:
    median = " ".join(f"{count}:{int(np.median(column))}" for count, column in zip(counts, found.ranks.T, strict=True))
    full = int((found.ranks[:, -1] == found.ranks.max()).sum()) if len(found.ranks) else 0
    print(f"{what:<18}{found.name:<28} rank at {median}; {full} of {len(found.ranks)} live networks at the top, "
          f"{found.dead} dead{beside}", flush=True)  # fmt: skip


def figure_1(out: Path, data: Images, networks: int) -> None:
    figure = Figure(figsize=(10.5, 3.4), layout="constrained")
    few, trained, many = figure.subplots(1, 3, sharey=False)
    for hidden in THIN:
        nets = [random_network(hidden, seed) for seed in range(networks)]
        found = ranks(hidden, nets, SAMPLES)
        more = ranks(hidden, nets, MANY)
        span = rl.recover_span(rl.open_oracle(nets[0]), rng=0, fine=False)
        beside = f"; first network: {by_queries(nets[0], 0)} by {BY_QUERIES} gradients of queries, "
        tell("figure 1, random", found, SAMPLES, f"{beside}{span.rank} by recover_span")
        tell("with more", more, MANY)
        _line(few, SAMPLES, found)
        _line(many, MANY, more)
        learned = [train(data, (RANK, *hidden), seed) for seed in range(min(networks, 2))]
        after = ranks(hidden, learned, SAMPLES)
        tell("figure 1, trained", after, SAMPLES, f"; accuracy {np.mean([accuracy(net, data) for net in learned]):.2f}")
        _line(trained, SAMPLES, after)
    many.set_xscale("log")
    _finish(out / "figure1.svg", figure, (few, trained, many),
            ("random, thin layers", f"trained on {data.name}", "random, more gradients"))  # fmt: skip


def figure_2(out: Path, data: Images, networks: int) -> None:
    figure = Figure(figsize=(7.4, 3.4), layout="constrained")
    random, trained = figure.subplots(1, 2)
    for hidden in MODERATE:
        nets = [random_network(hidden, seed) for seed in range(networks)]
        found = ranks(hidden, nets, SAMPLES)
        span = rl.recover_span(rl.open_oracle(nets[0]), rng=0, fine=False)
        beside = f"; first network: {by_queries(nets[0], 0)} by {BY_QUERIES} gradients of queries, "
        tell("figure 2, random", found, SAMPLES, f"{beside}{span.rank} by recover_span")
        _line(random, SAMPLES, found)
        learned = [train(data, (RANK, *hidden), seed) for seed in range(min(networks, 2))]
        after = ranks(hidden, learned, SAMPLES)
        tell("figure 2, trained", after, SAMPLES, f"; accuracy {np.mean([accuracy(net, data) for net in learned]):.2f}")
        _line(trained, SAMPLES, after)
    _finish(out / "figure2.svg", figure, (random, trained), ("random, moderate widths", f"trained on {data.name}"))


def _line(axes, counts: tuple[int, ...], found: Ranks) -> None:  # type: ignore[no-untyped-def]
    if not len(found.ranks):
        return
    middle = np.median(found.ranks, axis=0)
    (drawn,) = axes.plot(counts, middle, "o-", markersize=3, linewidth=1.2, label=found.name)
    low, high = np.quantile(found.ranks, [0.25, 0.75], axis=0)
    axes.fill_between(counts, low, high, alpha=0.12, color=drawn.get_color(), linewidth=0)


def _finish(path: Path, figure: Figure, every, titles: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    for axes, title in zip(every, titles, strict=True):
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("gradients", fontsize=8)
        axes.set_ylabel("rank", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.legend(frameon=False, fontsize=6)
        axes.spines[["top", "right"]].set_visible(False)
    with matplotlib.rc_context({"svg.hashsalt": path.stem}):  # the same file every time
        figure.savefig(path, metadata={"Date": None})


# ---- noise that is not seen


def figure_3(out: Path, data: Images) -> None:
    """Images, the same with invisible noise, and what the network says of both."""
    network = train(data, (RANK, 40, 30, 20), 0)
    oracle = rl.open_oracle(network)
    span = rl.recover_span(oracle, rng=0, reach=100.0)
    if not span.subspace.invisible_share:
        print("figure 3: the network looks at every direction, nothing is invisible to it")
        return
    shown = data.test_x[:SHOWN]
    noisy = rl.obfuscate(span, shown, NOISE, rng=0)
    check = rl.check_obfuscation(oracle, span, data.test_x, NOISE)
    print(f"figure 3: {data.name}, accuracy {accuracy(network, data):.3f}, {span!r}; {check}")
    side = int(np.sqrt(network.dim))
    figure = Figure(figsize=(1.2 * SHOWN, 2.9), layout="constrained")
    grid = figure.subplots(2, SHOWN)
    for row, rows in enumerate((shown, noisy)):
        probability = _softmax(network(rows))
        for axes, image, p in zip(grid[row], rows, probability, strict=True):
            axes.imshow(image.reshape(side, side), cmap="gray")
            axes.set_title(f"{p.argmax()}  ({p.max():.3f})", fontsize=8)
            axes.set_axis_off()
    with matplotlib.rc_context({"svg.hashsalt": "figure3"}):
        figure.savefig(out / "figure3.svg", metadata={"Date": None})


def _softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))
