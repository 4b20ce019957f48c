"""Gradients at the price of the span: what they cost, what they are worth in a box, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput, NotRecovered
from reluctant.testing import planted

NETWORK = planted((20, 5, 6, 2), 1)
TRUE = rl.Subspace.spanned_by(NETWORK.weights[0])


def test_they_cost_the_rank(seed):
    network = planted((60, 5, 4, 2), 2 + seed)
    oracle = rl.open_oracle(network)
    gradients = rl.SpanGradients.of(oracle, rl.recover_span(oracle, rng=seed), rng=seed)
    points = np.random.default_rng(seed).standard_normal((8, 60))
    before = oracle.queries
    found = gradients(points)
    assert oracle.queries - before <= 8 * (5 + 2) * 2
    np.testing.assert_allclose(found, network.local_maps(points).gradients, atol=1e-9)


def test_images_lie_on_the_bounds(seed):
    """Half of the coordinates at 0, as in an image: measured two steps inside."""
    rng = np.random.default_rng(seed)
    images = np.where(rng.random((50, 20)) < 0.5, 0.0, rng.uniform(0, 1, (50, 20)))
    found = rl.SpanGradients.of(rl.open_oracle(NETWORK, domain=(0, 1)), TRUE, rng=seed)(images)
    good = np.isfinite(found).all(axis=(1, 2))
    assert good.mean() > 0.9
    true = NETWORK.local_maps(images).gradients
    same = np.abs(found - true).max(axis=(1, 2)) < 1e-6
    assert same[good].mean() > 0.9  # two steps inside another piece may begin


def test_nothing_and_no_direction():
    oracle = rl.open_oracle(NETWORK)
    assert rl.SpanGradients.of(oracle, TRUE)(np.empty((0, 20))).shape == (0, 2, 20)
    np.testing.assert_array_equal(rl.SpanGradients.of(oracle, rl.Subspace(np.empty((0, 20))))(np.ones((3, 20))), 0)


def test_a_partial_span_is_refused():
    partial = rl.Span(rl.Outcome.SPAN_PARTIAL, rl.Subspace(TRUE.basis[:2]), {})
    with pytest.raises(NotRecovered) as raised:
        rl.SpanGradients.of(rl.open_oracle(NETWORK), partial)
    assert raised.value.result is partial


@pytest.mark.parametrize("span", [rl.Subspace(np.eye(7)[:2]), "span.npz"])
def test_what_is_no_span_of_the_target(span):
    with pytest.raises(InvalidInput, match="span"):
        rl.SpanGradients.of(rl.open_oracle(NETWORK), span)


@pytest.mark.parametrize("points", [np.ones(20), np.ones((2, 7))])
def test_points_of_another_shape(points):
    with pytest.raises(InvalidInput, match="points"):
        rl.SpanGradients.of(rl.open_oracle(NETWORK), TRUE)(points)
