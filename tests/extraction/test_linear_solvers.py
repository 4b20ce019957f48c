"""Least squares as the methods use it: the quick way by normal equations, and rows that count differently."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.fitting.least_squares import normal_solver, solve_weighted
from reluctant.numerics import HOST, Arrays, TorchArrays


@pytest.fixture(params=["host", "torch"])
def arrays(request: pytest.FixtureRequest) -> Arrays:
    return HOST if request.param == "host" else TorchArrays("cpu")


def test_normal_equations_give_half_the_digits_whatever_the_units(arrays: Arrays, seed: int) -> None:
    rng = np.random.default_rng(seed)
    plain, units, right = rng.standard_normal((60, 8)), np.logspace(-6, 6, 8), rng.standard_normal(60)
    found = arrays.get(normal_solver(arrays.put(plain * units), arrays)(arrays.put(right)))
    expected = np.linalg.lstsq(plain, right, rcond=None)[0] / units
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_column_of_zeros_stays_zero(seed: int) -> None:
    rng = np.random.default_rng(seed)
    design = np.column_stack([rng.standard_normal((20, 3)), np.zeros(20)])
    found = normal_solver(design)(rng.standard_normal(20))
    assert found[3] == 0
    assert np.isfinite(found).all()


def test_rows_count_by_their_weight(arrays: Arrays, seed: int) -> None:
    rng = np.random.default_rng(seed)
    design, answers, weights = rng.standard_normal((30, 4)), rng.standard_normal(30), rng.uniform(0.1, 10, 30)
    found = arrays.get(solve_weighted(arrays.put(design), weights, arrays)) @ answers
    expected = np.linalg.lstsq(weights[:, None] * design, weights * answers, rcond=None)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
