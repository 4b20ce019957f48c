"""A network's values, patterns and local affine maps, against definitions written out row by row."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant import ReLUNetwork
from reluctant.networks.network import BLOCK_ROWS
from reluctant.testing import planted

SHAPES = [(5, 2), (5, 7, 2), (5, 7, 4, 2), (5, 7, 6, 4, 3)]
with_every_shape = pytest.mark.parametrize("widths", SHAPES, ids=lambda widths: "-".join(map(str, widths)))
with_and_without_skip = pytest.mark.parametrize("skip", [False, True], ids=["plain", "skip"])


def row_by_row(network: ReLUNetwork, rows: np.ndarray) -> np.ndarray:
    """The definition: one row and one neuron at a time."""
    answers = []
    for row in rows:
        hidden = row
        for w, b in zip(network.weights[:-1], network.biases[:-1], strict=True):
            hidden = np.array([max(float(w[j] @ hidden) + b[j], 0.0) for j in range(len(b))])
        answer = network.weights[-1] @ hidden + network.biases[-1]
        answers.append(answer if network.skip is None else answer + network.skip @ row)
    return np.array(answers)


@with_and_without_skip
@with_every_shape
def test_forward_is_the_definition(widths, skip, seed):
    network = planted(widths, seed, skip=skip)
    rows = np.random.default_rng(seed).standard_normal((23, widths[0]))
    np.testing.assert_allclose(network(rows), row_by_row(network, rows), rtol=1e-12, atol=1e-13)


def test_large_batches_are_evaluated_in_blocks(seed):
    network = planted((4, 6, 2), seed)
    rows = np.random.default_rng(seed).standard_normal((2 * BLOCK_ROWS + 5, 4))
    parts = np.concatenate([network(part) for part in np.array_split(rows, 7)])
    np.testing.assert_allclose(network(rows), parts, rtol=1e-12, atol=1e-13)


def test_no_rows_give_no_answers():
    assert planted((4, 6, 2))(np.empty((0, 4))).shape == (0, 2)


def test_lists_and_other_number_types_are_rows_too():
    network = planted((3, 4, 1))
    rows = np.array([[1, -2, 3], [0, 1, 0]])
    for same in (rows.tolist(), rows.astype(np.float32), np.asfortranarray(rows)):
        np.testing.assert_array_equal(network(same), network(rows.astype(np.float64)))


@with_every_shape
def test_preactivations_feed_the_next_layer(widths, seed):
    network = planted(widths, seed)
    rows = np.random.default_rng(seed).standard_normal((9, widths[0]))
    values = network.preactivations(rows)
    assert [v.shape for v in values] == [(9, width) for width in widths[1:-1]]
    hidden = rows
    for w, b, value in zip(network.weights, network.biases, values, strict=False):
        np.testing.assert_allclose(value, hidden @ w.T + b, rtol=1e-12, atol=1e-13)
        hidden = np.maximum(value, 0)


def test_patterns_say_which_neurons_are_active(seed):
    network = planted((5, 7, 4, 2), seed)
    rows = np.random.default_rng(seed).standard_normal((9, 5))
    for active, values in zip(network.patterns(rows), network.preactivations(rows), strict=True):
        assert active.dtype == bool
        np.testing.assert_array_equal(active, values > 0)


@with_and_without_skip
@with_every_shape
def test_local_maps_equal_the_network_at_their_points(widths, skip, seed):
    network = planted(widths, seed, skip=skip)
    rows = np.random.default_rng(seed).standard_normal((23, widths[0]))
    maps = network.local_maps(rows)
    assert maps.gradients.shape == (23, widths[-1], widths[0])
    assert maps.offsets.shape == (23, widths[-1])
    np.testing.assert_allclose(maps(rows), network(rows), rtol=1e-12, atol=1e-12)


@with_and_without_skip
@with_every_shape
def test_local_gradients_are_finite_differences(widths, skip, seed):
    network, step = planted(widths, seed, skip=skip), 1e-4
    inside = 0
    for point in np.random.default_rng(seed).standard_normal((10, widths[0])):
        ahead, behind = point + step * np.eye(len(point)), point - step * np.eye(len(point))
        if not in_one_region(network, np.concatenate([[point], ahead, behind])):
            continue
        inside += 1
        differences = (network(ahead) - network(behind)).T / (2 * step)
        np.testing.assert_allclose(network.local_maps(point[None]).gradients[0], differences, atol=1e-9)
    assert inside >= 5


def in_one_region(network: ReLUNetwork, rows: np.ndarray) -> bool:
    return all((active == active[0]).all() for active in network.patterns(rows))


def test_hyperplanes_have_unit_normals_and_vanish_on_creases(seed):
    network = planted((6, 9, 1), seed)
    normals, offsets = network.hyperplanes()
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1, rtol=1e-14)
    on_creases = -offsets[:, None] * normals
    np.testing.assert_allclose(np.diag(network.preactivations(on_creases)[0]), 0, atol=1e-13)


def test_a_neuron_without_weights_has_no_hyperplane():
    network = ReLUNetwork([[[0.0, 0.0], [3.0, 4.0]], [[1.0, 1.0]]], [[1.0, 10.0], [0.0]])
    normals, offsets = network.hyperplanes()
    assert np.isnan(normals[0]).all()
    np.testing.assert_allclose(normals[1], [0.6, 0.8])
    assert offsets[1] == 2


@with_and_without_skip
def test_log_ratios_are_what_a_softmax_lets_through(skip, seed):
    network = planted((5, 7, 4), seed, skip=skip)
    rows = np.random.default_rng(seed).standard_normal((9, 5))
    logits = network(rows)
    np.testing.assert_allclose(network.log_ratios()(rows), logits[:, 1:] - logits[:, :1], atol=1e-13)
