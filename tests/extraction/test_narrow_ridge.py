"""A ridge 0.01 wide among twenty neurons: most lines and most random inputs do not meet it."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.domains import Domain
from reluctant.oracles.open import as_opened
from reluctant.testing import planted
from reluctant.testing.families import narrow_ridge
from reluctant.verification.agreement import HeldOutRows, examine
from reluctant.verification.comparison import AcceptedError
from reluctant.verification.points import PointCounts, line_points, rare_points

DIM, WIDE = 12, 0.01


@pytest.mark.parametrize("seed", sweep([3, 9], fast=[9]))
def test_lines_through_unexplained_points_find_the_ridge(seed: int) -> None:
    true = narrow_ridge(seed)
    found = rl.extract(true, rng=seed)
    assert found.ok
    assert found.network.widths == true.widths
    assert found.evidence["attempts"].entries[-1].method == "AnyPosition"


def test_two_hidden_layers_are_not_explained_by_one() -> None:
    found = rl.extract(planted((8, 6, 5, 1), 0), rl.AnyPosition(), rng=0, attempts=1)
    assert found.outcome is rl.Outcome.PARTIAL
    assert found.evidence["attempts"].entries[0].stage == "lines"


@pytest.mark.parametrize("seed", sweep([3, 5, 9, 11, 50_000, 50_003, 50_104, 50_111], fast=[5, 50_000, 50_104]))
def test_a_network_without_the_ridge_is_not_ok(seed: int) -> None:
    true = narrow_ridge(seed)
    found = rl.extract(true, rng=seed)
    rows = np.random.default_rng(99).standard_normal((20_000, DIM))
    assert not found.ok or np.abs(found.network(rows) - true(rows)).max() < 1e-6 * true(rows).std()


def test_rows_beside_the_line_meet_a_ridge_that_its_creases_do_not_show() -> None:
    true = narrow_ridge(308)
    in_the_middle = rl.extract(true, rl.DepthTwo(spread=0.0), rng=308, attempts=1)
    assert in_the_middle.outcome is rl.Outcome.UNVERIFIED  # random points alone met it
    spread = rl.extract(true, rl.DepthTwo(), rng=308, attempts=1)
    assert spread.evidence["attempts"].entries[0].stage == "scaffold"
    assert spread.queries < in_the_middle.queries


def test_a_ridge_that_one_row_has_met_is_found_through_it() -> None:
    near = narrow_ridge(9)
    first, second = (bias.copy() for bias in near.biases)
    first[-3:] += 4.5 * np.sign(first[-2])  # where no random input is
    true = rl.ReLUNetwork(near.weights, [first, second])
    normals, offsets = true.hyperplanes()
    in_it = (0.3 * WIDE - offsets[-2]) * normals[-2:-1]
    found = rl.extract(true, rl.AnyPosition(points=50, through=in_it), rng=1, attempts=1)
    assert found.ok
    assert found.network.widths == true.widths
    without = rl.extract(true, rl.AnyPosition(points=50), rng=1, attempts=1)
    assert without.network.widths[1] == true.widths[1] - 3


def test_a_line_whose_far_end_is_noisier_than_measured_ends() -> None:
    """The neurons of a ridge are large and cancel; far out their roundings look like creases without end."""
    found = rl.extract(narrow_ridge(40_017), rl.DepthTwo(), rng=40_017, attempts=1)
    assert found.outcome is rl.Outcome.PARTIAL
    assert found.queries < 6000


def test_rows_that_spoke_against_an_earlier_network_speak_against_the_next() -> None:
    true = narrow_ridge(0)
    lacking = rl.ReLUNetwork([true.weights[0][:-3], true.weights[1][:, :-3]], [true.biases[0][:-3], true.biases[1]])
    normals, offsets = true.hyperplanes()
    there = -offsets[-2] * normals[-2:-1]
    oracle, rng = as_opened(rl.open_oracle(true)), np.random.default_rng(2)
    against = [HeldOutRows(there, true(there))]
    found = examine(oracle, lacking, rng, PointCounts(points=2), AcceptedError(tol=1e-8), counterexamples=against)
    assert not found.ok
    assert found.counterexamples is not None
    np.testing.assert_array_equal(found.counterexamples.rows[0], there[0])


def test_the_share_that_may_differ_is_that_of_a_narrow_ridge() -> None:
    found = rl.verify(planted((6, 4, 1)), planted((6, 4, 1)))
    rows = np.random.default_rng(1).standard_normal(400_000)
    assert np.mean(np.abs(rows) < found.narrowest / 2) == pytest.approx(found.share, rel=0.05)
    assert found.to_dict()["narrowest"] == found.narrowest


def test_rare_neurons_are_met_on_the_side_they_are_rarely_on() -> None:
    network = planted((10, 8, 6, 1), 3)
    weights, biases = network.weights, [b.copy() for b in network.biases]
    biases[0][0], biases[1][2] = -3.5 * np.linalg.norm(weights[0][0]), -6.0
    rare = rl.ReLUNetwork(weights, biases)
    points = rare_points(rare, 32, Domain(), np.random.default_rng(0))
    first, second = rare.patterns(points)[:2]
    assert first[:, 0].any()
    assert second[:, 2].any()
    assert (np.linalg.norm(points, axis=1) <= 3 * np.sqrt(10) + 1e-9).all()


def test_lines_have_a_point_in_every_piece() -> None:
    network = planted((10, 8, 6, 1), 3)
    pieces = []
    for count in (16, 200):
        points = line_points(network, count, Domain(), np.random.default_rng(0))
        assert len(points) == count
        pieces.append(len(np.unique(np.hstack(network.patterns(points)[:2]), axis=0)))
    assert pieces[0] > 12
    assert pieces[1] > 16


def test_lines_of_a_wide_network_have_one_too_where_that_is_a_small_share_of_the_rows() -> None:
    network = planted((20, 60, 1), 3)
    points = line_points(network, 48, Domain(), np.random.default_rng(0), most=400)
    assert 80 < len(points) <= 2 * 61
    assert len(np.unique(network.patterns(points)[0], axis=0)) > 0.9 * len(points)  # some pieces are very narrow
    assert len(line_points(network, 48, Domain(), np.random.default_rng(0), most=60)) == 48
