"""The span from labels alone: rank, angle, rows, and the wall that lets nothing but labels pass."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.geometry.boundary import LabelLines, label_crossings, only_labels
from reluctant.papers import span_algorithms
from reluctant.testing import labelled, planted

KN = 50 * 8
MOST = 120  # queries over k·n


def true_span(network) -> rl.Subspace:
    return rl.Subspace.spanned_by(network.weights[0].astype(float))


@pytest.mark.parametrize("activation", ["tanh", "softplus", "relu"])
def test_rank_angle_and_rows(activation, seed):
    network = labelled((50, 8, 16, 1), activation, 40 + seed)
    span = rl.recover_span(rl.open_oracle(network, dim=50), labels=True, rng=seed)
    assert (span.outcome, span.rank) == (rl.Outcome.SPAN_RECOVERED, 8)
    assert span.subspace.distance(true_span(network)) < 1e-12
    assert span.angle < 1e-11
    assert span.margin < 1e-9
    assert span.queries <= MOST * KN


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_float32(activation, seed):
    network = labelled((50, 8, 16, 1), activation, 40 + seed, dtype=np.float32)
    span = rl.recover_span(rl.open_oracle(network, dim=50), labels=True, rng=seed)
    assert span.ok
    assert span.rank == 8
    assert span.subspace.distance(true_span(network)) < 1e-4
    assert span.evidence["resolution"] > 1e-9


def test_more_directions_than_boundary_points_of_a_check(seed):
    network = labelled((76, 66, 30, 1), "relu", 40 + seed)
    span = rl.recover_span(rl.open_oracle(network, dim=76), labels=True, rng=seed)
    assert (span.outcome, span.rank) == (rl.Outcome.SPAN_RECOVERED, 66)
    assert span.subspace.distance(true_span(network)) < 1e-11


def test_classes_of_several_outputs(seed):
    network = planted((30, 5, 8, 4), 9 + seed)
    span = rl.recover_span(rl.open_oracle(lambda x: network(x).argmax(axis=1), dim=30), labels=True, rng=seed)
    assert span.ok
    assert span.rank == 5
    assert span.subspace.distance(true_span(network)) < 1e-9


def same(one: rl.Span, other: rl.Span) -> bool:
    return one.outcome == other.outcome and one.rows == other.rows and np.array_equal(one.basis, other.basis)


def test_values_are_never_used(seed):
    """Any answers with the same labels give the same run, to the last bit."""
    network = planted((20, 4, 6, 3), 2 + seed)
    targets = {
        "values": network,
        "other values": lambda x: 2 * network(x),
        "one-hot": lambda x: np.eye(3)[network(x).argmax(axis=1)],
    }
    runs = [rl.recover_span(rl.open_oracle(f, dim=20), labels=True, rng=seed) for f in targets.values()]
    first = runs[0]
    for run in runs[1:]:
        assert run.outcome == first.outcome
        np.testing.assert_array_equal(run.basis, first.basis)


def test_one_output_at_a_threshold(seed):
    network = planted((20, 4, 6, 1), 2 + seed)
    level = float(np.median(network(np.random.default_rng(0).standard_normal((500, 20)))))
    by_threshold = rl.recover_span(rl.open_oracle(lambda x: network(x), dim=20), labels=True, threshold=level, rng=seed)
    binary = rl.recover_span(rl.open_oracle(lambda x: (network(x) >= level) * 1.0, dim=20), labels=True, rng=seed)
    assert by_threshold.ok
    assert same(by_threshold, binary)


def test_only_labels_pass():
    values = np.random.default_rng(0).standard_normal((6, 3))
    wall = only_labels(rl.open_oracle(lambda x: values[: len(x)], dim=2))
    np.testing.assert_array_equal(wall.query(np.zeros((6, 2)))[:, 0], values.argmax(axis=1))
    assert wall.outputs == 1
    one = only_labels(rl.open_oracle(lambda x: values[: len(x), :1], dim=2))
    np.testing.assert_array_equal(one.query(np.zeros((6, 2)))[:, 0], values[:, 0] >= 0.5)


def test_a_box_is_never_left(seed):
    network = planted((12, 3, 4, 1), 3 + seed, bias=0.2)
    level = float(np.median(network(np.random.default_rng(0).uniform(0, 1, (500, 12)))))

    def inside(x):
        assert (x >= 0).all()
        assert (x <= 1).all()
        return network(x) >= level

    span = rl.recover_span(rl.open_oracle(inside, dim=12, domain=(0, 1)), labels=True, rng=seed)
    assert span.ok
    assert np.linalg.norm(true_span(network).reject(span.basis), 2) < 1e-6


def test_crossings_cost_their_entropy():
    rng, asked = np.random.default_rng(0), []
    true = rng.standard_normal(1000)

    def ask(rows):
        asked.append(len(rows))
        return (rows[:, :1] > rows[:, 1:2]).astype(float)

    starts = np.column_stack([np.zeros(1000), true])
    found = label_crossings(
        ask, LabelLines(starts, np.tile([1.0, 0.0], (1000, 1)), np.zeros(1000)), 0.0, 1.0, 2.0**-20, 100.0
    )
    np.testing.assert_allclose(found, true, atol=2.0**-20)
    assert sum(asked) / 1000 < 20 + 2.7


def test_a_crossing_that_is_not_there_is_nan():
    lines = LabelLines(np.zeros((1, 2)), np.array([[1.0, 0.0]]), np.zeros(1))
    assert np.isnan(label_crossings(lambda rows: np.zeros((len(rows), 1)), lines, 0.0, 1.0, 1e-3, 100.0)).all()


def test_algorithm_2_gives_directions_of_the_span(seed):
    network = labelled((30, 4, 8, 1), "tanh", 4 + seed)
    found = span_algorithms.algorithm_2(lambda x: network(x)[:, None], 30, 2, rng=seed)
    assert found.rank >= 1
    assert np.linalg.norm(true_span(network).reject(found.basis), 2) < 1e-2


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_algorithm_2_ends_on_a_target_that_never_changes(label):
    asked = []

    def never(x):
        asked.append(len(x))
        return np.full((len(x), 1), label)

    assert span_algorithms.algorithm_2(never, 5, 2).rank == 0
    assert min(asked) > 1  # no row by itself


def test_a_rank_of_zero_is_refused():
    with pytest.raises(InvalidInput, match="k, gamma"):
        span_algorithms.algorithm_1(lambda x: x[:, :1], 5, 0)
