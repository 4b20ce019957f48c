"""Close neurons: the definition, its lemmas, the corner case."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluctant.errors import InvalidInput
from reluctant.extraction.any_position import crease_planes
from reluctant.networks import ReLUNetwork
from reluctant.papers import learning_algorithms
from reluctant.papers.learning_theory import Constants, Magnitude, affine_error

SEEDS = st.integers(0, 2**32 - 1)


def test_definition_on_known_neurons() -> None:
    v, b = np.array([[3.0, 4.0], [4.0, 3.0], [-6.0, -8.0]]), np.array([5.0, 0.0, -10.0])
    np.testing.assert_allclose(crease_planes.pair_sines(v)[0], [0, 0.28, 0], atol=1e-15)
    np.testing.assert_allclose(crease_planes.pair_offsets(v, b)[0], [0, 1, 0], atol=1e-15)
    assert crease_planes.are_close(v, b, 0.28 + 1e-12, 1 + 1e-12).all()
    assert not crease_planes.are_close(v, b, 0.27, 2)[0, 1]
    assert not crease_planes.are_close(v, b, 1, 0.9)[0, 1]
    assert crease_planes.are_close(v, b, 1e-12, 1e-12)[0, 2], "a multiple of a neuron is as close as can be"


@pytest.mark.parametrize("angle", [1e-3, 1e-9, 1e-12])
def test_small_angles_keep_their_digits(angle: float) -> None:
    v = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
    assert crease_planes.pair_sines(v)[0, 1] == pytest.approx(np.sin(angle), rel=1e-12)


@given(SEEDS)
def test_closeness_is_symmetric_and_adds_up(seed: int) -> None:
    """Lemma 3.11."""
    rng = np.random.default_rng(seed)
    v, b = rng.standard_normal((3, 4)), rng.standard_normal(3)
    v[1:] = v[0] + 10 ** rng.uniform(-6, 1) * v[1:]
    sines, offsets = crease_planes.pair_sines(v), crease_planes.pair_offsets(v, b)
    np.testing.assert_allclose(sines, sines.T, atol=1e-15)
    np.testing.assert_allclose(offsets, offsets.T, atol=1e-15)
    assert sines[0, 2] <= sines[0, 1] + sines[1, 2] + 1e-12
    assert offsets[0, 2] <= 2 * (offsets[0, 1] + offsets[1, 2]) + 1e-12


@given(SEEDS)
def test_thresholds_of_close_neurons_agree(seed: int) -> None:
    """Lemma 3.8: with v = γ v' + v⊥, |γ b' - b| ≤ α ‖v‖."""
    rng = np.random.default_rng(seed)
    v, b = rng.standard_normal((2, 3)), rng.standard_normal(2)
    gamma = v[0] @ v[1] / (v[1] @ v[1])
    assert abs(gamma * b[1] - b[0]) <= crease_planes.pair_offsets(v, b)[0, 1] * np.linalg.norm(v[0]) + 1e-12


def cluster(seed: int, angle: float, signs: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    v = np.array([0.6, 0.0, 0.8]) + angle * rng.standard_normal((len(signs), 3))
    b = 0.3 + angle * rng.standard_normal(len(signs))
    turned = rng.choice([-1.0, 1.0], len(signs))
    turned[0] = 1
    return turned[:, None] * v, turned * b, np.array(signs)


def test_the_representative_is_what_the_gradient_jumps_by(seed: int) -> None:
    v, b, s = cluster(seed, 1e-3, [1, 1, -1, 1])
    network = ReLUNetwork([v, s[None]], [-b, [0.0]])
    maps = network.local_maps(np.array([[10 * 0.6, 0, 10 * 0.8], [-10 * 0.6, 0, -10 * 0.8]]))
    v_star, b_star = learning_algorithms.representative(v, b, s)
    np.testing.assert_allclose(maps.gradients[0, 0] - maps.gradients[1, 0], v_star, atol=1e-12)
    np.testing.assert_allclose(maps.offsets[1, 0] - maps.offsets[0, 0], b_star, atol=1e-12)


@pytest.mark.parametrize("angle", [1e-2, 1e-5])
def test_a_cancelling_cluster_is_close_to_its_affine_function(angle: float, seed: int) -> None:
    v, b, s = cluster(seed, angle, [1, -1, 1, -1])
    separation, alpha = crease_planes.pair_sines(v).max(), crease_planes.pair_offsets(v, b).max()
    ell = learning_algorithms.corner_case(v, b, s, separation)
    assert ell is not None
    x = np.random.default_rng(1).standard_normal((20_000, 3))
    error = np.mean((ReLUNetwork([v, s[None]], [-b, [0.0]])(x)[:, 0] - ell(x)) ** 2)
    constants = Constants(4, float(np.linalg.norm(v, axis=1).max()), float(np.abs(b).max()), 1e-6, 0.1, 3)
    assert Magnitude.of(error) <= affine_error(constants, Magnitude.of(separation), Magnitude.of(alpha))
    assert error <= 50 * angle**2


def test_a_cluster_that_does_not_cancel_is_no_corner_case(seed: int) -> None:
    v, b, s = cluster(seed, 1e-5, [1, 1, -1, 1])
    assert learning_algorithms.corner_case(v, b, s, 1e-5) is None


def test_a_neuron_without_weights_has_no_angle() -> None:
    with pytest.raises(InvalidInput, match=r"^v: "):
        crease_planes.pair_sines(np.array([[1.0, 0.0], [0.0, 0.0]]))
