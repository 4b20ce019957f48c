"""Targets that are constant at most inputs: no short line shows them, and yet they change."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.testing.assortment import specimen, true_error


@pytest.mark.parametrize("drawn", [5_700_416, 5_701_555])
def test_a_network_that_few_inputs_change_is_recovered(drawn: int) -> None:
    target = specimen(drawn)
    result = rl.extract(target.target(), dim=target.network.dim, rng=0)
    assert result.ok
    assert result.network is not None
    assert not true_error(result.network, target).wrong


def test_a_constant_is_refused_by_its_name() -> None:
    result = rl.extract(lambda x: np.full((len(x), 1), 3.0), dim=8, rng=0)
    assert result.outcome is rl.Outcome.CONSTANT
    assert result.queries < 1500


def test_rounding_of_a_constant_is_no_error() -> None:
    """A network that is constant at the scale of use is judged by the size of its answers."""
    drawn = specimen(6_100_318)
    assert drawn.constant
    assert not true_error(lambda x: drawn.network(x) + 5e-16, drawn).wrong
    assert true_error(lambda x: drawn.network(x) + 1e-3, drawn).wrong
