"""Creases that are expected on a line: one row between any two of them, and none where they are not."""

import numpy as np
import pytest

from reluctant.geometry.jumps import ExpectedCreases, GradientNoise, TooManyJumps, jumps_on_line
from reluctant.geometry.lines import DistanceNoise, Lines
from reluctant.oracles.base import Explained
from reluctant.testing import planted


def searched(network, line, expected=None):
    """Positions of the jumps, and the rows that were asked."""
    asked = []

    def ask(rows):
        asked.append(len(rows))
        return Explained(network(rows), network.gradients(rows))

    found = jumps_on_line(ask, line, GradientNoise(DistanceNoise(1e-15, 1e-16)), first=5, expected=expected)
    return found.position, sum(asked)


def test_known_hyperplanes_cost_a_row_each():
    network = planted((12, 20, 1), 0)
    line = Lines.random(np.random.default_rng(1), 1, 12)
    plain, rows = searched(network, line)
    known, fewer = searched(network, line, ExpectedCreases.of_hyperplanes(line, *network.hyperplanes()))
    np.testing.assert_allclose(known, plain, rtol=1e-6, atol=1e-9)
    assert len(known) == 20
    assert fewer == 23 < rows


def test_hyperplanes_that_are_not_there_hide_nothing():
    network, other = planted((12, 20, 1), 0), planted((12, 9, 1), 5)
    line = Lines.random(np.random.default_rng(1), 1, 12)
    plain, _ = searched(network, line)
    found, _ = searched(network, line, ExpectedCreases.of_hyperplanes(line, *other.hyperplanes()))
    np.testing.assert_allclose(found, plain, rtol=1e-6, atol=1e-9)


def test_a_smooth_function_ends_the_search():
    def ask(rows):
        return Explained(np.sin(rows[:, :1]), np.stack([np.cos(rows[:, 0]), 0 * rows[:, 0]], axis=1)[:, None])

    line = Lines.random(np.random.default_rng(1), 1, 2)
    with pytest.raises(TooManyJumps):
        jumps_on_line(ask, line, GradientNoise(DistanceNoise(1e-15, 1e-16)))
