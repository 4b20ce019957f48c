"""Two hidden layers from labels: straight creases, active sides, the layers above, a named part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction.depth_three.first_layer import FirstLayer
from reluctant.extraction.depth_three.method import compose, peel
from reluctant.extraction.from_labels.layer_creases import LAYER_FLAT, LayerFlat, LayerSearch, OneHiddenLayer, oriented
from reluctant.extraction.from_labels.method import hidden_inputs, look
from reluctant.extraction.from_labels.walks import Creases, Facets, Walks
from reluctant.extraction.method import StageFailed
from reluctant.geometry import DistanceNoise
from reluctant.geometry.boundary import only_labels
from reluctant.networks import ReLUNetwork


def deep(seed: int, n: int, first: int, second: int) -> ReLUNetwork:
    """A random network with two hidden layers, above 0 at half of Gaussian inputs."""
    rng = np.random.default_rng(seed)
    weights = [
        rng.standard_normal((first, n)) / np.sqrt(n),
        1.4 * rng.standard_normal((second, first)) / np.sqrt(first),
    ]
    biases, out = [rng.standard_normal(first) / 2, rng.standard_normal(second) / 2], rng.standard_normal(second)
    hidden = rng.standard_normal((2000, n))
    for weight, bias in zip(weights, biases, strict=True):
        hidden = np.maximum(hidden @ weight.T + bias, 0)
    return ReLUNetwork([*weights, out[None]], [*biases, np.array([-np.median(hidden @ out)])])


def facets_of(weights: np.ndarray, biases: np.ndarray, parts: np.ndarray, rng: np.random.Generator) -> Facets:
    """Facets at random places, whose normals are sums of the active neurons' weights."""
    points = 3 * rng.standard_normal((60, weights.shape[1]))
    active = points @ weights.T + biases > 0
    normals = (active * parts[rng.integers(len(parts), size=60)]) @ weights
    normals /= np.linalg.norm(normals, axis=1, keepdims=True) + 1e-300
    empty = Facets.none(weights.shape[1])
    return Facets(
        points, normals, np.tile([0, 1], (60, 1)), np.empty((60, *empty.beside.shape[1:])), points, np.zeros(60)
    )


def test_active_sides_and_a_deeper_crease():
    """A deeper crease is a sum of the layer's weights, and has a part on both its sides: it is left out."""
    rng = np.random.default_rng(0)
    weights, biases = rng.standard_normal((3, 8)), rng.standard_normal(3)
    size = np.linalg.norm(weights, axis=1)
    weights, biases = weights / size[:, None], biases / size
    facets = facets_of(weights, biases, rng.standard_normal((4, 3)), rng)
    deeper = weights.T @ np.array([1.0, -2.0, 1.0])
    directions = np.vstack([-weights[:1], weights[1:], deeper / np.linalg.norm(deeper)])
    creases = Creases(directions, np.array([-biases[0], *biases[1:], 0.3]), np.array([9, 8, 7, 3]))
    layer, unclear = oriented(creases, facets, 8)
    assert np.allclose(layer.weights, weights)
    assert np.allclose(layer.biases, biases)
    assert unclear < 1e-9


def search(network: ReLUNetwork, seed: int):
    oracle = rl.open_oracle(lambda x: (network(x)[:, 0] > 0).astype(float), dim=network.dim)
    labels, rng = only_labels(oracle), np.random.default_rng(seed)
    seen = look(labels, None, rng)
    space = seen.space(labels, 2.0**-46, rng)
    return LayerSearch.of(space), seen.flat(space, LAYER_FLAT)


def test_the_first_layer_to_the_last_digits():
    true = deep(3, 12, 5, 4)
    found, flat = search(true, 3)
    layer = found.run(flat)
    rows = true.weights[0] / np.linalg.norm(true.weights[0], axis=1, keepdims=True)
    apart = np.linalg.norm(layer.weights[:, None] - rows, axis=2)
    assert apart.min(axis=0).max() < 1e-9  # on their active sides


