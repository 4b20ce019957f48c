"""The paper's steps for three layers, by name, and its conditions as a diagnosis."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.papers import exact
from reluctant.papers.exact import three_layer_conditions
from reluctant.testing import planted

DELTA, TOL = 1e-3, 1e-10


def three_layers(rng: int = 0, dim: int = 6) -> ReLUNetwork:
    """A wide second layer, hyperplanes that meet the first axis well apart, and the paper's conditions."""
    generator = np.random.default_rng(rng)
    while True:
        w = generator.standard_normal((3, dim))
        w[:, 0] = generator.choice([-1.0, 1.0], 3)
        b = -w[:, 0] * np.array([-1.3, 0.2, 1.1])
        v, c = generator.standard_normal((11, 3)), 0.5 * generator.standard_normal(11)
        network = ReLUNetwork([w, v, generator.choice([-1.0, 1.0], (1, 11))], [b, c, np.zeros(1)])
        if three_layer_conditions(network).zero_derivatives == 0:
            return network


def pairs_on_the_axis(network: ReLUNetwork) -> tuple[list[exact.CriticalPoint], np.ndarray]:
    """The list L, and which of its hyperplanes are first-layer ones."""
    axis = np.eye(network.dim)[:1]
    points = [t * axis[0] for t in exact.find_critical_points(lambda t: network(t * axis), DELTA, TOL)]
    pairs = [exact.CriticalPoint.of(x, exact.find_hyperplane(network, DELTA, x)) for x in points]
    truth = np.array([np.abs(network.preactivations(x[None])[0]).min() < 1e-6 for x in points])
    return pairs, truth


def test_algorithm_7_tells_the_layers_apart(seed: int) -> None:
    network = three_layers(seed)
    pairs, truth = pairs_on_the_axis(network)
    assert truth.sum() == 3 < len(pairs)
    rng = np.random.default_rng(seed)
    found = [exact.is_first_layer(network, pairs, k, DELTA, 1e-9, rng) for k in range(len(pairs))]
    np.testing.assert_array_equal(found, truth)


def test_algorithm_7_costs_three_rows_a_pair() -> None:
    network = three_layers(0)
    pairs, truth = pairs_on_the_axis(network)
    oracle = rl.open_oracle(network)
    first = int(np.flatnonzero(truth)[0])
    assert exact.is_first_layer(oracle.query, pairs, first, DELTA, 1e-9, np.random.default_rng(0))
    assert oracle.queries <= 3 * (len(pairs) - 1)


def test_points_of_algorithm_7_are_far_enough() -> None:
    assert np.exp(-(exact.separation(5, 20) ** 2) / 2) <= 2.0**-6 / 20**2 * (1 + 1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_sign_test(sign: float) -> None:
    network = three_layers(1)
    w, b = network.weights[0].copy(), network.biases[0].copy()
    w[1], b[1] = sign * w[1], sign * b[1]
    oracle = rl.open_oracle(network)
    assert exact.neuron_sign(oracle.query, w, b, 1, 1e-4, TOL, np.random.default_rng(0)) == sign
    assert oracle.queries == 3


def test_sign_test_says_when_it_sees_nothing() -> None:
    dead = ReLUNetwork([np.eye(2), -np.ones((2, 2)), np.ones((1, 2))], [np.zeros(2), -np.ones(2), np.zeros(1)])
    assert exact.neuron_sign(dead, np.eye(2), np.zeros(2), 0, 1e-4, TOL, np.random.default_rng(0)) == 0


def test_sign_test_needs_independent_rows() -> None:
    with pytest.raises(InvalidInput, match="linearly independent"):
        exact.neuron_sign(three_layers(), np.ones((2, 6)), np.zeros(2), 0, 1e-4, TOL, np.random.default_rng(0))


def test_right_inverse_gives_the_top_layers() -> None:
    network = planted((7, 4, 9, 1), 2)
    top = ReLUNetwork(network.weights[1:], network.biases[1:])
    hidden = np.abs(np.random.default_rng(0).standard_normal((20, 4)))
    asked = exact.through_right_inverse(network, network.weights[0], network.biases[0])
    np.testing.assert_allclose(asked(hidden), top(hidden), atol=1e-12)


def test_the_three_steps_recover_the_first_layer(seed: int) -> None:
    network = three_layers(seed)
    w, b, signs = exact.recover_first_layer(network, 6, DELTA, 1e-9, np.random.default_rng(0))
    assert np.abs(signs).min() == 1
    true = network.weights[0] / np.linalg.norm(network.weights[0], axis=1, keepdims=True)
    order = (w @ true.T).argmax(axis=1)
    np.testing.assert_allclose(w, true[order], atol=1e-6)
    np.testing.assert_allclose(b, (network.biases[0] / np.linalg.norm(network.weights[0], axis=1))[order], atol=1e-6)


def test_conditions_of_a_wide_second_layer() -> None:
    found = three_layer_conditions(planted((12, 4, 40, 1), 0))
    assert found.holds
    assert found.invertible
    assert found.spare_inputs == 8
    assert found.width_ratio == 10


def test_conditions_name_what_fails() -> None:
    narrow = three_layer_conditions(planted((12, 6, 2, 1), 0))
    assert narrow.zero_derivatives > 0.05
    assert not narrow.holds
    wide = three_layer_conditions(planted((4, 6, 30, 1), 0))
    assert (wide.spare_inputs, wide.invertible) == (-2, False)
    with pytest.raises(InvalidInput, match="two hidden layers"):
        three_layer_conditions(planted((4, 6, 1), 0))


def test_dependent_rows_are_not_surjective() -> None:
    network = planted((6, 3, 9, 1), 0)
    w = network.weights[0].copy()
    w[2] = w[0] - w[1]
    assert three_layer_conditions(ReLUNetwork([w, *network.weights[1:]], network.biases)).surjective < 1e-12
