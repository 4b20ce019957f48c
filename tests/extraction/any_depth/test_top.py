from __future__ import annotations

import numpy as np
from layers_known import known_part, with_open_sides

from reluctant.extraction.any_depth.crease_equations import IncomingWeights, settle_open
from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.any_depth.output_layer import (
    fit_most,
    fit_readout,
    oriented_network,
    readout_deviations,
    without_outputs,
)
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted

TRUE = planted((5, 7, 6, 2), 4, bias=0.3)
X = np.random.default_rng(0).standard_normal((400, 5))


def half_open(true: ReLUNetwork, wrong: np.ndarray) -> KnownLayers:
    return with_open_sides(known_part(true, 2), wrong)


def test_sides_of_the_last_layer_are_found() -> None:
    known = half_open(TRUE, np.arange(6) % 2 == 0)
    network = oriented_network(known, fit_readout(known, X, TRUE(X)), X, TRUE(X))
    assert network.widths == TRUE.widths
    np.testing.assert_allclose(network.weights[1], TRUE.weights[1])
    np.testing.assert_allclose(network(X), TRUE(X), atol=1e-11)


def test_neurons_that_are_always_on_become_two() -> None:
    biases = TRUE.biases[1].copy()
    biases[0] = 1e3
    true = ReLUNetwork([*TRUE.weights[:2], TRUE.weights[2][:1]], [TRUE.biases[0], biases, TRUE.biases[2][:1]])
    first, second = known_part(true, 2).layers
    seen = np.arange(6) > 0
    last = type(second)(second.weights[seen], second.biases[seen], second.undecided[seen], second.carried)
    known = with_open_sides(KnownLayers(5, (first, last)), np.zeros(5, dtype=bool))
    network = oriented_network(known, fit_readout(known, X, true(X)), X, true(X))
    assert network.widths == (5, 7, 7, 1)
    np.testing.assert_allclose(network(X), true(X), atol=1e-9)


def test_carried_features_stay_on() -> None:
    first, second = known_part(TRUE, 2).layers
    known = KnownLayers(5, (first, Layer(second.weights, second.biases, np.ones(6, dtype=bool), np.array([2, 4]))))
    answers = TRUE(X) + np.maximum(TRUE.preactivations(X)[0][:, [2]], 0)
    network = oriented_network(known.with_sides(np.zeros(6, dtype=bool)), fit_readout(known, X, answers), X, answers)
    np.testing.assert_allclose(network(X), answers, atol=1e-9)
    assert (network.preactivations(X)[1][:, 6:] > 0).all()
    assert without_outputs(known, 2).widths == (5, 7, 8, 2)


def test_fit_leaves_out_what_a_missing_neuron_does() -> None:
    known = half_open(TRUE, np.zeros(6, dtype=bool))
    extra = np.maximum(X[:, 0] - 1.8, 0)  # on at a few of the points
    readout = fit_most(known, X, TRUE(X) + extra[:, None])
    off = readout_deviations(known, readout, X, TRUE(X) + extra[:, None])
    np.testing.assert_array_equal(off > 1e-7, extra > 0)


def test_fit_follows_most_rows_where_a_missing_neuron_is_on_at_many() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        true, known = planted((5, 7, 6, 2), seed, bias=0.3), known_part(planted((5, 7, 6, 2), seed, bias=0.3), 2)
        rows = rng.standard_normal((250, 5))
        extra = 3 * np.maximum(rows[:, 0] - 0.55, 0)  # on at 29 of 100
        answers = true(rows) + np.outer(extra, [1.0, -2.0])
        off = readout_deviations(known, fit_most(known, rows, answers), rows, answers)
        assert (off[extra == 0] <= 1e-6).mean() > 0.7, seed


def test_what_is_not_seen_keeps_its_side() -> None:
    rng = np.random.default_rng(0)
    features = np.abs(rng.standard_normal((200, 3))) * (rng.random((200, 3)) < 0.5)
    features[:, 2] += features[:, 2] > 0  # off, or clearly on
    weights = np.array([1.0, -1.0, 0.0])
    incoming = IncomingWeights(weights, np.eye(3)[:, 2:], np.array([1.0, 1.0, 0.0]), 0.0, 0.0)
    settled = settle_open(incoming, features)
    unseen = features[:, 2] > 0
    values = (features - incoming.start) @ settled.weights
    assert settled.margin > 0
    assert (values[unseen] > 0).all() if settled.on else (values[unseen] < 0).all()
    np.testing.assert_array_equal(settled.weights[:2], weights[:2])
