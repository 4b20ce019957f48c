from __future__ import annotations

import numpy as np
from layers_known import angle, crease_of, known_part, search_tools, switching, with_open_sides

from reluctant.extraction.any_depth.crease_equations import solve_crease
from reluctant.extraction.any_depth.crease_presence import is_there
from reluctant.extraction.any_depth.follow import find_walls, follow_crease
from reluctant.extraction.any_depth.kinks import line_score
from reluctant.testing import planted

TRUE = planted((6, 10, 8, 1), 5, bias=0.1)
KNOWN = known_part(TRUE, 1)
ROWS_A_COEFFICIENT = 30


def test_walks_stay_on_the_crease() -> None:
    crease = crease_of(TRUE, 1, 0, 30)
    incoming = solve_crease(KNOWN, crease)
    _, ends = find_walls(KNOWN, incoming, crease.points[:10], 15, np.sqrt(6), np.random.default_rng(0))
    assert np.abs(TRUE.preactivations(ends)[1][:, 0]).max() < 1e-10
    assert np.linalg.norm(ends - crease.points[:10], axis=1).min() > 0


def test_walls_are_where_the_crease_meets_open_hinges() -> None:
    crease = crease_of(TRUE, 1, 0, 1)
    incoming = solve_crease(KNOWN, crease)
    walls, _ = find_walls(
        KNOWN, incoming, np.repeat(crease.points, 8, axis=0), 10, np.sqrt(6), np.random.default_rng(0)
    )
    values = TRUE.preactivations(walls.place)
    assert len(walls) > 0
    assert np.abs(values[0][np.arange(len(walls)), walls.hinge]).max() < 1e-10
    assert np.abs(values[1][:, 0]).max() < 1e-10


def test_a_crease_is_followed_to_the_end(seed: int) -> None:
    oracle, asker, _ = search_tools(TRUE, seed)
    followed = 0
    for neuron in switching(TRUE, 1):
        start = crease_of(TRUE, 1, neuron, 1, seed=seed)
        before, open_ = oracle.queries, solve_crease(KNOWN, start).open.shape[1]
        found = follow_crease(asker, KNOWN, start)
        assert oracle.queries - before <= ROWS_A_COEFFICIENT * (open_ + 2)
        incoming = None if found is None else solve_crease(KNOWN, found)
        followed += incoming is not None and incoming.closed and angle(incoming.weights, TRUE.weights[1][neuron]) < 1e-7
    assert followed >= len(switching(TRUE, 1)) - 2  # some neurons have units that are never active on their crease


def test_a_crease_is_followed_while_sides_are_open(seed: int) -> None:
    _, asker, _ = search_tools(TRUE, seed)
    known = with_open_sides(KNOWN, np.arange(10) % 3 == 0)
    found = follow_crease(asker, known, crease_of(TRUE, 1, 1, 1))
    assert found is not None
    closed = ~solve_crease(known, found).open_features()[:10]
    weights = solve_crease(known, found).weights[:10]
    assert angle(weights[closed], TRUE.weights[1][1][closed]) < 1e-7


def test_a_crease_of_a_deeper_layer_is_given_up() -> None:
    deep = planted((8, 10, 8, 8, 1), 2, bias=0.1)
    _, asker, store = search_tools(deep, 0)
    known = known_part(deep, 1)
    for neuron in switching(deep, 2):
        found = follow_crease(asker, known, crease_of(deep, 2, neuron, 1))
        taken = found is not None and line_score(store, known, solve_crease(known, found)).share() > 0.7
        assert not (taken and is_there(asker, known, found, solve_crease(known, found)))


def test_lines_speak_for_true_neurons_and_against_others() -> None:
    _, asker, store = search_tools(TRUE, 0)
    for neuron in switching(TRUE, 1):
        right = solve_crease(KNOWN, crease_of(TRUE, 1, neuron, 60))
        assert line_score(store, KNOWN, right).misses == 0
        assert is_there(asker, KNOWN, crease_of(TRUE, 1, neuron, 60), right)
    one, other = (TRUE.weights[1][k] for k in (0, 1))
    between = crease_of(TRUE, 1, 0, 60)
    wrong = type(right)(one + 0.3 * other, np.empty((10, 0)), solve_crease(KNOWN, between).start, 0.0, 0.0)
    assert line_score(store, KNOWN, wrong).misses > 3
    assert not is_there(asker, KNOWN, between, wrong)


def test_a_test_costs_four_rows() -> None:
    oracle, asker, _ = search_tools(TRUE, 0)
    crease = crease_of(TRUE, 1, 0, 5)
    jacobian = KNOWN.local(crease.points).jacobian
    normals = np.einsum("nfd,f->nd", jacobian, TRUE.weights[1][0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    before = oracle.queries
    seen = asker.test(crease.points, normals, np.ones(5))
    assert oracle.queries - before == 20
    assert seen.found.all()
    assert np.abs(seen.position).max() < 1e-10
    assert not asker.test(crease.points + 0.01 * normals, normals, np.ones(5)).found.any()
