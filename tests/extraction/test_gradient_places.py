"""Places on creases, creases that are followed, and probes: neurons of a layer and parts of deeper ones."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.deep_gradients.crease_normals import known_creases
from reluctant.extraction.deep_gradients.layer_matches import Match, crease_places, pool
from reluctant.extraction.deep_gradients.open_cells import across_facet, probes, with_more_on
from reluctant.geometry.lines import Lines
from reluctant.testing import planted
from reluctant.testing.planted import largest_true_error


def layers_of(network, count):
    """The first layers of a network, all of it known."""
    pairs = zip(network.weights[:count], network.biases[:count], strict=True)
    return KnownLayers(network.dim, tuple(Layer.of(w, b) for w, b in pairs))


def neuron_of(network, layer, number, known=None):
    """A neuron of a layer, from 0, as a match without creases."""
    weights = network.weights[layer][number]
    known = np.ones(len(weights), dtype=bool) if known is None else known
    return Match(np.where(known, weights, 0.0), known, float(network.biases[layer][number]), np.empty(0, dtype=np.intp))


def test_known_creases_are_where_patterns_change():
    network = planted((10, 8, 6, 1), 0)
    line = Lines.random(np.random.default_rng(0), 1, 10)
    found = known_creases(layers_of(network, 2), line)
    angles = np.linspace(*line.angle(np.array([line.low[0], line.high[0]])), 200_001)
    rows = line.points(np.zeros(len(angles), dtype=np.intp), line.position(angles))
    on = np.hstack(network.patterns(rows)[:2])
    assert len(found) == (on[1:] != on[:-1]).sum()
    assert (np.diff(found.t) >= 0).all()


def test_a_neuron_jumps_at_every_place_and_a_deeper_one_does_not():
    network, rng = planted((16, 12, 8, 4, 1), 3), np.random.default_rng(0)
    known = layers_of(network, 1)
    points = pool(known, rng)

    def seen(match):
        places = crease_places(known, match, points, 8, rng)
        assert len(places) == 8
        with rl.open_oracle(network, gradients=True) as oracle:
            return places.seen(oracle.query_gradients(places.rows), 1e-12)

    yes, no = seen(neuron_of(network, 1, 0))
    assert yes >= 5
    assert no == 0
    deeper = network.weights[2][0] @ network.weights[1]  # where the whole second layer is on
    bias = float(network.weights[2][0] @ network.biases[1] + network.biases[2][0])
    yes, no = seen(Match(deeper, np.ones(12, dtype=bool), bias, np.empty(0, dtype=np.intp)))
    assert no > yes


def test_a_crease_goes_on_behind_the_border_of_its_cell():
    network, rng = planted((16, 12, 8, 4, 1), 3), np.random.default_rng(1)
    known = layers_of(network, 2)
    known_weights = np.arange(8) != 5
    match = neuron_of(network, 2, 1, known_weights)
    places = crease_places(known, match, pool(known, rng), 6, rng)
    lines = [across_facet(known, point, match, ~known_weights) for point in places.points]
    line = next(line for line in lines if line is not None)
    ends = line.points(np.zeros(2, dtype=np.intp), np.array([line.low[0], line.high[0]]))
    patterns = network.patterns(ends)
    assert patterns[1][:, 5].all()
    assert (patterns[0][0] == patterns[0][1]).all()
    assert (patterns[1][0] == patterns[1][1]).all()
    assert patterns[2][0, 1] != patterns[2][1, 1]


def test_the_second_layer_sees_no_difference_where_more_of_the_first_is_on():
    network = planted((16, 12, 8, 4, 1), 3)
    known, rng = layers_of(network, 2), np.random.default_rng(2)
    more = 0
    for row in rng.standard_normal((20, 16)):
        moved = with_more_on(known, row)
        np.testing.assert_allclose(known.features(moved[None]), known.features(row[None]), rtol=1e-4, atol=1e-4)
        more += int(network.patterns(moved[None])[0].sum()) - int(network.patterns(row[None])[0].sum())
    assert more > 20


def test_probes_switch_on_every_neuron_of_the_second_layer():
    network = planted((40, 20, 15, 1), 1)
    rows = probes(layers_of(network, 1), np.random.default_rng(0))
    assert len(rows) <= 21
    patterns = network.patterns(rows)
    assert patterns[0].all()
    assert patterns[1].any(axis=0).all()


def test_a_neuron_that_only_large_inputs_switch_on_is_found():
    network = planted((20, 15, 10, 5, 1), 960015)
    on = network.patterns(3 * np.random.default_rng(0).standard_normal((20_000, 20)))[2]
    assert on.any(axis=0).sum() < 5
    found = rl.extract(network, gradients=True, rng=15)
    assert found.ok
    assert found.network.widths == (20, 15, 10, 5, 1)
    assert largest_true_error(found.network, network) < 1e-9
    assert found.queries < 3000


@pytest.mark.parametrize("seed", [970001, 970003])
def test_small_networks_need_no_values(seed):
    network = planted((8, 6, 4, 1), seed)
    found = rl.extract(network, gradients=True, rng=seed - 970000)
    assert found.ok
    assert [each.method for each in found.evidence["attempts"].entries] == ["DepthTwo", "GradientLayers"]
    assert largest_true_error(found.network, network) < 1e-9
