"""Hyperplanes from one line, followed to their last digit: alone, in clusters, with few digits."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.extraction.any_position.crease_planes import CreasePlanes, follow_planes
from reluctant.extraction.any_position.line_search import LineReader, line_through
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.testing import WORST_CASE, planted
from reluctant.testing.families import bump
from reluctant.testing.faults import in_float32

NOISE = DistanceNoise(2e-15, 6e-16)
SINGLE = DistanceNoise(2e-6, 6e-7)


class Counted:
    """A function that counts its rows."""

    def __init__(self, function):
        self.function, self.rows = function, 0

    def __call__(self, x):
        self.rows += len(x)
        return self.function(x)


def looked_at(ask, dim: int, seed: int, noise: DistanceNoise = NOISE):
    rng = np.random.default_rng(seed)
    line = line_through(rng.standard_normal(dim), rng)
    return LineReader().read(ask, line, noise, rng, CreasePlanes.none(dim, 1)), rng


def distance_to_true(planes: CreasePlanes, true: ReLUNetwork) -> np.ndarray:
    """How far each found hyperplane is from the nearest true one, as vectors (normal, offset)."""
    normals, offsets = true.hyperplanes()
    rows = np.column_stack([normals, offsets])
    found = np.column_stack([planes.normals, planes.offsets])
    apart = np.minimum(np.linalg.norm(found[:, None] - rows, axis=2), np.linalg.norm(found[:, None] + rows, axis=2))
    return apart.min(axis=1)


@pytest.mark.parametrize("name", ["generic 30", "stairs", "clusters 0.001", "clusters 1e-05", "clusters 1e-07"])
def test_followed_hyperplanes_are_true_to_the_last_digits(name, seed):
    true = WORST_CASE[name](seed)
    looked, rng = looked_at(true, true.dim, seed)
    followed = follow_planes(true, looked.planes, looked.noise, rng)
    assert len(followed) >= 0.8 * len(looked.planes)
    assert distance_to_true(followed, true).max() < 1e-13


def test_gradients_alone_would_not_do(seed):
    true = WORST_CASE["clusters 1e-07"](seed)
    looked, _ = looked_at(true, true.dim, seed)
    assert np.median(distance_to_true(looked.planes, true)) > 1e-9


def test_uncertainty_covers_the_error_in_float32(seed):
    true = WORST_CASE["generic 30"](seed)
    target = Counted(lambda x: np.asarray(in_float32(true)(x), dtype=float))
    looked, rng = looked_at(target, true.dim, seed, SINGLE)
    followed = follow_planes(target, looked.planes, SINGLE, rng)
    assert len(followed) >= 5
    off = distance_to_true(followed, true)
    assert np.median(off) < 1e-4
    assert np.mean(off < 3 * (followed.place_sd + 4 * followed.tilt)) > 0.8


def test_one_disc_costs_four_rows_a_place():
    true = ReLUNetwork([np.eye(5)[:1], np.ones((1, 1))], [np.array([-0.3]), np.zeros(1)])
    looked, rng = looked_at(true, 5, 0)
    counted = Counted(true)
    assert len(follow_planes(counted, looked.planes, NOISE, rng)) == 1
    assert counted.rows == 4 * (int(1.5 * 5) + 6)


def test_a_line_through_a_bump_meets_its_three_creases():
    true = bump(0, width=1e-4)
    rng = np.random.default_rng(0)
    inside = true.hyperplanes()[0][0] * (0.5 + 3e-5)
    looked = LineReader().read(true, line_through(inside, rng), NOISE, rng, CreasePlanes.none(12, 1))
    assert len(looked.planes) == 3
    np.testing.assert_allclose(np.sort(-looked.planes.offsets * np.sign(looked.planes.normals @ inside)),
                               [0.5, 0.50005, 0.5001], atol=1e-9)  # fmt: skip


def test_known_hyperplanes_are_not_measured_again(seed):
    true = WORST_CASE["generic 30"](seed)
    rng = np.random.default_rng(seed)
    looked = LineReader().read(
        true, line_through(rng.standard_normal(12), rng), NOISE, rng, CreasePlanes.of(true, 1e-15)
    )
    assert looked.creases == 30
    assert len(looked.planes) == 0


def test_creases_that_bend_are_not_followed():
    true = planted((6, 5, 8, 1), 0)
    looked, rng = looked_at(true, 6, 0)
    followed = follow_planes(true, looked.planes, looked.noise, rng)
    assert len(looked.planes) > len(followed)
    first = ReLUNetwork([true.weights[0], np.ones((1, 5))], [true.biases[0], np.zeros(1)])
    assert np.median(distance_to_true(followed, first)) < 1e-12
