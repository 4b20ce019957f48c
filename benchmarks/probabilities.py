"""Classifiers recovered from their probabilities in float64, with no domain given: saturation is kept away from.

The error is the largest difference of a probability over held-out images (digits) or random inputs in the unit box.
"""

from __future__ import annotations

import os

import numpy as np

import reluctant as rl
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted, train_digits

SEEDS = int(os.environ.get("PROBABILITIES_SEEDS", "10"))
FIRST_SEED = 9200
POINTS = 2000


def main() -> None:
    print(f"{'target':<34}{'recovered':>12}{'wrong':>7}{'queries':>9}{'q·m/P':>8}{'error of p':>12}")
    report("trained digits 64-32-10, softmax", "softmax", lambda seed: train_digits((32,), seed))
    report("random 30-20-5, softmax", "softmax", lambda seed: planted((30, 20, 5), seed))
    report("random 30-20-5, log-softmax", "log-softmax", lambda seed: planted((30, 20, 5), seed))
    report("random 30-20-1, sigmoid", "sigmoid", lambda seed: planted((30, 20, 1), seed))


def report(name: str, link: str, make: object) -> None:
    rows = [one(make(seed), link, seed) for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)]  # type: ignore[operator]
    good = [(queries, share, error) for ok, queries, share, error in rows if ok]
    wrong = sum(error > 1e-6 for *_, error in good)
    queries, share = np.median([row[:2] for row in good], axis=0) if good else (np.nan, np.nan)
    error = max((row[2] for row in good), default=np.nan)
    count = f"{len(good)} of {SEEDS}"
    print(f"{name:<34}{count:>12}{wrong:>7}{queries:>9,.0f}{share:>8.2f}{error:>12.1e}", flush=True)


def one(values: ReLUNetwork, link: str, seed: int) -> tuple[bool, int, float, float]:
    target = ReLUNetwork(values.weights, values.biases, link=link)  # type: ignore[arg-type]
    result = rl.extract(rl.open_oracle(target, link=link), rng=seed)  # type: ignore[arg-type]
    share = result.queries * target.outputs / target.parameters
    if not result.ok or result.network is None:
        return False, result.queries, share, np.nan
    x = np.random.default_rng(seed).uniform(0, 1, (POINTS, target.dim))
    copy = result.network.before_link(link)  # type: ignore[arg-type]
    given, true = rl.open_oracle(copy).query(x), rl.open_oracle(target).query(x)
    if link == "log-softmax":
        given, true = np.exp(given), np.exp(true)
    return True, result.queries, share, float(np.abs(given - true).max())
