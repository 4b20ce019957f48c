"""Four points across a place tell whether the crease there is the one that was expected."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.geometry import DistanceNoise
from reluctant.geometry.gradients import cross

NOISE = DistanceNoise(1e-16, 1e-16)
ONE = np.ones(1)


def bent(*creases: float):
    """A function of two inputs and two outputs with creases at these values of the first."""
    return lambda x: np.stack([sum(np.maximum(x[:, 0] - t, 0) for t in creases), x[:, 0] + x[:, 1]], axis=1)


@pytest.mark.parametrize(("crease", "expected"), [(0.0, True), (0.01, True), (0.2, False), (5.0, False)])
def test_only_a_crease_in_its_place_counts(crease: float, expected: bool) -> None:
    seen = cross(bent(crease), np.zeros((1, 2)), np.array([[1.0, 0.0]]), ONE, NOISE, 0.05 * ONE)
    assert seen.critical[0] == expected
    if expected:
        assert seen.position[0] == pytest.approx(crease, abs=1e-14)
        np.testing.assert_allclose(seen.bend[0], [1, 0], atol=1e-14)
        np.testing.assert_allclose(seen.before[0], [0, 1], atol=1e-14)
        assert seen.size[0] == pytest.approx(1.0)


def test_a_second_crease_in_between_is_noticed() -> None:
    seen = cross(bent(0.0, 0.7), np.zeros((1, 2)), np.array([[1.0, 0.0]]), ONE, NOISE, 0.05 * ONE)
    assert not seen.critical[0]


def test_cost_is_four_rows_a_place() -> None:
    rows = []
    cross(
        lambda x: rows.append(len(x)) or bent(0.0)(x),
        np.zeros((3, 2)),
        np.eye(2)[[0, 0, 1]],
        np.ones(3),
        NOISE,
    )
    assert rows == [12]


def test_a_place_on_another_crease_has_no_reach_and_shows_nothing() -> None:
    seen = cross(bent(0.0), np.zeros((2, 2)), np.array([[1.0, 0.0]] * 2), np.array([0.0, 1.0]), NOISE)
    assert seen.critical.tolist() == [False, True]
    assert not seen.bend[0].any()
    assert not seen.before[0].any()
