"""Targets that answer gradients, and the space of answers: queries, errors, and whether anything wrong was called ok.

    python -m benchmarks gradients                        10 networks of each kind (3072-1024-1: 3)
    GRADIENT_SEEDS=3 python -m benchmarks gradients       as many of each
    GRADIENT_FIRST_SEED=910000 python -m benchmarks gradients   other networks
    GRADIENT_TASKS=float32,softmax                        of a part, those whose name has one of these words
    GRADIENT_TARGETS=FOLDER                               with a trained network of digits in several layers
    GRADIENT_PARTS=extract,deep,named,span,flip,outputs,unseen,honesty    these parts only

Queries count every row, the health check and verification included. `error` is the largest at random inputs and on
creases, of the output's deviation. `wrong` counts networks that are called recovered and err by more than their digits
allow. Seeds that nothing was tuned on.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import reluctant as rl
from reluctant.extraction import AnyDepth, DepthThree, Method
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.testing.planted import largest_true_error, planted

FIRST_SEED = int(os.environ.get("GRADIENT_FIRST_SEED", "997000"))
SEEDS = 10
WRONG, WRONG_FLOAT32 = 1e-7, 1e-3

Opening = Callable[[ReLUNetwork], tuple[Any, dict[str, Any]]]


@dataclass(frozen=True)
class Task:
    """A shape, how it is opened, and the most queries that the figures allow."""

    widths: tuple[int, ...]
    opened: str = "float64"
    most: str = ""
    seeds: int = SEEDS

    @property
    def name(self) -> str:
        return f"{'-'.join(map(str, self.widths))}, {self.opened}"


def float64(network: ReLUNetwork) -> tuple[Any, dict[str, Any]]:
    return network, {"gradients": True}


def values(network: ReLUNetwork) -> tuple[Any, dict[str, Any]]:
    return network, {}


def times_input(network: ReLUNetwork) -> tuple[Any, dict[str, Any]]:
    def product(rows: FloatArray) -> FloatArray:
        return network.gradients(rows) * rows[:, None]

    return network, {"gradients": product, "explanation": "input-times-gradient"}


def float32(network: ReLUNetwork) -> tuple[Any, dict[str, Any]]:
    return network.to_torch().float(), {"gradients": True}


def softmax(network: ReLUNetwork) -> tuple[Any, dict[str, Any]]:
    return ReLUNetwork(network.weights, network.biases, None, "softmax"), {"gradients": True, "link": "softmax"}


OPENINGS: dict[str, Opening] = {
    "float64": float64, "from values": values, "input × gradient": times_input, "float32 (torch)": float32,
    "softmax": softmax,
}  # fmt: skip

EXTRACT = (
    Task((784, 128, 1), most="4h + 250"),
    Task((784, 128, 10), most="5h + 250"),
    Task((10, 100, 1), most="5h + 250"),
    Task((784, 128, 1), "input × gradient", "2 × gradient"),
    Task((784, 128, 10), "float32 (torch)", "10h"),
    Task((30, 10, 3), "softmax"),
    Task((3072, 1024, 1), most="5h + 250", seeds=3),
)


DEEP = (
    Task((784, 32, 16, 1), most="20 times fewer"),
    Task((80, 40, 20, 1), most="20 times fewer"),
    Task((20, 15, 10, 5, 1), most="8 times fewer"),
)
MNIST = "mnist-784-10-10-10.onnx"  # in the folder that GRADIENT_TARGETS names


def main() -> None:
    parts = os.environ.get("GRADIENT_PARTS", ",".join(PARTS)).split(",")
    for name, part in PARTS.items():
        if name in parts:
            part()


def seeds(default: int = SEEDS) -> range:
    return range(FIRST_SEED, FIRST_SEED + int(os.environ.get("GRADIENT_SEEDS", default)))


def extract() -> None:
    print(f"{'extract':<36}{'ok':>7}{'wrong':>7}{'queries':>9}{'(max)':>8}{'a neuron':>10}{'error':>10}  asked for")
    words = os.environ.get("GRADIENT_TASKS", "").split(",")
    for task in (task for task in EXTRACT if any(word in task.name for word in words)):
        show(task, [recovered(task, seed) for seed in seeds(task.seeds)])


def recovered(task: Task, seed: int) -> tuple[bool, int, float]:
    """Whether it was recovered, queries, and the largest error where it was."""
    network = planted(task.widths, seed)
    target, opening = OPENINGS[task.opened](network)
    result = rl.extract(target, rng=seed - FIRST_SEED, **opening)
    if not result.ok or result.network is None:
        return False, result.queries, float("nan")
    found, true = result.network, network
    if found.link == "softmax":
        found, true = found.log_ratios(), network.log_ratios()
    return True, result.queries, largest_true_error(found, true)


def show(task: Task, runs: list[tuple[bool, int, float]]) -> None:
    queries, errors = [run[1] for run in runs], [run[2] for run in runs if run[0]]
    limit = WRONG_FLOAT32 if "float32" in task.opened else WRONG
    wrong = sum(error > limit for error in errors)
    print(
        f"{task.name:<36}{len(errors):>4}/{len(runs):<2}{wrong:>7}{np.median(queries):>9.0f}{max(queries):>8}"
        f"{max(queries) / sum(task.widths[1:-1]):>10.2f}{max(errors, default=float('nan')):>10.1e}  {task.most}",
        flush=True,
    )


def deep() -> None:
    """Several hidden layers: queries with gradients, beside those of the same networks from values."""
    print(
        f"{'several layers':<36}{'ok':>7}{'wrong':>7}{'queries':>9}{'(max)':>8}{'values':>9}{'fewer':>8}{'error':>10}"
    )
    words = os.environ.get("GRADIENT_TASKS", "").split(",")
    for task in (task for task in DEEP if any(word in task.name for word in words)):
        pairs = [(recovered(task, seed), recovered(replace(task, opened="from values"), seed)) for seed in seeds()]
        show_pairs(task.name, pairs, task.most)
    folder = os.environ.get("GRADIENT_TARGETS")
    if folder and any(word in MNIST for word in words):
        network = ReLUNetwork.load(Path(folder) / MNIST)
        runs = range(int(os.environ.get("GRADIENT_SEEDS", SEEDS)))
        pairs = [(of_network(network, seed, True), of_network(network, seed, None)) for seed in runs]
        show_pairs(MNIST, pairs, "8 times fewer")


def of_network(
    network: ReLUNetwork, seed: int, gradients: bool | None, method: Method | None = None
) -> tuple[bool, int, float]:
    found = rl.extract(network, method, rng=seed, gradients=gradients)
    error = float("nan") if found.network is None or not found.ok else largest_true_error(found.network, network)
    return found.ok, found.queries, error


def show_pairs(name: str, pairs: list[Any], most: str) -> None:
    errors = [with_them[2] for with_them, _ in pairs if with_them[0]]
    queries, values = ([run[i][1] for run in pairs] for i in (0, 1))
    print(
        f"{name:<36}{len(errors):>4}/{len(pairs):<2}{sum(e > WRONG for e in errors):>7}{np.median(queries):>9.0f}"
        f"{max(queries):>8}{np.median(values):>9.0f}{np.median(np.array(values) / queries):>8.1f}"
        f"{max(errors, default=float('nan')):>10.1e}  {most}",
        flush=True,
    )


HONESTY = (
    (8, 6, 4, 1), (12, 10, 8, 2), (20, 10, 5, 1), (30, 20, 20, 1), (10, 8, 6, 4, 1), (16, 12, 8, 4, 3),
    (20, 15, 10, 5, 1), (40, 30, 20, 10, 1),
)  # fmt: skip


def honesty() -> None:
    """Many small networks of several layers: of those that are called recovered, which are wrong, by which method."""
    print(f"{'honesty, several layers':<36}{'ok':>7}{'wrong':>7}{'by gradients':>14}{'error':>10}")
    words = os.environ.get("GRADIENT_TASKS", "").split(",")
    for name, widths in (("-".join(map(str, each)), each) for each in HONESTY):
        if not any(word in name for word in words):
            continue
        errors, by_gradients = [], 0
        for seed in seeds(4 * SEEDS):
            network = planted(widths, seed)
            found = rl.extract(network, gradients=True, rng=seed - FIRST_SEED, seconds=20)
            if not found.ok or found.network is None:
                continue
            error, method = largest_true_error(found.network, network), found.evidence["attempts"].entries[-1].method
            errors.append(error)
            by_gradients += method == "GradientLayers"
            if error > WRONG:
                print(f"  wrong: {name} seed {seed} by {method}, error {error:.1e}", flush=True)
        wrong = sum(error > WRONG for error in errors)
        print(
            f"{name:<36}{len(errors):>4}/{len(seeds(4 * SEEDS)):<2}{wrong:>7}{by_gradients:>14}"
            f"{max(errors, default=float('nan')):>10.1e}",
            flush=True,
        )


def named() -> None:
    """Methods for values that measure gradients: with gradients that the target answers, and without."""
    print(f"{'by name':<36}{'ok':>7}{'wrong':>7}{'queries':>9}{'(max)':>8}{'values':>9}{'fewer':>8}{'error':>10}")
    for method in (DepthThree(), AnyDepth()):
        for widths in ((30, 12, 6, 1), (20, 10, 8, 3), (60, 20, 10, 1)):
            pairs = [(by_name(method, widths, seed, True), by_name(method, widths, seed, None)) for seed in seeds()]
            show_pairs(f"{type(method).__name__} {'-'.join(map(str, widths))}", pairs, "")


def by_name(method: Method, widths: tuple[int, ...], seed: int, gradients: bool | None) -> tuple[bool, int, float]:
    return of_network(planted(widths, seed), seed - FIRST_SEED, gradients, method)


def span() -> None:
    print(f"{'span':<36}{'right':>8}{'queries':>9}{'(max)':>8}{'angle':>10}  asked for")
    for widths in ((784, 80, 40, 30, 20, 10, 1), (784, 128, 10)):
        runs = []
        for seed in seeds():
            network = planted(widths, seed)
            found = rl.recover_span(network, gradients=True, rng=seed - FIRST_SEED)
            true = np.linalg.qr(network.weights[0].T)[0]
            off = float(np.linalg.norm(found.basis.T - true @ (true.T @ found.basis.T), 2))
            runs.append((found.ok and found.rank == widths[1], found.queries, off))
        right, queries, angles = zip(*runs, strict=True)
        print(
            f"{'-'.join(map(str, widths)):<36}{sum(right):>5}/{len(runs):<2}{np.median(queries):>9.0f}"
            f"{max(queries):>8}{max(angles):>10.1e}  1.1k + 50 = {1.1 * widths[1] + 50:.0f}",
            flush=True,
        )


def flip() -> None:
    print(f"{'flip of one input':<36}{'flipped':>8}{'queries':>9}{'(max)':>8}{'size':>10}  asked for")
    for widths in ((784, 128, 1), (784, 128, 10), (100, 50, 50, 1)):
        runs = []
        for seed in seeds():
            network, x = planted(widths, seed, bias=0.3), np.random.default_rng(seed).standard_normal(widths[0])
            known, found = rl.flip_sign(network, x), rl.flip_sign(network, x, gradients=True)
            if known.ok:  # beside the flip that knows the weights
                runs.append((found.ok, found.queries, found.size / known.size))
        flipped, queries, sizes = zip(*runs, strict=True)
        print(
            f"{'-'.join(map(str, widths)):<36}{sum(flipped):>5}/{len(runs):<2}{np.median(queries):>9.0f}"
            f"{max(queries):>8}{max(sizes):>10.4f}  15",
            flush=True,
        )


def outputs() -> None:
    print(f"{'space of answers':<36}{'right':>8}{'queries':>9}{'(max)':>8}{'margin':>10}  asked for")
    for widths in ((64, 32, 16, 100), (784, 128, 1000), (50, 64, 4096)):
        kinds = ("float64", "float32", "log-softmax", *(("16 quiet rows",) if widths[0] == 64 else ()))
        for kind in kinds:
            runs = [_output_space(widths, kind, seed) for seed in seeds(2 * SEEDS)]
            right, queries, margins = zip(*runs, strict=True)
            name = f"{'-'.join(map(str, widths))}, {kind}"
            print(
                f"{name:<36}{sum(right):>5}/{len(runs):<2}{np.median(queries):>9.0f}"
                f"{max(queries):>8}{max(margins):>10.1e}  {widths[-2] + 20}",
                flush=True,
            )


def unseen() -> None:
    """Networks with a unit of the last hidden layer that is off at so many inputs, by how these are chosen."""
    widths, networks, counts = (64, 32, 16, 100), 300, (36, 100, 200, 400, 616)
    choices: dict[str, Callable[[ReLUNetwork, np.random.Generator], FloatArray]] = {
        "far out": lambda _, rng: _random(rng, counts[-1], FAR_OUT),
        "and their opposites": lambda _, rng: np.stack([x := _random(rng, counts[-1] // 2, FAR_OUT), -x], 1),
        "at six scales": lambda _, rng: _random(rng, counts[-1], 32, 4, 2, 1, 0.5, 0.25),
        "towards small answers": lambda network, rng: _downhill(network, rng, counts[-1]),
    }
    for name, choose in choices.items():
        missed = np.zeros(len(counts), dtype=int)
        for seed in range(FIRST_SEED, FIRST_SEED + networks):
            network = planted(widths, seed)
            inputs = choose(network, np.random.default_rng([seed, 1])).reshape(counts[-1], -1)
            on = network.patterns(inputs)[len(widths) - 3]
            missed += [not on[:count].any(axis=0).all() for count in counts]
        off = ", ".join(f"{n} at {count}" for count, n in zip(counts, missed, strict=True))
        print(f"inputs {name}: a unit is off at all of them in {off} (of {networks} networks)", flush=True)


FAR_OUT = 1e3


def _random(rng: np.random.Generator, count: int, *scales: float) -> FloatArray:
    return np.resize(scales, count)[:, None] * rng.standard_normal((count, 64))


def _downhill(network: ReLUNetwork, rng: np.random.Generator, count: int) -> FloatArray:
    """Inputs of searches for small answers, where few units of the first layer are on: 64 each, 8 at a time."""
    best, smallest, offset = np.zeros(64), np.inf, network(np.zeros((1, 64)))
    asked = [_random(rng, 8, FAR_OUT)]
    for step in range(1, count // 8):
        sizes = np.linalg.norm(network(asked[-1]) - offset, axis=1)
        if step % 8 == 1 or sizes.min() < smallest:
            best, smallest = asked[-1][sizes.argmin()], float(sizes.min())
        rows = _random(rng, 8, FAR_OUT)
        asked.append(best + rows / 2 if step % 8 else rows)
    return np.concatenate(asked)


def _output_space(widths: tuple[int, ...], kind: str, seed: int) -> tuple[bool, int, float]:
    network = planted(widths, seed)
    target: Any = network
    if kind == "float32":
        target = _in_float32(network)
    elif kind == "log-softmax":
        target = ReLUNetwork(network.weights, network.biases, None, "log-softmax")
    quiet = 16 if kind == "16 quiet rows" else None
    found = rl.output_space(target, dim=widths[0], rng=seed - FIRST_SEED, quiet=quiet)
    return found.ok and found.rank == widths[-2], found.queries, found.margin


def _in_float32(network: ReLUNetwork) -> Callable[[FloatArray], FloatArray]:
    return lambda rows: np.asarray(network(rows).astype(np.float32), dtype=np.float64)


PARTS = {
    "extract": extract, "deep": deep, "named": named, "span": span, "flip": flip, "outputs": outputs, "unseen": unseen,
    "honesty": honesty,
}  # fmt: skip
