"""Why creases are looked at: two near-parallel neurons taken for one are invisible everywhere else."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant import Domain, ReLUNetwork, open_oracle, verify
from reluctant.numerics import HOST, TorchArrays
from reluctant.testing import planted
from reluctant.testing.families import near_parallel
from reluctant.verification.points import FARTHEST_BESIDE, FARTHEST_CREASE, crease_points, points_beside


def merged(network: ReLUNetwork) -> ReLUNetwork:
    """Its first two neurons as one: their mean weighted by output, with the sum of their outputs."""
    (w, a), (b, c) = network.weights, network.biases
    share = a[0, :2] / a[0, :2].sum()
    w = np.concatenate([[share @ w[:2]], w[2:]])
    b = np.concatenate([[share @ b[:2]], b[2:]])
    return ReLUNetwork([w, np.concatenate([[[a[0, :2].sum()]], a[:, 2:]], axis=1)], [b, c])


def test_a_merged_pair_is_seen_on_its_crease_only(seed):
    target, tol = near_parallel(seed, distance=1e-6, opposite=False), 1e-11
    found = verify(open_oracle(target), merged(target), tol=tol)
    errors = {group.name: group.max_error for group in found.groups}
    assert all(errors[name] <= tol for name in errors if name.startswith("random"))
    assert errors["on creases"] > tol
    assert not found.ok


@pytest.mark.parametrize("widths", [(12, 10, 1), (12, 10, 8, 1), (12, 10, 8, 6, 2)], ids=str)
def test_crease_points_are_on_creases(widths, seed):
    network = planted(widths, seed)
    creases = crease_points(network, Domain(), np.random.default_rng(seed))
    assert len(creases.points) + creases.missed == sum(widths[1:-1])
    values = network.preactivations(creases.points)
    own = np.array([values[layer][row, neuron] for row, (layer, neuron) in enumerate(creases.neurons)])
    size = np.linalg.norm(creases.points, axis=1) + 1
    assert (np.abs(own) <= 1e-14 * size).all()
    assert set(creases.neurons[:, 0]) == set(range(len(widths) - 2))


@pytest.mark.parametrize("by", ["numpy", "torch"])
def test_creases_that_the_first_draw_misses_are_met_by_another(by):
    """Creases so far out that only points near the origin are dropped onto them inside what is looked at."""
    pytest.importorskip(by)
    arrays = HOST if by == "numpy" else TorchArrays("cpu")
    true, d, h = planted((12, 40, 1), 0), 12, 40
    far = 0.999 * FARTHEST_CREASE * np.sqrt(d) * np.linalg.norm(true.weights[0], axis=1)
    network = ReLUNetwork(true.weights, [np.where(np.arange(h) % 2, far, true.biases[0]), true.biases[1]])
    creases = crease_points(network, Domain(), np.random.default_rng(0), arrays)
    assert creases.missed < h // 4
    normals, offsets = network.hyperplanes()
    own = creases.neurons[:, 1]
    off = (creases.points * normals[own]).sum(axis=1) + offsets[own]
    assert np.abs(off).max() < 1e-12 * FARTHEST_CREASE * d


def test_crease_points_have_one_point_for_each_neuron(seed):
    creases = crease_points(planted((12, 10, 8, 1), seed), Domain(), np.random.default_rng(seed))
    pairs = [tuple(pair) for pair in creases.neurons]
    assert len(pairs) == len(set(pairs))


def test_neurons_without_a_crease_in_reach_are_counted(seed):
    network = planted((12, 10, 1), seed)
    weights, biases = network.weights, network.biases
    weights[0], biases[0] = weights[0].copy(), biases[0].copy()
    weights[0][0] = 0  # no crease at all
    biases[0][1] = 1e8  # far beyond the scale of use
    found = verify(open_oracle(network), ReLUNetwork(weights, biases))
    assert found.untested == 2


def test_an_affine_network_has_no_creases():
    creases = crease_points(planted((4, 2)), Domain(), np.random.default_rng(0))
    assert creases.points.shape == (0, 4)
    assert creases.missed == 0


DOMAINS = {
    "a box": (0, 1),
    "an orthant": (0, np.inf),
    "bounded above": (-np.inf, 0.5),
    "a box off the origin": (5.0, 5.5),
    "bounds by coordinate": (np.zeros(8), np.linspace(1, 3, 8)),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_no_row_outside_the_domain_is_asked(name, seed):
    low, high = DOMAINS[name]
    network, asked = planted((8, 20, 10, 1), seed), []

    def target(x):
        asked.append(x.copy())
        return network(x)

    found = verify(open_oracle(target, dim=8, domain=(low, high)), network, rng=seed)
    rows = np.concatenate(asked)
    assert ((rows >= low) & (rows <= high)).all()
    assert len(rows) == found.queries + 1
    assert found.ok


def test_points_beside_creases_are_near_and_far(seed):
    points = np.random.default_rng(seed).standard_normal((2000, 6))
    moved = points_beside(points, Domain(), np.random.default_rng(seed))
    steps = np.linalg.norm(moved - points, axis=1) / np.linalg.norm(points, axis=1)
    assert steps.min() < 1e-7
    assert 0.1 < steps.max() <= FARTHEST_BESIDE * (1 + 1e-9)
    assert 1e-5 < np.median(steps) < 1e-3
