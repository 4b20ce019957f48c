"""Never wrong: degenerate networks, extracted with one setting; what is ok must be right everywhere.

    python -m benchmarks honesty          3 networks of each family
    HONESTY_SEEDS=20 python -m benchmarks honesty
    python -m benchmarks honesty-float32  one network of each family, computed in float32
    HONESTY_SEEDS=24 python -m benchmarks honesty-ridges     12-23-1 with a ridge 0.01 wide
    HONESTY_PROCESSES=16 python -m benchmarks honesty-float32-layers     300 networks of two hidden layers in float32
    HONESTY_FROM=300 HONESTY_RUNS=60 ...                                 others
    HONESTY_LINK=softmax ...                                             with two outputs and more, their probabilities
    HONESTY_LAYERS=3 ...                                                 of three hidden layers

The true error is the largest over random inputs at scales 0.1, 1 and 10, on every true hyperplane and
beside it at distances from 1e-8 to 1e-2, relative to the output's standard deviation. In float32 a network is wrong if
its error is more than five times that of the target itself.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import reluctant as rl
from benchmarks.precision import Probabilities, softmax_of
from benchmarks.sweeping import Sweeping
from reluctant.domains import Domain
from reluctant.numerics import FloatArray
from reluctant.testing import DEGENERATE, in_float32, largest_true_error, planted, single_precision
from reluctant.testing.families import narrow_ridge
from reluctant.verification.points import crease_points

WRONG = 1e-6
OWN = 5.0  # times the target's own error
FIRST_SEED = 40_000  # nothing was tuned on these


Answers = Callable[[Any], Any]


def main() -> None:
    report(int(os.environ.get("HONESTY_SEEDS", "3")), in_full)


def ridges() -> None:
    """Most lines and most random inputs do not meet the ridge: 0.4 to 0.8 % of the inputs are on it."""
    rows = np.random.default_rng(99).standard_normal((100_000, 12))
    counts, seeds = Counter[str](), int(os.environ.get("HONESTY_SEEDS", "12"))
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        true = narrow_ridge(seed)
        start, result = time.process_time(), rl.extract(true, rng=seed)
        errors = np.inf if result.network is None else np.abs(result.network(rows) - true(rows)) / true(rows).std()
        off, differ = np.max(errors), np.mean(errors > WRONG)
        end = ("wrong with ok" if off > WRONG else "recovered") if result.ok else result.outcome.slug
        counts[end] += 1
        checked = result.evidence.get("verification")
        share = "" if checked is None else f", may differ {checked.share:.2%}, narrowest {checked.narrowest:.4f}"
        share += f", {differ:.2%} differ" if end == "wrong with ok" else ""
        seconds = time.process_time() - start
        print(f"{seed}  {end}, off {off:.1e}, {result.queries} queries, {seconds:.1f} s{share}", flush=True)
    print(", ".join(f"{name} {count}" for name, count in counts.most_common()), f"of {seeds}")


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


FLAWS = (
    "none",
    "weak first",
    "weak second",
    "dead",
    "parallel",
    "same row",
    "rescaled",
    "no bias",
    "far",
    "rare",
    "on",
)
MOST_SECONDS = 25.0  # of one network


def float32_layers() -> None:
    """Two hidden layers or three in float32, of mixed shapes and flaws."""
    runs, processes = int(os.environ.get("HONESTY_RUNS", "300")), int(os.environ.get("HONESTY_PROCESSES", "1"))
    counts = {flaw: Counter[str]() for flaw in FLAWS}
    worst = dict.fromkeys(FLAWS, 0.0)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        first = int(os.environ.get("HONESTY_FROM", "0"))
        for flaw, ended, error in pool.imap(one_of_several_layers, range(first, first + runs), chunksize=1):
            counts[flaw][ended] += 1
            worst[flaw] = max(worst[flaw], error)
    print(f"{'flaw':<14}{'right':>7}{'refused':>9}{'wrong':>7}{'error / own':>13}")
    for flaw, count in counts.items():
        print(f"{flaw:<14}{count['right']:>7}{count['refused']:>9}{count['wrong']:>7}{worst[flaw]:>13.2f}", flush=True)
    total = sum(counts.values(), Counter[str]())
    print(f"{runs} networks: {total['right']} right, {total['refused']} refused, {total['wrong']} wrong")


def one_of_several_layers(number: int) -> tuple[str, str, float]:
    """The flaw of a network, how its extraction ended, and the largest error of what is ok, over the target's own."""
    flaw = FLAWS[number % len(FLAWS)]
    softmax = os.environ.get("HONESTY_LINK") == "softmax"
    true = single_precision(flawed(flaw, FIRST_SEED + number, int(os.environ.get("HONESTY_LAYERS", "2"))))
    if softmax and true.outputs == 1:
        return flaw, "passed", 0.0
    target = Probabilities(in_float32(true)) if softmax else in_float32(true)
    opened = rl.open_oracle(target, dim=true.dim, link="softmax" if softmax else None)
    result = rl.extract(opened, rng=number, attempts=3, seconds=MOST_SECONDS)
    spent = f"{result.queries} rows, {time.process_time():.0f} CPU s of its process so far"
    print(number, flaw, true.widths, result.outcome.slug, spent, result.evidence.get("failures"), file=sys.stderr)
    if not result.ok or result.network is None:
        return flaw, "refused", 0.0
    ratio, found = 0.0, result.network
    copy = rl.open_oracle(found.before_link("softmax")).query if softmax else found
    for rows in compared_at(true, number):
        right = softmax_of(true(rows)) if softmax else true(rows)
        own, error = (float(np.abs(answers(rows) - right).max()) for answers in (target, copy))
        ratio = max(ratio, error / max(own, 1e-7 * float(np.abs(right).max())))
    return flaw, "wrong" if ratio > OWN else "right", ratio


