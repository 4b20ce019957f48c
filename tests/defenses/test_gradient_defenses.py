"""Defenses of an interface that answers gradients: what users still get, and how the answers are read."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.interface.gradient_kinds import trusted
from reluctant.testing import planted

ROWS = np.random.default_rng(3).standard_normal((5, 8))


@pytest.fixture(scope="module")
def network():
    return planted((8, 5, 2), 0)


def behind(network, defense):
    return rl.open_oracle(rl.defend(rl.open_oracle(network, gradients=True), defense))


@pytest.mark.parametrize(
    ("defense", "left"),
    [
        ("gradient-decimals=2", lambda g: np.round(g, 2)),
        ("gradient-sign", np.sign),
        ("gradient-absolute", np.abs),
    ],
)
def test_values_stay_and_gradients_say_less(network, defense, left):
    found = behind(network, defense).query_gradients(ROWS)
    np.testing.assert_array_equal(found.values, network(ROWS))
    np.testing.assert_array_equal(found.gradients, left(network.gradients(ROWS)))


def test_the_largest_entries_alone_are_kept(network):
    found = behind(network, "gradient-top=3").query_gradients(ROWS).gradients
    true = network.gradients(ROWS)
    assert ((found != 0).sum(axis=2) <= 3).all()
    np.testing.assert_array_equal(np.abs(found).max(axis=2), np.abs(true).max(axis=2))


def test_noise_is_fresh_and_none_is_none(network):
    noisy = behind(network, "gradient-noise=1e-3")
    first, again = noisy.query_gradients(ROWS), noisy.query_gradients(ROWS)
    np.testing.assert_array_equal(first.values, again.values)
    assert 1e-4 < np.abs(first.gradients - again.gradients).max() < 1e-1
    assert behind(network, "gradient-none").explained is None


@pytest.mark.parametrize(
    ("defense", "kind"),
    [
        ("gradient-decimals=6", "rounded"),
        ("gradient-noise=1e-7", "noisy"),
        ("gradient-sign", "sign"),
        ("gradient-absolute", "absolute"),
    ],
)
def test_what_is_left_is_named_and_not_used(network, defense, kind):
    oracle, reading = trusted(behind(network, defense), np.random.default_rng(0))
    assert reading.kind == kind
    assert oracle.explained is None
    assert f"explanation-{kind}" == reading.diagnosis.slug


def test_a_bad_setting_is_named(network):
    for defense in ("gradient-top=0", "gradient-noise=-1", "gradient-decimals=99"):
        with pytest.raises(InvalidInput, match="gradient-"):
            behind(network, defense)
