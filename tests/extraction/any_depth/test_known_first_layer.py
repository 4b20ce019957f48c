"""A first layer that depth three has found: how many layers there are above it, and the search that begins with it."""

from __future__ import annotations

import numpy as np
import pytest
from layers_known import crease_of, search_tools

import reluctant as rl
from reluctant.extraction.any_depth.crease_equations import solve_crease
from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.any_depth.layer import LayerLimits, LayerSearch, Neuron
from reluctant.extraction.any_depth.output_layer import spanning_points
from reluctant.extraction.any_depth.search_space import SearchSpace
from reluctant.extraction.depth_three.first_layer import find_first_layer
from reluctant.extraction.method import OrientedHyperplanes, Shows, StageFailed
from reluctant.geometry import DistanceNoise, Frame
from reluctant.interface.health import examine
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted

THREE = (12, 6, 6, 6, 2)


def shown(true: ReLUNetwork, seed: int) -> OrientedHyperplanes | None:
    """The first layer of a network with more than two hidden ones, None of another."""
    oracle, rng = rl.open_oracle(true), np.random.default_rng(seed)
    noise = DistanceNoise.of(examine(oracle, rng, 4), oracle.dim)
    try:
        find_first_layer(oracle, noise, rng)
    except StageFailed as failure:
        return failure.handover.first if failure.shows is Shows.BENT_CREASES else None
    return None


@pytest.mark.parametrize("seed", range(3))
def test_a_third_layer_shows_before_first_weights_are_measured(seed: int) -> None:
    true = planted(THREE, 5100 + seed)
    first = shown(true, seed)
    assert first is not None
    rows = true.weights[0] @ first.frame.basis.T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert np.allclose((first.normals @ rows.T).max(axis=0), 1)  # on their active sides


@pytest.mark.parametrize("seed", range(3))
def test_two_layers_are_not_taken_for_three(seed: int) -> None:
    assert shown(planted((12, 6, 10, 1), 5200 + seed), seed) is None


def test_the_search_begins_above_a_layer_that_is_known() -> None:
    true = planted(THREE, 5101)
    result = rl.extract(rl.open_oracle(true), rng=1)
    assert result.ok
    assert [each.method for each in result.evidence["attempts"].entries] == ["DepthTwo", "DepthThree", "AnyDepth"]
    rows = np.random.default_rng(0).standard_normal((1000, 12))
    assert np.abs(result.network(rows) - true(rows)).max() < 1e-8 * true(rows).std()


def test_inputs_of_a_subspace_are_as_large_as_elsewhere() -> None:
    rng = np.random.default_rng(3)
    frame = Frame(np.zeros(50), np.linalg.qr(rng.standard_normal((50, 8)))[0].T)
    normals = np.linalg.qr(rng.standard_normal((8, 5)))[0].T
    space = SearchSpace.around(OrientedHyperplanes(frame, normals, rng.standard_normal(5)), 50)
    assert space.dim == 5
    y = rng.standard_normal((4000, 5))
    assert np.linalg.norm(space.points(y), axis=1).mean() == pytest.approx(np.sqrt(50), rel=0.06)
    network = planted((5, 5, 1), 0)
    assert np.allclose(space.lifted(network)(space.points(y[:9])), network(y[:9]))


def test_gradients_for_first_weights_are_few_where_outputs_are_many() -> None:
    network = planted((40, 12, 10, 8), 1)
    points, combinations, _ = spanning_points(network, np.random.default_rng(0))
    assert len(points) <= 4
    assert np.linalg.matrix_rank(combinations.reshape(-1, 12)) == 12


def test_a_gradient_of_too_few_features_is_measured_again():
    """The line knows the slope along itself; a layer that lacks neurons leaves directions that nothing else shows."""
    true = planted((6, 5, 4, 2), 7)
    _, _, store = search_tools(true, 7)
    lacking = KnownLayers(6, (Layer.of(true.weights[0][:2], true.biases[0][:2]),))
    store.measure(np.arange(12), lacking)
    whole = KnownLayers(6, ())
    measured = {piece: slope for piece, slope in store.gradients.items() if slope is not None}
    store.gradients.clear()
    store.measure(np.arange(12), whole)
    assert len(measured) > 8
    for piece, slope in measured.items():
        np.testing.assert_allclose(slope, store.gradients[piece], atol=1e-8 * np.abs(slope).max())


