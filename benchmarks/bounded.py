"""Exact extraction inside a domain: a unit box, as for images, and the positive orthant. No row outside.

    python -m benchmarks bounded

Random networks whose hyperplanes pass the middle of the box, and as they are for the orthant. `out` is the largest
error over 20 000 points of the domain, relative to the output's standard deviation there; `unseen` the share of
these points at which the error is above 1e-6, for a corner that no question met may hide a neuron.
"""

from __future__ import annotations

import numpy as np

import reluctant as rl
from reluctant.domains import Domain
from reluctant.estimation.formulas import shape_name
from reluctant.papers.experiments.trials import WRONG_ERROR, ExactRun, exact_run
from reluctant.testing import planted

SMALL, LARGE = ((10, 20, 1), (10, 100, 1), (64, 40, 1), (64, 32, 10)), ((784, 32, 1), (784, 128, 1))
DOMAINS = {"box": (0.0, 1.0), "orthant": (0.0, np.inf)}
FIRST_SEED = 80_000


def main() -> None:
    print(f"{'domain':<9}{'network':<12}{'ok':>7}{'q·m/P':>8}{'(max)':>8}{'out':>10}{'(max)':>10}{'unseen':>9}")
    for name, bounds in DOMAINS.items():
        for widths in (*SMALL, *LARGE):
            runs = [one(widths, seed, bounds) for seed in range(20 if widths in SMALL else 2)]
            print(f"{name:<9}{row(widths, runs)}", flush=True)


def one(widths: tuple[int, int, int], seed: int, bounds: tuple[float, float]) -> tuple[ExactRun, np.ndarray]:
    """The run, and its errors over points of the domain."""
    network = planted(widths, FIRST_SEED + seed, bias=0.5)
    network = centred(network) if np.isfinite(bounds[1]) else network
    run = exact_run(network, seed, domain=bounds)
    return run, run.errors_in(Domain.of(bounds))


def centred(network: rl.ReLUNetwork) -> rl.ReLUNetwork:
    """The same neurons about the middle of the unit box."""
    (w, a), (b, c) = network.weights, network.biases
    return rl.ReLUNetwork([2 * w, a], [b - w.sum(axis=1), c])


def row(widths: tuple[int, int, int], runs: list[tuple[ExactRun, np.ndarray]]) -> str:
    good = [errors for run, errors in runs if run.ok]
    cost, out = [run.per_parameter for run, _ in runs], [errors.max() for errors in good]
    unseen = max(np.mean(errors > WRONG_ERROR) for errors in good)
    return (
        f"{shape_name(widths):<12}{len(good):>3}/{len(runs):<3}{np.median(cost):>8.2f}{max(cost):>8.2f}"
        f"{np.median(out):>10.1e}{max(out):>10.1e}{unseen:>9.1e}"
    )
