"""The row space of a target of any depth: rank, basis, margin, rows."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.geometry import DistanceNoise
from reluctant.geometry.lines import orthogonal_moves
from reluctant.geometry.row_space import row_space
from reluctant.interface.health import examine
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Counting
from reluctant.testing import planted


def opened(network: ReLUNetwork, seed: int) -> tuple[Counting, DistanceNoise, np.random.Generator]:
    oracle, rng = rl.open_oracle(network), np.random.default_rng(seed)
    return oracle, DistanceNoise.of(examine(oracle, rng, 4), oracle.dim), rng


# widths, most rows besides dim for each direction and output
SHAPES = [
    ((20, 10, 20, 1), 60),
    ((80, 40, 20, 1), 70),
    ((300, 12, 8, 1), 80),
    ((30, 8, 8, 8, 3), 60),
    ((40, 25, 1), 60),
]


@pytest.mark.parametrize(("widths", "extra"), SHAPES)
def test_rank_and_basis(widths: tuple[int, ...], extra: int, seed: int) -> None:
    network = planted(widths, 20 + seed)
    oracle, noise, rng = opened(network, seed)
    before = oracle.queries
    found = row_space(oracle.query, oracle.dim, noise, rng)
    true = np.linalg.qr(network.weights[0].T)[0].T
    assert found.rank == widths[1]
    assert np.linalg.norm(true - (true @ found.frame.basis.T) @ found.frame.basis, 2) < 1e-8
    assert found.margin < 1e-5
    assert oracle.queries - before <= found.rank * (oracle.dim + extra)


def test_outputs_bring_several_directions_at_once(seed: int) -> None:
    network = planted((64, 32, 16, 10), seed)
    oracle, noise, rng = opened(network, seed)
    before = oracle.queries
    assert row_space(oracle.query, oracle.dim, noise, rng).rank == 32
    assert oracle.queries - before <= 0.7 * 32 * 64


def test_constant_has_rank_zero() -> None:
    found = row_space(lambda x: np.ones((len(x), 2)), 7, DistanceNoise(1e-16, 1e-16), np.random.default_rng(0))
    assert (found.rank, found.margin, found.gradients) == (0, 0.0, 0)
    assert found.frame.basis.shape == (0, 7)


def test_full_rank_is_the_whole_space(seed: int) -> None:
    oracle, noise, rng = opened(planted((6, 9, 4, 1), seed), seed)
    assert row_space(oracle.query, 6, noise, rng).rank == 6


def test_moves_are_orthogonal_and_as_long_as_asked() -> None:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((9, 4)))[0].T
    moves = orthogonal_moves(basis, 5, 3.0, rng)
    np.testing.assert_allclose(moves @ basis.T, 0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(moves, axis=1), 3.0)


def test_a_curved_target_has_no_margin() -> None:
    found = row_space(lambda x: np.sin(9 * x[:, :2]), 4, DistanceNoise(1e-16, 1e-16), np.random.default_rng(0))
    assert found.margin == np.inf
