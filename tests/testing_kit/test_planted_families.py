"""Planted networks: the same from the same seed, and each with the property its name says."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant import ReLUNetwork
from reluctant.testing import DEGENERATE, WORST_CASE, planted
from reluctant.testing.families import DEGENERATE_WIDTHS, WORST_CASE_DIM

FAMILIES = DEGENERATE | WORST_CASE


def arrays(network: ReLUNetwork) -> list[np.ndarray]:
    return [*network.weights, *network.biases]


def parts(name: str, seed: int) -> tuple[np.ndarray, ...]:
    """w, b, a, c of a two-layer network: a·max(w x + b, 0) + c."""
    network = FAMILIES[name](seed)
    (w, a), (b, c) = network.weights, network.biases
    return w, b, a, c


def largest_difference(network: ReLUNetwork, other: ReLUNetwork, seed: int) -> float:
    rows = np.random.default_rng(seed).standard_normal((50, network.dim))
    return float(np.abs(network(rows) - other(rows)).max())


# ---- all families


def test_a_family_is_a_function_of_its_seed(seed):
    for name, family in FAMILIES.items():
        first, again, other = family(seed), family(np.random.default_rng(seed)), family(seed + 1)
        for ours, theirs in zip(arrays(first), arrays(again), strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
        assert not np.array_equal(first.weights[0], other.weights[0]), name


def test_degenerate_families_have_one_shape(seed):
    for name, family in DEGENERATE.items():
        outputs = 5 if name.endswith("5 outputs") else 1
        assert family(seed).widths == (*DEGENERATE_WIDTHS[:2], outputs), name


def test_worst_case_families_have_one_dimension_and_one_output(seed):
    for name, family in WORST_CASE.items():
        network = family(seed)
        dim = 100 if "100 inputs" in name else WORST_CASE_DIM
        assert (network.dim, network.outputs, network.depth) == (dim, 1, 2), name


# ---- planted


def test_planted_values_stay_of_order_one(seed):
    rows = np.random.default_rng(seed).standard_normal((500, 50))
    for values in planted((50, 60, 40, 50, 1), seed).preactivations(rows):
        assert 0.3 < values.std() < 10


@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_planted_biases_have_the_size_asked_for(bias, seed):
    assert planted((5, 400, 1), seed, bias=bias).biases[0].std() == pytest.approx(bias, rel=0.2)


def test_planted_options(seed):
    assert planted((5, 6, 2), seed, skip=True).skip.shape == (2, 5)
    np.testing.assert_array_equal(planted((5, 6, 2), seed, zero_output_bias=True).biases[-1], 0)


# ---- degenerate families, name by name


@pytest.mark.parametrize("name", [name for name in DEGENERATE if name.startswith("near-parallel")])
def test_near_parallel(name, seed):
    w, b, a, _ = parts(name, seed)
    distance = float(name.split()[1].rstrip(","))
    assert 0.3 * distance < np.linalg.norm(w[1] - w[0]) < 3 * distance
    assert abs(b[1] - b[0]) < 10 * distance
    assert (a[0, 0] * a[0, 1] < 0) == ("opposite sign" in name)


def test_duplicate(seed):
    w, b, a, _ = parts("duplicate", seed)
    np.testing.assert_array_equal(w[0], w[1])
    assert b[0] == b[1]
    assert a[0, 0] != a[0, 1]


def test_mirrored(seed):
    w, b, _, _ = parts("mirrored", seed)
    np.testing.assert_array_equal(w[0], -w[1])
    assert b[0] == -b[1]


def test_parallel_offset(seed):
    w, b, _, _ = parts("parallel, offset 1e-3", seed)
    np.testing.assert_array_equal(w[0], w[1])
    assert b[1] - b[0] == pytest.approx(1e-3)


@pytest.mark.parametrize("name", [name for name in DEGENERATE if name.startswith("output weights")])
def test_weak_outputs(name, seed):
    _, _, plain, _ = parts("plain", seed)
    _, _, a, _ = parts(name, seed)
    np.testing.assert_allclose(a[:, :3], float(name.split()[-1]) * plain[:, :3])
    np.testing.assert_array_equal(a[:, 3:], plain[:, 3:])


@pytest.mark.parametrize("name", [name for name in DEGENERATE if name.startswith("biases about")])
def test_far_biases(name, seed):
    w, b, _, _ = parts(name, seed)
    size = float(name.split()[-1])
    distances = np.abs(b) / np.linalg.norm(w, axis=1)
    assert (distances[:3] > size / 10).all()
    assert (distances[3:] < 10).all()


@pytest.mark.parametrize("name", [name for name in DEGENERATE if name.startswith("neurons rescaled")])
def test_rescaled_neurons_are_the_same_function(name, seed):
    network, plain = DEGENERATE[name](seed), DEGENERATE["plain"](seed)
    assert largest_difference(network, plain, seed) < 1e-12
    factor = float(name.split()[-1])
    np.testing.assert_allclose(network.weights[0][:3], factor * plain.weights[0][:3])


def test_grid_weights(seed):
    w, b, a, _ = parts("grid weights", seed)
    for array in (8 * w, 8 * b):
        np.testing.assert_array_equal(array, np.round(array))
    assert set(np.unique(a)) == {-1, 1}


def test_zero_biases(seed):
    _, b, _, _ = parts("zero biases", seed)
    np.testing.assert_array_equal(b, 0)


def test_dead_inputs(seed):
    w, _, _, _ = parts("dead inputs", seed)
    assert np.sum(~w.any(axis=0)) == 30


def test_sparse(seed):
    w, _, _, _ = parts("sparse", seed)
    assert 0.85 < np.mean(w == 0) < 0.95


def test_dead_neurons(seed):
    w, _, a, _ = parts("dead neurons", seed)
    assert np.flatnonzero(~w.any(axis=1)).tolist() == [0]
    assert np.flatnonzero(a[0] == 0).tolist() == [1]


@pytest.mark.parametrize("name", [name for name in DEGENERATE if name.startswith("output ×")])
def test_scaled_output(name, seed):
    rows = np.random.default_rng(seed).standard_normal((50, DEGENERATE_WIDTHS[0]))
    expected = float(name.split()[-1]) * DEGENERATE["plain"](seed)(rows)
    np.testing.assert_allclose(DEGENERATE[name](seed)(rows), expected, rtol=1e-10)


# ---- worst-case families, name by name


@pytest.mark.parametrize("width", [30, 100])
def test_generic(width, seed):
    w, b, a, _ = parts(f"generic {width}", seed)
    norms = np.linalg.norm(w, axis=1)
    cosines = np.abs((w @ w.T) / np.outer(norms, norms))[~np.eye(width, dtype=bool)]
    assert len(w) == width
    assert cosines.max() < 0.999
    assert (np.abs(b) <= 1).all()
    assert set(np.unique(a)) == {-1, 1}


@pytest.mark.parametrize("width", [1e-1, 1e-2, 1e-3])
def test_a_bump_is_a_triangle_in_a_slab(width, seed):
    network = WORST_CASE[f"bump {width:g}"](seed)
    normal = network.weights[0][0]
    places = np.array([0.0, 0.5, 0.5 + width / 4, 0.5 + width / 2, 0.5 + width, 2.0])
    heights = network(places[:, None] * normal)[:, 0]
    np.testing.assert_allclose(heights, [0, 0, width / 4, width / 2, 0, 0], atol=1e-14)


@pytest.mark.parametrize("width", [1e-1, 1e-2])
def test_a_bump_among_neurons(width, seed):
    w, b, _, _ = parts(f"bump {width:g} with 8 neurons", seed)
    assert len(w) == 3 + 8
    np.testing.assert_array_equal(w[0], w[1])
    np.testing.assert_allclose(b[0] - b[1], width)


@pytest.mark.parametrize("k", [3, 5, 7, 9])
def test_clusters_cancel(k, seed):
    angle = 10.0**-k
    w, _, a, _ = parts(f"clusters {angle:g}", seed)
    for cluster in (slice(0, 2), slice(2, 6), slice(6, 10)):
        assert a[0, cluster].sum() == 0
        distances = np.linalg.norm(w[cluster] - w[cluster][0], axis=1)
        assert distances[1:].min() > 0
        assert distances.max() <= 2.001 * angle


def test_duplicates_are_parallel_to_generic_neurons(seed):
    w, b, _, _ = parts("duplicates", seed)
    for index, scale in enumerate([1, 1, -1, -1, 2]):
        np.testing.assert_array_equal(w[6 + index], scale * w[index])
        assert b[6 + index] == scale * b[index]


def test_stairs_have_three_directions(seed):
    w, b, a, _ = parts("stairs", seed)
    assert len(np.unique(w, axis=0)) == 3
    for first in (0, 6, 12):
        assert (np.diff(-b[first : first + 6]) > 0).all()
        np.testing.assert_array_equal(a[0, first : first + 6], [1, -1, 1, -1, 1, -1])


def test_linear_dependence(seed):
    w, _, a, _ = parts("linear dependence", seed)
    for first in (0, 3, 6):
        np.testing.assert_array_equal(w[first] + w[first + 1], w[first + 2])
        np.testing.assert_array_equal(a[0, first : first + 3], [1, 1, -1])


def test_tiny_norms(seed):
    w, b, _, _ = parts("tiny norms", seed)
    assert (np.linalg.norm(w, axis=1)[:4] < 1e-3).all()
    assert (np.linalg.norm(w, axis=1)[4:] > 0.1).all()
    assert (np.abs(b[:4]) / np.linalg.norm(w, axis=1)[:4] < 10).all()


def test_far_thresholds(seed):
    w, b, _, _ = parts("far thresholds", seed)
    np.testing.assert_allclose(np.abs(b[:4]) / np.linalg.norm(w, axis=1)[:4], 5)
