"""Steep sigmoids: they can be read well in a box smaller than typical inputs, and neurons beyond it count too."""

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.audit import audit
from reluctant.audit.findings import is_copy
from reluctant.domains import Domain
from reluctant.extraction import boxes
from reluctant.extraction.attempts import Search
from reluctant.extraction.candidate_check import CheckedNetwork
from reluctant.extraction.method import StageFailed
from reluctant.networks import ReLUNetwork
from reluctant.oracles.links import LINK_FUNCTIONS
from reluctant.results import Outcome
from reluctant.testing import planted
from reluctant.verification.comparison import FARTHER_POINTS, USE_POINTS, compare_at_use

BEHIND = {"dim": 5, "link": "sigmoid"}
TOL = 1e-8


def steep(seed: int, times: float) -> ReLUNetwork:
    network = planted([5, 8, 1], rng=seed, bias=1.5)
    (w, a), (b, c) = network.weights, network.biases
    return ReLUNetwork([w, times * a], [b, times * c])


def opened(network: ReLUNetwork) -> rl.Oracle:
    return rl.open_oracle(lambda x: LINK_FUNCTIONS["sigmoid"](network(x)), **BEHIND)


def searched(found: rl.Result) -> int:
    """Rows of the search alone, without verification."""
    return found.queries - found.rows["verify"].asked


def wrong_at_use(network: ReLUNetwork, true: ReLUNetwork) -> float:
    rows = np.random.default_rng(9).standard_normal((2000, true.dim))
    return float((np.abs(network(rows) - true(rows)) > 1e-6).mean())


def test_a_wider_box_gives_what_the_first_one_misses() -> None:
    true = steep(6, 4)
    found = rl.extract(opened(true), rng=6)
    assert found.outcome is Outcome.RECOVERED
    assert (found.evidence["inside"].domain.low, found.evidence["inside"].domain.high) == (-2, 2)
    assert found.evidence["verification"].at_use.ok
    assert wrong_at_use(found.network, true) == 0


def test_a_search_that_is_stuck_in_a_wider_box_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, plain = [], Search.attempt

    def attempt(search, place, method, rng):
        asked.append(float(place.oracle.facts.domain.high))
        if asked[-1] == 2.0:
            raise StageFailed("line", "stuck", number=1, limit=0)
        return plain(search, place, method, rng)

    monkeypatch.setattr(Search, "attempt", attempt)
    rl.extract(opened(steep(6, 4)), rng=6)
    assert asked == [1.0, 2.0, 4.0]


def test_a_network_that_holds_in_its_box_alone_is_not_ok() -> None:
    true = steep(7, 20)
    found = rl.extract(opened(true), rng=7)
    assert found.outcome is Outcome.UNVERIFIED
    assert wrong_at_use(found.network, true) > 0.05
    at_use = found.evidence["verification"].at_use
    assert at_use.differing > 0
    assert searched(found) < 3_100  # a search among few digits would go on for millions


@pytest.mark.parametrize(("seed", "times"), [(18, 4), (35, 4), (36, 4), (18, 10), (21, 20)])
def test_a_neuron_that_few_typical_inputs_switch_is_missed_by_none_of_its_boxes(seed: int, times: float) -> None:
    """One beyond the first box, on at 0.1 to 0.8 % of typical inputs, lacked in a network called recovered."""
    true = steep(seed, times)
    found = rl.extract(opened(true), rng=seed)
    rows = np.random.default_rng(123).standard_normal((20_000, 5))
    assert not found.ok or np.allclose(found.network(rows), true(rows), rtol=0, atol=1e-6)


def test_what_hardly_any_typical_input_shows_farther_ones_do() -> None:
    true = steep(2, 1)
    (w, a), (b, c) = true.weights, true.biases
    late = ReLUNetwork([w, a], [np.append(b[:-1], -3.0 * np.linalg.norm(w[-1])), c])  # on at 0.13 % of them
    never = ReLUNetwork([w, a * (np.arange(8) < 7)], late.biases)
    for seed in range(20):
        found = compare_at_use(opened(late), never, Domain(-1.0, 1.0), TOL, np.random.default_rng(seed))
        assert found is not None
        assert not found.ok


def test_verify_looks_beyond_the_box_too() -> None:
    true = steep(7, 20)
    found = rl.extract(opened(true), rng=7)
    assert not rl.verify(opened(true), found.network, rng=3).ok
    checked = rl.verify(opened(true), true, rng=3)
    assert checked.ok
    assert checked.at_use.ok