def test_a_known_first_layer_is_placed_by_kinks_of_lines():
    """An offset with few digits would be in every equation of its hyperplane."""
    true = planted((12, 6, 5, 2), 11)
    _, asker, store = search_tools(true, 11, lines=8)
    search = LayerSearch(asker, store, KnownLayers(12, ()), LayerLimits())
    size = np.linalg.norm(true.weights[0], axis=1)
    normals, offsets = true.weights[0] / size[:, None], true.biases[0] / size
    search.begin(normals, offsets + 1e-9)
    found = search.layer()
    np.testing.assert_allclose(found.biases, offsets, atol=1e-12)
    np.testing.assert_allclose(found.weights, normals, atol=1e-12)


def test_a_neuron_that_was_found_twice_is_one():
    """Layers below that lack digits give it two sets of weights; the points of one crease lie on the other."""
    true, neuron = planted((5, 8, 6, 1), 1, bias=0.3), 1
    _, asker, store = search_tools(true, 1)
    rough = true.weights[0] + 1e-9 * np.random.default_rng(0).standard_normal((8, 5))
    known = KnownLayers(5, (Layer.of(rough, true.biases[0]),))
    search = LayerSearch(asker, store, known, LayerLimits())
    for seed in range(2):
        crease = crease_of(true, 1, neuron, 60, seed)
        search.neurons.append(Neuron(crease, solve_crease(known, crease)))
    other = crease_of(true, 1, 2, 60)
    search.neurons.append(Neuron(other, solve_crease(known, other)))
    search.sharpen()
    assert len(search.neurons) == 2


def test_gradients_for_first_weights_suffice_where_layers_above_are_mostly_off() -> None:
    """A gradient has no more directions than units of the last layer that are on, however many outputs there are."""
    network = planted((40, 12, 10, 8), 1)
    values = network.preactivations(np.random.default_rng(1).standard_normal((4000, 40)))[1]
    rare = [network.biases[0], network.biases[1] - np.quantile(values, 0.99, axis=0), network.biases[2]]
    rarely_on = ReLUNetwork(network.weights, rare)
    _, combinations, _ = spanning_points(rarely_on, np.random.default_rng(0))
    assert np.linalg.matrix_rank(combinations.reshape(-1, 12)) == 12


def test_gradients_for_first_weights_suffice_where_the_second_layer_is_narrow() -> None:
    """Far from creases most units are on: gradients there are combinations of five rows."""
    network = planted((7, 7, 5, 12, 1), 4)
    values = network.preactivations(np.random.default_rng(1).standard_normal((4000, 7)))[0]
    mostly_on = ReLUNetwork(
        network.weights, [network.biases[0] - np.quantile(values, 0.1, axis=0), *network.biases[1:]]
    )
    _, combinations, _ = spanning_points(mostly_on, np.random.default_rng(0))
    assert np.linalg.matrix_rank(combinations.reshape(-1, 7), 1e-6) == 7


def test_gradients_for_first_weights_suffice_where_a_hyperplane_is_far_out() -> None:
    network = planted((9, 6, 6, 1), 4)
    far = network.biases[0] - 10.0 * np.linalg.norm(network.weights[0], axis=1) * (np.arange(6) == 2)
    _, combinations, _ = spanning_points(
        ReLUNetwork(network.weights, [far, *network.biases[1:]]), np.random.default_rng(0)
    )
    assert np.linalg.matrix_rank(combinations.reshape(-1, 6), 1e-6) == 6


def test_first_weights_have_the_digits_that_long_steps_give() -> None:
    """Measured from points of the search, whose layers above are known; steps a fourth as long lose half a digit."""
    off = [first_weights_off(planted((60, 8, 6, 4), 3 + k), np.random.default_rng(k)) for k in range(6)]
    assert np.median(off) < 4e-14


def first_weights_off(true: ReLUNetwork, rng: np.random.Generator) -> float:
    """Root mean square error of the first weights, relative, of a search that knows all in a subspace."""
    frame = Frame(np.zeros(60), np.linalg.qr(rng.standard_normal((60, 8)))[0].T)
    rows = true.weights[0] @ frame.basis.T
    size = np.linalg.norm(rows, axis=1)
    space = SearchSpace.around(OrientedHyperplanes(frame, rows / size[:, None], true.biases[0] / size), 60)
    inside = space.unit * true.weights[0] @ space.frame.basis.T
    oracle = rl.open_oracle(true)
    noise = DistanceNoise.of(examine(oracle, rng, 4), oracle.dim)
    whole = space.whole(oracle, ReLUNetwork([inside, *true.weights[1:]], true.biases), noise, rng)
    return float(np.linalg.norm(whole.weights[0] - true.weights[0]) / np.linalg.norm(true.weights[0]))
