from __future__ import annotations

import numpy as np
from layers_known import known_part, with_open_sides

from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.testing import planted

TRUE = planted((4, 6, 5, 1), 3)
X = np.random.default_rng(0).standard_normal((20, 4))


def test_values_and_features_are_the_networks() -> None:
    local = known_part(TRUE, 2).local(X)
    np.testing.assert_allclose(local.values, np.hstack(TRUE.preactivations(X)), atol=1e-14)
    np.testing.assert_allclose(local.features, np.maximum(TRUE.preactivations(X)[1], 0), atol=1e-14)
    np.testing.assert_allclose(known_part(TRUE, 2).features(X), local.features, atol=1e-14)


def test_slopes_agree_with_differences() -> None:
    known, step = known_part(TRUE, 2), 1e-7
    direction = np.random.default_rng(1).standard_normal(X.shape)
    local, along = known.local(X), known.along(X, direction)
    ahead = known.along(X + step * direction, direction)
    np.testing.assert_allclose(np.einsum("nfd,nd->nf", local.jacobian, direction), along.feature_slopes, atol=1e-12)
    np.testing.assert_allclose(np.einsum("nhd,nd->nh", local.gradients, direction), along.value_slopes, atol=1e-12)
    np.testing.assert_allclose((ahead.features - along.features) / step, along.feature_slopes, atol=1e-5)


def test_slopes_on_demand_are_the_same() -> None:
    known, rng = with_open_sides(known_part(TRUE, 2), np.zeros(5, dtype=bool)), np.random.default_rng(1)
    local, around = known.local(X), known.around(X)
    direction, rows = rng.standard_normal(X.shape), rng.standard_normal((3, *local.features.shape))
    hinges = rng.integers(11, size=len(X))
    np.testing.assert_allclose(around.values, local.values, atol=1e-14)
    np.testing.assert_allclose(around.features, local.features, atol=1e-14)
    np.testing.assert_allclose(
        around.hinge_slopes(direction), np.einsum("nhd,nd->nh", local.gradients, direction), atol=1e-12
    )
    np.testing.assert_allclose(
        around.feature_gradients(rows), np.einsum("nfd,pnf->pnd", local.jacobian, rows), atol=1e-12
    )
    np.testing.assert_allclose(around.hinge_gradients(hinges), local.gradients[np.arange(len(X)), hinges], atol=1e-12)


def test_layer_before_stays_while_sides_are_open() -> None:
    known = with_open_sides(known_part(TRUE, 2), np.zeros(5, dtype=bool))
    hidden = [np.maximum(z, 0) for z in TRUE.preactivations(X)]
    np.testing.assert_allclose(known.features(X), np.hstack([hidden[1], hidden[0]]), atol=1e-14)
    assert not known.sided


def test_one_open_side_costs_one_feature() -> None:
    layer = known_part(TRUE, 1).layers[0]
    undecided = np.arange(6) == 2
    known = KnownLayers(4, (Layer(layer.weights, layer.biases, undecided, layer.carried),))
    features = known.features(X)
    assert features.shape == (20, 7)
    np.testing.assert_allclose(features[:, 6], X @ layer.weights[2])
    assert known.with_sides(undecided).features(X).shape == (20, 6)


def test_carried_features_go_on() -> None:
    first, second = known_part(TRUE, 2).layers
    known = KnownLayers(4, (first, Layer(second.weights, second.biases, second.undecided, np.array([1, 4]))))
    hidden = np.maximum(TRUE.preactivations(X)[0], 0)
    np.testing.assert_allclose(known.features(X)[:, 5:], hidden[:, [1, 4]])
