"""Points at which every neuron has its wanted state."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.extraction.depth_three import rows
from reluctant.extraction.depth_three.rows import points_in_states, quiet_points
from reluctant.extraction.method import StageFailed


def neurons(seed: int, n: int = 8, k: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    normals = rng.standard_normal((n, k))
    return normals / np.linalg.norm(normals, axis=1, keepdims=True), rng.standard_normal(n)


def test_only_the_chosen_neuron_is_at_its_hyperplane(seed: int) -> None:
    normals, offsets = neurons(seed)
    states = np.random.default_rng(seed).random((8, 8)) < 0.5
    values = quiet_points(normals, offsets, np.arange(8), states, np.full(8, 2.0)) @ normals.T + offsets
    np.testing.assert_allclose(np.diag(values), 0, atol=1e-12)
    inside = np.where(states, values, -values)[~np.eye(8, dtype=bool)]
    assert inside.min() > 2.0 - 1e-6


def test_no_point_of_that_kind_is_nearer() -> None:
    """Two orthogonal neurons, both off by 3: the corner itself."""
    np.testing.assert_allclose(
        points_in_states(np.eye(2), np.array([1.0, -1.0]), np.zeros((1, 2), dtype=bool), np.full((1, 2), 3.0)),
        [[-4.0, -2.0]],
    )


def test_states_hold_with_room(seed: int) -> None:
    normals, offsets = neurons(seed, 6, 9)
    states = np.random.default_rng(seed).random((20, 6)) < 0.5
    room = np.random.default_rng(seed).uniform(1, 50, (20, 6))
    values = points_in_states(normals, offsets, states, room) @ normals.T + offsets
    assert (np.where(states, values, -values) > room * (1 - 1e-9) - 1e-9).all()


def test_a_search_that_does_not_end_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "NNLS_STEPS", 1 / 8)
    normals, offsets = neurons(0)
    with pytest.raises(StageFailed, match=r"^refine: "):
        points_in_states(normals, offsets, np.ones((1, 8), dtype=bool), np.ones((1, 8)))
