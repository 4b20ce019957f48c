"""What exact extraction does not see: a bump. It is found, or the width that would have been seen is stated."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction.any_position.accuracy import NEAR_DENSITY, points_to_see, remaining_risk
from reluctant.networks import ReLUNetwork
from reluctant.testing import WORST_CASE, in_float32, planted, relative_square_error
from reluctant.testing.families import bump

BUMP = "bump 0.01 with 8 neurons"
MISSED = 0  # a seed with which the exact method verifies at once


def test_verification_meets_the_bump_that_the_exact_method_misses():
    true = WORST_CASE[BUMP](1)
    result = rl.extract(rl.open_oracle(true), rl.DepthTwo(), rng=1)
    assert result.outcome is rl.Outcome.UNVERIFIED
    assert result.network.widths[1] == 8
    assert relative_square_error(result.network, true, points=20_000) > 1e-10


def test_learn_finds_what_the_exact_method_missed():
    true = WORST_CASE[BUMP](3)
    result = rl.learn(rl.open_oracle(true), eps=1e-12, rng=3)
    assert result.ok
    assert result.network.widths[1] == 11
    assert relative_square_error(result.network, true, points=20_000) < 1e-18


def test_a_bump_that_eps_allows_to_miss_is_not_called_recovered():
    true = WORST_CASE[BUMP](MISSED)
    result = rl.learn(rl.open_oracle(true), eps=1e-6, rng=MISSED)
    assert result.outcome is rl.Outcome.LEARNED
    assert result.evidence["accuracy"].error > 1e-10
    assert "narrow-missing" in result.evidence["limits"]


def test_the_remaining_risk_is_stated():
    result = rl.learn(rl.open_oracle(WORST_CASE["generic 30"](0)), rng=0)
    risk = result.evidence["risk"]
    assert risk.width <= 0.01
    assert risk.points == points_to_see(0.01)
    assert 0 < risk.added < 1e-4
    assert all(f"{number:g}" in str(risk) for number in (0.01, 3, 0.5))


def test_the_search_takes_as_many_points_as_the_width_asks():
    true = WORST_CASE["generic 30"](0)
    rows = [rl.learn(rl.open_oracle(true), rng=0, narrowest=w).rows["search"].queries for w in (0.1, 0.01)]
    assert rows == [points_to_see(0.1), points_to_see(0.01)]


@pytest.mark.parametrize("width", [0.1, 0.01, 0.001])
def test_the_cost_grows_like_one_over_the_width(width):
    assert points_to_see(width) * width == pytest.approx(28.55, rel=0.02)
    assert remaining_risk(points_to_see(width), 1.0).width == pytest.approx(width, rel=0.01)


def test_a_slab_of_that_width_is_hardly_ever_missed_by_so_many_points():
    rng, width = np.random.default_rng(0), 0.05
    along = rng.standard_normal((1000, points_to_see(width)))  # of every random point, along the normal
    missed = ~((along > 1 - width / 2) & (along < 1 + width / 2)).any(axis=1)
    assert missed.mean() < 0.01
    assert pytest.approx(np.exp(-0.5) / np.sqrt(2 * np.pi)) == NEAR_DENSITY


def test_learn_does_not_miss_bumps_of_the_width_it_states():
    missed = [
        rl.learn(rl.open_oracle(bump(k, 0.1)), rng=k, narrowest=0.1).network.widths[1:-1] != (3,) for k in range(8)
    ]
    assert not any(missed)


def test_a_constant_is_given_with_its_risk():
    result = rl.learn(rl.open_oracle(lambda x: np.full(len(x), 2.5), dim=6), rng=0)
    assert result.outcome is rl.Outcome.CONSTANT
    assert not result.ok
    np.testing.assert_array_equal(result.network(np.zeros((1, 6))), [[2.5]])
    assert result.evidence["risk"].width <= 0.01
    assert result.evidence["risk"].added is None
    assert "steep" not in str(result.evidence["risk"])


@pytest.mark.parametrize(("start", "width"), [(0.7, 0.05), (-0.3, 0.2)])
def test_a_bump_with_one_input_is_found(start, width, seed):
    steep = 2 / width
    thresholds = steep * np.array([start, start + width, 2 * start + width])
    true = ReLUNetwork([steep * np.array([[1.0], [1.0], [2.0]]), [[1.0, 1.0, -1.0]]], [-thresholds, [0.0]])
    result = rl.learn(rl.open_oracle(true), rng=seed)
    assert result.ok
    assert relative_square_error(result.network, true, points=20_000) < 1e-20


@pytest.mark.parametrize("rng", [1, 3, 5])
def test_an_error_that_is_everywhere_is_not_said_to_be_narrow(rng):
    """In float32 a few points err by more than their noise explains, and all others by some of it."""
    result = rl.learn(rl.open_oracle(in_float32(planted((10, 16, 1), rng)), dim=10), rng=rng)
    assert result.outcome is rl.Outcome.LEARNED
    assert result.evidence["accuracy"].error > 1e-11  # far above the noise, or there is nothing to speak of
    assert "narrow-missing" not in result.evidence["limits"]


@pytest.mark.slow
def test_a_network_without_anything_narrow_missing_says_nothing_of_it():
    result = rl.learn(rl.open_oracle(WORST_CASE["clusters 1e-07"](0)), eps=1e-8, rng=0)
    assert result.ok
    assert "narrow-missing" not in result.evidence.get("limits", ())
