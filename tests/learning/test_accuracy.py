"""The error estimate: unbiased, and not blind near creases. The fit: stable, and nothing twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluctant.extraction.any_position.accuracy import (
    IN_STRIPS,
    MORE_IN_STRIPS,
    CreaseSamples,
    even_chances,
    likely_chances,
    measure_accuracy,
    near_creases,
)
from reluctant.extraction.any_position.crease_planes import CreasePlanes, draw_sample, fit_outputs, prune
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.testing import WORST_CASE, planted, relative_square_error
from reluctant.testing.families import cancelling_clusters

NOISE = DistanceNoise(1e-15, 1e-16)


def estimate(network: ReLUNetwork, true: ReLUNetwork, seed: int, gaussian: int = 4000, strips: int = 4000):
    rng, planes = np.random.default_rng(seed), CreasePlanes.of(network)
    return measure_accuracy(network, sampled(network, true, even_chances(planes), rng, gaussian, strips), planes)


def sampled(network, true, chances, rng, gaussian, strips) -> CreaseSamples:
    near = near_creases(CreasePlanes.of(network), strips, chances, rng)
    rows = np.concatenate([rng.standard_normal((gaussian, true.dim)), near])
    return CreaseSamples(rows, true(rows), strips, chances)


def with_outputs(network: ReLUNetwork, factor: np.ndarray) -> ReLUNetwork:
    return ReLUNetwork([network.weights[0], network.weights[1] * factor], network.biases)


def test_the_estimate_agrees_with_the_true_error(seed):
    true = WORST_CASE["generic 30"](seed)
    wrong = with_outputs(true, np.where(np.arange(30) == 3, 1.01, 1.0))
    found, expected = estimate(wrong, true, seed), relative_square_error(wrong, true)
    assert found.low / 1.3 < expected < 1.3 * found.high


def test_an_error_inside_a_cluster_is_seen(seed):
    """A pair of neurons 1e-9 apart with opposite outputs, moved together by 3e-9: no Gaussian point is between."""
    true = WORST_CASE["clusters 1e-09"](seed)
    biases = true.biases[0].copy()
    biases[:2] += np.array([3e-9, 3e-9])
    moved = ReLUNetwork(true.weights, [biases, true.biases[1]])
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((4000, 12))
    spread = true(rows).std()
    assert np.abs(moved(rows) - true(rows)).max() < 1e-5 * spread  # plain samples are blind
    assert estimate(moved, true, seed).error > 1e-12


def moved_a_little(true: ReLUNetwork, angle: float, rng: np.random.Generator) -> ReLUNetwork:
    """The network with every neuron moved by a small part of the angle, as a method that sees them badly gives it."""
    moved = true.weights[0] + 0.1 * angle * rng.standard_normal(true.weights[0].shape)
    return ReLUNetwork([moved, true.weights[1]], true.biases)


@pytest.mark.parametrize("angle", [1e-4, 1e-6])
def test_the_upper_end_covers_errors_inside_clusters(angle):
    missed = []
    for seed in range(3):
        rng, true = np.random.default_rng(seed), cancelling_clusters(400 + seed, angle)
        wrong = moved_a_little(true, angle, rng)
        error, planes = relative_square_error(wrong, true, points=50_000), CreasePlanes.of(wrong)
        for _ in range(20):
            first = sampled(wrong, true, even_chances(planes), rng, 2855, IN_STRIPS)
            chances = likely_chances(wrong, first, planes)
            found = measure_accuracy(wrong, sampled(wrong, true, chances, rng, 2855, MORE_IN_STRIPS), planes)
            missed.append(error > found.high)
    assert np.mean(missed) <= 0.05


def test_the_worst_output_is_reported():
    true = planted((6, 10, 2), 0)
    a = true.weights[1] * np.array([[1.0], [1e-5]])
    small = ReLUNetwork([true.weights[0], a], true.biases)
    without = ReLUNetwork([true.weights[0], a * np.array([[1.0], [0.0]])], true.biases)
    assert estimate(without, small, 0).error > 0.5


def test_an_output_that_is_constant_has_its_size_for_a_unit():
    true = planted((6, 10, 2), 0)
    constant = ReLUNetwork([true.weights[0], true.weights[1] * np.array([[1.0], [0.0]])], true.biases)
    assert estimate(constant, constant, 0).high < 1e-20


@given(st.integers(0, 10_000))
def test_weights_of_the_mixture_add_up(seed):
    network = planted((4, 6, 1), seed)
    constant = ReLUNetwork([np.zeros((1, 4))], [np.ones(1)])
    rng, planes = np.random.default_rng(seed), CreasePlanes.of(network)
    chances = even_chances(planes) if seed % 2 else rng.dirichlet(np.ones(72)).reshape(6, 12)
    rows = np.concatenate([rng.standard_normal((3000, 4)), near_creases(planes, 3000, chances, rng)])
    off = measure_accuracy(constant, CreaseSamples(rows, np.zeros((6000, 1)), 3000, chances), planes)
    assert off.error == pytest.approx(1.0, abs=0.2)  # the mean weight: answers 0 have no variance, their unit is 1


def test_outputs_are_fitted_exactly(seed):
    true = WORST_CASE["generic 30"](seed)
    planes = CreasePlanes.of(true)
    rng = np.random.default_rng(seed)
    sample = draw_sample(true, planes, NOISE, rng)
    assert len(sample.rows) == int(1.5 * (30 + 13)) + 20 + 4 * 30
    network = fit_outputs(planes, sample)
    assert relative_square_error(network, true, points=20_000) < 1e-24


def test_a_neuron_that_no_sample_activates_has_its_jump_for_an_output(seed):
    w, far = np.eye(6)[:2], np.array([0.0, -9.0])
    true = ReLUNetwork([w, np.array([[1.0, 3.0]])], [far, np.zeros(1)])
    planes = CreasePlanes.of(true)
    sample = draw_sample(true, planes.chosen(np.array([0])), NOISE, np.random.default_rng(seed))
    known = CreasePlanes(**{**vars(planes), "jump_sd": np.full(2, 1e-6)})
    assert fit_outputs(known, sample).weights[1][0, 1] == pytest.approx(3.0)


def test_a_hyperplane_that_was_found_twice_is_pruned(seed):
    true = WORST_CASE["generic 30"](seed)
    planes = CreasePlanes.of(true)
    near = planes.chosen(np.array([4]))
    moved = CreasePlanes(**{**vars(near), "offsets": near.offsets + 1e-3})
    sample = draw_sample(true, planes + moved, NOISE, np.random.default_rng(seed))
    assert len(prune(planes + moved, sample)) == 30


def test_neurons_of_a_cluster_are_not_pruned(seed):
    true = WORST_CASE["clusters 1e-05"](seed)
    planes = CreasePlanes.of(true)
    sample = draw_sample(true, planes, NOISE, np.random.default_rng(seed))
    assert len(prune(planes, sample)) == 10


@given(st.integers(0, 10_000), st.permutations(range(5)))
def test_the_order_of_hyperplanes_changes_nothing(seed, order):
    true = planted((4, 5, 1), seed)
    planes = CreasePlanes.of(true)
    sample = draw_sample(true, planes, NOISE, np.random.default_rng(seed))
    rows = np.random.default_rng(seed).standard_normal((50, 4))
    one, other = fit_outputs(planes, sample), fit_outputs(planes.chosen(np.array(order)), sample)
    np.testing.assert_allclose(one(rows), other(rows), atol=1e-9)
