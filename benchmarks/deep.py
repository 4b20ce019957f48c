"""Several hidden layers: random and trained networks, public ones, and units with skips, each in a process of its own.

    python -m benchmarks deep
    DEEP_PROCESSES=16 DEEP_SEEDS=10 DEEP_SECONDS=120 DEEP_ONLY=random,leaky python -m benchmarks deep
    PUBLIC_TARGETS=folder MNIST_DATA=folder python -m benchmarks deep
    DEEP_METHOD=AnyDepth python -m benchmarks deep          that method at once, without those that come before it

Public networks are .onnx files of the first folder, evaluated in float64; trained ones are trained with torch on the
files of MNIST in the second. Without a folder these cases are left out. Errors are the largest of 40 000 Gaussian
inputs, relative to the deviation of the outputs; inside bounds, of as many even ones. `wrong` counts runs with
ok and an error above 1e-6.
"""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import reluctant as rl
from reluctant.domains import Domain
from reluctant.testing.planted import planted

FloatArray = NDArray[np.float64]
FRESH_POINTS, WRONG = 40_000, 1e-6
FIRST_SEED = 100  # nothing was tuned on these

SHAPES = {
    "random 20-15-10-5-1": (20, 15, 10, 5, 1),
    "random 20-40-20-1": (20, 40, 20, 1),
    "random 784-16x3-1": (784, 16, 16, 16, 1),
    "random 40-12x6-1": (40, *(12,) * 6, 1),
    "random 20-10x8-1": (20, *(10,) * 8, 1),
}
BOUNDS = {"bounds 8-10-6-1": (-3.0, 3.0), "bounds 8-10-6-4-1": (-3.0, 3.0), "bounds 20-15-10-1": (0.0, 1.0)}
UNITS = ("leaky", "prelu", "residual", "batch-norm")
PUBLIC = {"mnist-784-25x3-10": None, "cartpole-4-16x3-2": (-3.0, 3.0), "hcas-3-25x5-5": (-0.5, 0.5)}  # with bounds
TRAINED = {"trained 784-32x4-10": (784, *(32,) * 4, 10)}


@dataclass(frozen=True)
class Target:
    """A function of rows, or a file, with its number of parameters."""

    ask: Callable[[FloatArray], FloatArray]
    dim: int
    parameters: int
    bounds: tuple[float, float] | None = None


@dataclass(frozen=True)
class Finding:
    """One run."""

    case: str
    seed: int
    outcome: str
    ok: bool
    error: float
    ratio: float
    cpu: float
    note: str


def cases() -> Iterator[tuple[str, int]]:
    seeds, only = int(os.environ.get("DEEP_SEEDS", "5")), os.environ.get("DEEP_ONLY", "").split(",")
    names = [*SHAPES, *BOUNDS, *(f"{unit} {shape}" for unit in UNITS for shape in ("10-16-2", "10-12-8-2"))]
    names += [f"public {name}" for name in PUBLIC] if "PUBLIC_TARGETS" in os.environ else []
    names += [*TRAINED] if "MNIST_DATA" in os.environ else []
    for name in names:
        if any(part in name for part in only):
            yield from ((name, FIRST_SEED + seed) for seed in range(seeds))


def target_of(name: str, seed: int) -> Target:
    kind, shape = name.split(" ")
    if kind == "public":
        path = Path(os.environ["PUBLIC_TARGETS"]) / f"{shape}.onnx"
        network = rl.ReLUNetwork.load(path)
        ask = rl.open_oracle(path, precision="float64").query
        return Target(ask, network.dim, network.parameters, PUBLIC[shape])
    if kind == "trained":
        network = trained_on_mnist(TRAINED[name], seed)
    elif kind == "bounds":
        network = planted([int(width) for width in shape.split("-")], rng=seed)
        return Target(network, network.dim, network.parameters, BOUNDS[name])
    elif kind == "random":
        network = planted(SHAPES[name], rng=seed)
    else:
        return unit_target(kind, [int(width) for width in shape.split("-")], np.random.default_rng(seed))
    return Target(network, network.dim, network.parameters)


