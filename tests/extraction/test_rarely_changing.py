"""Targets that are constant at most inputs: no short line shows them, and yet they change."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.testing import planted
from tests.sweeps import sweep

CONSTANT = 3.0


@pytest.mark.parametrize("seed", sweep(range(6), fast=range(2)))
def test_a_network_that_few_inputs_change_is_recovered(seed: int) -> None:
    """One unit on top, on for about one input in fifty."""
    inner = planted((8, 4, 1), seed)
    rows = np.random.default_rng(7).standard_normal((20_000, 8))
    least = np.quantile(inner(rows), 0.98)

    def target(x: np.ndarray) -> np.ndarray:
        return CONSTANT + np.maximum(inner(x) - least, 0)

    result = rl.extract(target, dim=8, rng=seed)
    assert result.ok
    assert result.network is not None
    assert np.abs(result.network(rows) - target(rows)).max() < 1e-9


def test_a_constant_is_refused_by_its_name() -> None:
    result = rl.extract(lambda x: np.full((len(x), 1), CONSTANT), dim=8, rng=0)
    assert result.outcome is rl.Outcome.CONSTANT
    assert result.queries < 1500
