"""Order and scale of neurons change nothing; the canonical form undoes them and drops what does nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluctant import ReLUNetwork, equivalent
from reluctant.networks import match
from reluctant.numerics import unit_roundoff
from reluctant.testing import planted
from reluctant.testing.strategies import SEEDS, networks, rows_for, symmetric_copies

# Roundings of two evaluations of the same function, in units of the largest sum that could be met.
ROUNDINGS = 2**8


def largest_sums(network: ReLUNetwork, rows: np.ndarray) -> np.ndarray:
    """No partial sum of an evaluation is larger than this: everything taken without its sign."""
    skip = None if network.skip is None else np.abs(network.skip)
    unsigned = ReLUNetwork([np.abs(w) for w in network.weights], [np.abs(b) for b in network.biases], skip)
    return unsigned(np.abs(rows))


def assert_same_function(network: ReLUNetwork, other: ReLUNetwork, rows: np.ndarray) -> None:
    allowed = ROUNDINGS * unit_roundoff(np.float64) * largest_sums(network, rows)
    assert np.all(np.abs(network(rows) - other(rows)) <= allowed)


def assert_same_arrays(network: ReLUNetwork, other: ReLUNetwork) -> None:
    pairs = zip((*network.weights, *network.biases), (*other.weights, *other.biases), strict=True)
    for ours, theirs in pairs:
        size = np.abs(ours).max(initial=0)
        np.testing.assert_allclose(theirs, ours, rtol=0, atol=ROUNDINGS * unit_roundoff(np.float64) * size)


@given(st.data())
def test_order_and_scale_do_not_change_the_function(data):
    network = data.draw(networks())
    copy = data.draw(symmetric_copies(network))
    assert_same_function(network, copy, data.draw(rows_for(network)))


@given(st.data())
def test_symmetric_copies_are_equivalent(data):
    network = data.draw(networks())
    assert equivalent(network, data.draw(symmetric_copies(network)))


def test_equivalent_answers_with_a_bool(seed):
    network = planted((5, 4, 1), seed)
    assert equivalent(network, network) is True
    assert equivalent(network, planted((5, 4, 1), seed + 1)) is False


@given(st.data())
def test_canonical_is_the_same_function(data):
    network = data.draw(networks())
    assert_same_function(network, network.canonical(), data.draw(rows_for(network)))


@given(networks())
def test_canonical_of_canonical_changes_nothing(network):
    once = network.canonical()
    assert_same_arrays(once, once.canonical())


@given(st.data())
def test_symmetric_copies_have_one_canonical_form(data):
    network = data.draw(networks())
    copy = data.draw(symmetric_copies(network))
    assert_same_arrays(network.canonical(), copy.canonical())


@given(networks())
def test_canonical_rows_have_unit_length_and_are_sorted(network):
    canonical = network.canonical()
    for weights in canonical.weights[:-1]:
        np.testing.assert_allclose(np.linalg.norm(weights, axis=1), 1, rtol=1e-14)
        assert [tuple(row) for row in weights] == sorted(tuple(row) for row in weights)


@given(st.data())
def test_one_changed_weight_is_another_network(data):
    network = data.draw(networks())
    layer = data.draw(st.integers(0, network.depth - 1))
    place = data.draw(st.tuples(*(st.integers(0, size - 1) for size in network.weights[layer].shape)))
    weights = [w.copy() for w in network.weights]
    weights[layer][place] += 1e-3
    assert not equivalent(network, ReLUNetwork(weights, network.biases, network.skip))


@given(st.data())
def test_with_a_skip_the_side_of_a_neuron_is_open(data):
    sizes = data.draw(st.tuples(st.integers(1, 8), st.integers(1, 8), st.integers(1, 3)))
    network = planted(sizes, data.draw(SEEDS), skip=True)
    flipped = np.array(data.draw(st.lists(st.booleans(), min_size=sizes[1], max_size=sizes[1])))
    other = with_flipped_sides(network, flipped)
    assert_same_function(network, other, data.draw(rows_for(network)))
    assert equivalent(network, other)


def with_flipped_sides(network: ReLUNetwork, flipped: np.ndarray) -> ReLUNetwork:
    """max(z, 0) = max(-z, 0) + z for some of the neurons; z goes into the skip."""
    (w, a), (b, c) = network.weights, network.biases
    out = a[:, flipped]
    return ReLUNetwork(
        [np.where(flipped[:, None], -w, w), a],
        [np.where(flipped, -b, b), c + out @ b[flipped]],
        network.skip + out @ w[flipped],
    )


def test_without_a_skip_the_side_of_a_neuron_is_not_open(seed):
    network = planted((5, 4, 1), seed)
    flipped = ReLUNetwork([-network.weights[0], network.weights[1]], [-network.biases[0], network.biases[1]])
    assert not equivalent(network, flipped)


def with_extra_neuron(network: ReLUNetwork, layer: int, incoming: float, bias: float, outgoing: float) -> ReLUNetwork:
    weights, biases = network.weights, network.biases
    inputs, outputs = weights[layer].shape[1], len(weights[layer + 1])
    weights[layer] = np.concatenate([np.full((1, inputs), incoming), weights[layer]])
    biases[layer] = np.concatenate([[bias], biases[layer]])
    weights[layer + 1] = np.concatenate([np.full((outputs, 1), outgoing), weights[layer + 1]], axis=1)
    return ReLUNetwork(weights, biases, network.skip, network.link)


IDLE = {
    "without outputs": {"incoming": 0.7, "bias": 0.2, "outgoing": 0.0},
    "constant": {"incoming": 0.0, "bias": 0.4, "outgoing": 1.5},
    "constantly off": {"incoming": 0.0, "bias": -0.4, "outgoing": 1.5},
}


@pytest.mark.parametrize("layer", [0, 1, 2])
@pytest.mark.parametrize("flaw", IDLE)
def test_canonical_drops_neurons_that_do_nothing(flaw, layer, seed):
    network = planted((5, 6, 4, 3, 2), seed)
    padded = with_extra_neuron(network, layer, **IDLE[flaw])
    rows = np.random.default_rng(seed).standard_normal((20, 5))
    canonical = padded.canonical()
    assert canonical.widths == network.widths
    assert_same_function(padded, canonical, rows)
    moves_biases = flaw == "constant"  # of the next layer
    assert equivalent(network, padded) == (not moves_biases)


def test_a_chain_of_constant_neurons_is_folded_to_the_end():
    network = ReLUNetwork([np.zeros((3, 4)), np.ones((2, 3)), np.ones((1, 2))], [np.ones(3), np.zeros(2), np.zeros(1)])
    canonical = network.canonical()
    assert canonical.widths == (4, 0, 0, 1)
    np.testing.assert_array_equal(canonical(np.ones((2, 4))), [[6], [6]])


def test_neurons_that_only_feed_idle_ones_are_dropped_too():
    first, second = np.eye(3), np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    network = ReLUNetwork([first, second, [[1.0, 0.0]]], [np.zeros(3), np.zeros(2), np.zeros(1)])
    assert network.canonical().widths == (3, 1, 1, 1)


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_canonical_keeps_rows_of_extreme_size(factor):
    network = planted((5, 4, 1))
    scaled = ReLUNetwork(
        [factor * network.weights[0], network.weights[1] / factor], [factor * network.biases[0], network.biases[1]]
    )
    assert equivalent(network, scaled)


@pytest.mark.parametrize(
    "other",
    [planted((5, 5, 1)), planted((4, 4, 1)), planted((5, 4, 2)), planted((5, 4, 4, 1)), planted((5, 4, 1), skip=True)],
    ids=repr,
)
def test_networks_of_other_shapes_are_not_matched(other):
    network = planted((5, 4, 1))
    assert match(network, other) is None
    assert not equivalent(network, other)


def test_a_tolerance_can_be_given(seed):
    network = planted((5, 4, 1), seed)
    weights = network.weights
    weights[0] = weights[0] + 1e-6
    other = ReLUNetwork(weights, network.biases)
    assert not equivalent(network, other)
    assert equivalent(network, other, tol=1e-4)


@given(st.data())
def test_match_pairs_each_neuron_once(data):
    network = data.draw(networks())
    matching = match(network, data.draw(symmetric_copies(network)))
    assert len(matching.pairs) == network.depth - 1
    for pairs in matching.pairs:
        np.testing.assert_array_equal(np.sort(pairs), np.arange(len(pairs)))
