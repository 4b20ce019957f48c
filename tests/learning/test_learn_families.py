"""`learn` on every worst-case family: error near the true creases, cost, outcome."""

from __future__ import annotations

import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.testing import WORST_CASE, planted, relative_square_error
from reluctant.testing.faults import in_float32, rounded

EXACT_ENOUGH = 6000  # queries, where the exact method verifies
BY_LINES = 30_000
LEARNED = "clusters 1e-09"  # where no exact network is verified
LONG = "clusters 1e-07"  # an exact method is tried to its end first
WIDE, MANY = "generic 200, 100 inputs", "generic 100"
NARROW = 70_000

LIMITS = {  # error asked for and allowed, narrowest width, most queries
    **dict.fromkeys(("generic 30", MANY, "duplicates", "stairs"), (1e-12, 0.01, EXACT_ENOUGH)),
    **dict.fromkeys(("linear dependence", "tiny norms", "far thresholds"), (1e-12, 0.01, BY_LINES)),
    **dict.fromkeys(("bump 0.1", "bump 0.01"), (1e-12, 0.01, NARROW)),
    **{f"{name} with 8 neurons": (1e-12, 0.01, NARROW) for name in ("bump 0.1", "bump 0.01")},
    "bump 0.001": (1e-12, 0.001, NARROW),
    **{f"clusters {angle:g}": (1e-8, 0.01, BY_LINES) for angle in (1e-3, 1e-5, 1e-7, 1e-9)},
    WIDE: (1e-12, 0.01, NARROW),
}


def test_every_family_is_here():
    assert set(LIMITS) == set(WORST_CASE)


@pytest.mark.parametrize("name", sweep(LIMITS, fast=LIMITS.keys() - {LEARNED, LONG, WIDE, MANY}))
def test_a_family_is_learned(name, seed):
    eps, narrowest, most = LIMITS[name]
    true = WORST_CASE[name](seed)
    oracle = rl.open_oracle(true)
    result = rl.learn(oracle, eps=eps, rng=seed, narrowest=narrowest)
    assert result.ok
    error, accuracy = relative_square_error(result.network, true, points=20_000), result.evidence["accuracy"]
    assert error <= eps
    most_error = accuracy.high if name == LEARNED else 2 * accuracy.high  # of 95 % confidence: few may be outside it
    assert accuracy.low / 2 <= error <= most_error
    assert result.queries <= most
    assert result.queries == oracle.queries


def test_the_same_seed_gives_the_same_network(seed):
    true = in_float32(planted((8, 12, 1), seed))
    first, second = (rl.learn(rl.open_oracle(true, dim=8), eps=1e-8, rng=seed) for _ in range(2))
    assert first.outcome is rl.Outcome.LEARNED
    assert first.queries == second.queries
    assert first.network.weights[0].tobytes() == second.network.weights[0].tobytes()


@pytest.mark.parametrize("outputs", [2, 3])
def test_several_outputs_in_float32(outputs, seed):
    true = planted((8, 12, outputs), seed)
    result = rl.learn(rl.open_oracle(in_float32(true), dim=8), eps=1e-8, rng=seed)
    assert result.outcome is rl.Outcome.LEARNED
    assert result.network.widths == (8, 12, outputs)


def test_a_float32_target_is_learned_and_not_called_recovered(seed):
    true = WORST_CASE["generic 30"](seed)
    result = rl.learn(rl.open_oracle(in_float32(true), dim=12), eps=1e-8, rng=seed)
    assert result.outcome is rl.Outcome.LEARNED
    assert relative_square_error(result.network, true, points=20_000) <= 1e-8


def test_rounded_answers_are_learned(seed):
    true = WORST_CASE["generic 30"](seed)
    result = rl.learn(rl.open_oracle(rounded(true, 6), dim=12), rng=seed)
    assert result.ok
    assert relative_square_error(result.network, true, points=20_000) <= 1e-6
