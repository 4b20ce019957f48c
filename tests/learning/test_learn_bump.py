"""What exact extraction does not see: a bump. It is found, or the width that would have been seen is stated."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.learning.unseen import DENSITY, points_to_see, remaining_risk
from reluctant.testing import WORST_CASE, relative_square_error

BUMP = "bump 0.01 with 8 neurons"
MISSED = 0  # a seed with which the exact method verifies at once


def test_the_exact_method_verifies_without_the_bump():
    true = WORST_CASE[BUMP](3)
    result = rl.extract(rl.open_oracle(true), rl.DepthTwo(), rng=3)
    assert result.ok
    assert result.network.widths[1] == 8
    assert relative_square_error(result.network, true) > 1e-10


def test_learn_finds_what_the_exact_method_missed():
    true = WORST_CASE[BUMP](3)
    result = rl.learn(rl.open_oracle(true), eps=1e-12, rng=3)
    assert result.ok
    assert result.network.widths[1] == 11
    assert relative_square_error(result.network, true) < 1e-18


def test_a_bump_that_eps_allows_to_miss_is_not_called_recovered():
    true = WORST_CASE[BUMP](MISSED)
    result = rl.learn(rl.open_oracle(true), eps=1e-6, rng=MISSED)
    assert result.outcome is rl.Outcome.LEARNED
    assert result.evidence["exact"] == "verified"
    assert result.evidence["accuracy"].error > 1e-10
    assert "something narrow is missing" in result.evidence["limits"]


def test_the_remaining_risk_is_stated():
    result = rl.learn(rl.open_oracle(WORST_CASE["generic 30"](0)), rng=0)
    risk = result.evidence["risk"]
    assert risk.width <= 0.01
    assert risk.points == points_to_see(0.01)
    assert 0 < risk.added < 1e-4
    assert "narrower than 0.01 could have been missed" in str(risk)
    assert "at distance 3 one wider than 0.5" in str(risk)
    assert "nobody measured" in str(risk)


def test_the_search_takes_as_many_points_as_the_width_asks():
    true = WORST_CASE["generic 30"](0)
    rows = [rl.learn(rl.open_oracle(true), rng=0, narrowest=w).rows["search"].queries for w in (0.1, 0.01)]
    assert rows == [points_to_see(0.1), points_to_see(0.01)]


@pytest.mark.parametrize("width", [0.1, 0.01, 0.001])
def test_the_cost_grows_like_one_over_the_width(width):
    assert points_to_see(width) * width == pytest.approx(28.55, rel=0.02)
    assert remaining_risk(points_to_see(width), 1.0).width == pytest.approx(width, rel=0.01)


def test_a_slab_of_that_width_is_hardly_ever_missed():
    rng, width = np.random.default_rng(0), 0.05
    along = rng.standard_normal((1000, points_to_see(width)))  # of every random point, along the normal
    missed = ~((along > 1 - width / 2) & (along < 1 + width / 2)).any(axis=1)
    assert missed.mean() < 0.01
    assert pytest.approx(np.exp(-0.5) / np.sqrt(2 * np.pi)) == DENSITY


def test_a_constant_is_given_with_its_risk():
    result = rl.learn(rl.open_oracle(lambda x: np.full(len(x), 2.5), dim=6), rng=0)
    assert result.outcome is rl.Outcome.CONSTANT
    assert not result.ok
    np.testing.assert_array_equal(result.network(np.zeros((1, 6))), [[2.5]])
    assert result.evidence["risk"].width <= 0.01
    assert result.evidence["risk"].added is None
    assert "steep" not in str(result.evidence["risk"])


def test_the_theorem_is_shown_beside_what_was_spent():
    result = rl.learn(rl.open_oracle(WORST_CASE["bump 0.1"](0)), rng=0)
    asked = result.evidence["theorem"]
    assert asked.asked.queries.log10 > 100
    assert int(asked.used["queries"]) == result.queries
    assert "| r |" in asked.table()
    assert asked.to_dict()["queries"]["used"] == result.queries
