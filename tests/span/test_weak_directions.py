"""Directions that a target hardly looks at: found where answers have the digits, never made up, named if missed."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.testing import planted


def with_weak_neuron(widths: tuple[int, ...], seed: int, weakness: float) -> tuple[rl.ReLUNetwork, rl.Subspace]:
    """A planted network whose first neuron is this much weaker, and its true span."""
    network = planted(widths, seed)
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    weights[0][0] *= weakness
    biases[0][0] *= weakness
    return rl.ReLUNetwork(weights, biases), rl.Subspace.spanned_by(network.weights[0])


@pytest.mark.parametrize("weakness", [1e-4, 1e-5, 1e-6, 1e-7])
@pytest.mark.parametrize("widths", [(40, 8, 12, 1), (53, 6, 1), (38, 8, 8, 1)], ids=str)
def test_a_weak_neuron_is_one_direction(widths, weakness, seed):
    network, true = with_weak_neuron(widths, 3 + seed, weakness)
    span = rl.recover_span(rl.open_oracle(network), rng=seed)
    assert span.ok
    assert span.rank == true.rank
    assert span.subspace.distance(true) < 1e-3
    assert span.subspace.distance(true) < 2 * span.angle


def test_what_is_too_weak_is_named(seed):
    """1e-11 of a gradient is beyond float64: the rank told is that of the others, and the limit says so."""
    network, true = with_weak_neuron((40, 8, 12, 1), 20 + seed, 1e-11)
    span = rl.recover_span(rl.open_oracle(network), rng=seed)
    assert np.linalg.norm(true.reject(span.basis), 2) < 1e-6
    assert span.rank == 7
    assert span.evidence["limit"] > 1e-11
    assert span.evidence["limits"].entries[1].fields["weakest"] == span.evidence["limit"]
