"""Never wrong: degenerate networks, extracted with one setting; what is ok must be right everywhere.

    python -m benchmarks honesty          3 networks of each family
    HONESTY_SEEDS=20 python -m benchmarks honesty

The true error is the largest over random inputs at scales 0.1, 1 and 10, on every true hyperplane and
beside it at distances from 1e-8 to 1e-2, relative to the output's standard deviation.
"""

from __future__ import annotations

import os
from collections import Counter

import reluctant as rl
from reluctant.testing import DEGENERATE, largest_true_error
from reluctant.testing.planted import Family

WRONG = 1e-6
FIRST_SEED = 40_000  # nothing was tuned on these


def main() -> None:
    seeds = int(os.environ.get("HONESTY_SEEDS", "3"))
    total: Counter[str] = Counter()
    print(f"{'family':<38}{'exact':>7}{'refused':>9}{'wrong':>7}{'largest error':>15}")
    for family, make in DEGENERATE.items():
        count, worst = one_family(make, seeds)
        total += count
        print(f"{family:<38}{count['exact']:>7}{count['refused']:>9}{count['wrong']:>7}{worst:>15.1e}", flush=True)
    runs = total.total()
    print(f"{runs} networks: {total['exact'] / runs:.1%} exact, {total['refused']} refused, {total['wrong']} wrong")


def one_family(make: Family, seeds: int) -> tuple[Counter[str], float]:
    count, worst = Counter[str](), 0.0
    for seed in range(seeds):
        true = make(FIRST_SEED + seed)
        result = rl.extract(rl.open_oracle(true), rng=seed)
        if not result.ok or result.network is None:
            count["refused"] += 1
            continue
        error = largest_true_error(result.network, true)
        worst = max(worst, error)
        count["wrong" if error > WRONG else "exact"] += 1
    return count, worst
