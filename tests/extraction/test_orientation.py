"""Which side each neuron is on: found from the affine remainder wherever its digits hold the answer."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction.orientation import orient
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted


def turned(network: ReLUNetwork, seed: int) -> ReLUNetwork:
    """The same function with random neurons the wrong way round and a skip term that makes up for it."""
    (w, a), (b, c) = network.weights, network.biases
    flip = np.random.default_rng(seed).random(len(b)) < 0.5
    sign = np.where(flip, -1.0, 1.0)
    return ReLUNetwork([sign[:, None] * w, a], [sign * b, c + a[:, flip] @ b[flip]], a[:, flip] @ w[flip])


@pytest.mark.parametrize(
    ("widths", "by"),
    [
        ((20, 12, 1), "least squares"),
        ((10, 25, 3), "least squares"),
        ((40, 60, 1), "a linear programme"),
        ((8, 24, 1), "a lattice"),
        ((10, 50, 1), "a lattice"),
        ((10, 100, 1), "a lattice"),
    ],
)
def test_sides_are_found(widths: tuple[int, ...], by: str, seed: int) -> None:
    if by == "a lattice":
        pytest.importorskip("fpylll")
    true = planted(widths, seed)
    found = orient(turned(true, seed))
    assert found.skip is None
    assert rl.equivalent(found, true, tol=1e-8)


def test_wide_network_is_recovered_without_a_skip_term(seed: int) -> None:
    pytest.importorskip("fpylll")
    true = planted((8, 24, 1), 60 + seed)
    network = rl.extract(rl.open_oracle(true), rng=seed).raise_for_status().network
    assert network is not None
    assert network.skip is None
    assert rl.equivalent(network, true, tol=1e-6)


def test_too_many_neurons_for_the_digits_keep_the_skip_term() -> None:
    network = turned(planted((3, 60, 1), 0), 0)
    assert orient(network) is network


def test_skip_term_of_its_own_is_not_forced_away(seed: int) -> None:
    for widths in ((12, 6, 1), (12, 18, 1), (8, 24, 1)):
        network = planted(widths, seed, skip=True)
        assert orient(network) is network
