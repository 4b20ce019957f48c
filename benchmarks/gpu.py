"""Extraction of networks that live on a GPU: time beside what the arithmetic alone would take.

    python -m benchmarks gpu                              needs a CUDA device; three shapes
    GPU_SHAPES=784-8192-1 GPU_FIRST=1 GPU_SEEDS=3 python -m benchmarks gpu    networks 1, 2 and 3
    python -m benchmarks gpu --save                       keeps the rows; without a device those of the stored output

`limit` is the time the target's own arithmetic takes, 2P operations a query, at the rate of a large float64 product
measured in the same run. `out` is the largest error over 10 000 Gaussian inputs relative to the output's deviation.
The device's start is not counted. Output of the last run: benchmarks/gpu-h200.txt.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

# The target's own layers: with a bias fused in, torch 2.11 picks float64 products of half the speed.
os.environ.setdefault("DISABLE_ADDMM_CUDA_LT", "1")

import numpy as np

import reluctant as rl
from benchmarks.results import Results
from reluctant.networks.network import evaluate
from reluctant.numerics import TorchArrays
from reluctant.testing import planted

SHAPES = "3072-2048-1,784-8192-1,3072-16384-1"
FIRST_SEED = 70_000
BIAS = 0.5
PRODUCT = 8192  # rows and columns of the product that is timed
POINTS = 10_000
STORED = Path(__file__).parent / "gpu-h200.txt"
RESULTS = Results("gpu")
HEAD = re.compile(r"^(\S+), (.+), torch \S+, Python (\S+); float64 products at ([\d.]+) TFLOP/s", re.MULTILINE)
ROW = re.compile(r"^([\d-]+) +([\d,]+) +(yes|NO) +([\d.]+) +(\S+) +([\d.]+) +[\d.]+ +[\d.]+ +([\d.]+)", re.MULTILINE)
FAILED = re.compile(
    r"Not recovered[^:]*: ([\d-]+) \([\d,]+ parameters\)\.[^:]*?spent ([\d,]+) rows.*?: (the.+?)\.", re.S
)
UNENDED = re.compile(r"^Not ended [^:]*: ([\d-]+), network", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """One extraction."""

    ok: bool
    queries: int
    seconds: float
    out: float
    gigabytes: float
    failures: list[str]


def main() -> None:
    import torch

    if not torch.cuda.is_available():
        print("No CUDA device here: nothing was run. The last run is in benchmarks/gpu-h200.txt.")
        keep(STORED.read_text(encoding="utf-8"))
        return
    rate = product_rate(torch)
    versions = f"torch {torch.__version__}, Python {platform.python_version()}"
    said = [
        f"{date.today()}, {torch.cuda.get_device_name()}, {versions}; float64 products at {rate / 1e12:.1f} TFLOP/s"
    ]
    print(said[0])
    print(
        f"{'network':<14}{'parameters':>12}{'ok':>5}{'q/P':>9}{'out':>10}{'seconds':>10}{'limit':>8}{'times':>7}{'GiB':>7}"
    )
    for name in os.environ.get("GPU_SHAPES", SHAPES).split(","):
        first, widths = int(os.environ.get("GPU_FIRST", "0")), tuple(map(int, name.split("-")))
        for seed in range(first, first + int(os.environ.get("GPU_SEEDS", "1"))):
            said.append(row(widths, one(torch, widths, seed), rate))
            print(said[-1], flush=True)
    keep("\n".join(said))


def keep(output: str) -> None:
    """Keep what an output of this benchmark says: a row for each shape, the rate of the device in each."""
    day, device, python, rate = HEAD.findall(output)[0]
    made = {"device": device, "rate": float(rate) * 1e12, "date": day, "numpy": None, "python": python}
    shapes, unended = defaultdict(list), UNENDED.findall(output)
    for shape, *figures in ROW.findall(output):
        shapes[shape].append(figures)
    for shape, runs in shapes.items():
        cost, out, seconds, memory = ([float(run[column]) for run in runs] for column in (2, 3, 4, 5))
        RESULTS.keep(
            shape, networks=len(runs) + unended.count(shape), ok=sum(run[1] == "yes" for run in runs),
            parameters=_whole(runs[0][0]),
            cost=median(cost), cost_max=max(cost), out=median(out), out_max=max(out), seconds=min(seconds),
            memory=max(memory), **made,
        )  # fmt: skip
    for shape, rows, why in FAILED.findall(output):
        RESULTS.keep(shape, networks=1, ok=0, queries=_whole(rows), why=" ".join(why.split()), **made)


def _whole(text: str) -> int:
    return int(text.replace(",", ""))


def product_rate(torch: Any) -> float:
    """Operations a second of a large product, the second time."""
    a = torch.randn(PRODUCT, PRODUCT, dtype=torch.float64, device="cuda")
    for _ in range(2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        a @ a
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    return float(2 * PRODUCT**3 / seconds)


def one(torch: Any, widths: tuple[int, ...], seed: int) -> Run:
    true = planted(widths, FIRST_SEED + seed, bias=BIAS)
    oracle = rl.open_oracle(module_of(torch, true).to("cuda"))
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = rl.extract(oracle, rng=seed)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    memory = torch.cuda.max_memory_allocated() / 2**30
    out = np.inf if result.network is None else output_error(result.network, true)
    return Run(result.ok, result.queries, seconds, out, memory, list(result.evidence.get("failures", [])))


def module_of(torch: Any, network: rl.ReLUNetwork) -> Any:
    """The network as a torch module."""
    layers: list[Any] = []
    for w, b in zip(network.weights, network.biases, strict=True):
        layer = torch.nn.Linear(w.shape[1], w.shape[0], dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(w))
            layer.bias.copy_(torch.tensor(b))
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1]).eval()


def output_error(network: rl.ReLUNetwork, true: rl.ReLUNetwork) -> float:
    rows = np.random.default_rng(0).standard_normal((POINTS, true.dim))
    found, truth = (evaluate(one, rows, TorchArrays("cuda")) for one in (network, true))
    return float(np.abs(found - truth).max() / truth.std())


def row(widths: tuple[int, ...], run: Run, rate: float) -> str:
    d, h, m = widths
    parameters = h * d + h + h * m + m
    limit = run.queries * 2 * parameters / rate
    return (
        f"{'-'.join(map(str, widths)):<14}{parameters:>12,}{'yes' if run.ok else 'NO':>5}"
        f"{run.queries * m / parameters:>9.4f}{run.out:>10.1e}{run.seconds:>10.2f}{limit:>8.2f}"
        f"{run.seconds / limit:>7.2f}{run.gigabytes:>7.1f}{''.join(f'  restarted: {f}' for f in run.failures)}"
    )


if __name__ == "__main__":
    main()
