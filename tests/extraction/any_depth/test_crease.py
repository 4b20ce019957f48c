from __future__ import annotations

import numpy as np
from layers_known import angle, crease_of, crease_points, crease_through, known_part, switching, with_open_sides

from reluctant.extraction.any_depth.crease_equations import (
    Crease,
    close_from_kinks,
    joined_creases,
    same_neuron,
    solve_crease,
)
from reluctant.testing import planted

TRUE = planted((5, 8, 6, 1), 1, bias=0.3)
KNOWN = known_part(TRUE, 1)


def active(points: np.ndarray, unit: int) -> np.ndarray:
    return TRUE.preactivations(points)[0][:, unit] > 0


def parted(neuron: int) -> tuple[Crease, np.ndarray, int]:
    """A crease seen only where one unit is off, points of it where that unit is on, and the unit."""
    points = crease_points(TRUE, 1, neuron, 300)
    share = (TRUE.preactivations(points)[0] > 0).mean(axis=0)
    unit = int(np.argmin(np.abs(share - 0.5)))
    on = active(points, unit)
    return crease_through(TRUE, 1, neuron, points[~on]), points[on], unit


def test_positions_give_the_weights() -> None:
    closed = 0
    for neuron in switching(TRUE, 1):
        incoming, true = solve_crease(KNOWN, crease_of(TRUE, 1, neuron, 80)), TRUE.weights[1][neuron]
        assert incoming.residual < 1e-12
        seen = ~incoming.open_features()
        assert angle(incoming.weights[seen], true[seen]) < 1e-9
        closed += incoming.closed
        if incoming.closed:
            size = np.linalg.norm(incoming.weights) / np.linalg.norm(true)
            np.testing.assert_allclose(abs(incoming.bias) / size, abs(TRUE.biases[1][neuron]), rtol=1e-8)
    assert closed >= 3


def test_a_further_point_settles_one_open_direction() -> None:
    crease, beyond, _ = parted(switching(TRUE, 1)[0])
    incoming = solve_crease(KNOWN, crease)
    moved, whole = incoming.through(KNOWN.features(beyond[:1])[0]), solve_crease(KNOWN, crease.with_points(beyond[:1]))
    assert moved.open.shape == whole.open.shape == (len(incoming.weights), incoming.open.shape[1] - 1)
    np.testing.assert_allclose(moved.weights, whole.weights, rtol=0, atol=1e-9 * np.abs(whole.weights).max())
    np.testing.assert_allclose(moved.open @ moved.open.T, whole.open @ whole.open.T, atol=1e-9)
    assert incoming.through(KNOWN.features(crease.points[1:2])[0]) is incoming


def test_positions_give_the_weights_while_sides_are_open() -> None:
    wrong = np.arange(8) % 2 == 0
    incoming = solve_crease(with_open_sides(KNOWN, wrong), crease_of(TRUE, 1, 2, 200))
    seen = ~incoming.open_features()[:8]
    assert seen.sum() >= 6
    assert angle(incoming.weights[:8][seen], TRUE.weights[1][2][seen]) < 1e-9


def test_a_unit_that_was_never_active_stays_open() -> None:
    crease, elsewhere, unit = parted(0)
    incoming = solve_crease(KNOWN, crease)
    assert incoming.open_features()[unit]
    assert incoming.determined(KNOWN.features(crease.points)).all()
    assert not incoming.determined(KNOWN.features(elsewhere)).any()


def test_equations_of_two_neurons_do_not_agree() -> None:
    mixed = crease_of(TRUE, 1, 0, 30).with_points(crease_points(TRUE, 1, 1, 30))
    assert solve_crease(KNOWN, mixed).residual > 1e-3


def test_two_parts_of_a_neuron_become_one() -> None:
    crease, elsewhere, unit = parted(0)
    other = crease_through(TRUE, 1, 0, elsewhere)
    assert same_neuron(solve_crease(KNOWN, crease), solve_crease(KNOWN, other))
    assert not solve_crease(KNOWN, joined_creases(crease, other)).open_features()[unit]
    assert not same_neuron(solve_crease(KNOWN, crease), solve_crease(KNOWN, crease_of(TRUE, 1, 1, 1)))


def test_kinks_that_agree_close_what_is_open() -> None:
    crease, elsewhere, _ = parted(0)
    others = np.concatenate([crease_points(TRUE, 1, k, 8) for k in (1, 2, 3)])
    closed = close_from_kinks(KNOWN, crease, solve_crease(KNOWN, crease), np.concatenate([others, elsewhere[:5]]))
    assert closed is not None
    assert len(closed.points) == len(crease.points) + 5
    assert angle(solve_crease(KNOWN, closed).weights, TRUE.weights[1][0]) < 1e-8
    assert close_from_kinks(KNOWN, crease, solve_crease(KNOWN, crease), np.concatenate([others, elsewhere[:1]])) is None
