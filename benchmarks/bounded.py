"""Exact extraction inside a domain: a unit box, as for images, and the positive orthant. No row outside.

    python -m benchmarks bounded

Random networks whose hyperplanes pass the middle of the box, and as they are for the orthant. `out` is the largest
error over 20 000 points of the domain, relative to the output's standard deviation there; `unseen` the share of
these points at which the error is above 1e-6, for a corner that no question met may hide a neuron.
"""

from __future__ import annotations

import numpy as np

import reluctant as rl
from benchmarks.depth_two import parameters
from reluctant.domains import Domain
from reluctant.testing import planted

SMALL, LARGE = ((10, 20, 1), (10, 100, 1), (64, 40, 1), (64, 32, 10)), ((784, 32, 1), (784, 128, 1))
DOMAINS = {"box": (0.0, 1.0), "orthant": (0.0, np.inf)}
FIRST_SEED = 80_000
POINTS = 20_000
WRONG = 1e-6


def main() -> None:
    print(f"{'domain':<9}{'network':<12}{'ok':>7}{'q·m/P':>8}{'(max)':>8}{'out':>10}{'(max)':>10}{'unseen':>9}")
    for name, bounds in DOMAINS.items():
        for widths in (*SMALL, *LARGE):
            runs = [one(widths, seed, bounds) for seed in range(20 if widths in SMALL else 2)]
            print(f"{name:<9}{row(widths, runs)}", flush=True)


def one(widths: tuple[int, int, int], seed: int, bounds: tuple[float, float]) -> tuple[bool, float, float, float]:
    network = planted(widths, FIRST_SEED + seed, bias=0.5)
    network = centred(network) if np.isfinite(bounds[1]) else network
    result = rl.extract(rl.open_oracle(network, domain=bounds), rng=seed)
    cost = result.queries * widths[2] / parameters(widths)
    if not result.ok or result.network is None:
        return False, cost, np.inf, 1.0
    rows = Domain.of(bounds).sample(np.random.default_rng(seed), POINTS, widths[0])
    errors = np.abs(result.network(rows) - network(rows)).max(axis=1) / network(rows).std()
    return True, cost, float(errors.max()), float(np.mean(errors > WRONG))


def centred(network: rl.ReLUNetwork) -> rl.ReLUNetwork:
    """The same neurons about the middle of the unit box."""
    (w, a), (b, c) = network.weights, network.biases
    return rl.ReLUNetwork([2 * w, a], [b - w.sum(axis=1), c])


def row(widths: tuple[int, int, int], runs: list[tuple[bool, float, float, float]]) -> str:
    good = [run for run in runs if run[0]]
    cost, out = [run[1] for run in runs], [run[2] for run in good]
    return (
        f"{'-'.join(map(str, widths)):<12}{len(good):>3}/{len(runs):<3}{np.median(cost):>8.2f}{max(cost):>8.2f}"
        f"{np.median(out):>10.1e}{max(out):>10.1e}{max(run[3] for run in good):>9.1e}"
    )
