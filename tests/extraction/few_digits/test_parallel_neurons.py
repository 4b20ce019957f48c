"""Parallel neurons behind rounded answers: from afar they are one, near the origin they are two."""

from __future__ import annotations

import numpy as np

import reluctant as rl
from reluctant.extraction.few_digits.parallel_neurons import with_parallel_neurons
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted
from reluctant.testing.faults import rounded

DECIMALS = 4


def with_parallel_pair(seed: int) -> ReLUNetwork:
    true = planted((8, 6, 2), seed)
    weights, biases = [w.copy() for w in true.weights], [b.copy() for b in true.biases]
    weights[0][1], biases[0][1] = weights[0][0], biases[0][0] + 0.4
    return ReLUNetwork(weights, biases)


def test_a_parallel_pair_is_recovered_from_rounded_answers() -> None:
    true = with_parallel_pair(0)
    found = rl.extract(rounded(true, DECIMALS), dim=8, rng=0)
    assert found.ok
    assert found.network.widths == true.widths
    rows = np.random.default_rng(1).standard_normal((500, 8))
    assert np.abs(found.network(rows) - true(rows)).max() < 2 * 10.0**-DECIMALS


def test_what_is_explained_stays_as_it_is() -> None:
    true = with_parallel_pair(1)
    rows = np.random.default_rng(0).standard_normal((100, 8))
    assert with_parallel_neurons(true, rows, true(rows), 1e-6) is true


def test_what_no_pair_explains_stays_as_it_is() -> None:
    true = planted((8, 6, 2), 2)
    rows, rng = np.random.default_rng(0).standard_normal((100, 8)), np.random.default_rng(1)
    noisy = true(rows) + rng.standard_normal((100, 2))
    assert with_parallel_neurons(true, rows, noisy, 1e-6) is true
