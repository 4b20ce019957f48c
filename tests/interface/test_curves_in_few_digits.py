"""Curves in few digits: GELU and SiLU in float32 are named as curved, and ReLU networks never are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf, expit

import reluctant as rl
from reluctant.interface.kinds import Shape
from reluctant.testing import in_float32, planted

SHAPES = [(10, 32, 1), (30, 64, 2), (10, 32, 32, 1)]
CURVES = {"gelu": lambda z: z * (1 + erf(z / np.sqrt(2))) / 2, "silu": lambda z: z * expit(z)}


def curved(widths, curve, seed):
    """A network of smooth units in float32."""
    network = planted(widths, seed)
    layers = [
        (w.astype(np.float32), b.astype(np.float32)) for w, b in zip(network.weights, network.biases, strict=True)
    ]

    def answer(x):
        x = x.astype(np.float32)
        for weights, biases in layers[:-1]:
            x = CURVES[curve](x @ weights.T + biases).astype(np.float32)
        return (x @ layers[-1][0].T + layers[-1][1]).astype(np.float64)

    return answer


@pytest.mark.parametrize("widths", SHAPES)
@pytest.mark.parametrize("curve", CURVES)
def test_extraction_ends_at_once_on_curves_in_float32(widths, curve):
    for seed in range(5):
        found = rl.extract(curved(widths, curve, seed), dim=widths[0], rng=seed, seconds=10)
        assert found.outcome is rl.Outcome.NOT_PIECEWISE_LINEAR
        assert found.queries <= 200


@pytest.mark.parametrize("widths", [*SHAPES, (5, 8, 1), (20, 300, 1)])
@pytest.mark.parametrize("digits", [in_float32, lambda network: lambda x: np.round(network(x), 6)])
def test_no_relu_network_is_taken_for_curved(widths, digits):
    for seed in range(10):
        found = rl.check_health(digits(planted(widths, seed)), dim=widths[0], rng=seed, lines=4)
        assert found.shape is Shape.PIECEWISE_LINEAR


def test_many_creases_that_all_bend_up_are_no_curve():
    network = planted((30, 1000, 1), 0)
    convex = rl.ReLUNetwork([network.weights[0], np.abs(network.weights[1])], network.biases)
    for seed in range(10):
        assert rl.check_health(in_float32(convex), dim=30, rng=seed, lines=4).shape is Shape.PIECEWISE_LINEAR
