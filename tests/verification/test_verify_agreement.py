"""What must pass and what must fail: true networks in any form, networks with one thing wrong."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

from reluctant import ReLUNetwork, open_oracle, verify
from reluctant.bundled import digits_model
from reluctant.errors import InvalidInput
from reluctant.numerics import Noise
from reluctant.testing import DEGENERATE, WORST_CASE, planted
from reluctant.testing.faults import noisy, rounded

FAMILIES = DEGENERATE | WORST_CASE


def with_changed_weight(network: ReLUNetwork, by: float, layer: int = 0) -> ReLUNetwork:
    """One weight changed, between two units that are often active together."""
    rows = np.random.default_rng(0).standard_normal((200, network.dim))
    active = [np.ones((200, network.dim)), *network.patterns(rows), np.ones((200, network.outputs))]
    together = active[layer + 1].T.astype(float) @ active[layer].astype(float)
    weights = [w.copy() for w in network.weights]
    weights[layer][np.unravel_index(together.argmax(), together.shape)] += by
    return ReLUNetwork(weights, network.biases, network.skip, network.link)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_true_network_passes(name, seed):
    network = FAMILIES[name](seed)
    assert verify(open_oracle(network), network).ok


@pytest.mark.parametrize("name", FAMILIES)
def test_the_true_network_in_canonical_form_passes(name, seed):
    network = FAMILIES[name](seed)
    assert verify(open_oracle(network), network.canonical()).ok


@pytest.mark.parametrize("rng", range(10))
def test_terms_that_cancel_round_by_more_than_a_few_lines_show(rng):
    """Noise read at other points may be far too small: the network's own sums say how much they round."""
    network = WORST_CASE["clusters 1e-09"](4)
    noise = Noise(2e-16, 3e-9)
    assert verify(open_oracle(network), network.canonical(), rng=rng, noise=noise).ok
    assert not verify(open_oracle(network), with_changed_weight(network, 1e-12), rng=rng, noise=noise).ok


@pytest.mark.parametrize("rng", range(6))
def test_a_layer_above_that_hardly_any_input_switches_is_found(rng):
    """Random points meet it less than once in two thousand: where the output is least, they do."""
    below = planted((8, 12, 1), rng=3)
    (w, a), (b, _) = below.weights, below.biases
    values = np.sort(below(np.random.default_rng(0).standard_normal((20_000, 8)))[:, 0] - below.biases[1][0])
    base = -values[10]
    target = ReLUNetwork([w, a, [[1.0]]], [b, [base], [0.0]])
    assert verify(open_oracle(target), target, rng=rng).ok
    found = verify(open_oracle(target), ReLUNetwork([w, a], [b, [base]]), rng=rng)
    assert not found.ok
    assert next(group for group in found.groups if group.name == "extremes").max_error > found.tol


@pytest.mark.parametrize("widths", [(8, 1), (1, 3, 1), (8, 9, 3), (8, 9, 7, 2), (8, 9, 7, 5, 1)], ids=str)
@pytest.mark.parametrize("skip", [False, True], ids=["plain", "skip"])
def test_every_depth_passes(widths, skip, seed):
    network = planted(widths, seed, skip=skip)
    assert verify(open_oracle(network), network.canonical(), rng=seed).ok


@pytest.mark.parametrize("precision", ["float64", "as-served"])
def test_the_bundled_model_passes(precision, seed):
    oracle = open_oracle(digits_model(), precision=precision)
    found = verify(oracle, ReLUNetwork.load(digits_model()), rng=seed)
    assert found.ok
    assert found.tol < (1e-7 if precision == "float64" else 1e-4)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_one_changed_weight_fails(layer, seed):
    network = planted((10, 20, 15, 1), seed)
    found = verify(open_oracle(network), with_changed_weight(network, 1e-4, layer))
    assert not found.ok
    assert found.max_error > found.tol


@pytest.mark.parametrize("output", sweep([0, 3], fast=[3]))
def test_one_output_of_the_bundled_model_passes_wherever_it_is_asked(output):
    """Far out an answer may be near zero and still carry the noise of the large sums it is made of."""
    network = ReLUNetwork.load(digits_model())
    (w, a), (b, c) = network.weights, network.biases
    one = ReLUNetwork([w, a[output : output + 1]], [b, c[output : output + 1]])
    oracle = open_oracle(digits_model(), output=output)
    assert [rng for rng in range(60) if not verify(oracle, one, rng=rng).ok] == []


