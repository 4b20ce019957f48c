"""Affine targets are recovered first of all, as they are or behind a link, in all digits or few."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax

import reluctant as rl
from reluctant.numerics import FloatArray
from reluctant.testing import planted

DIM = 30
Answers = Callable[[FloatArray], Any]


def affine_map(seed: int, outputs: int, dim: int = DIM, dtype: type = np.float64) -> Answers:
    rng = np.random.default_rng(seed)
    weights, bias = rng.standard_normal((dim, outputs)) / np.sqrt(dim), rng.standard_normal(outputs)
    return lambda x: x.astype(dtype) @ weights.astype(dtype) + bias.astype(dtype)


def two_classes(values: Answers) -> Answers:
    def answers(x: FloatArray) -> FloatArray:
        p = expit(2 * values(x)[:, 0])
        return np.column_stack([1 - p, p])

    return answers


LINKED: dict[str, tuple[Callable[[Answers], Answers], int, str]] = {
    "two classes": (two_classes, 1, "softmax"),
    "classes": (lambda f: lambda x: softmax(10 * f(x), axis=1), 4, "softmax"),
    "sigmoid": (lambda f: lambda x: expit(3 * f(x)), 1, "sigmoid"),
    "tanh": (lambda f: lambda x: np.tanh(f(x)), 2, "tanh"),
}


@pytest.mark.parametrize("name", LINKED)
@pytest.mark.parametrize("rng", range(3))
def test_a_generalised_linear_model_costs_one_row_an_input_and_sixty(name: str, rng: int) -> None:
    behind, outputs, link = LINKED[name]
    target = behind(affine_map(rng, outputs))
    result = rl.extract(target, dim=DIM, link=link, rng=rng)
    assert result.ok, result
    assert result.queries <= DIM + 60
    assert result.network is not None
    assert len(result.network.weights) == 1
    rows = np.random.default_rng(9).standard_normal((50, DIM))
    read = rl.open_oracle(result.as_written(link))
    np.testing.assert_allclose(read.query(rows), target(rows).reshape(50, -1), rtol=0, atol=1e-9)


@pytest.mark.parametrize("rng", range(3))
def test_an_affine_map_in_float32_is_recovered_to_its_rounding(rng: int) -> None:
    dim, target = 784, affine_map(rng, 10, 784, np.float32)
    result = rl.extract(target, dim=dim, rng=rng)
    assert result.ok, result
    assert result.queries <= 3 * dim
    assert result.network is not None
    rows = np.random.default_rng(9).standard_normal((50, dim))
    np.testing.assert_allclose(result.network(rows), affine_map(rng, 10, 784)(rows), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("decimals", "noise"), [(4, 0.0), (None, 1e-4)])
def test_rounded_and_noisy_maps_are_recovered(decimals: int | None, noise: float) -> None:
    plain, fresh = affine_map(0, 1), np.random.default_rng(0)

    def target(x: FloatArray) -> FloatArray:
        values = plain(x) + noise * fresh.standard_normal((len(x), 1))
        return np.asarray(values if decimals is None else np.round(values, decimals))

    result = rl.extract(target, dim=DIM, rng=0)
    assert result.ok, result
    assert result.queries <= DIM + 100
    assert result.network is not None
    rows = np.random.default_rng(9).standard_normal((50, DIM))
    np.testing.assert_allclose(result.network(rows), plain(rows), rtol=0, atol=3e-4)


@pytest.mark.parametrize("shift", [2.0, 50.0])
def test_a_neuron_that_most_inputs_do_not_reach_is_found(shift: float, seed: int) -> None:
    part = planted((10, 1, 1), seed, skip=True)
    network = rl.ReLUNetwork(part.weights, [np.array([-shift]), part.biases[1]], part.skip)
    result = rl.extract(network, rng=seed)
    assert result.ok
    assert result.network is not None
    assert result.network.widths == (10, 1, 1)
