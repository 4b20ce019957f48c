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
    assert span.rank <= true.rank
    if span.ok:
        assert np.linalg.norm(true.reject(span.basis), 2) < 1e-3
    else:
        assert span.outcome in (rl.Outcome.RANK_UNCLEAR, rl.Outcome.SPAN_PARTIAL)


def test_most_weak_neurons_are_found():
    found = 0
    for seed in range(10):
        network, true = with_weak_neuron((40, 8, 12, 1), 20 + seed, 1e-6)
        span = rl.recover_span(rl.open_oracle(network), rng=seed)
        found += span.ok and span.subspace.distance(true) < 1e-3
    assert found >= 8
