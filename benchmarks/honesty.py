"""Never wrong: degenerate networks, extracted with one setting; what is ok must be right everywhere.

    python -m benchmarks honesty          3 networks of each family
    HONESTY_SEEDS=20 python -m benchmarks honesty
    python -m benchmarks honesty-float32  one network of each family, computed in float32

The true error is the largest over random inputs at scales 0.1, 1 and 10, on every true hyperplane and
beside it at distances from 1e-8 to 1e-2, relative to the output's standard deviation. In float32 a network is wrong if
its error is more than five times that of the target itself.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import reluctant as rl
from benchmarks.sweeping import Sweeping
from reluctant.testing import DEGENERATE, in_float32, largest_true_error, single_precision

WRONG = 1e-6
OWN = 5.0  # times the target's own error
FIRST_SEED = 40_000  # nothing was tuned on these


Answers = Callable[[Any], Any]


def main() -> None:
    report(int(os.environ.get("HONESTY_SEEDS", "3")), in_full)


def float32() -> None:
    report(int(os.environ.get("HONESTY_SEEDS", "1")), in_single)


def in_full(true: rl.ReLUNetwork) -> tuple[Answers | rl.ReLUNetwork, rl.ReLUNetwork, float, int]:
    """What is asked, what it should be, the error from which on it is wrong, and the attempts."""
    return true, true, WRONG, 4


def in_single(true: rl.ReLUNetwork) -> tuple[Answers | rl.ReLUNetwork, rl.ReLUNetwork, float, int]:
    target, exact = in_float32(true), single_precision(true)
    return target, exact, OWN * largest_true_error(target, exact), 1


def report(seeds: int, kind: Callable[[rl.ReLUNetwork], Any]) -> None:
    total: Counter[str] = Counter()
    print(f"{'family':<38}{'exact':>7}{'refused':>9}{'wrong':>7}{'largest error':>15}")
    families = [(family, seeds, kind) for family in DEGENERATE]
    for (family, *_), (count, worst) in zip(families, Sweeping.over(one_family, families), strict=True):
        total += count
        print(f"{family:<38}{count['exact']:>7}{count['refused']:>9}{count['wrong']:>7}{worst:>15.1e}", flush=True)
    runs = total.total()
    print(f"{runs} networks: {total['exact'] / runs:.1%} exact, {total['refused']} refused, {total['wrong']} wrong")


def one_family(family: tuple[str, int, Callable[[rl.ReLUNetwork], Any]]) -> tuple[Counter[str], float]:
    name, seeds, kind = family
    count, worst = Counter[str](), 0.0
    for seed in range(seeds):
        target, true, limit, attempts = kind(DEGENERATE[name](FIRST_SEED + seed))
        result = rl.extract(rl.open_oracle(target, dim=true.dim), rng=seed, attempts=attempts)
        if not result.ok or result.network is None:
            count["refused"] += 1
            continue
        error = largest_true_error(result.network, true)
        worst = max(worst, error)
        count["wrong" if error > limit else "exact"] += 1
    return count, worst
