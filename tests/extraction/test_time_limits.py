"""A limit on processor time ends every method: between two questions, or in a loop that asks nothing for long."""

from __future__ import annotations

import time

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.oracles.ledger import Limit
from reluctant.results import Outcome
from reluctant.testing import in_float32, planted

SECONDS = 0.3
LAST_LOOKS = 0.1  # seconds of a ticking clock: looks of every limit around the call that is cut
ONE_FACTORISATION = 3.0  # seconds: no single call of LAPACK is cut


@pytest.mark.parametrize(
    ("verb", "target"),
    [
        (lambda oracle: rl.extract(oracle, rl.AnyDepth()), planted((20, 30, 30, 1), 0)),
        (lambda oracle: rl.extract(oracle), in_float32(planted((30, 40, 1), 0))),
        (lambda oracle: rl.learn(oracle, eps=1e-9), in_float32(planted((30, 60, 60, 1), 0))),
    ],
    ids=["any depth", "few digits", "learn"],
)
def test_a_limit_ends_a_run(verb, target, ticking):
    limit = Limit(seconds=SECONDS)
    oracle = limit.of(rl.open_oracle(target, dim=target.dim if isinstance(target, rl.ReLUNetwork) else 30))
    start = ticking.seconds
    with limit.running():
        found = verb(oracle)
    assert ticking.seconds - start < SECONDS + LAST_LOOKS
    assert limit.time_up
    assert found.outcome is Outcome.OUT_OF_BUDGET
    assert found.evidence["error"]


def test_without_time_nothing_is_asked():
    limit = Limit(seconds=0.0)
    oracle = limit.of(rl.open_oracle(planted((6, 4, 1), 0)))
    with limit.running():
        ends = [
            rl.extract(oracle),
            rl.learn(oracle),
            rl.recover_span(oracle),
            rl.recover_span(oracle, labels=True),
            rl.flip_sign(oracle, np.ones(6)),
        ]
    assert [found.outcome for found in ends] == [Outcome.OUT_OF_BUDGET] * 5
    assert limit.passed == 0


CALLS = pytest.mark.parametrize(
    ("verb", "target"),
    [
        (lambda f, seconds: rl.extract(f, rl.AnyDepth(), dim=20, seconds=seconds), planted((20, 30, 30, 1), 0)),
        (lambda f, seconds: rl.learn(f, dim=30, seconds=seconds), in_float32(planted((30, 60, 60, 1), 0))),
        (lambda f, seconds: rl.recover_span(f, dim=200, labels=True, seconds=seconds), planted((200, 60, 1), 0)),
    ],
    ids=["extract", "learn", "span"],
)


@CALLS
def test_seconds_of_a_call_end_it_and_are_named(verb, target, ticking):
    found = verb(lambda rows: target(rows), SECONDS)
    assert ticking.seconds < SECONDS + LAST_LOOKS
    assert found.outcome is Outcome.OUT_OF_BUDGET
    assert found.diagnosis.slug == "out-of-time"
    assert found.diagnosis.fields["seconds"] == SECONDS
    assert found.diagnosis.remedies[0].options == {"seconds": None}
    assert found.queries > 0


@pytest.mark.slow  # by a real clock, which a busy machine changes
@CALLS
def test_no_loop_goes_on_for_long_without_a_look_at_the_clock(verb, target):
    start = time.process_time()
    found = verb(lambda rows: target(rows), SECONDS)
    assert time.process_time() - start < SECONDS + ONE_FACTORISATION
    assert found.outcome is Outcome.OUT_OF_BUDGET


def test_enough_seconds_change_nothing():
    network = planted((6, 4, 1), 0)
    timed, free = rl.extract(network, seconds=600), rl.extract(network)
    assert timed.ok
    assert timed.queries == free.queries


@pytest.mark.parametrize("seconds", [0, -1.0, "long"])
def test_seconds_are_a_time(seconds):
    with pytest.raises(InvalidInput, match="seconds"):
        rl.extract(planted((6, 4, 1), 0), seconds=seconds)


def test_inputs_survive_a_limit():
    inputs = np.random.default_rng(0).normal(size=(20, 6)) * 1e3
    oracle = rl.open_oracle(planted((6, 4, 1), 0), inputs=inputs)
    assert np.array_equal(Limit(seconds=60).of(oracle).facts.samples, oracle.facts.samples)
