"""What `verify` costs, row by row, and what its summary says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reluctant import open_oracle, verify
from reluctant.numerics import Noise
from reluctant.testing import planted

NEURONS = 25
NOISE_ROWS = 60


# Counts are exact for a given target and seed: a crease close to a short line costs a few rows more.
NETWORK = planted((12, NEURONS, 1), 0, bias=0.1)


ELSEWHERE = 64  # on lines, and where neurons are rarely on


@pytest.mark.parametrize(("points", "per_neuron"), [(64, 2), (10, 0), (2, 5)])
def test_rows_are_the_scales_the_creases_and_lines(points, per_neuron):
    oracle = open_oracle(NETWORK)
    found = verify(oracle, NETWORK, points=points, per_neuron=per_neuron)
    assert found.untested == 0
    assert found.points == 4 * points + (1 + per_neuron) * NEURONS + ELSEWHERE
    assert found.queries == oracle.queries == found.points + NOISE_ROWS


def test_neurons_that_are_not_reached_cost_nothing(seed):
    network = planted((12, 10, 8, 6, 1), seed)
    found = verify(open_oracle(network), network, tol=1e-8)
    assert found.queries == 4 * 64 + 3 * (10 + 8 + 6 - found.untested) + ELSEWHERE


@pytest.mark.parametrize("given", [{"tol": 1e-8}, {"noise": Noise(1e-15, 1e-15)}], ids=["tol", "noise"])
def test_given_tolerance_or_noise_costs_no_rows(given):
    found = verify(open_oracle(NETWORK), NETWORK, **given)
    assert found.queries == found.points == 4 * 64 + 3 * NEURONS + ELSEWHERE
    assert found.ok


def test_a_given_tolerance_decides(seed):
    network = planted((12, NEURONS, 1), seed)
    other = planted((12, NEURONS, 1), seed + 1)
    assert verify(open_oracle(network), other, tol=1e9).ok
    assert not verify(open_oracle(network), other, tol=1e-3).ok
    assert verify(open_oracle(network), network, tol=0.0).ok


def test_given_noise_loosens_the_tolerance(seed):
    network = planted((12, NEURONS, 1), seed)
    assert verify(open_oracle(network), network, noise=Noise(1e-3, 0.0)).tol > 1e-3


def test_groups_are_named_and_counted():
    groups = {group.name: group.points for group in verify(open_oracle(NETWORK), NETWORK).groups}
    assert groups.pop("on lines") + groups.pop("rarely on", 0) + groups.pop("extremes") == ELSEWHERE
    assert groups == {
        "random, scale 0.1": 64,
        "random, scale 1": 64,
        "random, scale 3": 64,
        "random, scale 10": 64,
        "on creases": NEURONS,
        "beside creases": 2 * NEURONS,
    }


def test_the_share_that_could_be_missed(seed):
    network = planted((12, NEURONS, 1), seed)
    found = verify(open_oracle(network), network, points=100)
    assert found.confidence == 0.95
    assert (1 - found.share) ** 100 == pytest.approx(0.05)


def test_rows_are_entered_under_their_stage(seed):
    oracle = open_oracle(planted((12, NEURONS, 1), seed))
    found = verify(oracle, planted((12, NEURONS, 1), seed))
    assert oracle.ledger.stages["verify"].sent == found.queries


def test_the_same_seed_asks_the_same(seed):
    network, asked = planted((6, 9, 1), seed), []

    def target(x):
        asked.append(x.copy())
        return network(x)

    found = [verify(open_oracle(target, dim=6), network, rng=seed) for _ in range(2)]
    half = len(asked) // 2
    np.testing.assert_array_equal(np.concatenate(asked[:half]), np.concatenate(asked[half:]))
    assert found[0] == found[1]


def test_the_summary_says_which_way(seed):
    network, other = planted((12, NEURONS, 1), seed), planted((12, NEURONS, 1), seed + 1)
    agrees, differs = (verify(open_oracle(network), candidate) for candidate in (network, other))
    assert (agrees.ok, agrees.max_error, agrees.confidence) == (True, 0, 0.95)
    assert not differs.ok
    assert ["NOT" in str(found) for found in (agrees, differs)] == [False, True]
    assert [f"{agrees.share:.1%}" in str(found) for found in (agrees, differs)] == [True, False]
    assert [f"{agrees.narrowest:.2g} of" in str(found) for found in (agrees, differs)] == [True, False]


def test_the_summary_is_plain_data(seed):
    network = planted((12, NEURONS, 1), seed)
    data = verify(open_oracle(network), network).to_dict()
    assert json.loads(json.dumps(data))["groups"][0]["name"] == "random, scale 0.1"


def test_errors_are_relative_to_the_spread(seed):
    network = planted((12, NEURONS, 1), seed)
    scaled = planted((12, NEURONS, 1), seed + 1)
    error = verify(open_oracle(network), scaled, rng=0).max_error
    rows = np.random.default_rng(seed).standard_normal((4000, 12))
    expected = np.abs(network(rows) - scaled(rows)).max() / network(rows).std()
    assert expected / 10 < error < expected * 10
