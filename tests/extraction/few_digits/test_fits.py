"""Fits in a subspace and of all parameters: planted networks come back from noisy answers."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction.few_digits.arrow_equations import Layout
from reluctant.extraction.few_digits.subspace_fit import Points, fit_to_points, misfit
from reluctant.testing import planted

NOISE = 1e-6


def points(true: rl.ReLUNetwork, count: int = 600) -> Points:
    rng = np.random.default_rng(1)
    y = 2 * rng.standard_normal((count, true.dim))
    f = true(y)
    return Points(y, f + NOISE * rng.standard_normal(f.shape), np.full(count, 1 / NOISE))


def moved(true: rl.ReLUNetwork, size: float) -> rl.ReLUNetwork:
    rng = np.random.default_rng(2)
    weights = [w + size * rng.standard_normal(w.shape) for w in true.weights]
    return rl.ReLUNetwork(weights, true.biases, np.zeros((true.outputs, true.dim)))


@pytest.mark.parametrize("outputs", [1, 4])
def test_a_network_near_by_is_fitted_to_the_noise(outputs: int) -> None:
    true = planted((3, 8, outputs), 4)
    fitted = fit_to_points(moved(true, 1e-3), points(true), steps=12)
    left = misfit(fitted, points(true))
    assert np.sqrt(np.mean(left**2)) == pytest.approx(1, abs=0.15)


def test_outliers_do_not_pull_with_huber_weights() -> None:
    true = planted((3, 8, 1), 4)
    good = points(true)
    f = good.f.copy()
    f[:5] += 1e-2
    fitted = fit_to_points(moved(true, 1e-4), Points(good.y, f, good.weight), steps=12, huber=5.0)
    assert np.median(misfit(fitted, good)) < 2


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_unknowns_are_split_and_joined(outputs: int, affine: bool) -> None:
    layout = Layout(5, 4, outputs, affine)
    count = len(layout.core(np.ones((outputs, 5))).column)
    step = np.arange(1.0, count + 1)
    assert np.array_equal(layout.join_core(*layout.split_core(step)), step)


def test_neurons_that_nothing_determines_do_not_move() -> None:
    """Two that are on at all points, and cancel: what is left of their squares is rounding."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((4, 2)), np.array([[1e10, -1e10, 1.0, 1.0]])]
    biases = [np.array([50.0, 60.0, 0.1, 0.2]), np.zeros(1)]
    network = rl.ReLUNetwork(weights, biases, np.zeros((1, 2)))
    y = rng.standard_normal((60, 2))
    fitted = fit_to_points(network, Points(y, network(y), np.ones(60)), steps=2)
    assert np.isfinite(fitted.weights[0]).all()
