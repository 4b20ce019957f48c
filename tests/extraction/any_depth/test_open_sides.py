"""Sides that cannot be found, and creases that show on few lines: the function is recovered all the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from layers_known import crease_of, known_part, search_tools, switching, with_open_sides

import reluctant as rl
from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.any_depth.layer import Ladder, LayerLimits, LayerSearch, as_layer
from reluctant.extraction.any_depth.output_layer import fit_readout
from reluctant.extraction.method import StageFailed
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted


def test_always_on_unit_of_the_second_layer_leaves_sides_open() -> None:
    plain = planted((5, 4, 4, 5, 2), 11, bias=0.1)
    weights, biases = [w.copy() for w in plain.weights], [b.copy() for b in plain.biases]
    weights[1][0], biases[1][0] = np.abs(weights[1][0]), 0.5  # never off: what it looks at is not negative
    true = ReLUNetwork(weights, biases)
    # An open coefficient is a guess: an attempt in two goes wrong, and rounding decides which.
    results = [rl.extract(true, rl.AnyDepth(), rng=rng, attempts=1) for rng in range(5)]
    found = [result for result in results if result.ok]
    assert len(found) >= 2, [result.evidence["failures"] for result in results]
    assert max(rl.compare(result.network, true).output_error for result in found) <= 1e-9
    assert max(result.queries for result in results) <= 20_000


def test_layers_above_one_unit_are_recovered_from_the_lines_that_show_it() -> None:
    rng = np.random.default_rng(3)
    widths = (6, 7, 1, 4, 1)
    weights = [rng.choice([-1.0, 1.0], (out, into)) / np.sqrt(into) for into, out in pairwise(widths)]
    weights[1] = -np.abs(weights[1])
    biases = [0.1 * rng.standard_normal(width) for width in widths[1:]]
    biases[1][:] = 1.0  # on where few units of the first layer are
    true = ReLUNetwork(weights, biases)
    result = rl.extract(
        true, rl.AnyDepth(), rng=10, attempts=4
    )  # open coefficients are a guess: one in five goes wrong
    assert result.ok, result.evidence["failures"]
    assert rl.compare(result.network, true).output_error <= 1e-9


def test_mirrored_and_carried_features_become_neurons() -> None:
    rng = np.random.default_rng(0)

    def layer(known: KnownLayers, width: int, carried: list[int], mirrored: list[int]) -> KnownLayers:
        features = known.features(np.zeros((1, known.dim))).shape[1]
        settled = np.zeros(width, dtype=bool)
        parts = rng.standard_normal((width, features)), rng.standard_normal(width), settled
        return known.extended(Layer(*parts, np.array(carried, dtype=np.intp), np.array(mirrored, dtype=np.intp)))

    known = layer(KnownLayers(3), 4, carried=[0, 1, 2], mirrored=[])  # inputs, which may be negative
    known = layer(known, 2, carried=[0, 5], mirrored=[1])
    known = layer(known, 3, carried=[1, 2], mirrored=[])
    x = rng.standard_normal((60, 3))
    answers = known.features(x) @ rng.standard_normal((5, 2))
    found = known.with_both_halves()
    readout = fit_readout(found, x, answers)
    assert [len(each) for each in found.layers] == [10, 3, 3]
    assert np.abs(found.features(x) @ readout.weights.T + readout.constants - answers).max() < 1e-12


def test_layer_without_neurons_is_a_named_failure() -> None:
    with pytest.raises(StageFailed, match=r"^layers: "):
        as_layer([], np.zeros((4, 3)))


def test_creases_are_solved_again_when_more_is_carried_on_beside_a_layer() -> None:
    """Some sides of the layer below are decided, others stay open: the features are others than before."""
    true = planted((6, 5, 4, 1), 0, bias=0.1)
    _, asker, store = search_tools(true, 0, lines=12)
    below = known_part(true, 1).layers[0]
    open_ = Layer(below.weights, below.biases, np.arange(5) < 2, below.carried)
    search = LayerSearch(asker, store, KnownLayers(6, (open_,)), LayerLimits())
    for neuron in switching(true, 1):
        found = search.accepted(crease_of(true, 1, neuron, 60))
        if found is not None:
            search.neurons.append(found)
    assert {len(each.incoming.start) for each in search.neurons} == {5 + 2}
    assert search.carry_on()
    assert {len(each.incoming.start) for each in search.neurons} == {5 + 6}
    assert len(search.layer()) == len(search.neurons)


def test_sides_in_which_no_crease_solves_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    true = planted((6, 5, 6, 1), 0, bias=0.1)
    _, asker, store = search_tools(true, 0, lines=12)
    known = with_open_sides(known_part(true, 1), np.zeros(5, dtype=bool))
    search = LayerSearch(asker, store, known, LayerLimits())
    found = (search.accepted(crease_of(true, 1, neuron, 60)) for neuron in switching(true, 1))
    search.neurons = neurons = [each for each in found if each is not None]
    monkeypatch.setattr(LayerSearch, "solve_again", lambda self: setattr(self, "neurons", []))
    search.settle_sides(final=True)
    assert search.neurons is neurons
    assert search.turned is None
    assert not search.known.sided


def test_a_layer_is_looked_for_on_neurons_that_are_there_once() -> None:
    """An open neuron of the last layer may be there on both sides, for the output alone."""
    true = planted((6, 5, 6, 1), 0, bias=0.1)
    oracle, asker, store = search_tools(true, 0, lines=8)
    ladder = Ladder(oracle, asker, store, LayerLimits())
    ladder.climb(lambda known: 1.0 if len(known.layers) < 2 else 0.0)
    top = ladder.top
    part = np.eye(len(top.neurons[0].incoming.weights))[:, :2]
    top.neurons = [replace(each, incoming=replace(each.incoming, open=part)) for each in top.neurons]
    ladder.both = True
    assert len(ladder.known().layers[-1]) >= len(top.neurons)
    assert len(ladder.next_search().known.layers[-1]) == len(top.neurons)
    ladder.add_layer()
