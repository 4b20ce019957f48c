"""The cost model against shapes that it has never seen: random ones, each run once.

    python -m benchmarks fresh-shapes                       6 shapes of each kind
    FRESH_SHAPES=20 python -m benchmarks fresh-shapes       as many

`off` is measured rows over expected ones, less one; `in range` whether they are between low and high. Networks that are
not recovered are counted apart: the model says what a copy costs. Nothing was fitted to these shapes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import reluctant as rl
from reluctant.numerics import FloatArray
from reluctant.testing import in_float32, labelled, planted

FIRST_SEED = 350_000
BIAS = 0.5
SHAPES = 6
DECIMALS = 4

Drawn = tuple[int, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of target: how its shape is drawn, how it answers, and what is run on it."""

    name: str
    precision: str
    draw: Callable[[np.random.Generator], Drawn]
    target: Callable[[rl.ReLUNetwork], Any]


def between(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number, even in its logarithm."""
    return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))


def one_layer(rng: np.random.Generator, inputs: int = 400, neurons: int = 200) -> Drawn:
    return between(rng, 10, inputs), between(rng, 5, neurons), int(rng.choice([1, 1, 3, 10]))


def two_layers(rng: np.random.Generator) -> Drawn:
    d = between(rng, 12, 300)
    return d, between(rng, 8, min(d, 40)), between(rng, 8, 30), int(rng.choice([1, 1, 3]))


def three_layers(rng: np.random.Generator) -> Drawn:
    return between(rng, 8, 60), *(between(rng, 5, 12) for _ in range(3)), 1


def rounded(network: rl.ReLUNetwork) -> Callable[[FloatArray], FloatArray]:
    return lambda x: np.round(network(x), DECIMALS)


KINDS = (
    Kind("one layer", "float64", one_layer, lambda network: network),
    Kind("two layers", "float64", two_layers, lambda network: network),
    Kind("three layers", "float64", three_layers, lambda network: network),
    Kind("rounded", f"decimals={DECIMALS}", lambda rng: (*one_layer(rng)[:2], 1), rounded),
    Kind("float32", "float32", lambda rng: one_layer(rng, 100, 40), in_float32),
    Kind("labels", "labels", lambda rng: (between(rng, 30, 300), between(rng, 5, 30), 8, 1), lambda network: network),
)


def main() -> None:
    print(f"{'kind':<14}{'network':<16}{'rows':>10}{'expected':>10}{'low':>10}{'high':>10}{'off':>8}  in range")
    off, inside, lost = [], 0, 0
    for kind in KINDS:
        for number in range(int(os.environ.get("FRESH_SHAPES", SHAPES))):
            found, rows = one(kind, number)
            assert found.queries is not None
            if rows is None:
                lost += 1
                print(f"{kind.name:<14}{found.shape:<16}{'not recovered':>20}", flush=True)
                continue
            cost, good = found.queries, found.queries.low <= rows <= found.queries.high
            off.append(rows / cost.expected - 1)
            inside += good
            figures = "".join(f"{figure:>10.0f}" for figure in (rows, cost.expected, cost.low, cost.high))
            print(f"{kind.name:<14}{found.shape:<16}{figures}{off[-1]:>+8.1%}  {'yes' if good else 'NO'}", flush=True)
    middle = np.median(np.abs(off))
    print(f"{inside} of {len(off)} within their range, the middle one {middle:.1%} off; {lost} not recovered")


def one(kind: Kind, number: int) -> tuple[rl.Estimate, int | None]:
    """One random shape: the estimate, and the rows that a run took; None if it was not recovered."""
    rng = np.random.default_rng([FIRST_SEED, number])
    widths = kind.draw(rng)
    found = rl.estimate(widths, precision=kind.precision)
    if kind.precision == "labels":
        span = rl.recover_span(rl.open_oracle(labelled(widths, "tanh", rng), dim=widths[0]), labels=True, rng=number)
        return found, span.queries if span.ok else None
    target = kind.target(planted(widths, rng, bias=BIAS))
    result = rl.extract(rl.open_oracle(target, dim=widths[0]), rng=number)
    return found, result.queries if result.ok else None
