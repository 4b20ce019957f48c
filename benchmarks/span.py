"""Span recovery from values and from labels, and noise that a model cannot see.

    python -m benchmarks span                            10 networks of each kind (784 inputs by labels: 6 or 4)
    SPAN_SEEDS=3 python -m benchmarks span               as many of every kind
    SPAN_FIRST_SEED=710000 python -m benchmarks span     other networks
    SPAN_ROWS=values,float32,labels,wide-labels,digits,obfuscation,honesty   these parts only
    SPAN_NETWORKS=55 SPAN_ROWS=honesty python -m benchmarks span   so many random networks instead of 220
    MNIST_DIR=folder python -m benchmarks span           obfuscation on MNIST as well as on digits

The rank is not given to any of them. `angle` is the largest sine between the recovered and the true span; q/(k·n)
counts every row, verification included. Networks of the paper: Gaussian weights, no biases; a thin one may be dead,
which is counted as right if it is said. Seeds that nothing was tuned on. CPU is the whole run over the target's share.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import reluctant as rl
from reluctant.papers.experiments.image_classifiers import Images, hit_rate, load_digits, load_mnist, train_classifier
from reluctant.papers.experiments.trials import SPAN_DIM, SpanRun, label_network, paper_network
from reluctant.span import check_obfuscation
from reluctant.testing import in_float32, planted
from reluctant.testing.faults import noisy, rounded

FIRST_SEED = int(os.environ.get("SPAN_FIRST_SEED", "700000"))
SEEDS = 10
DEEP, THIN = (40, 30, 20, 10), ((6, 3), (3, 3, 3))

SCALES = (1.0, 10.0, 100.0)


def main() -> None:
    parts = os.environ.get("SPAN_ROWS", ",".join(PARTS)).split(",")
    if {"values", "float32", "labels", "wide-labels"} & set(parts):
        print(f"{'task':<44}{'right':>8}{'dead':>6}{'angle':>10}{'(max)':>10}{'q/kn':>9}{'(max)':>9}{'s':>7}{'CPU':>7}")
    for name, part in PARTS.items():
        if name in parts:
            part()


def seeds(default: int = SEEDS) -> range:
    return range(FIRST_SEED, FIRST_SEED + int(os.environ.get("SPAN_SEEDS", default)))


def values() -> None:
    for fine in (False, True):
        for hidden in (DEEP, *THIN):
            runs = [paper_network(hidden, seed, seed - FIRST_SEED, fine=fine) for seed in seeds()]
            show(f"784-80-{list(hidden)}-1, values, {'fine' if fine else 'coarse'}", runs)


def float32() -> None:
    for hidden in (DEEP, *THIN):
        show(
            f"784-80-{list(hidden)}-1, float32",
            [paper_network(hidden, seed, seed - FIRST_SEED, single=True) for seed in seeds()],
        )


def labels() -> None:
    for dtype in (np.float64, np.float32):
        for activation in ("tanh", "softplus", "relu"):
            runs = [label_network((50, 8, 16, 1), activation, seed, seed - FIRST_SEED, dtype) for seed in seeds()]
            show(f"50-8-16-1 {activation}, labels, {np.dtype(dtype)}", runs)
    few = list(seeds(6))
    runs = [
        label_network((SPAN_DIM, 20, 20, 1), ("tanh", "softplus", "relu")[i % 3], seed, seed - FIRST_SEED)
        for i, seed in enumerate(few)
    ]
    show("784-20-20-1 tanh, softplus, relu, labels", runs)


def wide_labels() -> None:
    runs = [label_network((SPAN_DIM, 80, 40, 1), "relu", seed, seed - FIRST_SEED) for seed in seeds(4)]
    show("784-80-40-1 relu, labels", runs)


def show(name: str, runs: list[SpanRun]) -> None:
    live = [run for run in runs if not run.dead]
    if not live:
        print(f"{name:<44}{sum(run.right for run in runs):>4}/{len(runs):<3}{len(runs):>6}", flush=True)
        return
    angle, cost = [run.angle for run in live], [run.cost for run in live]
    print(
        f"{name:<44}{sum(run.right for run in runs):>4}/{len(runs):<3}{len(runs) - len(live):>6}"
        f"{np.median(angle):>10.1e}{max(angle):>10.1e}{np.median(cost):>9.3f}{max(cost):>9.3f}"
        f"{np.median([run.seconds for run in live]):>7.1f}{np.median([run.cpu for run in live]):>7.1f}",
        *sorted({run.outcome for run in runs if not run.right}),
        flush=True,
    )


# ---- trained networks


def digits_network(seed: int) -> tuple[Images, rl.ReLUNetwork]:
    data = load_digits()
    return data, train_classifier(data, (32, 16), seed)


def digits_part() -> None:
    """A digits classifier: values of all ten outputs, then nothing but the class."""
    print("digits classifier 64-32-16-10, k the rank of its first layer")
    for seed in list(seeds())[:3]:
        data, network = digits_network(seed - FIRST_SEED)
        true = rl.Subspace.spanned_by(network.weights[0])
        for use_labels in (False, True):
            span = rl.recover_span(rl.open_oracle(network), labels=use_labels, rng=seed - FIRST_SEED)
            what = "class only" if use_labels else "values"
            found = f"rank {span.rank} of {true.rank}, {span.outcome.slug}, sine {span.subspace.distance(true):.0e}"
            cost = f"{span.queries} queries, {span.queries / (true.rank * true.dim):.1f}·k·n"
            print(f"  seed {seed}, accuracy {hit_rate(network, data):.3f}, {what:<10}: {found}, {cost}", flush=True)


def obfuscation() -> None:
    """Noise in the null space of the recovered span: what changes, at the norm claimed."""
    digits_data = load_digits()
    nets = [(digits_data, train_classifier(digits_data, (32, 16), seed)) for seed in range(3)]
    if folder := os.environ.get("MNIST_DIR"):
        data = load_mnist(folder)
        nets.append((data, train_classifier(data, (80, 40, 30, 20), 0)))
    print(
        f"{'obfuscation':<32}{'noise':>7}{'same class':>12}{'logit change':>14}{'of':>8}{'invisible':>11}{'queries':>9}"
    )
    for data, network in nets:
        shape = "-".join(map(str, network.widths))
        for name, target in (("float64", network), ("float32", in_float32(network))):
            oracle = rl.open_oracle(target, dim=network.dim)
            span = rl.recover_span(oracle, rng=0, reach=max(SCALES))
            for scale in SCALES:
                shown = check_obfuscation(oracle, span.subspace, data.test_x, scale)
                print(f"{f'{data.name} {shape} {name}':<32}{scale:>6.0f}×"
                      f"{shown.same_label:>12.2%}{shown.largest_change:>14.1e}{shown.size:>8.0f}"
                      f"{shown.invisible_share:>11.1%}{span.queries:>9} {span.outcome.slug}", flush=True)  # fmt: skip


# ---- never wrong

KINDS = (
    "float64", "float32", "noisy", "rounded", "box", "weak", "weak float32",
    "labels", "labels float32", "labels box", "labels flipped",
)  # fmt: skip
HONESTY_NETWORKS = 20 * len(KINDS)
LOOKED_AT = 2000  # inputs, and pairs of them, by which a direction that was missed is judged
LARGEST_ANGLE = 0.1  # that a span may say of itself
RARE = {False: 0.1, True: 0.05}  # share of inputs by values, of the boundary by labels, that `limits` tells of


def honesty() -> None:
    """Random networks of all kinds and sizes: how they end, and what the true weights say of those with `ok`."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for seed in range(FIRST_SEED, FIRST_SEED + int(os.environ.get("SPAN_NETWORKS", HONESTY_NETWORKS))):
        rng = np.random.default_rng(seed)
        kind = KINDS[seed % len(KINDS)]
        counts[kind][judged(kind, mixed_network(rng), rng, seed)] += 1
    for kind, ended in counts.items():
        print(f"  {kind:<15}", ", ".join(f"{name} {count}" for name, count in ended.most_common()), flush=True)
    print("  all            ", sum(sum(ended.values()) for ended in counts.values()), "networks")


