"""The right shape for every family of targets, seed after seed."""

from __future__ import annotations

import numpy as np
import pytest
from health_targets import DIM, labels, lively, network, softmax, with_activation

from reluctant import check_health, open_oracle
from reluctant.interface import Shape
from reluctant.testing import DEGENERATE, in_float32, planted
from reluctant.testing.faults import noisy, rounded

pytestmark = pytest.mark.slow

FAMILIES = {
    "784-32-1": (lambda seed: planted((784, 32, 1), seed), Shape.PIECEWISE_LINEAR),
    "10-100-1": (lambda seed: planted((10, 100, 1), seed), Shape.PIECEWISE_LINEAR),
    "20-1024-1": (lambda seed: planted((20, 1024, 1), seed), Shape.PIECEWISE_LINEAR),
    "20-15-10-5-1": (lambda seed: lively((20, 15, 10, 5, 1), seed), Shape.PIECEWISE_LINEAR),
    "float32": (lambda seed: in_float32(network(seed)), Shape.PIECEWISE_LINEAR),
    "six decimals": (lambda seed: rounded(network(seed), 6), Shape.PIECEWISE_LINEAR),
    "three decimals": (lambda seed: rounded(network(seed), 3), Shape.PIECEWISE_LINEAR),
    "noise 1e-6": (lambda seed: noisy(network(seed), 1e-6, seed), Shape.PIECEWISE_LINEAR),
    "affine": (lambda seed: planted((DIM, 1), seed), Shape.AFFINE),
    "constant": (lambda seed: lambda x: np.full(len(x), 0.1 + seed), Shape.CONSTANT),
    "tanh": (lambda seed: with_activation(np.tanh, seed), Shape.SMOOTH),
    "softplus": (lambda seed: with_activation(lambda z: np.logaddexp(z, 0), seed), Shape.SMOOTH),
    "quadratic": (lambda seed: with_activation(np.square, seed), Shape.SMOOTH),
    "sin": (lambda seed: with_activation(np.sin, seed), Shape.SMOOTH),
    "softmax": (lambda seed: softmax(network(seed, outputs=5)), Shape.SMOOTH),
    "labels": (lambda seed: labels, Shape.PIECEWISE_CONSTANT),
    **{f"degenerate: {name}": (family, Shape.PIECEWISE_LINEAR) for name, family in DEGENERATE.items()},
}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", FAMILIES)
def test_the_shape_is_right(name, seed):
    make, shape = FAMILIES[name]
    target = make(seed)
    dim = getattr(target, "dim", DIM)
    assert check_health(open_oracle(target, dim=dim), rng=seed).shape is shape
