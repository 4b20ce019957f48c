"""Instruments for networks that are known: identities hold to rounding, laws within their spread."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reluctant as rl
from reluctant.papers.random_networks import (
    bottlenecks,
    gradient_terms,
    layer_scales,
    mean_angle,
    minimal_perturbation,
    next_angle,
    perturbation_law,
    sphere_points,
)
from reluctant.testing import planted


@pytest.mark.parametrize("widths", [(6, 7, 1), (6, 9, 8, 2), (5, 6, 3, 6, 4, 1)])
def test_the_terms_of_the_decomposition_add_up(widths, seed):
    network = planted(widths, seed)
    x, y = np.random.default_rng(seed).standard_normal((2, widths[0]))
    at_x, at_y = network.gradients(np.array([x, y]))
    terms = gradient_terms(network, x, y)
    assert terms.shape == (len(widths) - 2, widths[-1], widths[0])
    np.testing.assert_allclose(terms.sum(axis=0), at_x - at_y, atol=1e-13 * np.abs(at_x).max())


def test_a_layer_that_does_not_switch_has_no_term(seed):
    network = planted((6, 9, 8, 1), seed)
    x = np.random.default_rng(seed).standard_normal(6)
    assert not gradient_terms(network, x, x * (1 + 1e-12)).any()


@pytest.mark.parametrize(
    ("widths", "layers"),
    [
        ((100, 100, 1), [0]),
        ((100, 50, 1), [1, 0]),
        ((100, 50, 20, 30, 10, 40, 1), [4, 2, 1, 0]),
        ((10, 50, 50, 1), [0]),
    ],
)
def test_bottlenecks(widths, layers):
    assert bottlenecks(widths) == layers


@given(st.lists(st.integers(1, 30), min_size=2, max_size=8))
def test_bottlenecks_grow_toward_the_input(widths):
    found = bottlenecks(widths)
    assert found[-1] == 0
    assert all(widths[a] < widths[b] for a, b in pairwise(found))


def test_scales_are_preserved(seed):
    network, x = rl.random_network((400, 400, 50, 400, 1), seed), np.random.default_rng(seed + 1).standard_normal(400)
    found = layer_scales(network, x, 0.01)
    assert (found.norms >= found.floors).all()
    assert (found.spreads <= found.ceilings).all()


@pytest.mark.parametrize("k", [1, 5, 20, 40, 60])
def test_the_smallest_perturbation_is_the_part_in_the_row_space(k, seed):
    rng = np.random.default_rng(seed)
    weights, x = rng.standard_normal((k, 40)), rng.standard_normal(40)
    expected = np.linalg.norm(np.linalg.pinv(weights) @ weights @ x)
    assert minimal_perturbation(weights, x) == pytest.approx(expected, rel=1e-10)


def test_dependent_rows_are_no_trouble(seed):
    rng = np.random.default_rng(seed)
    rows, x = rng.standard_normal((3, 20)), rng.standard_normal(20)
    assert minimal_perturbation(np.concatenate([rows, rows]), x) == pytest.approx(minimal_perturbation(rows, x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nearly_dependent_rows_keep_their_digits(dtype, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    row, other, x = rng.standard_normal((3, 20)).astype(dtype)
    weights = np.array([row, row + dtype(1e-3) * other])
    exact = np.linalg.norm(np.linalg.pinv(weights.astype(float)) @ weights.astype(float) @ x)
    assert minimal_perturbation(weights, x) == pytest.approx(exact, rel=1e-3)


def test_the_length_of_rows_does_not_matter(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    weights, x = rng.standard_normal((40, 90)), rng.standard_normal(90)
    exact = minimal_perturbation(weights, x)
    weights[::2] *= 1e-6
    assert minimal_perturbation(weights, x) == pytest.approx(exact, rel=1e-9)
    monkeypatch.setattr("reluctant.papers.random_networks.LARGEST_FACTOR", 10)
    assert minimal_perturbation(weights, x) == pytest.approx(exact, rel=1e-5)


def test_many_neurons_are_solved_without_a_factor(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    weights, x = rng.standard_normal((100, 300)), rng.standard_normal(300)
    exact = minimal_perturbation(weights, x)
    monkeypatch.setattr("reluctant.papers.random_networks.LARGEST_FACTOR", 10)
    assert minimal_perturbation(weights, x) == pytest.approx(exact, rel=1e-6)


def test_the_law_of_the_smallest_perturbation(seed):
    rng, law = np.random.default_rng(seed), perturbation_law(10, 50)
    draws = [
        minimal_perturbation(rng.standard_normal((10, 50)), x) / np.linalg.norm(x)
        for x in rng.standard_normal((400, 50))
    ]
    assert abs(np.mean(draws) - law.mean) < 4 * law.sd / np.sqrt(400)
    assert np.std(draws) == pytest.approx(law.sd, rel=0.2)
    assert perturbation_law(50, 50).mean == 1


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="x"):
        minimal_perturbation(np.ones((2, 3)), np.ones(4))
    with pytest.raises(ValueError, match="k"):
        perturbation_law(0, 5)


@given(st.floats(0, np.pi))
def test_a_layer_brings_inputs_together(angle):
    after = float(next_angle(angle))
    assert 0 <= after <= np.pi / 2 + 1e-12
    assert after <= angle + 1e-12


def test_the_recursion_is_what_a_wide_layer_does(seed):
    points = sphere_points(2, 5, seed)
    network = rl.random_network((5, 20_000, 1), seed)
    before, after = mean_angle(points), mean_angle(np.maximum(network.preactivations(points)[0], 0))
    assert after == pytest.approx(float(next_angle(before)), rel=0.03)


def test_small_angles_join_the_formula():
    a, b = next_angle(np.array([0.999e-4, 1.001e-4]))
    assert b - a == pytest.approx(0.002e-4, rel=0.05)


def test_random_networks_keep_the_scale(seed):
    network, x = rl.random_network((500, 500, 500, 1), seed), np.random.default_rng(seed + 1).standard_normal(500)
    assert not any(b.any() for b in network.biases)
    norms = [np.linalg.norm(np.maximum(v, 0)) / np.sqrt(500) for v in network.preactivations(x[None])]
    np.testing.assert_allclose(norms, [2**-0.5, 0.5], rtol=0.2)


def test_no_widths_are_refused():
    with pytest.raises(ValueError, match="widths"):
        rl.random_network((5,))
