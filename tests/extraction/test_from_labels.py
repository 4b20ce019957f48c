"""A network from labels alone: sign labels of one hidden layer, verification by labels, named refusals."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.networks import ReLUNetwork


def balanced(n: int, k: int, seed: int) -> ReLUNetwork:
    """A random network with one hidden layer, above 0 at half of Gaussian inputs."""
    rng = np.random.default_rng(seed)
    weights, biases, out = rng.standard_normal((k, n)) / np.sqrt(n), rng.standard_normal(k) / 2, rng.standard_normal(k)
    values = np.maximum(rng.standard_normal((2000, n)) @ weights.T + biases, 0) @ out
    return ReLUNetwork([weights, out[None]], [biases, np.array([-np.median(values)])])


def sign_of(network: ReLUNetwork, low: float = 0.0, high: float = 1.0):
    return lambda x: np.where(network(x)[:, 0] > 0, high, low)


def direction_errors(found: ReLUNetwork, true: ReLUNetwork) -> np.ndarray:
    """Distance of each true neuron's unit weights from the nearest that was found, whichever way round."""
    ours, theirs = (w / np.linalg.norm(w, axis=1, keepdims=True) for w in (found.weights[0], true.weights[0]))
    apart = [np.minimum(np.linalg.norm(ours - w, axis=1), np.linalg.norm(ours + w, axis=1)).min() for w in theirs]
    return np.array(apart)


def test_a_network_from_its_sign_alone():
    true = balanced(20, 10, seed=5)
    result = rl.extract(sign_of(true), rl.FromLabels(), dim=20, rng=5)
    assert result.ok
    assert result.network.widths == (20, 10, 1)
    assert result.network.skip is None
    assert np.median(direction_errors(result.network, true)) < 1e-12
    assert result.evidence["boundary error"] <= 1e-9
    assert result.queries < 26_000


def test_the_network_predicts_the_labels_and_has_the_stated_scale():
    true = balanced(12, 6, seed=0)
    result = rl.extract(sign_of(true, -1.0, 1.0), rl.FromLabels(), dim=12, rng=0)
    network, x = result.raise_for_status().network, np.random.default_rng(1).standard_normal((5000, 12))
    assert np.array_equal(network(x)[:, 0] > 0, true(x)[:, 0] > 0)
    assert np.allclose(np.linalg.norm(network.weights[0], axis=1), 1)
    assert np.isclose(np.linalg.norm(network.weights[1]), 1)


def test_labels_are_recognised_and_values_can_be_hidden():
    true = balanced(12, 4, seed=3)
    by_itself = rl.extract(sign_of(true), dim=12, rng=0)
    hidden = rl.extract(lambda x: true(x) + 0.5, dim=12, rng=0, labels=True)
    assert by_itself.ok
    assert hidden.ok
    assert by_itself.network.widths == hidden.network.widths == (12, 4, 1)


def test_one_label_is_an_outcome():
    result = rl.extract(lambda x: np.zeros(len(x)), rl.FromLabels(), dim=6, rng=0)
    assert result.outcome is rl.Outcome.ONE_LABEL
    assert result.queries < 3000


def test_labels_that_change_are_an_outcome():
    rng = np.random.default_rng(0)
    result = rl.extract(lambda x: x[:, 0] + rng.standard_normal(len(x)) > 0, rl.FromLabels(), dim=6, rng=0)
    assert result.outcome is rl.Outcome.TOO_NOISY
    assert result.queries < 3000


def test_more_labels_than_were_said():
    with pytest.raises(rl.ReluctantError, match="3 different labels"):
        rl.extract(lambda x: x[:, :3].argmax(axis=1), rl.FromLabels(classes=2), dim=6, rng=0)


def test_other_methods_do_not_read_labels():
    with pytest.raises(rl.ReluctantError, match="DepthTwo"):
        rl.extract(lambda x: x[:, 0], rl.DepthTwo(), dim=6, rng=0, labels=True)
