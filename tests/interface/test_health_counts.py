"""What a health check costs: exact row counts, and the same findings from the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from health_targets import DIM, Recording, network, with_activation

from reluctant import Outcome, check_health, extract, open_oracle
from reluctant.errors import TargetUnavailable

# Counts are exact for a given target and seed: a crease close to a short line costs a few rows more.
NETWORK = network(0)


def test_102_rows_in_space():
    oracle = open_oracle(NETWORK)
    assert check_health(oracle).queries == oracle.queries == 102


@pytest.mark.parametrize("domain", [(0, 1), (0, np.inf)], ids=str)
def test_60_rows_in_a_domain(domain):
    oracle = open_oracle(NETWORK, domain=domain)
    assert check_health(oracle).queries == oracle.queries == 60


@pytest.mark.parametrize("lines", [2, 11])
def test_17_rows_a_line(lines):
    assert check_health(open_oracle(NETWORK), lines=lines).queries == 17 * lines


def test_a_smooth_target_is_asked_at_finer_steps(seed):
    health = check_health(open_oracle(with_activation(np.tanh, seed), dim=DIM))
    assert health.queries in {102 + 6 * 2 * steps for steps in (1, 2, 3)}


def test_a_target_that_fails_far_out_is_not_asked_again():
    def target(x):
        if np.abs(x).max() > 1e3:
            raise ValueError("out of range")
        return NETWORK(x)

    assert check_health(open_oracle(target, dim=DIM)).queries == 72


@pytest.mark.parametrize("fault", [TargetUnavailable("target: gone."), ConnectionError("reset")])
@pytest.mark.parametrize("call", [5, 6, 7, 8])
def test_a_fault_that_passes_is_no_range(fault, call):
    calls = 0

    def target(x):
        nonlocal calls
        calls += 1
        if calls == call:
            raise fault
        return NETWORK(x)

    result = extract(open_oracle(target, dim=DIM), rng=0)
    assert result.outcome is Outcome.TARGET_FAILED
    assert str(fault) in str(result.error)


def test_a_target_that_is_unavailable_far_out_is_asked_once_more():
    def target(x):
        if np.abs(x).max() > 1e3:
            raise TargetUnavailable("target: out of range.")
        return NETWORK(x)

    assert check_health(open_oracle(target, dim=DIM)).queries == 72 + 6


def test_the_count_is_what_the_target_saw(seed):
    target = Recording(network(seed))
    oracle = open_oracle(target, dim=DIM)
    health = check_health(oracle)
    assert len(target.rows) == oracle.queries == 1 + health.queries  # one row to open a callable


def test_rows_are_entered_under_their_stage():
    oracle = open_oracle(NETWORK)
    check_health(oracle)
    assert oracle.ledger.stages["health"].sent == 102


def test_the_same_seed_asks_the_same(seed):
    first, second = Recording(network(seed)), Recording(network(seed))
    findings = [check_health(open_oracle(target, dim=DIM), rng=seed) for target in (first, second)]
    np.testing.assert_array_equal(first.rows, second.rows)
    assert findings[0] == findings[1]


def test_another_seed_asks_elsewhere(seed):
    first, second = Recording(network(seed)), Recording(network(seed))
    check_health(open_oracle(first, dim=DIM), rng=seed)
    check_health(open_oracle(second, dim=DIM), rng=seed + 1)
    assert not np.isin(first.rows[1:], second.rows[1:]).any()
