from __future__ import annotations

import numpy as np
import pytest
from layers_known import crease_of, crease_points, crease_through, known_part, switching, with_open_sides

from reluctant.extraction.any_depth.crease_equations import IncomingWeights, find_sides, solve_crease
from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.testing import planted

TRUE = planted((5, 8, 6, 1), 1, bias=0.3)


def incomings(known: KnownLayers, neurons: int) -> list[IncomingWeights]:
    return [solve_crease(known, crease_of(TRUE, 1, k, 80)) for k in range(neurons)]


@pytest.mark.parametrize("pattern", [0b0, 0b10110010, 0b11111111])
def test_all_sides_are_found(pattern: int) -> None:
    wrong = (pattern >> np.arange(8)) & 1 == 1
    known = with_open_sides(known_part(TRUE, 1), wrong)
    found = find_sides(known, incomings(known, 4))
    np.testing.assert_array_equal(found, wrong)
    restored = known.with_sides(wrong).layers[0]
    np.testing.assert_array_equal(restored.weights, TRUE.weights[0])


def test_one_crease_is_too_few() -> None:
    known = with_open_sides(known_part(TRUE, 1), np.arange(8) == 1)
    assert find_sides(known, incomings(known, 1)) is None
    assert find_sides(known, []) is None


def test_a_false_crease_is_noticed() -> None:
    known = with_open_sides(known_part(TRUE, 1), np.arange(8) == 1)
    right = incomings(known, 4)
    false = IncomingWeights(np.roll(right[0].weights, 1), right[0].open, right[0].start, 0.0)
    assert find_sides(known, [*right, false], final=True) is None


def test_one_neuron_that_came_late() -> None:
    layer = known_part(TRUE, 1).layers[0]
    late = np.arange(8) == 3
    turned = layer.turned(late)
    known = KnownLayers(5, (Layer(turned.weights, turned.biases, late, layer.carried),))
    np.testing.assert_array_equal(find_sides(known, incomings(known, 2)), late)


def test_a_unit_that_is_on_at_every_crease_is_turned() -> None:
    """Its coefficients are open, but what it adds is seen."""
    wrong = np.arange(8) == 2
    known = with_open_sides(known_part(TRUE, 1), wrong)
    found = []
    for k in switching(TRUE, 1):
        points = crease_points(TRUE, 1, k, 300)
        off = points[known.local(points).values[:, 2] < 0]
        if len(off) > 60:
            found.append(solve_crease(known, crease_through(TRUE, 1, k, off)))
    assert len(found) >= 3
    assert all(incoming.open_features()[2] for incoming in found)
    assert find_sides(known, found) is None
    np.testing.assert_array_equal(find_sides(known, found, final=True), wrong)
