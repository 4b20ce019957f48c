"""Steep sigmoids: they can be read well in a box smaller than typical inputs, and neurons beyond it count too."""

import numpy as np

import reluctant as rl
from reluctant.domains import Domain
from reluctant.networks import ReLUNetwork
from reluctant.oracles.network import LINK_FUNCTIONS
from reluctant.results import Outcome
from reluctant.testing import planted
from reluctant.verification.at_use import POINTS, look_at_use

BEHIND = {"dim": 5, "link": "sigmoid"}
TOL = 1e-8


def steep(seed: int, times: float) -> ReLUNetwork:
    network = planted([5, 8, 1], rng=seed, bias=1.5)
    (w, a), (b, c) = network.weights, network.biases
    return ReLUNetwork([w, times * a], [b, times * c])


def opened(network: ReLUNetwork) -> rl.Oracle:
    return rl.open_oracle(lambda x: LINK_FUNCTIONS["sigmoid"](network(x)), **BEHIND)


def wrong_at_use(network: ReLUNetwork, true: ReLUNetwork) -> float:
    rows = np.random.default_rng(9).standard_normal((2000, true.dim))
    return float((np.abs(network(rows) - true(rows)) > 1e-6).mean())


def test_a_wider_box_gives_what_the_first_one_misses() -> None:
    true = steep(6, 4)
    found = rl.extract(opened(true), rng=6)
    assert found.outcome is Outcome.RECOVERED
    assert found.evidence["inside"].startswith("[-2, 2]")
    assert found.evidence["verification"].at_use.ok
    assert wrong_at_use(found.network, true) == 0


def test_a_network_that_holds_in_its_box_alone_is_not_ok() -> None:
    true = steep(7, 5)
    found = rl.extract(opened(true), rng=7)
    assert found.outcome is Outcome.UNVERIFIED
    assert wrong_at_use(found.network, true) > 0.05
    at_use = found.evidence["verification"].at_use
    assert at_use.differing > 0
    assert "typical inputs that can be read it does NOT agree" in found.evidence["failures"][-1]
    assert found.queries < 5_000  # a search among few digits would go on for millions


def test_verify_looks_beyond_the_box_too() -> None:
    true = steep(7, 5)
    found = rl.extract(opened(true), rng=7)
    assert not rl.verify(opened(true), found.network, rng=3).ok
    checked = rl.verify(opened(true), true, rng=3)
    assert checked.ok
    assert "typical inputs that can be read it agrees" in str(checked)


def test_inputs_inside_the_box_cost_nothing() -> None:
    oracle = opened(steep(6, 4))
    before = oracle.queries
    assert look_at_use(oracle, steep(6, 4), Domain(-4.0, 4.0), TOL, np.random.default_rng(0)) is None
    assert oracle.queries == before
    look_at_use(oracle, steep(6, 4), Domain(-1.0, 1.0), TOL, np.random.default_rng(0))
    assert oracle.queries == before + POINTS


def test_values_next_to_certainty_are_not_compared() -> None:
    """Their logarithms have hardly a digit: a network that is right must not be refused for it."""
    for times in (10, 40, 200):
        true = steep(1, times)
        found = look_at_use(opened(true), true, Domain(-0.1, 0.1), TOL, np.random.default_rng(1))
        assert found is not None
        assert found.ok
        assert found.points < POINTS
