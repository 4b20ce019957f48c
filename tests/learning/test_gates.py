"""Clusters below the noise: one gate stands for them, as a pair of neurons."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction.any_position.crease_planes import CreasePlanes, draw_sample, fit_outputs
from reluctant.extraction.any_position.line_search import GateSearch, line_through
from reluctant.geometry import DistanceNoise
from reluctant.testing import relative_square_error
from reluctant.testing.families import cancelling_clusters, generic

NOISE = DistanceNoise(1e-12, 1e-13)
NORMAL = np.array([0.6, 0.8, 0.0, 0.0])
OFFSET = -0.3
PAIR_DIGITS = 1e-4  # a pair loses two thirds of the digits


def gated(x: np.ndarray) -> np.ndarray:
    """An affine map beyond a hyperplane, nothing before it."""
    return np.where(x @ NORMAL + OFFSET > 0, 1e-3 * (x @ [0.2, -0.4, 0.1, 0.06] + 1), 0.0)[:, None]


def test_the_hyperplane_of_a_step_is_found(seed):
    rng = np.random.default_rng(seed)
    near = 0.2 * NORMAL + rng.standard_normal() * np.array([0.0, 0.0, 1.0, 0.0])  # of the origin and of the step
    gate = GateSearch().find(gated, line_through(near, rng), NOISE, rng)
    assert gate.gate.all()
    side = np.sign(gate.normals[0] @ NORMAL)
    np.testing.assert_allclose(side * gate.normals[0], NORMAL, atol=1e-8)
    np.testing.assert_allclose(side * gate.offsets[0], OFFSET, atol=1e-8)


def test_a_bend_is_no_step(seed):
    network = generic(seed, 10)
    rng = np.random.default_rng(seed)
    assert GateSearch().find(network, line_through(rng.standard_normal(12), rng), NOISE, rng) is None


def test_a_gate_becomes_a_pair_of_neurons(seed):
    rng = np.random.default_rng(seed)
    one = np.ones(1)
    planes = CreasePlanes(
        NORMAL[None], OFFSET * one, -OFFSET * NORMAL[None], 1e-9 * one, 1e-9 * one, np.zeros((1, 1)),
        np.inf * one, one, np.ones(1, dtype=bool),
    )  # fmt: skip
    network = fit_outputs(planes, draw_sample(gated, planes, NOISE, rng))
    assert network.widths == (4, 2, 1)
    rows = rng.standard_normal((1000, 4))
    rows = rows[np.abs(rows @ NORMAL + OFFSET) > 1e-6]
    np.testing.assert_allclose(network(rows), gated(rows), atol=1e-3 * PAIR_DIGITS)


@pytest.mark.parametrize("angle", [1e-12])
def test_clusters_that_cannot_be_told_apart_are_learned_as_gates(angle):
    true = cancelling_clusters(3, angle)
    result = rl.learn(rl.open_oracle(true), eps=1e-6, rng=3)
    assert result.outcome is rl.Outcome.LEARNED
    assert result.rows["gates"].queries > 0
    assert relative_square_error(result.network, true, points=20_000) < 1e-6
