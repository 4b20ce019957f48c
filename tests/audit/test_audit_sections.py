"""Lines and planes through a network: the creases on them are where its neurons change side."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.audit.steps.probe_steps import crossings, polylines
from reluctant.geometry import Frame
from reluctant.testing import planted


@pytest.mark.parametrize("widths", [(5, 7, 2), (5, 6, 4, 2)])
@pytest.mark.parametrize("skip", [False, True])
def test_a_section_is_the_network_on_it(widths, skip, seed):
    network, rng = planted(widths, seed, skip=skip), np.random.default_rng(seed)
    section = Frame(rng.standard_normal(5), np.linalg.qr(rng.standard_normal((5, 2)))[0].T)
    coordinates = rng.standard_normal((20, 2))
    np.testing.assert_allclose(
        section.restricted(network)(coordinates), network(section.points(coordinates)), atol=1e-12
    )


@pytest.mark.parametrize("widths", [(1, 7, 2), (1, 6, 4, 2)])
def test_crossings_are_where_a_neuron_changes_side(widths, seed):
    network = planted(widths, seed)
    found = crossings(network, -3.0, 3.0)
    assert len(found) > 0
    values = np.hstack(network.preactivations(found[:, None]))
    assert np.abs(values).min(axis=1).max() < 1e-2  # of numbers of order one; deeper ones are straight between samples
    edges = np.linspace(-3, 3, 1001)
    patterns = np.hstack([values > 0 for values in network.preactivations(edges[:, None])])
    changes = edges[:-1][(patterns[1:] != patterns[:-1]).any(axis=1)]
    assert np.abs(changes[:, None] - found[None]).min(axis=1).max() <= edges[1] - edges[0]


@pytest.mark.parametrize("widths", [(2, 6, 1), (2, 5, 4, 1)])
def test_polylines_lie_on_creases_and_miss_none(widths, seed):
    network, size = planted(widths, seed), 2.0
    lines = polylines(network, size)
    for layer, points in lines:
        assert np.abs(points).max() <= size + 1e-12
        values = network.preactivations((points[:-1] + points[1:]) / 2)[layer]
        assert np.abs(values).min(axis=1).max() < 0.05
    crossed = [
        int(((values.min(axis=0) < 0) & (values.max(axis=0) > 0)).sum())
        for values in network.preactivations(np.random.default_rng(0).uniform(-size, size, (4000, 2)))
    ]
    for layer, count in enumerate(crossed):
        assert sum(each == layer for each, _ in lines) >= count


def test_a_straight_crease_has_two_points():
    lines = polylines(planted((2, 5, 1)), 2.0)
    assert {len(points) for _, points in lines} == {2}