def test_one_changed_weight_fails_for_a_float32_target(seed, tmp_path):
    network = planted((10, 20, 1), seed)
    network.save(tmp_path / "served.onnx", dtype="float32")
    served = ReLUNetwork.load(tmp_path / "served.onnx")
    oracle = open_oracle(tmp_path / "served.onnx")
    assert verify(oracle, served).ok
    assert not verify(oracle, with_changed_weight(served, 1e-2)).ok


@pytest.mark.parametrize("width", ["bump 0.1", "bump 0.01", "bump 0.001"])
@pytest.mark.parametrize("planted_with", range(20))
def test_nothing_is_not_taken_for_a_bump(width, planted_with):
    """A bump is zero at nearly every random point; its own creases show that it is there."""
    bump = WORST_CASE[width](planted_with)
    flat = ReLUNetwork([bump.weights[0], 0 * bump.weights[1]], bump.biases)
    assert not verify(open_oracle(bump), flat).ok


@pytest.mark.parametrize("factor", [1e-6, 1e-12])
def test_a_small_output_does_not_hide_an_error_in_a_large_one(factor, seed):
    network = planted((10, 20, 2), seed)
    sizes = np.array([1.0, factor])
    target = ReLUNetwork(
        [network.weights[0], sizes[:, None] * network.weights[1]], [network.biases[0], sizes * network.biases[1]]
    )
    assert verify(open_oracle(target), target.canonical()).ok
    assert not verify(open_oracle(target), with_changed_weight(target, 1e-4)).ok


def test_a_constant_output_is_compared_too(seed):
    network = planted((10, 20, 2), seed)
    weights = [network.weights[0], np.array([[1.0], [0.0]]) * network.weights[1]]
    target = ReLUNetwork(weights, network.biases)
    off = ReLUNetwork(weights, [network.biases[0], network.biases[1] + [0.0, 1e-3]])
    assert verify(open_oracle(target), target).ok
    assert not verify(open_oracle(target), off).ok


@pytest.mark.parametrize("decimals", [3, 6])
def test_rounded_answers_loosen_the_tolerance(decimals, seed):
    network = planted((10, 20, 1), seed)
    found = verify(open_oracle(rounded(network, decimals), dim=10), network)
    assert found.ok
    assert 10.0**-decimals < found.tol < 1e3 * 10.0**-decimals


def test_fresh_noise_loosens_the_tolerance(seed):
    network = planted((10, 20, 1), seed)
    found = verify(open_oracle(noisy(network, 1e-4, seed), dim=10), network, rng=seed)
    assert found.ok
    assert 1e-4 < found.tol < 1e-1


# ---- the gauge of a softmax


def probabilities(network: ReLUNetwork):
    def target(x: np.ndarray) -> np.ndarray:
        logits = network(x)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return target


def test_a_softmax_is_compared_in_log_ratios(seed):
    network = planted((6, 8, 3), seed)
    logits = ReLUNetwork(network.weights, network.biases, link="softmax")
    oracle = open_oracle(probabilities(network), dim=6, link="softmax", domain=(-2, 2))
    assert oracle.outputs == 2
    assert verify(oracle, logits).ok
    assert verify(oracle, network.log_ratios()).ok
    assert not verify(oracle, with_changed_weight(logits, 1e-3)).ok


def test_what_a_softmax_hides_is_not_compared(seed):
    network = planted((6, 8, 3), seed)
    shifted = ReLUNetwork(network.weights, [network.biases[0], network.biases[1] + 5.0], link="softmax")
    oracle = open_oracle(probabilities(network), dim=6, link="softmax", domain=(-2, 2))
    assert verify(oracle, shifted).ok


def test_a_sigmoid_is_compared_in_logits(seed):
    network = planted((6, 8, 1), seed)
    oracle = open_oracle(lambda x: 1 / (1 + np.exp(-network(x))), dim=6, link="sigmoid", domain=(-2, 2))
    assert verify(oracle, ReLUNetwork(network.weights, network.biases, link="sigmoid")).ok


# ---- input checks


@pytest.mark.parametrize("widths", [(5, 8, 1), (6, 8, 2)], ids=str)
def test_a_network_of_another_shape_is_refused(widths):
    oracle = open_oracle(planted((6, 8, 1)))
    with pytest.raises(InvalidInput, match=r"^network: got .* expected 6 inputs and 1 outputs, as the target has"):
        verify(oracle, planted(widths))
    assert oracle.queries == 0


@pytest.mark.parametrize("settings", [{"points": 1}, {"per_neuron": -1}], ids=str)
def test_too_few_points_are_refused(settings):
    oracle = open_oracle(planted((6, 8, 1)))
    with pytest.raises(InvalidInput, match=r"^points, per_neuron: got "):
        verify(oracle, planted((6, 8, 1)), **settings)
    assert oracle.queries == 0
