"""Creases of a deeper layer that look like those of the next, and layers known to few digits."""

from __future__ import annotations

import numpy as np
from layers_known import crease_of, crease_points, crease_through, known_part, search_tools, switching

import reluctant as rl
from reluctant.extraction.any_depth.crease_equations import solve_crease
from reluctant.extraction.any_depth.crease_presence import ends_at
from reluctant.extraction.any_depth.features import Layer
from reluctant.extraction.any_depth.kinks import line_score
from reluctant.extraction.any_depth.layer import LayerLimits, LayerSearch, Neuron, is_confirmed
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted
from reluctant.testing.assortment import specimen

DEEP = planted((6, 6, 2, 6, 1), 4, bias=0.1)


def test_a_crease_ends_at_neurons_of_its_own_layer_if_it_is_of_a_deeper_one() -> None:
    _, asker, _ = search_tools(DEEP, 0)
    known, so_far = known_part(DEEP, 1), known_part(DEEP, 2)
    points = crease_points(DEEP, 2, 0, 60)
    second = DEEP.preactivations(points)[1]
    alone = crease_through(DEEP, 2, 0, points[(second[:, 0] > 0) & (second[:, 1] < 0)])
    incoming = solve_crease(known, alone)
    assert len(alone.points) > 20
    assert incoming.residual < 1e-10  # one unit alone is on: it looks like one of the second layer
    assert ends_at(asker, known, alone, incoming, so_far)


def test_a_crease_goes_on_behind_neurons_of_its_own_layer() -> None:
    _, asker, _ = search_tools(DEEP, 0)
    points = crease_points(DEEP, 1, 0, 100)
    beside = crease_through(DEEP, 1, 0, points[DEEP.preactivations(points)[1][:, 1] < 0])
    known = known_part(DEEP, 1)
    incoming = solve_crease(known, beside)
    other = known.extended(Layer.of(DEEP.weights[1][1:], DEEP.biases[1][1:]))
    assert not ends_at(asker, known, beside, incoming, other)


def test_a_crease_that_does_not_show_before_a_neuron_is_not_seen_to_end_there() -> None:
    weights = [w.copy() for w in DEEP.weights]
    weights[2][:, 0] *= 1e-14  # its bends are smaller than rounding errors of the answers
    faint = ReLUNetwork(weights, DEEP.biases)
    _, asker, _ = search_tools(faint, 0)
    points = crease_points(faint, 1, 0, 100)
    beside = crease_through(faint, 1, 0, points[faint.preactivations(points)[1][:, 1] < 0])
    known = known_part(faint, 1)
    incoming = solve_crease(known, beside)
    other = known.extended(Layer.of(faint.weights[1][1:], faint.biases[1][1:]))
    assert not ends_at(asker, known, beside, incoming, other)


def test_parts_of_the_third_layer_are_no_neurons_of_a_narrow_second_one() -> None:
    """Of two units one is always on; the third layer is straight on either side of the other one."""
    drawn = specimen(8_100_027)
    found = rl.extract(rl.open_oracle(drawn.target(), dim=drawn.network.dim), rng=2)
    assert found.ok
    assert found.network.widths[2] <= 2
    assert found.queries < 40_000


def test_a_layer_of_neurons_that_hardly_anything_is_known_of_is_none() -> None:
    """A crease seen at one place, in three dimensions, says little of twelve coefficients."""
    true = planted((3, 12, 5, 1), 1, bias=0.1)
    _, asker, store = search_tools(true, 1)
    search, known = LayerSearch(asker, store, known_part(true, 1), LayerLimits()), known_part(true, 1)
    assert not search.is_guess
    for neuron in switching(true, 1):
        crease = crease_through(true, 1, neuron, crease_points(true, 1, neuron, 3)[:1])
        search.neurons.append(Neuron(crease, solve_crease(known, crease)))
    assert search.is_guess
    whole = crease_of(true, 1, switching(true, 1)[0], 200)
    search.neurons = [Neuron(whole, solve_crease(known, whole)), *search.neurons[:2]]
    assert not search.is_guess


def test_layers_keep_their_digits_where_answers_have_few() -> None:
    plain = planted((10, 8, 7, 6, 3), 2, bias=0.1)
    small = [*plain.weights[:-1], 1e-6 * plain.weights[-1]]  # beside constants of 0.1, eleven digits are left
    true = ReLUNetwork(small, [*plain.biases[:-1], np.array([0.1, -0.1, 0.12])])
    result = rl.extract(true, rl.AnyDepth(), rng=0, attempts=1)
    assert result.ok, result.evidence["failures"]
    assert result.queries <= 15_000


def test_creases_above_sparse_layers_are_no_hidden_neurons_below() -> None:
    """Each neuron reads three of the layer before it: its crease goes straight on in most of space."""
    drawn = specimen(7_400_614)
    found = rl.extract(rl.open_oracle(drawn.target(), dim=drawn.network.dim), rng=3)
    assert found.ok
    assert found.network.widths[1] <= 6
    assert found.queries < 50_000


def test_one_kink_is_enough_for_a_neuron_of_which_all_is_known() -> None:
    """A unit that hardly ever switches; its crease is there wherever its weights say."""
    true = planted((5, 8, 6, 1), 1, bias=0.3)
    _, asker, store = search_tools(true, 2, lines=1)
    known, once = known_part(true, 1), 0
    for k in switching(true, 1):
        whole, part = crease_of(true, 1, k, 300), crease_of(true, 1, k, 5)
        neuron, open_ = (Neuron(crease, solve_crease(known, crease)) for crease in (whole, part))
        if not neuron.incoming.closed or line_score(store, known, neuron.incoming).hits != 1:
            continue
        once += 1
        assert is_confirmed(asker, store, known, neuron, 0.95)
        assert not open_.incoming.closed
        assert not is_confirmed(asker, store, known, open_, 0.95)
    assert once