def test_inputs_inside_the_box_cost_nothing() -> None:
    oracle = opened(steep(6, 4))
    before = oracle.queries
    assert compare_at_use(oracle, steep(6, 4), Domain(-4.0, 4.0), TOL, np.random.default_rng(0)) is None
    assert oracle.queries == before
    compare_at_use(oracle, steep(6, 4), Domain(-1.0, 1.0), TOL, np.random.default_rng(0))
    assert oracle.queries == before + USE_POINTS + FARTHER_POINTS


def test_next_to_certainty_probabilities_are_compared() -> None:
    """Their logarithms have hardly a digit: a network that is right must not be refused for it."""
    for times in (10, 40, 200):
        true = steep(1, times)
        found = compare_at_use(opened(true), true, Domain(-0.1, 0.1), TOL, np.random.default_rng(1))
        assert found is not None
        assert found.ok
        assert found.points == USE_POINTS + FARTHER_POINTS  # by their values, or by the probabilities themselves


def test_a_wrong_side_where_nothing_can_be_read_is_seen() -> None:
    true = steep(1, 200)
    (w, a), (b, c) = true.weights, true.biases
    turned = ReLUNetwork([w, a], [b, c + 100])
    found = compare_at_use(opened(true), turned, Domain(-0.1, 0.1), TOL, np.random.default_rng(1))
    assert found is not None
    assert found.differing > 0


@pytest.mark.parametrize("times", sweep([20, 60], fast=[20]))
def test_ratios_of_classes_are_read_far_beyond_log_odds(times: float) -> None:
    for seed in range(4):
        network = planted([5, 8, 3], rng=seed, bias=1.5)
        (w, a), (b, c) = network.weights, network.biases
        true = ReLUNetwork([w, times * a], [b, times * c])
        softmax = rl.open_oracle(lambda x, f=true: LINK_FUNCTIONS["softmax"](f(x)), dim=5, link="softmax")
        found = rl.extract(softmax, rng=seed)
        if found.ok:
            assert wrong_at_use(found.network.log_ratios(), true.log_ratios()) < 0.02
        assert compare_at_use(softmax, true.log_ratios(), Domain(-0.1, 0.1), TOL, np.random.default_rng(1)).ok


def test_classes_that_fade_below_all_numbers_are_no_creases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "WIDER_BOX_ROWS", np.inf)
    network = planted([5, 8, 3], rng=0, bias=1.5)
    (w, a), (b, c) = network.weights, network.biases
    true = ReLUNetwork([w, 60 * a], [b, 60 * c])
    softmax = rl.open_oracle(lambda x: LINK_FUNCTIONS["softmax"](true(x)), dim=5, link="softmax", budget=20_000)
    assert searched(rl.extract(softmax, rng=0)) < 3_100


def test_wider_boxes_have_a_share_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = rl.extract(opened(steep(6, 4)), rng=6)
    monkeypatch.setattr(boxes, "WIDER_BOX_ROWS", 0.0)
    found = rl.extract(opened(steep(6, 4)), rng=6)
    assert found.outcome is Outcome.UNVERIFIED
    assert found.queries < whole.queries
    assert found.evidence["verification"].only_inside


def test_where_the_budget_ends_in_a_wider_box_the_first_network_stays() -> None:
    true = steep(7, 20)
    found = rl.extract(rl.open_oracle(lambda x: LINK_FUNCTIONS["sigmoid"](true(x)), budget=2_700, **BEHIND), rng=7)
    assert found.outcome is Outcome.OUT_OF_BUDGET
    checked = found.evidence["verification"]
    assert checked.only_inside
    assert (found.evidence["inside"].domain.low, found.evidence["inside"].domain.high) == (-0.25, 0.25)
    assert found.network.widths == (5, 2, 1)
    assert not is_copy(found)


def test_one_that_errs_inside_its_box_is_held_against_typical_inputs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Close inside a small box, and missing neurons outside: it is no close copy."""
    monkeypatch.setattr(CheckedNetwork, "doubt", property(lambda found: found.verification))
    true = steep(7, 20)
    found = rl.extract(opened(true), rng=7, attempts=1)
    assert found.outcome is Outcome.UNVERIFIED
    assert found.evidence["verification"].at_use.differing > 0
    assert not is_copy(found)


def test_an_audit_does_not_call_it_a_copy() -> None:
    true = steep(7, 20)
    bare = rl.open_oracle(lambda x: LINK_FUNCTIONS["sigmoid"](true(x)), dim=5)
    record = audit(bare, link="sigmoid", steps=["health", "extraction"], rng=7).record
    assert record.extraction.outcome == "unverified"
    assert record.verdict.level == "unknown"
    assert record.recovered is None
