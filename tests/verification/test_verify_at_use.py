"""Beyond the box where probabilities can be read well: what is right passes, and what is seen to be wrong does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import reluctant as rl
from reluctant.domains import Domain
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.oracles.links import LINK_FUNCTIONS
from reluctant.testing import planted
from reluctant.verification.comparison import FARTHER_POINTS, USE_POINTS, AtUse, compare_at_use

BOX = Domain(-0.1, 0.1)
TOL, TOL_FLOAT32 = 1e-8, 1e-5
sigmoid, softmax = LINK_FUNCTIONS["sigmoid"], LINK_FUNCTIONS["softmax"]


def made_of_a_tanh(z: FloatArray) -> FloatArray:
    return np.asarray(0.5 + 0.5 * np.tanh(z / 2))


def all_but_the_smallest(z: FloatArray) -> FloatArray:
    p = softmax(z)
    return np.where(p > p.min(axis=1, keepdims=True), p, 0.0)


def the_largest_alone(z: FloatArray) -> FloatArray:
    p = softmax(z)
    return np.where(p == p.max(axis=1, keepdims=True), p, 0.0)


def in_float32(link: Callable[[FloatArray], FloatArray]) -> Callable[[FloatArray], Any]:
    return lambda z: link(z).astype(np.float32)


ANSWERS: dict[str, tuple[Callable[[FloatArray], Any], str, int, float]] = {
    "sigmoid": (sigmoid, "sigmoid", 2, TOL),
    "sigmoid made of a tanh": (made_of_a_tanh, "sigmoid", 1, TOL),
    "sigmoid in float32": (in_float32(sigmoid), "sigmoid", 1, TOL_FLOAT32),
    "sigmoid, 10 decimals": (lambda z: sigmoid(z).round(10), "sigmoid", 1, 1e-7),
    "softmax": (softmax, "softmax", 3, TOL),
    "softmax in float32": (in_float32(softmax), "softmax", 3, TOL_FLOAT32),
    "softmax, 10 decimals": (lambda z: softmax(z).round(10), "softmax", 3, 1e-7),
    "top-2": (all_but_the_smallest, "top-k", 3, TOL),
    "top-1": (the_largest_alone, "top-k", 3, TOL),
}


def steep(outputs: int, seed: int, times: float) -> ReLUNetwork:
    network = planted([5, 8, outputs], rng=seed, bias=1.5)
    (w, a), (b, c) = network.weights, network.biases
    return ReLUNetwork([w, times * a], [b, times * c])


def looked(name: str, true: ReLUNetwork, network: ReLUNetwork, seed: int) -> AtUse:
    answers, link, outputs, tol = ANSWERS[name]
    oracle = rl.open_oracle(lambda x: answers(true(x)), dim=5, link=link)
    candidate = network.log_ratios() if outputs == 3 else network
    found = compare_at_use(oracle, candidate, BOX, tol, np.random.default_rng(seed))
    assert found is not None
    return found


@pytest.mark.parametrize("times", [1.0, 5.0, 20.0, 100.0])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_right_network_is_never_refused(name: str, times: float) -> None:
    for seed in range(12):
        true = steep(ANSWERS[name][2], seed, times)
        found = looked(name, true, true, seed)
        assert found.ok, (seed, found)
        assert found.points == USE_POINTS + FARTHER_POINTS


@pytest.mark.parametrize("name", ["sigmoid", "sigmoid in float32"])
def test_what_is_next_to_0_has_all_its_digits(name: str) -> None:
    """A missing neuron that changes small probabilities alone is seen."""
    for seed in range(8):
        true = steep(ANSWERS[name][2], seed, 4.0)
        (w, a), (b, c) = true.weights, true.biases
        low = ReLUNetwork([w, a], [b, np.append(c[:-1], c[-1] - 30.0)])
        slightly = ReLUNetwork([w, a], [b, low.biases[1] - 1e-3 * np.eye(len(c))[-1]])
        assert not looked(name, low, slightly, seed).ok, seed


def test_a_difference_of_probabilities_alone_is_told_as_one() -> None:
    true = steep(1, 1, 200.0)
    (w, a), (b, c) = true.weights, true.biases
    certain, other = ReLUNetwork([w, a], [b, c + 5000.0]), ReLUNetwork([w, a], [b, c - 10.0])
    found = looked("sigmoid in float32", certain, other, 1)
    assert found.differing > 0
    assert found.largest == 0


def test_differences_are_counted_among_those_that_were_compared() -> None:
    assert "3 of 8" in str(AtUse(10, 8, 3, 0.5))
    assert "3 of 10" in str(AtUse(10, 10, 3, 0.5))


def test_verify_takes_a_smaller_box_where_the_first_one_saturates() -> None:
    true = steep(1, 7, 10.0)
    oracle = rl.open_oracle(lambda x: sigmoid(true(x)), dim=5, link="sigmoid")
    checked = rl.verify(oracle, true, rng=3)
    assert checked.ok
    assert checked.inside


def next_to_a_half_in_float32(z: FloatArray) -> Any:
    """A sigmoid as number libraries make it: small probabilities are what is left of a half, to its rounding."""
    half = np.float32(0.5)
    return half + half * np.tanh(half * z.astype(np.float32))


@pytest.mark.parametrize(("times", "seed"), [(2.0, 6), (1.0, 11), (1.0, 18)])
def test_few_digits_next_to_0_are_no_other_network(times: float, seed: int) -> None:
    """Where no probability is tiny they still lie on the grid of 1: outside the box, and inside."""
    true = steep(1, seed, times)
    oracle = rl.open_oracle(lambda x: next_to_a_half_in_float32(true(x)), dim=5, link="sigmoid")
    assert rl.verify(oracle, true, rng=seed).ok
    (w, a), biases = true.weights, true.biases
    fewer = ReLUNetwork([w, a * (np.arange(a.shape[1]) > 0)], biases)
    assert not rl.verify(oracle, fewer, rng=seed).ok


def test_what_holds_inside_alone_is_not_said_to_agree() -> None:
    true = steep(1, 6, 4.0)
    oracle = rl.open_oracle(lambda x: sigmoid(true(x)), dim=5, link="sigmoid")
    inside = replace(rl.verify(oracle, true, rng=6), inside="a box")
    found = inside.beside(AtUse(192, 192, 2, 0.1))
    assert (inside.ok, found.ok, found.only_inside) == (True, False, True)
    assert "2 of 192" in str(found)