def test_labels_refuse_a_layer_with_a_wrong_neuron_or_without_one():
    true = deep(3, 12, 5, 4)
    found, _ = search(true, 3)
    found.probed()
    right = FirstLayer(true.weights[0], true.biases[0], 1.0, np.ones(5), np.zeros(5))
    deeper = replace(right, weights=true.weights[0].copy())
    deeper.weights[2] = true.weights[0][[2, 4]].sum(axis=0)  # as a crease of the second layer
    missing = replace(right, weights=true.weights[0][:4], biases=true.biases[0][:4])
    shifted = replace(right, biases=true.biases[0] - [0, 0, 0, 0.3, 0])
    assert found.moved(right) == 0
    assert all(found.moved(layer) > 0 for layer in (deeper, missing, shifted))


def shallow(seed: int, n: int, k: int) -> ReLUNetwork:
    """A random network with one hidden layer."""
    rng = np.random.default_rng(seed)
    weights, out = rng.standard_normal((k, n)) / np.sqrt(n), rng.standard_normal((1, k))
    return ReLUNetwork([weights, out], [rng.standard_normal(k) / 2, np.zeros(1)])


def test_one_hidden_layer_is_recognised():
    found, flat = search(shallow(3, 20, 10), 0)
    with pytest.raises(OneHiddenLayer):
        LayerFlat(found, Walks.none(flat)).run()


def test_one_hidden_layer_of_many_inputs_costs_no_more_than_its_flat():
    """A facet of the whole space costs 45 rows an input: none is measured before the flat has shown deeper creases."""
    found, flat = search(shallow(3, 300, 6), 0)
    asked, ask = [0], flat.ask

    def counted(rows: np.ndarray) -> np.ndarray:
        asked[0] += len(rows)
        return ask(rows)

    found.space = replace(found.space, ask=counted)
    with pytest.raises(OneHiddenLayer):
        found.run(replace(flat, ask=counted))
    assert asked[0] < 25_000


def right(found: ReLUNetwork, true: ReLUNetwork, scale: float) -> bool:
    """Whether both give the same labels at all but one of 10,000 random inputs of a scale."""
    x = scale * np.random.default_rng(1).standard_normal((50_000, true.dim))
    return bool(((found(x)[:, 0] > 0) != (true(x)[:, 0] > 0)).mean() <= 1e-4)


def test_the_layers_above_a_known_first_one():
    """Most hidden values of an input are 0: creases that meet the boundary only there are found too.

    One flat in four or five shows them all, and `FromLabels` looks in twenty.
    """
    true = deep(4, 20, 10, 5)
    oracle = only_labels(rl.open_oracle(lambda x: (true(x)[:, 0] > 0).astype(float), dim=20))
    size = np.linalg.norm(true.weights[0], axis=1)
    layer = FirstLayer(true.weights[0] / size[:, None], true.biases[0] / size, 1.0, np.ones(10), np.zeros(10))

    def found(seed: int) -> bool:
        rng = np.random.default_rng(seed)
        inputs = hidden_inputs(layer, look(oracle, None, rng), rng)
        try:
            top = rl.FromLabels(hidden_layers=1).search(
                peel(oracle, layer), DistanceNoise(0, 0), rng, lambda part: None, inputs
            )
        except StageFailed:
            return False
        whole = compose(layer, top.network)
        return right(whole, true, 1.0) and right(whole, true, 3.0)

    assert sum(map(found, range(10))) >= 2


def test_two_hidden_layers_from_labels_alone():
    true = deep(3, 8, 4, 3)
    result = rl.extract(lambda x: (true(x)[:, 0] > 0).astype(float), dim=8, rng=0)
    assert result.ok
    assert result.network.widths[:2] == (8, 4)
    assert result.network.depth == 3
    assert result.evidence["boundary error"] <= 1e-6
    assert right(result.network, true, 1.0)
    assert right(result.network, true, 3.0)


@pytest.mark.slow
@pytest.mark.parametrize("target", range(6))
def test_two_hidden_layers_are_right_or_refused(target):
    """Regions of another label that only large inputs meet end the first of these as unverified."""
    true = deep(target, 8, 4, 3)
    result = rl.extract(lambda x: (true(x)[:, 0] > 0).astype(float), dim=8, rng=0)
    assert not result.ok or (right(result.network, true, 1.0) and right(result.network, true, 3.0))


@pytest.mark.slow
def test_a_first_layer_without_the_rest_is_a_part():
    true = deep(2, 12, 5, 4)
    result = rl.extract(lambda x: (true(x)[:, 0] > 0).astype(float), dim=12, rng=0, budget=150_000)
    assert not result.ok
    assert result.network is None or result.network.widths == (12, 5, 1)