def mixed_network(rng: np.random.Generator) -> rl.ReLUNetwork:
    inputs = int(rng.integers(4, 40))
    hidden = [int(rng.integers(1, inputs + 5)), *(int(rng.integers(2, 12)) for _ in range(rng.integers(0, 3)))]
    return planted((inputs, *hidden, int(rng.choice([1, 1, 2, 5]))), rng, bias=float(rng.choice([0, 0.3, 1])))


def weakened(network: rl.ReLUNetwork, weakness: float) -> rl.ReLUNetwork:
    """The same with its first neuron so much weaker."""
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    weights[0][0] *= weakness
    biases[0][0] *= weakness
    return rl.ReLUNetwork(weights, biases)


def flipped(answer: Callable[[np.ndarray], np.ndarray], share: float, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """Labels 0 and 1 of which this share is wrong, another time every time."""
    rng = np.random.default_rng(seed)
    return lambda x: np.where(rng.random(len(x)) < share, 1 - answer(x), answer(x))


def judged(kind: str, network: rl.ReLUNetwork, rng: np.random.Generator, seed: int) -> str:
    """The outcome; `ok` is split by what the true weights say.

    Wrong is a direction off by more than a thousandth (noise of size s: 100 s) and by more than the span says itself.
    """
    if kind.startswith("weak"):
        network = weakened(network, 10 ** rng.uniform(-7 if kind == "weak" else -3, -1))
    sd = 10 ** rng.uniform(-7, -2) if kind == "noisy" else 10.0 ** -rng.integers(2, 8) if kind == "rounded" else 1e-6
    domain, labels = (0, 1) if "box" in kind else None, "labels" in kind
    x = rng.uniform(0, 1, (LOOKED_AT, network.dim)) if domain else rng.standard_normal((LOOKED_AT, network.dim))
    level = float(np.median(network(x))) if network.outputs == 1 else None
    target = {
        "noisy": noisy(network, sd), "rounded": rounded(network, round(-np.log10(sd))),
        "labels flipped": flipped(lambda rows: hard_labels(network, rows, level) > 0, 10 ** rng.uniform(-4, -1), seed),
    }.get(kind, in_float32(network) if "float32" in kind else lambda rows: network(rows))  # fmt: skip
    options: dict[str, Any] = {"labels": True} if labels else {}
    if labels and kind != "labels flipped" and level is not None:
        options["threshold"] = level
    span = rl.recover_span(rl.open_oracle(target, dim=network.dim, domain=domain), rng=seed, **options)
    return verdict(span, network, min(max(1e-3, 100 * sd), 0.1), normals(network, x, level) if labels else None, x)


def verdict(
    span: rl.Span, network: rl.ReLUNetwork, tolerance: float, boundary: np.ndarray | None, x: np.ndarray
) -> str:
    if not span.ok:
        return span.outcome.slug
    first = network.weights[0] / np.linalg.norm(network.weights[0], axis=1, keepdims=True)
    true = rl.Subspace.spanned_by(first)
    if np.linalg.norm(true.reject(span.basis), 2) > max(tolerance, min(span.angle, LARGEST_ANGLE)):
        return "WRONG with ok"
    if span.rank == true.rank:
        return "ok"
    rows = network.local_maps(x).gradients.reshape(len(x), -1, network.dim) if boundary is None else boundary[:, None]
    outside = np.linalg.norm(rows - (rows @ span.basis.T) @ span.basis, axis=(1, 2))
    size = np.median(np.linalg.norm(rows, axis=(1, 2))) if boundary is None else 1.0
    limit = float(span.evidence["limit"]) if boundary is None else float(span.evidence["leak"]) + tolerance
    share = (outside > limit * size).mean() if len(rows) else 0.0
    return (
        "ok, MISSED what it should have seen" if share > RARE[boundary is not None] else "ok, missed within its limits"
    )


def hard_labels(network: rl.ReLUNetwork, x: np.ndarray, level: float | None) -> np.ndarray:
    values = network(x)
    return values.argmax(axis=1) if level is None else values[:, 0] >= level


def normals(network: rl.ReLUNetwork, x: np.ndarray, level: float | None) -> np.ndarray:
    """Unit normals of the true boundary between random inputs of different labels."""
    low, high = x.copy(), np.roll(x, 1, axis=0)
    differ = hard_labels(network, low, level) != hard_labels(network, high, level)
    low, high = low[differ], high[differ]
    label = hard_labels(network, low, level)
    for _ in range(50):
        middle = (low + high) / 2
        same = (hard_labels(network, middle, level) == label)[:, None]
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    slopes, which = network.local_maps((low + high) / 2).gradients, np.arange(len(low))
    across = (
        slopes[:, 0] if level is not None else slopes[which, hard_labels(network, high, level)] - slopes[which, label]
    )
    length = np.linalg.norm(across, axis=1, keepdims=True)
    return (across / np.where(length > 0, length, 1.0))[length[:, 0] > 0]


PARTS: dict[str, Callable[[], None]] = {
    "values": values, "float32": float32, "labels": labels, "wide-labels": wide_labels,
    "digits": digits_part, "obfuscation": obfuscation, "honesty": honesty,
}  # fmt: skip