def compared_at(true: rl.ReLUNetwork, seed: int) -> list[FloatArray]:
    """Random inputs at three scales, points on true creases of all layers and beside them; as float32."""
    rng = np.random.default_rng(seed)
    groups = [scale * rng.standard_normal((4000, true.dim)) for scale in (0.1, 1.0, 10.0)]
    on = crease_points(true, Domain(), rng).points
    groups += [on + step * rng.standard_normal(on.shape) for step in (0.0, 1e-4, 1e-2) if len(on)]
    return [rows.astype(np.float32).astype(np.float64) for rows in groups]


def flawed(flaw: str, seed: int, layers: int) -> rl.ReLUNetwork:
    """A small planted network of two hidden layers or three with a flaw in one or two neurons of the first or last."""
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(6, 24)), int(rng.choice([1, 1, 2, 4]))
    h, g = int(rng.integers(3, min(d, 14) + 1)), int(rng.integers(2, 11))
    widths = (d, h, g, m) if layers == 2 else (d, max(h, 4), int(rng.integers(3, max(h, 4) + 1)), min(g, 5), m)
    network = planted(widths, rng, bias=float(rng.choice([0.2, 0.5, 1.0])))
    weights, biases = ([part.copy() for part in parts] for parts in (network.weights, network.biases))
    w, after, v, a, b, c = weights[0], weights[1], weights[-2], weights[-1], biases[0], biases[-2]
    small = 10.0 ** rng.uniform(-6, -1)
    match flaw:
        case "weak first":
            after[:, 0] *= small
        case "weak second":
            a[:, 0] *= small
        case "dead":
            b[0], c[0] = -1e3, -1e3
        case "parallel":
            w[1], b[1] = w[0] + small * w[2], b[0] + small
        case "same row":
            v[1], c[1] = v[0] + small * v[-1], c[0]
        case "rescaled":
            w[0], b[0], after[:, 0] = w[0] / small, b[0] / small, after[:, 0] * small
        case "no bias":
            b[:], c[:] = 0, 0
        case "far":
            b[0] = 10 * np.sign(b[0])
        case "rare":
            c[0] = -3 * float(np.linalg.norm(v[0]))
        case "on":
            c[0] = 10 * float(np.linalg.norm(v[0]))
    return rl.ReLUNetwork(weights, biases)
