"""Points of a comparison: extremes of every hidden layer, and no crease beyond reach."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.domains import Domain
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted
from reluctant.verification.cells import alone_points, outermost_points
from reluctant.verification.points import extreme_points, far_along_creases, ray_points


def test_extremes_of_the_layers_below_the_last_are_climbed_to() -> None:
    network = planted((8, 6, 6, 5, 1), 6, bias=0.1)
    rng = np.random.default_rng(0)
    points = extreme_points(network, 400, Domain(), rng)
    drawn = rng.standard_normal((2000, 8))
    drawn *= np.linalg.norm(points, axis=1).max() / np.linalg.norm(drawn, axis=1, keepdims=True)
    assert points.shape == (400, 8)
    for layer in (0, 1):
        found, usual = network.preactivations(points)[layer], network.preactivations(drawn)[layer]
        beyond = (found.max(axis=0) > usual.max(axis=0)) | (found.min(axis=0) < usual.min(axis=0))
        assert beyond.mean() >= 0.7


def test_hyperplanes_out_of_reach_are_not_looked_at() -> None:
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((3, 4)), rng.standard_normal((1, 3))]
    near, far = (ReLUNetwork(weights, [np.full(3, size), np.zeros(1)]) for size in (1.0, 1e4))
    assert len(far_along_creases(near, 12, Domain(), rng)) == 12
    assert len(far_along_creases(far, 12, Domain(), rng)) == 0


def test_one_unit_on_alone_has_a_point_in_each_piece() -> None:
    network = planted((10, 6, 4, 1), 0)
    rows = alone_points(network, 60, np.random.default_rng(0))
    on = network.patterns(rows)[0]
    assert (on.sum(axis=1) == 1).all()
    assert on.any(axis=0).all()
    assert 6 <= len(rows) <= 60
    assert len(alone_points(network, 4, np.random.default_rng(0))) == 4


def test_first_layers_wider_than_the_input_have_no_such_points() -> None:
    assert not len(alone_points(planted((4, 6, 4, 1), 0), 60, np.random.default_rng(0)))


def test_rays_cross_a_narrow_ridge_at_any_angle() -> None:
    rng, wide, met = np.random.default_rng(0), 0.02, 0
    for _ in range(100):
        rows, normal = ray_points(8, 1000, rng), rng.standard_normal(8)
        along = rows @ normal / np.linalg.norm(normal)
        met += bool((np.abs(along - rng.uniform(1, 2)) < wide / 2).any())
    assert met >= 80
    assert len(ray_points(8, 7, rng)) == 7


def test_first_layers_of_low_rank_send_no_point_far_out() -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((12, 4)) @ rng.standard_normal((4, 30))
    true = planted((30, 12, 4, 1), 0)
    network = ReLUNetwork([weights, *true.weights[1:]], true.biases)
    rows = alone_points(network, 60, rng)
    assert (np.linalg.norm(rows, axis=1) < 1e3 * np.sqrt(30)).all()


@pytest.mark.parametrize("seed", [16, 31, 35, 122])  # one direction is weak: nine in ten random ones have none
def test_square_first_layers_keep_points_for_most_units(seed: int) -> None:
    network = planted((20, 20, 4, 1), seed)
    rows = alone_points(network, 60, np.random.default_rng(seed))
    assert network.patterns(rows)[0].any(axis=0).mean() > 0.5


def test_no_row_is_asked_twice_where_layers_above_hide_units() -> None:
    rows = outermost_points(planted((10, 8, 6, 4, 1), 1), 2, 64, np.random.default_rng(0))
    assert len(np.unique(rows, axis=0)) == len(rows)
