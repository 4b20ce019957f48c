"""Neurons of a first layer are confirmed where the target bends, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant import ReLUNetwork, check_health, open_oracle
from reluctant.testing import in_float32, planted
from reluctant.verification.comparison import confirm_creases

DEEP = planted((5, 12, 12, 3))


def first_layer(weights) -> ReLUNetwork:
    return ReLUNetwork([weights, np.zeros((3, len(weights)))], [DEEP.biases[0], np.zeros(3)])


def found(network, target=DEEP, **opening):
    with open_oracle(target, **opening) as oracle:
        health, before = check_health(oracle), oracle.queries
        bends = confirm_creases(oracle, network, np.random.default_rng(0), noise=health.noise, spread=health.spread)
        assert oracle.queries - before <= 36 * network.widths[1]
    return bends


@pytest.mark.parametrize(("target", "opening"), [(DEEP, {}), (in_float32(DEEP), {"dim": 5})])
def test_true_neurons_are_confirmed(target, opening):
    bends = found(first_layer(DEEP.weights[0]), target, **opening)
    assert (bends.neurons, bends.confirmed, bends.weights) == (12, 12, 12 * 6)


@pytest.mark.parametrize(
    ("target", "opening"), [(DEEP, {}), (in_float32(DEEP), {"dim": 5}), (DEEP, {"domain": (-1, 1)})]
)
def test_neurons_that_are_not_there_are_not(target, opening):
    wrong = np.random.default_rng(9).standard_normal(DEEP.weights[0].shape)
    bends = found(first_layer(wrong), target, **opening)
    assert (bends.neurons, bends.confirmed, bends.weights) == (12, 0, 0)


def test_half_of_them():
    weights = DEEP.weights[0].copy()
    weights[:6] = np.random.default_rng(9).standard_normal((6, 5))
    assert found(first_layer(weights)).confirmed == 6


def test_a_network_without_hidden_layer_has_none():
    assert found(ReLUNetwork([np.ones((3, 5))], [np.zeros(3)])).neurons == 0


def test_nothing_outside_a_domain_is_asked():
    def inside(x):
        assert np.abs(x).max() <= 1
        return DEEP(x)

    assert 0 < found(first_layer(DEEP.weights[0]), inside, dim=5, domain=(-1, 1)).confirmed <= 12


@pytest.mark.parametrize("noise", [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3])
def test_noise_confirms_nothing_that_is_not_there(noise):
    rng = np.random.default_rng(3)
    wrong = np.random.default_rng(9).standard_normal(DEEP.weights[0].shape)
    bends = found(first_layer(wrong), lambda x: DEEP(x) + noise * rng.standard_normal((len(x), 3)), dim=5)
    assert bends.confirmed == 0
