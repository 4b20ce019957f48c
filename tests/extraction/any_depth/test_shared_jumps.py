"""Kinks of one neuron are known by how slopes jump there, and hyperplanes of the first layer by where creases meet."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction.any_depth import LayerLimits
from reluctant.extraction.any_depth.features import KnownLayers, Layer
from reluctant.extraction.any_depth.shared_jumps import JumpEquations, shared_jumps
from reluctant.extraction.crease_depth import CreaseMeetings, CreasePlanes
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted


def crease_points(true: ReLUNetwork, unit: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Points where one neuron of the second layer switches, by Newton steps from random ones."""
    points = 2 * rng.standard_normal((20 * count, true.dim))
    for _ in range(30):
        first, second = true.preactivations(points)[:2]
        slopes = ((first > 0) * true.weights[1][unit]) @ true.weights[0]
        size = (slopes**2).sum(axis=1)
        points = points - (second[:, unit] / np.where(size > 0, size, 1.0))[:, None] * slopes
    good = np.abs(true.preactivations(points)[1][:, unit]) < 1e-13
    return points[good][:count]


def test_kinks_of_each_neuron_are_put_together() -> None:
    true, rng, count = planted((4, 5, 6, 1), 2, bias=0.3), np.random.default_rng(2), 24
    points = [crease_points(true, unit, count, rng) for unit in range(6)]
    units = np.repeat(np.arange(6), [len(each) for each in points])
    rows = np.concatenate(points)
    slopes = ((true.preactivations(rows)[0] > 0) * true.weights[1][units]) @ true.weights[0]
    jumps = true.weights[2][0, units, None] * slopes * rng.choice([-1.0, 1.0], (len(rows), 1))
    layer = Layer(true.weights[0], true.biases[0], np.ones(5, dtype=bool), np.empty(0, dtype=np.intp))
    equations = JumpEquations.of(KnownLayers(4, (layer,)), rows, jumps)
    found = shared_jumps(equations, np.arange(len(rows)))
    assert all(len(set(units[members].tolist())) == 1 for members in found)
    assert {int(units[members[0]]) for members in found} == set(range(6))
    assert sum(map(len, found)) > 0.9 * len(rows)


def test_creases_above_bend_where_they_meet_the_first_layer() -> None:
    true, rng = planted((4, 5, 6, 1), 2, bias=0.3), np.random.default_rng(2)
    w, b = true.weights[0], true.biases[0]
    sizes = np.linalg.norm(w, axis=1)
    on = rng.standard_normal((5, 4))
    on -= ((on * w).sum(axis=1) + b)[:, None] * w / sizes[:, None] ** 2
    first = CreasePlanes(w / sizes[:, None], b / sizes, np.full(5, 1e-12), on)
    points = np.concatenate([crease_points(true, unit, 1, rng) for unit in range(6)])
    slopes = ((true.preactivations(points)[0] > 0) * true.weights[1]) @ w
    normals = slopes / np.linalg.norm(slopes, axis=1, keepdims=True)
    second = CreasePlanes(normals, -(normals * points).sum(axis=1), np.full(6, 1e-12), points)
    meetings = CreaseMeetings(true, DistanceNoise(1e-15, 1e-15), 2.0)
    both = first + second
    bent = meetings.bending(both, both)
    assert not bent[:5].any()
    assert bent[5:].sum() >= 5  # one may not reach a place where it bends


@pytest.mark.slow
def test_shifted_pairs_below_many_neurons() -> None:
    """Four neurons of rank three: cells are large, and creases above them go straight on for long."""
    true = planted((5, 4, 22, 1), 1, bias=0.3)
    w, b = true.weights[0].copy(), true.biases[0].copy()
    w[1], b[1] = w[0], b[0] + 0.5
    true = ReLUNetwork([w, *true.weights[1:]], [b, *true.biases[1:]])
    result = rl.extract(true, rl.AnyDepth(search=LayerLimits(in_part=True)), rng=1, attempts=2)
    assert result.ok
    rows = np.random.default_rng(9).standard_normal((2000, 5))
    assert result.network is not None
    assert np.abs(result.network(rows) - true(rows)).max() < 1e-8
