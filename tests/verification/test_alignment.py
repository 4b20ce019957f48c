"""A network beside the true one: `compare` sees through order and scale of neurons."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant import ReLUNetwork, compare
from reluctant.testing import planted


def shuffled(network: ReLUNetwork, seed: int) -> tuple[ReLUNetwork, list[np.ndarray]]:
    """Hidden neurons in another order and scale, and the orders."""
    rng = np.random.default_rng(seed)
    weights, biases, orders = network.weights, network.biases, []
    for k in range(network.depth - 1):
        order, scale = rng.permutation(len(biases[k])), np.exp(rng.uniform(-3, 3, len(biases[k])))
        weights[k], biases[k] = scale[:, None] * weights[k][order], scale * biases[k][order]
        weights[k + 1] = weights[k + 1][:, order] / scale
        orders.append(order)
    return ReLUNetwork(weights, biases, network.skip), orders


@pytest.mark.parametrize("widths", [(8, 12, 1), (8, 12, 7, 2), (8, 12, 7, 5, 1)], ids=str)
def test_a_shuffled_network_has_no_error(widths, seed):
    network = planted(widths, seed)
    found = compare(shuffled(network, seed)[0], network)
    assert found.parameter_error < 1e-13
    assert found.output_error < 1e-12
    assert found.widths == found.true_widths == widths
    assert [len(errors) for errors in found.neuron_errors] == list(widths[1:-1])


def test_every_neuron_is_paired_with_its_own(seed):
    network = planted((8, 12, 7, 1), seed)
    matching = compare(shuffled(network, seed)[0], network).matching
    for k, pairs in enumerate(matching.pairs):
        order = np.arange(8) if k == 0 else matching.pairs[k - 1]
        ours, theirs = matching.network.weights[k], matching.other.weights[k][pairs][:, order]
        np.testing.assert_allclose(ours, theirs, atol=1e-13)


def test_the_error_is_that_of_the_changed_neuron(seed):
    network = planted((8, 12, 1), seed)
    weights, biases = network.weights, network.biases
    biases[0] = biases[0] + 1e-5 * (np.arange(12) == 4)
    found = compare(ReLUNetwork(weights, biases), network)
    (errors,) = found.neuron_errors
    assert np.sum(errors > 1e-12) == 1
    assert 1e-7 < found.parameter_error < 1e-4
    assert 0 < found.output_error < 1e-3
    assert str(found).endswith(f"parameters by {found.parameter_error:.1e}.")


@pytest.mark.parametrize("other", [(8, 11, 1), (8, 12, 12, 1)], ids=str)
def test_other_widths_have_no_parameter_error(other, seed):
    found = compare(planted(other, seed), planted((8, 12, 1), seed))
    assert found.matching is None
    assert found.parameter_error == float("inf")
    assert found.neuron_errors == ()
    assert np.isfinite(found.output_error)


def test_idle_neurons_do_not_count(seed):
    network = planted((8, 12, 1), seed)
    weights, biases = network.weights, network.biases
    padded = ReLUNetwork(
        [np.concatenate([weights[0], np.ones((1, 8))]), np.concatenate([weights[1], [[0.0]]], axis=1)],
        [np.append(biases[0], 1.0), biases[1]],
    )
    found = compare(padded, network)
    assert found.widths == found.true_widths == (8, 12, 1)
    assert found.parameter_error < 1e-13


def test_the_skip_is_compared(seed):
    network = planted((8, 12, 1), seed, skip=True)
    other = ReLUNetwork(network.weights, network.biases, network.skip + 1e-3)
    assert compare(network, network).parameter_error == 0
    assert compare(other, network).parameter_error > 1e-5
