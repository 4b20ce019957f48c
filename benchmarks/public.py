"""Public trained networks, evaluated in float64: extracted from several seeds, without being told their depth.

    PUBLIC_TARGETS=folder python -m benchmarks public     every .onnx file of the folder, five seeds each
    PUBLIC_SEEDS=1 PUBLIC_TARGETS=folder ...

For each layer after the first it says how many neurons were recovered one by one, and how many of the units stand
for the sum of neurons that are always on. Errors are measured against the file itself, at 10 000 Gaussian inputs.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import reluctant as rl

MOST_QUERIES = 60_000


def main() -> None:
    folder = os.environ.get("PUBLIC_TARGETS")
    if folder is None:
        print("set PUBLIC_TARGETS to a folder of .onnx files")
        return
    seeds = int(os.environ.get("PUBLIC_SEEDS", "5"))
    for path in sorted(Path(folder).glob("*.onnx")):
        for seed in range(seeds):
            print(one(path, seed), flush=True)


def one(path: Path, seed: int) -> str:
    start = time.process_time()
    result = rl.extract(rl.open_oracle(path, precision="float64", budget=MOST_QUERIES), rng=seed)
    took = f"{result.queries} queries, {time.process_time() - start:.1f} CPU s"
    if not result.ok or result.network is None:
        why = (result.evidence.get("failures") or [""])[-1]
        return f"{path.stem} seed {seed}: {result.outcome.slug}, {took}; last: {why[:100]}"
    error = rl.compare(result.network, rl.ReLUNetwork.load(path)).output_error
    return f"{path.stem} seed {seed}: {layers(result.network)}, error {error:.1e}, {took}"


def layers(network: rl.ReLUNetwork) -> str:
    """Widths, with the units that are always on counted apart in layers whose inputs are never negative."""
    parts = [f"{network.dim} inputs", f"{network.widths[1]} neurons"]
    for weights, biases in zip(network.weights[1:-1], network.biases[1:-1], strict=True):
        on = int(((weights >= 0).all(axis=1) & (biases >= 0)).sum())
        parts.append(f"{len(biases) - on} neurons" + (f" and {on} always-on units" if on else ""))
    return ", ".join([*parts, f"{network.outputs} outputs"])
