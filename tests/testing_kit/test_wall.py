"""The wall: a method learns no more from a network's own oracle than from a bare closure around it."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

from reluctant import ReLUNetwork, open_oracle
from reluctant.testing import DEGENERATE, METHODS, WORST_CASE, MethodCase, planted

TARGETS = {
    "one hidden layer": lambda seed: planted((10, 12, 1), seed),
    "two hidden layers": lambda seed: planted((10, 12, 8, 2), seed),
    "a skip": lambda seed: planted((10, 12, 1), seed, skip=True),
    "near-parallel": DEGENERATE["near-parallel 1e-06, opposite sign"],
    "clusters": WORST_CASE["clusters 0.001"],
}

OPENING_ROWS = 1  # a bare callable is asked once to learn its outputs


# Every method on the first target, and on two others those that are quick there.
QUICK = ("health", "verify", "extract, DepthTwo", "span", "flip", "linearity")
EVERY_PAIR = [(name, method) for name in TARGETS for method in METHODS]
FAST = [
    (name, method)
    for name, method in EVERY_PAIR
    if name == "one hidden layer" or (method.name in QUICK and name in ("two hidden layers", "near-parallel"))
]


@pytest.mark.parametrize(
    ("name", "method"), sweep(EVERY_PAIR, fast=FAST, arguments=2), ids=lambda value: getattr(value, "name", value)
)
def test_a_closure_gives_the_same_result_at_the_same_cost(method: MethodCase, name: str, seed: int):
    network = TARGETS[name](seed)
    candidate = ReLUNetwork(network.weights, network.biases, network.skip)
    seen = []

    def closure(x: np.ndarray) -> np.ndarray:
        seen.append(len(x))
        return network(x)

    own, bare = open_oracle(network), open_oracle(closure, dim=network.dim)
    assert method.run(own, candidate) == method.run(bare, candidate)
    assert bare.queries == own.queries + OPENING_ROWS == sum(seen)


def test_methods_have_names_of_their_own():
    names = [method.name for method in METHODS]
    assert len(set(names)) == len(names) > 0
