"""Neurons that a fit lacks are found, those it does not need are dropped."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.extraction.few_digits.subspace_fit import Points, misfit, with_missing_neurons, without_idle_neurons
from reluctant.testing import planted

NOISE = 1e-4
HIDDEN = 8


def answers(true: rl.ReLUNetwork, count: int = 900) -> Points:
    rng = np.random.default_rng(5)
    y = 2 * rng.standard_normal((count, true.dim))
    f = true(y)
    return Points(y, f + NOISE * rng.standard_normal(f.shape), np.full(count, 1 / NOISE))


def seldom_on(true: rl.ReLUNetwork) -> rl.ReLUNetwork:
    """The first neuron is active at one point in ten."""
    (w, a), (b, c) = true.weights, true.biases
    return rl.ReLUNetwork([w, a], [np.append(-2.5 * np.linalg.norm(w[0]), b[1:]), c])


def with_skip(true: rl.ReLUNetwork, neurons: slice) -> rl.ReLUNetwork:
    (w, a), (b, c) = true.weights, true.biases
    return rl.ReLUNetwork([w[neurons], a[:, neurons]], [b[neurons], c], np.zeros((true.outputs, true.dim)))


def chi(network: rl.ReLUNetwork, points: Points) -> float:
    return float(np.sqrt(np.mean(misfit(network, points) ** 2)))


@pytest.mark.parametrize(("dim", "outputs"), sweep(product([2, 4], [1, 3]), fast=[(4, 3)], arguments=2))
def test_a_neuron_that_few_points_show_is_mostly_found(dim: int, outputs: int) -> None:
    networks = [seldom_on(planted((dim, HIDDEN, outputs), 40 + number)) for number in range(4)]
    good = 0
    for number, true in enumerate(networks):
        points, lacking = answers(true), with_skip(true, slice(1, None))
        assert chi(lacking, points) > 10
        found = with_missing_neurons(lacking, points, 4, np.random.default_rng(number))
        good += chi(found, points) < 1.15 and found.widths[1] == HIDDEN
    assert good >= (2 if dim == 2 else 4)


def test_nothing_is_added_to_a_fit_that_is_good(seed: int) -> None:
    true = planted((2, HIDDEN, 1), 60 + seed)
    points = answers(true)
    found = with_missing_neurons(with_skip(true, slice(None)), points, 4, np.random.default_rng(seed))
    assert found.widths[1] == HIDDEN


def test_a_hinge_for_one_wild_answer_is_not_worth_a_neuron() -> None:
    true = planted((2, HIDDEN, 1), 3)
    points = answers(true)
    f = points.f.copy()
    f[17] += 10.0
    found = with_missing_neurons(
        with_skip(true, slice(None)), Points(points.y, f, points.weight), 4, np.random.default_rng(1)
    )
    assert found.widths[1] == HIDDEN


def test_idle_neurons_are_dropped_down_to_the_fewest_allowed(seed: int) -> None:
    true = planted((2, HIDDEN, 1), 80 + seed)
    points, good = answers(true), with_skip(true, slice(None))
    (w, a), (b, c) = good.weights, good.biases
    w, b = np.vstack([w, w[:1], [[0.3, -0.8]]]), np.append(b, [b[0], 0.1])  # one twice, one without output
    a = np.column_stack([a, a[:, :1] / 2, [[0.0]]])
    a[:, 0] /= 2
    more = rl.ReLUNetwork([w, a], [b, c], good.skip)
    assert without_idle_neurons(more, points).widths[1] == HIDDEN
    assert without_idle_neurons(more, points, fewest=HIDDEN + 1).widths[1] == HIDDEN + 1
    assert chi(without_idle_neurons(more, points), points) == pytest.approx(1, abs=0.15)
