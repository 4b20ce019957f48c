"""A linear term of values that are not negative, carried by neurons that are always on."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.extraction.orientation import always_active

LEAST = 1e-12


def term(outputs: int, rank: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((outputs, rank)) @ rng.standard_normal((rank, 6))


@pytest.mark.parametrize(("outputs", "rank", "neurons"), [(1, 1, 2), (3, 3, 6), (20, 6, 12), (20, 2, 4), (4, 1, 2)])
def test_the_neurons_are_the_term_and_few(outputs: int, rank: int, neurons: int, seed: int) -> None:
    skip = term(outputs, rank, seed)
    rows, weights = always_active(skip, LEAST)
    y = np.abs(np.random.default_rng(seed).standard_normal((50, 6)))
    assert (rows >= 0).all()
    np.testing.assert_allclose(np.maximum(y @ rows.T, 0) @ weights.T, y @ skip.T, atol=1e-12)
    assert len(rows) <= neurons


def test_a_term_without_negative_parts_takes_one_neuron_an_output() -> None:
    assert len(always_active(np.ones((1, 4)), LEAST)[0]) == 1
    assert len(always_active(-np.ones((1, 4)), LEAST)[0]) == 1


def test_rounding_takes_none() -> None:
    rows, weights = always_active(np.full((2, 4), 1e-14), LEAST)
    assert rows.shape == (0, 4)
    assert weights.shape == (2, 0)
