"""The paper's algorithms, each on its own and together, and the diagnosis of its assumptions."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.networks import ReLUNetwork
from reluctant.papers import exact
from reluctant.papers.exact import regularity
from reluctant.testing import DEGENERATE, planted

TOL = 1e-12
DELTA = 1e-2


def hat(t: np.ndarray) -> np.ndarray:
    """Critical points at -1.03, 0.47 and 2.11, no two pieces alike."""
    return np.maximum(t + 1.03, 0) - 2 * np.maximum(t - 0.47, 0) + 1.5 * np.maximum(t - 2.11, 0)


def spread_out(rng: int, dim: int = 6, width: int = 5) -> ReLUNetwork:
    """A network whose creases on the first axis are one apart."""
    generator = np.random.default_rng(rng)
    w = generator.standard_normal((width, dim))
    w[:, 0] = generator.choice([-1.0, 1.0], width)
    b = -w[:, 0] * (np.arange(width) - width / 2 + 0.3)
    return ReLUNetwork([w, generator.uniform(0.5, 2, (1, width)) * generator.choice([-1, 1], width)], [b, [0.7]])


def test_affine_is_the_local_map() -> None:
    network, x = planted((5, 7, 1), 0), np.random.default_rng(1).standard_normal(5)
    found, true = exact.affine(network, 1e-6, x), network.local_maps(x[None])
    np.testing.assert_allclose(found.w, true.gradients[0, 0], atol=1e-8)
    assert found.b == pytest.approx(true.offsets[0, 0], abs=1e-8)


def test_affine_costs_d_plus_one_rows() -> None:
    oracle = rl.open_oracle(planted((5, 7, 1), 0))
    exact.affine(oracle.query, 1e-6, np.ones(5))
    assert oracle.queries == 6


@pytest.mark.parametrize(("a", "expected"), [(-100.0, -1.03), (-0.51, 0.47), (1.0, 2.11), (3.0, None)])
def test_find_cp_gives_the_leftmost(a: float, expected: float | None) -> None:
    found = exact.find_critical_point(hat, DELTA, a, TOL)
    assert found is None if expected is None else found == pytest.approx(expected, abs=1e-9)


def test_find_cp_repeatedly_gives_all() -> None:
    np.testing.assert_allclose(exact.find_critical_points(hat, DELTA, TOL), [-1.03, 0.47, 2.11], atol=1e-9)


def test_find_hp_is_the_crease() -> None:
    network = ReLUNetwork([[[2.0, 1.0, -1.0]], [[-3.0]]], [[0.5], [0.0]])
    plane = exact.find_hyperplane(network, DELTA, np.array([-0.25, 0.0, 0.0]))
    np.testing.assert_allclose(plane.w / plane.b, np.array([2.0, 1.0, -1.0]) / 0.5, atol=1e-7)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_is_convex_is_the_sign_of_the_output(sign: float) -> None:
    network = ReLUNetwork([[[2.0, 1.0]], [[sign]]], [[0.5], [0.0]])
    assert exact.is_convex(network, DELTA, np.array([-0.25, 0.0])) == (sign > 0)


def test_is_general_tells_critical_points() -> None:
    network = ReLUNetwork([[[2.0, 1.0]], [[1.0]]], [[0.5], [0.0]])
    assert exact.is_general(network, DELTA, np.array([1.0, 0.0]), TOL)
    assert not exact.is_general(network, DELTA, np.array([-0.25, 0.0]), TOL)


def test_algorithm_6_recovers_a_regular_network(seed: int) -> None:
    true = spread_out(seed)
    oracle = rl.open_oracle(true)
    found = exact.recover_depth_two(oracle.query, 6, DELTA, 1e-11, np.random.default_rng(0))
    assert found.widths == true.widths
    assert rl.compare(found, true).output_error < 1e-6
    per_neuron = 4 * np.log2(1 / DELTA) + 2 * 7 + 3
    assert oracle.queries <= 1.5 * per_neuron * 5


def test_regularity_names_the_weakest_condition() -> None:
    plain = regularity(DEGENERATE["plain"](0))
    assert 0 < plain.delta < 0.1
    close = regularity(DEGENERATE["near-parallel 1e-08, same sign"](0))
    assert close.apart == pytest.approx(1e-8, rel=1)
    assert regularity(DEGENERATE["sparse"](0)).general == 0
    assert regularity(DEGENERATE["zero biases"](0)).off_origin == 0


def test_regularity_of_two_known_planes() -> None:
    network = ReLUNetwork([[[3.0, 4.0], [4.0, 3.0]], [[1.0, 1.0]]], [[-5.0, 5.0], [0.0]])
    found = regularity(network)
    assert found.general == pytest.approx(0.6)
    assert found.apart == pytest.approx(np.sin(np.arccos(0.96)))
    assert found.inside == pytest.approx(0.6)
    assert found.off_origin == pytest.approx(1.25)
    assert found.piece == pytest.approx(5 / 3 + 5 / 4)
