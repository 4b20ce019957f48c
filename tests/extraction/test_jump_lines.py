"""One hidden layer from gradients: few queries, float32, bounds, links, flawed networks, and deeper ones."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.geometry import DistanceNoise, Lines
from reluctant.geometry.jumps import GradientNoise, TooManyJumps, jumps_on_line
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted
from reluctant.testing.assortment import specimen
from reluctant.testing.families import bump, duplicates, far_biases, grid_weights, near_parallel, stairs

EXACT = GradientNoise(DistanceNoise(1e-15, 1e-15))


def error(network, true, low=-3.0, high=3.0):
    rows = np.random.default_rng(9).uniform(low, high, (500, true.dim))
    return np.abs(network(rows) - true(rows)).max() / true(rows).std()


def with_link(network, link):
    return ReLUNetwork(network.weights, network.biases, network.skip, link)


def test_a_line_shows_every_crease_with_its_jump():
    true = planted((8, 30, 2), 3)
    oracle, lines = rl.open_oracle(true, gradients=True), Lines.random(np.random.default_rng(1), 1, 8)
    jumps = jumps_on_line(oracle.query_gradients, lines, EXACT)
    w, b = true.weights[0], true.biases[0]
    slope = w @ lines.directions[0]
    order = np.argsort(-(w @ lines.origins[0] + b) / slope)
    expected = np.sign(slope)[:, None, None] * true.weights[1].T[:, :, None] * w[:, None]
    np.testing.assert_allclose(jumps.jump, expected[order], atol=1e-12)
    assert np.abs(jumps.points @ w.T + b)[np.arange(30), order].max() < 1e-9 * np.abs(jumps.position).max()
    assert oracle.queries <= 4 * 30


def test_a_line_ends_its_search_at_the_most_jumps():
    oracle, lines = rl.open_oracle(planted((8, 30, 2), 3), gradients=True), Lines.random(np.random.default_rng(1), 1, 8)
    with pytest.raises(TooManyJumps):
        jumps_on_line(oracle.query_gradients, lines, EXACT, most=5)


@pytest.mark.parametrize("outputs", [1, 10])
def test_few_queries_and_all_digits(outputs):
    true = planted((784, 64, outputs), 5)
    result = rl.extract(true, gradients=True, rng=1)
    assert result.ok
    assert result.network.widths == true.widths
    assert error(result.network, true) < 1e-11
    assert result.queries <= 4 * 64 + 250 + 12


def in_float32(network):
    """Values and gradients of a network with one hidden layer, as single precision computes them."""
    (w, a), (b, c) = ([part.astype(np.float32) for part in parts] for parts in (network.weights, network.biases))

    def values(x):
        return np.maximum(x.astype(np.float32) @ w.T + b, 0) @ a.T + c

    def slopes(x):
        on = (x.astype(np.float32) @ w.T + b > 0).astype(np.float32)
        return (on[:, None] * a) @ w

    return values, slopes


@pytest.mark.parametrize("outputs", [1, 3])
def test_float32_is_recovered_to_its_rounding(outputs):
    true = planted((40, 20, outputs), 6)
    values, slopes = in_float32(true)
    result = rl.extract(values, dim=40, gradients=slopes, rng=1)
    assert result.ok
    assert result.network.widths == true.widths
    assert error(result.network, true) < 1e-5


def test_float32_with_many_outputs_needs_one_attempt():
    """Biases of neurons that are rarely on; and answers far out, whose own rounding is that of the sums in them."""
    true = planted((784, 128, 10), 987006)
    values, slopes = in_float32(true)
    result = rl.extract(values, dim=784, gradients=slopes, rng=6, budget=1280)
    assert result.ok
    assert result.queries < 10 * 128
    (normals, offsets), (found, found_offsets) = true.hyperplanes(), result.network.hyperplanes()
    same = np.abs(normals @ found.T).argmax(axis=1)
    assert np.abs(np.abs(offsets) - np.abs(found_offsets[same])).max() < 3e-6


@pytest.mark.parametrize("seed", [0, 1])
def test_inside_bounds(seed):
    true = planted((20, 10, 1), seed)
    result = rl.extract(true, gradients=True, domain=(-1, 1), rng=0)
    assert result.ok
    assert error(result.network, true, -1, 1) < 1e-11


def test_an_affine_map_inside_bounds_has_no_line_to_read():
    weights = np.arange(6.0)
    target = rl.open_oracle(
        lambda x: x @ weights + 1, dim=6, domain=(-1, 1), gradients=lambda x: np.broadcast_to(weights, x.shape)
    )
    result = rl.extract(target, rng=0)
    assert result.ok
    np.testing.assert_allclose(result.network(np.eye(6))[:, 0], weights + 1, atol=1e-12)


@pytest.mark.parametrize("link", ["softmax", "sigmoid", "log-softmax"])
def test_behind_a_link(link):
    true = with_link(planted((30, 8, 3), 2), link)
    result = rl.extract(true, gradients=True, link=link, rng=1)
    assert result.ok
    rows = np.random.default_rng(9).standard_normal((200, 30))
    found, expected = result.network(rows), true(rows)
    if link != "sigmoid":
        found, expected = found - found[:, :1], expected - expected[:, :1]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_input_times_gradient():
    true = planted((50, 20, 1), 4)
    result = rl.extract(
        true, gradients=lambda x: true.gradients(x) * x[:, None], explanation="input-times-gradient", rng=1
    )  # fmt: skip
    assert result.ok
    assert error(result.network, true) < 1e-11


@pytest.mark.parametrize(
    "true",
    [
        stairs(3), grid_weights(3), duplicates(3), bump(3, 0.1), far_biases(3, 100.0), near_parallel(3, 1e-4, False),
        planted((6, 9, 2), 1, skip=True), planted((1, 5, 1), 2), planted((5, 1), 2), planted((5, 40, 3), 2),
    ],
)  # fmt: skip
def test_special_networks(true):
    result = rl.extract(true, gradients=True, rng=1)
    assert result.ok
    assert error(result.network, true) < 1e-9


def test_narrow_ridges_of_small_networks_are_found():
    true = specimen(970371, hidden_layers=1, small=True).network
    result = rl.extract(true, gradients=True, rng=970371)
    assert result.ok
    assert error(result.network, true, -2, 2) < 1e-9


def test_deeper_networks_fail_at_their_stage():
    result = rl.extract(planted((20, 10, 10, 1), 1), rl.DepthTwo(), gradients=True, attempts=1)
    assert not result.ok
    assert result.stage == "lines"
    assert result.queries < 400
