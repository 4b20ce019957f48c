"""Classifiers recovered from their probabilities, with no domain given: saturation is kept away from.

In float32 the network, its softmax and its answers are all float32. Wrong: said to be recovered, and a probability is
off by more than 1e-6 (float64) or 1e-3 (float32).

The error is the largest difference of a probability over held-out images (digits) or random inputs in the unit box.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import reluctant as rl
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.testing import in_float32, planted, single_precision, train_digits

SEEDS = int(os.environ.get("PROBABILITIES_SEEDS", "10"))
FIRST_SEED = 9200
POINTS = 2000


def main() -> None:
    print(f"{'target':<34}{'recovered':>12}{'wrong':>7}{'queries':>9}{'q·m/P':>8}{'error of p':>12}")
    report("trained digits 64-32-10, softmax", "softmax", lambda seed: train_digits((32,), seed))
    report("random 30-20-5, softmax", "softmax", lambda seed: planted((30, 20, 5), seed))
    report("random 30-20-5, log-softmax", "log-softmax", lambda seed: planted((30, 20, 5), seed))
    report("random 30-20-1, sigmoid", "sigmoid", lambda seed: planted((30, 20, 1), seed))
    report("trained digits, softmax, float32", "softmax", lambda seed: train_digits((32,), seed), single=True)
    report("random 30-20-5, softmax, float32", "softmax", lambda seed: planted((30, 20, 5), seed), single=True)


def report(name: str, link: str, make: object, *, single: bool = False) -> None:
    rows = [one(make(seed), link, seed, single) for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)]  # type: ignore[operator]
    good = [(queries, share, error) for ok, queries, share, error in rows if ok]
    wrong = sum(error > (1e-3 if single else 1e-6) for *_, error in good)
    queries, share = np.median([row[:2] for row in good], axis=0) if good else (np.nan, np.nan)
    error = max((row[2] for row in good), default=np.nan)
    count = f"{len(good)} of {SEEDS}"
    print(f"{name:<34}{count:>12}{wrong:>7}{queries:>9,.0f}{share:>8.2f}{error:>12.1e}", flush=True)


def in_single(network: ReLUNetwork) -> Callable[[FloatArray], NDArray[np.float32]]:
    """A classifier that computes in float32 from its inputs to its probabilities."""
    before_softmax = in_float32(network)

    def answer(x: FloatArray) -> NDArray[np.float32]:
        values = before_softmax(x)
        sizes = np.exp(values - values.max(axis=1, keepdims=True))
        return np.asarray(sizes / sizes.sum(axis=1, keepdims=True))

    return answer


def one(values: ReLUNetwork, link: str, seed: int, single: bool) -> tuple[bool, int, float, float]:
    values = single_precision(values) if single else values
    target = ReLUNetwork(values.weights, values.biases, link=link)  # type: ignore[arg-type]
    asked = in_single(values) if single else target
    opened = rl.open_oracle(asked, dim=values.dim if single else None, link=link)  # type: ignore[arg-type]
    result = rl.extract(opened, rng=seed)
    share = result.queries * target.outputs / target.parameters
    if not result.ok or result.network is None:
        return False, result.queries, share, np.nan
    x = np.random.default_rng(seed).uniform(0, 1, (POINTS, target.dim))
    copy = result.network.before_link(link)  # type: ignore[arg-type]
    given, true = rl.open_oracle(copy).query(x), rl.open_oracle(target).query(x)
    if link == "log-softmax":
        given, true = np.exp(given), np.exp(true)
    return True, result.queries, share, float(np.abs(given - true).max())
