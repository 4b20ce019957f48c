"""The span from gradients: one row a direction and a few more, float32, links, rare directions, false gradients."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.networks import ReLUNetwork
from reluctant.results import Outcome
from reluctant.testing import planted


def sine(span, network):
    true = np.linalg.qr(network.weights[0].T)[0]
    return np.linalg.norm(span.basis.T - true @ (true.T @ span.basis.T), 2)


@pytest.mark.parametrize("seed", range(3))
def test_one_row_a_direction(seed):
    network = planted((200, 40, 20, 10, 1), seed)
    span = rl.recover_span(network, gradients=True, rng=seed)
    assert span.ok
    assert span.rank == 40
    assert sine(span, network) < 1e-11
    assert span.queries <= 1.1 * 40 + 50
    assert span.margin < 1e-9


def test_float32():
    network = planted((60, 12, 1), 1)
    span = rl.recover_span(
        lambda x: network(x).astype(np.float32), dim=60, rng=0,
        gradients=lambda x: network.gradients(x).astype(np.float32),
    )  # fmt: skip
    assert span.ok
    assert span.rank == 12
    assert sine(span, network) < 1e-5


def test_behind_a_link_and_full_rank():
    network = planted((60, 10, 3), 1)
    linked = ReLUNetwork(network.weights, network.biases, None, "softmax")
    span = rl.recover_span(linked, gradients=True, link="softmax", rng=0)
    assert span.ok
    assert span.rank == 10
    assert rl.recover_span(planted((10, 30, 1), 1), gradients=True, rng=0).outcome is Outcome.FULL_RANK


def test_rare_directions_are_found_by_long_steps():
    network = planted((100, 20, 10, 1), 1)
    biases = network.biases
    biases[0] = biases[0] - 1.5
    span = rl.recover_span(ReLUNetwork(network.weights, biases), gradients=True, rng=0)
    assert span.ok
    assert span.rank == 20


def test_false_gradients_are_not_used():
    network = planted((8, 3, 1), 1)
    span = rl.recover_span(network, gradients=lambda x: np.abs(network.gradients(x)), rng=0)
    assert span.ok
    assert span.rank == 3
    assert span.evidence["gradients are"].slug == "explanation-absolute"
