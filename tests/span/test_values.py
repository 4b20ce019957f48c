"""The span from values: rank, angle, margin and rows on planted networks."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.papers import span_algorithms
from reluctant.testing import in_float32, planted


def true_span(network: rl.ReLUNetwork) -> rl.Subspace:
    return rl.Subspace.spanned_by(network.weights[0])


# widths, most queries over k·n: coarse, fine
DEEP = [
    ((300, 30, 20, 10, 1), 1.05, 2.1),
    ((200, 20, 6, 3, 1), 1.15, 2.2),
    ((120, 40, 1), 1.0, 2.05),
]


@pytest.mark.parametrize(("widths", "coarse", "fine"), DEEP, ids=str)
def test_rank_angle_and_rows(widths, coarse, fine, seed):
    network = planted(widths, 7 + seed, bias=0.3)
    n, k = widths[:2]
    rough = rl.recover_span(rl.open_oracle(network), rng=seed, fine=False)
    assert (rough.rank, rough.outcome) == (k, rl.Outcome.SPAN_RECOVERED)
    assert rough.subspace.distance(true_span(network)) < 1e-7
    assert rough.queries <= coarse * k * n
    good = rl.recover_span(rl.open_oracle(network), rng=seed)
    assert good.ok
    assert good.rank == k
    assert good.subspace.distance(true_span(network)) < 1e-11
    assert good.angle < 1e-11
    assert good.margin < 0.1
    assert good.queries <= fine * k * n


def test_queries_are_those_of_the_oracle(seed):
    oracle = rl.open_oracle(planted((40, 6, 4, 1), seed))
    oracle.query(np.zeros((5, 40)))
    span = rl.recover_span(oracle, rng=seed)
    assert span.queries == oracle.queries - 5
    assert set(span.rows) == {"look", "health", "search", "refinement", "verification"}


def test_outputs_bring_several_directions_at_once(seed):
    network = planted((100, 30, 16, 10), 3 + seed)
    span = rl.recover_span(rl.open_oracle(network), rng=seed)
    assert span.rank == 30
    assert span.subspace.distance(true_span(network)) < 1e-11
    assert span.queries <= 1.1 * 30 * 100  # one output: 2.1


def test_the_paper_thin_network(seed):
    """Layers of three neurons: most gradients are zero, all 40 directions are there all the same."""
    network = planted((300, 40, 3, 3, 3, 1), 1 + seed, bias=0.0, zero_output_bias=True)
    span = rl.recover_span(rl.open_oracle(network), rng=seed, fine=False)
    assert span.ok
    assert span.subspace.distance(true_span(network)) < 1e-7
    assert span.queries <= 1.3 * 40 * 300


@pytest.mark.parametrize("widths", [(200, 20, 12, 1), (200, 20, 6, 3, 1)], ids=str)
def test_float32_with_the_rank_unknown(widths, seed):
    network = planted(widths, 11 + seed, bias=0.0, zero_output_bias=True)
    span = rl.recover_span(rl.open_oracle(in_float32(network), dim=200), rng=seed)
    assert span.ok
    assert span.rank == 20
    assert span.subspace.distance(true_span(network)) < 5e-5
    assert span.queries <= 21 * 20 * 200


def test_a_box_is_never_left(seed):
    network = planted((30, 6, 4, 1), 5 + seed)

    def inside(x):
        assert (x >= 0).all()
        assert (x <= 1).all()
        return network(x)

    span = rl.recover_span(rl.open_oracle(inside, dim=30, domain=(0, 1)), rng=seed)
    assert span.ok
    assert np.linalg.norm(true_span(network).reject(span.basis), 2) < 1e-9


def test_linear_target_has_one_direction(seed):
    weights = np.random.default_rng(seed).standard_normal((1, 20))
    span = rl.recover_span(rl.open_oracle(lambda x: x @ weights.T, dim=20), rng=seed)
    assert (span.ok, span.rank) == (True, 1)
    assert span.subspace.distance(rl.Subspace.spanned_by(weights)) < 1e-12


def test_dead_inputs_are_invisible(seed):
    network = planted((20, 8, 1), seed)
    span = rl.recover_span(rl.open_oracle(lambda x: network(x[:, :20]), dim=50), rng=seed)
    assert span.ok
    assert np.abs(span.basis[:, 20:]).max() < 1e-12


def test_algorithm_1_finds_the_same_span(seed):
    network = planted((40, 8, 6, 1), 3 + seed)
    found = span_algorithms.algorithm_1(network, 40, 8, rng=seed)
    assert found.distance(rl.recover_span(rl.open_oracle(network), rng=seed).subspace) < 1e-7


def test_the_angle_is_one(seed):
    """What is said is never far below the truth, weak directions included."""
    for weakness, single in ((1.0, True), (0.01, True), (1e-3, False)):
        network = planted((40, 8, 12, 1), 70 + seed)
        weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
        weights[0][0] *= weakness
        biases[0][0] *= weakness
        weak = rl.ReLUNetwork(weights, biases)
        first = weak.weights[0].astype(np.float32).astype(float) if single else weak.weights[0]
        target = in_float32(weak) if single else weak
        span = rl.recover_span(rl.open_oracle(target, dim=40), rng=seed, fine=single)
        assert span.ok
        assert span.angle > span.subspace.distance(rl.Subspace.spanned_by(first)) / 2