def unit_target(kind: str, widths: list[int], rng: np.random.Generator) -> Target:
    """Layers of units that are no plain ReLU of the layer before, with weights of the usual sizes."""
    layers = [
        (rng.standard_normal((out, into)) * np.sqrt(2 / into), 0.3 * rng.standard_normal(out))
        for into, out in pairwise(widths)
    ]
    back = [rng.standard_normal((widths[0], width)) / np.sqrt(width) for width in widths[1:-1]]
    slopes = [np.full(w, 0.1) if kind == "leaky" else rng.uniform(0.05, 0.5, w) for w in widths[1:-1]]
    scales = [(rng.uniform(0.5, 2, w), rng.standard_normal(w), rng.uniform(0.5, 2, w)) for w in widths[1:-1]]
    if kind == "residual":  # every block comes back to the inputs' width
        layers = [
            (rng.standard_normal((w, widths[0])) / np.sqrt(widths[0]), b)
            for w, (_, b) in zip(widths[1:], layers, strict=True)
        ]

    def ask(rows: FloatArray) -> FloatArray:
        hidden = np.asarray(rows, dtype=np.float64)
        for k, (w, b) in enumerate(layers[:-1]):
            z = hidden @ w.T + b
            if kind == "residual":
                hidden = hidden + np.maximum(z, 0) @ back[k].T
            elif kind == "batch-norm":
                scale, mean, variance = scales[k]
                hidden = np.maximum(scale * (z - mean) / np.sqrt(variance + 1e-5), 0)
            else:
                hidden = np.where(z > 0, z, slopes[k] * z)
        w, b = layers[-1]
        return hidden @ w.T + b

    return Target(ask, widths[0], sum(w.size + b.size for w, b in layers))


def unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes())


def trained_on_mnist(widths: tuple[int, ...], seed: int) -> rl.ReLUNetwork:
    """A classifier after three passes over the training images."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    folder = Path(os.environ["MNIST_DATA"])
    pixels = np.frombuffer(unpacked(folder / "train-images-idx3-ubyte.gz")[16:], dtype=np.uint8)
    images = torch.tensor(pixels.reshape(-1, 784) / 255.0, dtype=torch.float32)
    labels = torch.tensor(
        np.frombuffer(unpacked(folder / "train-labels-idx1-ubyte.gz")[8:], dtype=np.uint8).astype(np.int64)
    )
    linear = [torch.nn.Linear(into, out) for into, out in pairwise(widths)]
    model = torch.nn.Sequential(*(step for layer in linear[:-1] for step in (layer, torch.nn.ReLU())), linear[-1])
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        for some in torch.randperm(len(images)).split(128):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(images[some]), labels[some]).backward()
            optimiser.step()
    return rl.ReLUNetwork(
        [layer.weight.detach().double().numpy() for layer in linear],
        [layer.bias.detach().double().numpy() for layer in linear],
    )


def one(case: str, seed: int) -> Finding:
    target = target_of(case, seed)
    start = time.process_time()
    limit = float(os.environ.get("DEEP_SECONDS", "120"))
    named = os.environ.get("DEEP_METHOD")
    method = None if named is None else getattr(rl, named)()
    oracle = rl.open_oracle(target.ask, dim=target.dim, domain=target.bounds)
    result = rl.extract(oracle, method, rng=seed, seconds=limit)
    cpu = time.process_time() - start
    rows = Domain.of(target.bounds).sample(np.random.default_rng(seed), FRESH_POINTS, target.dim)
    answers, error = target.ask(rows), np.inf
    if result.network is not None:
        error = float(np.abs(result.network(rows) - answers).max() / answers.std(axis=0).max())
    ratio = result.queries * answers.shape[1] / target.parameters
    failures = [str(failure) for failure in result.evidence.get("failures") or []]
    note = "" if result.ok else f"{result.network}; {failures[-1][:90] if failures else ''}"
    return Finding(case, seed, result.outcome.slug, result.ok, error, ratio, cpu, note)


def main() -> None:
    found = []
    with ProcessPoolExecutor(int(os.environ.get("DEEP_PROCESSES", "1"))) as pool:
        for future in as_completed([pool.submit(one, *case) for case in cases()]):
            f = future.result()
            found.append(f)
            print(
                f"  {f.case} seed {f.seed}: {f.outcome}, error {f.error:.1e}, q·m/P {f.ratio:.1f}, "
                f"{f.cpu:.0f} CPU s {f.note}", flush=True,
            )  # fmt: skip
    print("| target | recovered | wrong | worst error | q·m/P | CPU s, median and most |")
    print("|---|---|---|---|---|---|")
    for case, group in groupby(sorted(found, key=lambda f: f.case), key=lambda f: f.case):
        runs = list(group)
        right = [f for f in runs if f.ok and f.error <= WRONG]
        wrong = sum(f.ok and f.error > WRONG for f in runs)
        worst = f"{max(f.error for f in right):.0e}" if right else "–"
        ratio = f"{np.median([f.ratio for f in right]):.1f}" if right else "–"
        cpu = [f.cpu for f in runs]
        print(
            f"| {case} | {len(right)} / {len(runs)} | {wrong} | {worst} | {ratio} | "
            f"{np.median(cpu):.0f}, {max(cpu):.0f} |"
        )
