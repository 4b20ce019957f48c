"""What a row of the sweep settles, and what is said of all of them: nothing is stopped by bad luck."""

from __future__ import annotations

import numpy as np
import pytest
from audit_kit import row_of
from sweeps import sweep

from reluctant import ReLUNetwork
from reluctant.audit import try_defense
from reluctant.audit.defense_sweep import Sweep
from reluctant.audit.defense_trial import DefenseResult, Rebuilt
from reluctant.audit.facts import CLOSE
from reluctant.audit.findings import Findings, Settings
from reluctant.audit.record import StandsFor
from reluctant.defenses import HonestCost
from reluctant.oracles import NetworkOracle
from reluctant.results import Outcome, Result
from reluctant.testing import planted

NETWORK = planted((6, 5, 3))
DRAWN = planted((6, 5, 3), rng=1)
PROBABLE = ReLUNetwork([DRAWN.weights[0], 3 * DRAWN.weights[1]], DRAWN.biases).log_ratios()
INPUTS = np.random.default_rng(3).standard_normal((200, 6))


def test_other_answers_cost_more_than_an_error_and_labels_most():
    names = (("labels", np.nan), ("softmax, top=1", np.nan), ("softmax", np.nan), ("decimals=1", 0.5))
    bare, *stopping = row_of("none", 0.0, True), *(row_of(name, error, False) for name, error in names)
    for k in range(len(stopping)):
        assert Sweep(StandsFor.FILE, (bare, *stopping[: k + 1]), 16.0).cheapest is stopping[k]


def test_the_cheapest_is_the_one_with_the_smallest_error():
    rows = (row_of("none", 0.0, True), row_of("a", 1e-2, False), row_of("b", 1e-4, False), row_of("c", 1e-6, True))
    assert Sweep(StandsFor.FILE, rows, 16.0).cheapest.defense == "b"


def test_a_close_copy_is_not_stopped():
    rows = (row_of("none", 0.0, True), row_of("a", 1e-3, False, copied=CLOSE / 2))
    assert Sweep(StandsFor.FILE, rows, 16.0).cheapest is None


def test_what_was_not_decided_is_said():
    rows = (row_of("none", 0.0, True), row_of("slow", 1e-3, False, undecided=True))
    found = Sweep(StandsFor.FILE, rows, 16.0)
    assert found.cheapest is None
    assert found.rows[1].facts(None).tried[0].undecided


@pytest.mark.parametrize(
    ("outcome", "stopped"),
    [
        (Outcome.PIECEWISE_CONSTANT, True),
        (Outcome.NOT_ACCURATE, True),
        (Outcome.TOO_NOISY, None),
        (Outcome.UNVERIFIED, None),
        (Outcome.TARGET_FAILED, None),
        (Outcome.NON_FINITE, None),
        (Outcome.OUT_OF_REACH, None),
        (Outcome.OUT_OF_BUDGET, None),
        (Outcome.PARTIAL, None),
    ],
)
def test_only_a_method_that_came_to_its_end_was_stopped(outcome, stopped):
    row = DefenseResult("a", HonestCost(0.1, 0.1, 1.0, 10), None, Rebuilt("extract", Result(outcome, None, {})))
    found = Sweep(StandsFor.FILE, (row_of("none", 0.0, True), row), 16.0)
    assert row.stopped is stopped
    assert (found.cheapest is row) == (stopped is True)


@pytest.mark.parametrize("outcome", [Outcome.NON_FINITE, Outcome.OUT_OF_REACH])
def test_what_a_link_cannot_read_was_left_out_by_the_defense(outcome):
    tried = Rebuilt("extract", Result(outcome, None, {}), missing=True)
    assert DefenseResult("top=1", HonestCost(0.1, 0.1, 1.0, 10), None, tried).stopped is True


UNLUCKY = Result(Outcome.LOW_PRECISION, None, {}, evidence={"failures": ["lines"]})


@pytest.mark.parametrize("run", [UNLUCKY, *(Result(outcome, None, {}) for outcome in Outcome)], ids=repr)
def test_a_row_and_the_verdict_have_one_rule(run):
    """What leaves a leak open in the audit of a target is no proof that a defense stops it."""
    of_the_audit = Findings(Settings(INPUTS), extraction=run).settled("extraction")
    assert Rebuilt("extract", run).settled == of_the_audit


def test_few_digits_tried_in_vain_stop_nothing():
    row = DefenseResult("decimals=2", HonestCost(0.1, 0.1, 1.0, 10), None, Rebuilt("extract", UNLUCKY, 0.5))
    found = Sweep(StandsFor.FILE, (row_of("none", 0.0, True), row), 16.0)
    assert (row.stopped, found.cheapest) == (None, None)
    assert row.facts(None).tried[0].in_vain


def test_noise_that_hides_everything_from_one_seed_stops_nothing():
    """At the brink of what can be seen one seed refuses the answers, and another gives a copy."""
    copy, settings = NetworkOracle(NETWORK), {"inputs": INPUTS, "methods": ["extract", "learn"]}
    refused, copied = (try_defense(copy, "gaussian=0.005", rng=seed, **settings) for seed in (1, 0))
    assert refused.extracted.result.outcome is Outcome.TOO_NOISY
    assert (refused.stopped, copied.stopped) == (None, False)


def test_a_box_that_one_seed_does_not_find_stops_nothing():
    """Probabilities that are certain nearly everywhere: extraction looks for a box, and finds one or does not."""
    steep = ReLUNetwork([DRAWN.weights[0], 300 * DRAWN.weights[1]], [DRAWN.biases[0], 300 * DRAWN.biases[1]])
    settings = {"inputs": INPUTS, "methods": ["extract", "learn"]}
    missed, found = (try_defense(NetworkOracle(steep), "softmax", rng=seed, **settings) for seed in (1, 0))
    assert missed.extracted.result.outcome is Outcome.OUT_OF_REACH
    assert found.extracted.result.outcome is Outcome.UNVERIFIED  # it holds in its box, and not at typical inputs
    assert (missed.stopped, found.stopped) == (None, None)


CUT = ["decimals=6", "decimals=3", "float16", "gaussian=3e-4", "top=1"]


@pytest.mark.parametrize("defense", sweep(CUT, fast=CUT[1:]))
def test_every_defense_of_probabilities_is_decided(defense):
    """In float64, where probabilities by themselves are no defense."""
    copy = NetworkOracle(PROBABLE.before_link("softmax"))
    found = try_defense(copy, defense, inputs=INPUTS, link="softmax", methods=["extract", "learn"])
    fitted = defense.startswith("decimals")  # one hidden layer is fitted to three decimals and more
    assert found.stopped is not fitted
    assert fitted or all(each.refused for each in found.tried)


@pytest.mark.parametrize("cut", [{"undecided": True}, {"outcome": Outcome.OUT_OF_BUDGET}])
def test_without_a_settled_first_row_nothing_is_said_of_copies(cut):
    result = Result(cut.pop("outcome", Outcome.LOW_PRECISION), None, {})
    bare = DefenseResult("none", HonestCost(0.0, 0.0, 1.0, 10), None, Rebuilt("extract", result, **cut))
    found = Sweep(StandsFor.FILE, (bare, row_of("a", 1e-3, False)), 16.0)
    assert found.open is None


def test_nothing_is_recommended_where_no_copy_was_made():
    found = Sweep(StandsFor.FILE, (row_of("none", 0.0, False), row_of("a", 1e-3, False)), 16.0)
    assert (found.open, found.cheapest) == (False, None)
