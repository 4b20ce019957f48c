from __future__ import annotations

import numpy as np

from reluctant.extraction.any_depth.output_layer import polish_to_all
from reluctant.extraction.method import Memory
from reluctant.geometry import DistanceNoise
from reluctant.interface.health import examine
from reluctant.networks import ReLUNetwork
from reluctant.oracles.open import open_oracle
from reluctant.testing import planted


def test_a_fit_that_runs_away_is_held_by_the_rows_it_left() -> None:
    """A weight that the fitted rows hardly tell, and a few others do."""
    true, rng = planted((4, 6, 5, 1), 2, bias=0.3), np.random.default_rng(0)
    oracle = open_oracle(true)
    noise = DistanceNoise.of(examine(oracle, rng, 4), oracle.dim)
    rows = rng.standard_normal((4000, 4))
    on = (true.preactivations(rows)[0][:, 0] > 0) & (true.preactivations(rows)[1][:, 0] > 0)
    memory = Memory()
    memory.keep(rows, true(rows))
    start = ReLUNetwork([w * (1 + 1e-8 * rng.standard_normal(w.shape)) for w in true.weights], true.biases)
    fitted = polish_to_all(start, rows[~on][:300], true(rows[~on][:300]), memory, noise, rounds=4)
    assert on.sum() > 20
    assert np.abs(fitted(rows) - true(rows)).max() < 1e-13 * np.abs(true(rows)).max()
