from __future__ import annotations

import numpy as np
import pytest
from layers_known import crease_of, crease_points, crease_through, known_part, switching, with_open_sides

import reluctant as rl
from reluctant.extraction.any_depth.crease_equations import (
    IncomingWeights,
    find_mirrored,
    find_sides,
    find_unread,
    sides_are_told,
    solve_crease,
)
from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.networks import ReLUNetwork
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
    false = IncomingWeights(np.roll(right[0].weights, 1), right[0].open, right[0].start, 0.0, 0.0)
    assert find_sides(known, [*right, false], final=True) is None
    assert sides_are_told(known, [*right, false])


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
    assert not sides_are_told(known, found)
    np.testing.assert_array_equal(find_sides(known, found, final=True), wrong)


def test_a_neuron_that_is_none_is_read_by_no_other() -> None:
    right = known_part(TRUE, 1).layers[0]
    rows, biases = np.vstack([right.weights, np.ones(5)]), np.append(right.biases, 0.1)
    known = KnownLayers(5, (Layer.of(rows, biases),))
    np.testing.assert_array_equal(find_unread(known, incomings(known, 4)), [8])
    assert not len(find_unread(known, incomings(known, 1)))  # one neuron may well read few
    assert not len(find_unread(known_part(TRUE, 1), incomings(known_part(TRUE, 1), 4)))


def test_two_neurons_on_one_crease_are_one_that_is_mirrored():
    """One to each side: every neuron above sees another combination of the two."""
    rng = np.random.default_rng(3)
    w, b = rng.standard_normal((4, 5)), rng.standard_normal(4)
    w, b = np.vstack([w, -w[1]]), np.append(b, -b[1])
    wrong = np.array([True, False, False, True])
    sign = np.where(wrong, -1.0, 1.0)
    sizes = np.linalg.norm(w[:4], axis=1)
    layer = Layer(
        sign[:, None] * w[:4] / sizes[:, None], sign * b[:4] / sizes, np.ones(4, dtype=bool), np.empty(0, dtype=np.intp)
    )
    known = KnownLayers(5, (layer,))
    seen = []
    for above in rng.standard_normal((3, 5)):
        left = above.copy()
        left[1] += above[4]
        linear = -above[4] * w[1] + (wrong * above[:4]) @ w[:4]
        coefficients = np.concatenate([left[:4] * sizes, linear])
        seen.append(IncomingWeights(coefficients, np.empty((9, 0)), np.zeros(9), 0.0, 0.0))
    assert find_sides(known, seen, final=True) is None
    turned, mirrored = find_mirrored(known, seen)
    np.testing.assert_array_equal(turned, wrong)
    np.testing.assert_array_equal(mirrored, [False, True, False, False])
    assert known.with_sides(turned, mirrored).features(rng.standard_normal((3, 5))).shape == (3, 5)


def with_mirrored_pair() -> ReLUNetwork:
    true = planted((6, 5, 4, 1), 2)
    weights, biases = [w.copy() for w in true.weights], [b.copy() for b in true.biases]
    weights[0][1], biases[0][1] = -weights[0][0], -biases[0][0]
    return ReLUNetwork(weights, biases)


def test_a_mirrored_pair_below_another_layer_is_recovered():
    found = rl.extract(with_mirrored_pair(), rl.AnyDepth(), rng=0, attempts=1)
    assert found.ok, found.evidence["failures"]
    assert found.network.widths == (6, 5, 4, 1)
