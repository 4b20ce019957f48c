"""A network from labels alone: recovered, precision, labels over the floor of one bit a label.

    python -m benchmarks labels                                  ten networks of each kind
    LABELS_SEEDS=3 python -m benchmarks labels                   as many of every kind
    LABELS_ROWS=20-10-1,cancer python -m benchmarks labels       these rows only
    LABELS_FIRST_SEED=920000 python -m benchmarks labels         other networks
    LABELS_JOBS=16 python -m benchmarks labels                   so many runs at a time
    LABELS_SECONDS=300 python -m benchmarks labels               CPU seconds that a run may take

The floor is P·log2(1/error): P numbers up to scales, the median error of the neurons' directions. `wrong` counts
networks that passed verification and whose boundary is off by more than they say, or that have another label at one
input in a thousand. `equal` is the least share of equal labels at 100,000 random inputs of each of two scales, 1 and 3.
Labels count everything that was asked, verification included; r/request is the mean of rows asked together. Seeds that
nothing was tuned on.

Of two hidden layers the line also says how often the first layer was right, with the labels and CPU s of all runs.

Trained networks are those of `benchmarks/results/trained-labels.npz`, ten of each kind: sklearn's MLPClassifier with
random_state 200 to 209, numbers in float32. `python -m benchmarks.labels train` writes the file again.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import reluctant as rl
from benchmarks.results import Results
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray

FIRST_SEED = int(os.environ.get("LABELS_FIRST_SEED", "910000"))
SEEDS = 10
TWO_LAYERS = ("20-10-5-1", "64-16-8-1")
FIRST_LAYER = 1e-8  # error of a direction within which the first of two hidden layers counts as recovered
EQUAL = 0.999  # share of labels below which a network is another one
SINGLE = "-f32"  # rows whose target computes in float32
TRAINED = Path(__file__).parent / "results" / "trained-labels.npz"


@dataclass(frozen=True)
class Run:
    """One extraction from labels, compared with the truth."""

    outcome: str
    directions: FloatArray  # error of each true neuron's unit weights
    equal: float  # share of equal labels
    off: float  # largest distance of the predicted boundary from the true one, in typical inputs
    claimed: float  # boundary error
    over_floor: float
    rows: int
    requests: int
    seconds: float

    @property
    def first_layer(self) -> bool:
        return bool(self.directions.max() <= FIRST_LAYER)

    @property
    def wrong(self) -> bool:
        return self.outcome == "recovered" and not (self.off <= self.claimed and self.equal > EQUAL)


def main() -> None:
    wanted = os.environ.get("LABELS_ROWS", ",".join(ROWS)).split(",")
    print(
        f"{'target':<16}{'recovered':>10}{'wrong':>6}{'direction':>11}{'(worst)':>9}{'boundary':>10}{'equal':>10}"
        f"{'over floor':>11}{'(most)':>8}{'labels':>10}{'r/request':>10}{'CPU s':>7}"
    )
    names = [name for name in ROWS if name in wanted]
    items = [(name, seed) for name in names for seed in seeds()]
    jobs = int(os.environ.get("LABELS_JOBS", "1"))
    with get_context("spawn").Pool(jobs) if jobs > 1 else nullcontext() as pool:
        runs = iter(map(one_run, items) if pool is None else pool.imap(one_run, items, chunksize=1))
        for name in names:
            show(name, [next(runs) for _ in seeds()])


def one_run(item: tuple[str, int]) -> Run:
    name, seed = item
    return measured(ROWS[name](seed), seed, single=name.endswith(SINGLE))


def keep(name: str, runs: list[Run], good: list[Run]) -> None:
    """With --save: the row, for later."""
    rows, errors = [run.rows for run in good], [run.off for run in good]
    Results("labels").keep(
        f"{name}, labels", widths=list(ROWS[name](FIRST_SEED).widths), networks=len(runs), ok=len(good),
        wrong=sum(run.wrong for run in runs), queries=float(np.median(rows)), queries_max=max(rows),
        out=float(np.median(errors)), out_max=max(errors), first_seed=FIRST_SEED,
        over_floor=float(np.median([run.over_floor for run in good])),
    )  # fmt: skip


def seeds() -> range:
    return range(FIRST_SEED, FIRST_SEED + int(os.environ.get("LABELS_SEEDS", SEEDS)))


def balanced(n: int, k: int) -> Callable[[int], ReLUNetwork]:
    """Random networks above 0 at half of Gaussian inputs."""

    def of(seed: int) -> ReLUNetwork:
        rng = np.random.default_rng(seed)
        weights, biases = rng.standard_normal((k, n)) / np.sqrt(n), rng.standard_normal(k) / 2
        out = rng.standard_normal(k)
        values = np.maximum(rng.standard_normal((2000, n)) @ weights.T + biases, 0) @ out
        return ReLUNetwork([weights, out[None]], [biases, np.array([-np.median(values)])])

    return of


def trained(name: str) -> Callable[[int], ReLUNetwork]:
    """Classifiers with one hidden layer of sklearn, as they were kept."""

    def of(seed: int) -> ReLUNetwork:
        with np.load(TRAINED) as kept:
            parts = [kept[f"{name}/{200 + seed % 10}/{part}"].astype(float) for part in ("w0", "w1", "b0", "b1")]
        return ReLUNetwork(parts[:2], parts[2:])

    return of


def train() -> None:
    """Train the networks that are kept: standardised inputs for breast_cancer, one common scale for digits."""
    from sklearn.datasets import load_breast_cancer, load_digits
    from sklearn.neural_network import MLPClassifier

    kept: dict[str, Any] = {}
    for name, load, width, steps in (("cancer", load_breast_cancer, 16, 400), ("digits", load_digits, 32, 200)):
        x, y = load(return_X_y=True)
        x = (x - x.mean(axis=0)) / (x.std(axis=0) if name == "cancer" else x.std())
        for state in range(200, 210):
            fitted = MLPClassifier((width,), max_iter=steps, random_state=state, alpha=1e-3).fit(x, y)
            for i, (w, b) in enumerate(zip(fitted.coefs_, fitted.intercepts_, strict=True)):
                kept |= {f"{name}/{state}/w{i}": w.T.astype(np.float32), f"{name}/{state}/b{i}": b.astype(np.float32)}
    np.savez_compressed(TRAINED, **kept)


def of_two_layers(n: int, first: int, second: int) -> Callable[[int], ReLUNetwork]:
    """Random networks of two hidden layers above 0 at half of Gaussian inputs."""

    def of(seed: int) -> ReLUNetwork:
        rng = np.random.default_rng(seed)
        weights = [
            rng.standard_normal((first, n)) / np.sqrt(n),
            rng.standard_normal((second, first)) * np.sqrt(2 / first),
        ]
        biases, out = [rng.standard_normal(first) / 2, rng.standard_normal(second) / 2], rng.standard_normal(second)
        hidden = rng.standard_normal((2000, n))
        for weight, bias in zip(weights, biases, strict=True):
            hidden = np.maximum(hidden @ weight.T + bias, 0)
        return ReLUNetwork([*weights, out[None]], [*biases, np.array([-np.median(hidden @ out)])])

    return of


def of_classes(n: int, k: int, m: int) -> Callable[[int], ReLUNetwork]:
    """Random networks of several classes, whose medians at Gaussian inputs are equal."""

    def of(seed: int) -> ReLUNetwork:
        rng = np.random.default_rng(seed)
        weights, biases = rng.standard_normal((k, n)) / np.sqrt(n), rng.standard_normal(k) / 2
        out = rng.standard_normal((m, k))
        values = np.maximum(rng.standard_normal((2000, n)) @ weights.T + biases, 0) @ out.T
        return ReLUNetwork([weights, out], [biases, -np.median(values, axis=0)])

    return of


def class_of(network: ReLUNetwork, x: FloatArray, *, single: bool = False) -> FloatArray:
    values = in_single(network, x) if single else network(x)
    return np.asarray(values[:, 0] > 0 if network.outputs == 1 else values.argmax(axis=1), dtype=float)


def in_single(network: ReLUNetwork, x: FloatArray) -> FloatArray:
    """Values of one hidden layer, every number in float32."""
    first, second, *biases = (part.astype(np.float32) for part in (*network.weights, *network.biases))
    return np.asarray(np.maximum(x.astype(np.float32) @ first.T + biases[0], 0) @ second.T + biases[1])


def measured(true: ReLUNetwork, seed: int, *, single: bool) -> Run:
    requests = Counter[str]()

    def labels(x: FloatArray) -> FloatArray:
        requests["asked"] += 1
        return class_of(true, x, single=single)

    start = time.process_time()
    limit = float(os.environ.get("LABELS_SECONDS", "inf"))
    try:
        result = rl.extract(labels, dim=true.dim, rng=seed, seconds=limit)
    except Exception as defect:  # the other networks are still worth a row
        nothing, asked = np.full(true.widths[1], np.nan), requests["asked"]
        return Run(type(defect).__name__, nothing, np.nan, np.inf, np.inf, np.nan, 0, asked, 0.0)
    seconds = time.process_time() - start
    found = result.network
    whole = found is not None and 1 < found.depth <= true.depth
    directions = direction_errors(found, true) if whole and found is not None else np.full(true.widths[1], np.nan)
    off = boundary_distance(found, true, seed) if result.ok and found is not None else np.inf
    equal = equal_labels(found, true, seed) if result.ok and found is not None else np.nan
    numbers, error = true.weights[0].size + true.widths[1] * max(true.outputs - 1, 1), float(np.median(directions))
    return Run(
        result.outcome.slug, directions, equal, off, result.evidence.get("boundary error", np.inf),
        result.queries / numbers / np.log2(1 / error), result.queries, requests["asked"], seconds,
    )  # fmt: skip


def direction_errors(found: ReLUNetwork, true: ReLUNetwork) -> FloatArray:
    ours, theirs = (w / np.linalg.norm(w, axis=1, keepdims=True) for w in (found.weights[0], true.weights[0]))
    apart = [np.minimum(np.linalg.norm(ours - w, axis=1), np.linalg.norm(ours + w, axis=1)).min() for w in theirs]
    return np.array(apart)


def boundary_distance(found: ReLUNetwork, true: ReLUNetwork, seed: int) -> float:
    """Largest distance from the true boundary over 2000 points of the predicted one, in typical inputs."""
    rng = np.random.default_rng(seed)
    low, high = rng.standard_normal((2, 4000, true.dim))
    apart = class_of(found, low) != class_of(found, high)
    low, way = low[apart][:2000], (high - low)[apart][:2000]
    start, inner, outer = class_of(found, low), np.zeros(len(low)), np.ones(len(low))
    for _ in range(60):
        middle = (inner + outer) / 2
        same = class_of(found, low + middle[:, None] * way) == start
        inner, outer = np.where(same, middle, inner), np.where(same, outer, middle)
    points = low + inner[:, None] * way
    values, slopes = true(points), true.gradients(points)
    if true.outputs > 1:
        each, one = np.arange(len(points)), start.astype(int)
        other = class_of(found, low + outer[:, None] * way).astype(int)
        values, slopes = values[each, one] - values[each, other], slopes[each, one] - slopes[each, other]
    else:
        values, slopes = values[:, 0], slopes[:, 0]
    return float((np.abs(values) / np.linalg.norm(slopes, axis=1)).max() / np.sqrt(true.dim))


def equal_labels(found: ReLUNetwork, true: ReLUNetwork, seed: int) -> float:
    """The least share of 100,000 random inputs of each scale that have the same label."""
    x = np.random.default_rng(seed).standard_normal((100_000, true.dim))
    return min(float((class_of(found, s * x) == class_of(true, s * x)).mean()) for s in (1.0, 3.0))


def show(name: str, runs: list[Run]) -> None:
    good = [run for run in runs if run.outcome == "recovered"]
    others = Counter(run.outcome for run in runs if run.outcome != "recovered")
    told = " ".join(f"{outcome} {count}" for outcome, count in others.items())
    if name in TWO_LAYERS:
        layers = [run for run in runs if run.first_layer]
        worst = max((run.directions.max() for run in layers), default=np.nan)
        told += f"  first layer {len(layers)}/{len(runs)}, worst {worst:.0e}"
        told += (
            f", {np.median([run.rows for run in runs]):.0f} labels, {np.mean([run.seconds for run in runs]):.1f} CPU s"
        )
    if not good:
        print(f"{name:<16}{0:>7}/{len(runs)}  {told}", flush=True)
        return
    directions = np.concatenate([run.directions for run in good])
    keep(name, runs, good)
    over = [run.over_floor for run in good]
    print(
        f"{name:<16}{len(good):>7}/{len(runs):<2}{sum(run.wrong for run in runs):>6}{np.median(directions):>11.0e}"
        f"{directions.max():>9.0e}{max(run.off for run in good):>10.0e}{min(run.equal for run in good):>10.4%}"
        f"{np.median(over):>11.2f}{max(over):>8.2f}"
        f"{np.median([run.rows for run in good]):>10.0f}{np.mean([run.rows / run.requests for run in good]):>10.0f}"
        f"{np.mean([run.seconds for run in runs]):>7.1f}  {told}",
        flush=True,
    )


ROWS: dict[str, Callable[[int], ReLUNetwork]] = {
    "20-10-1": balanced(20, 10),
    "50-20-1": balanced(50, 20),
    "100-32-1": balanced(100, 32),
    "784-32-1": balanced(784, 32),
    "10-30-1": balanced(10, 30),
    "cancer": trained("cancer"),
    "6-5-3": of_classes(6, 5, 3),
    "20-10-4": of_classes(20, 10, 4),
    "digits": trained("digits"),
    "20-10-5-1": of_two_layers(20, 10, 5),
    "64-16-8-1": of_two_layers(64, 16, 8),
    "20-10-1-f32": balanced(20, 10),
    "cancer-f32": trained("cancer"),
    "digits-f32": trained("digits"),
}

if __name__ == "__main__":
    train() if sys.argv[1:] == ["train"] else main()
