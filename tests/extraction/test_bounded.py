"""Depth two inside a box or an orthant: the function on the domain, and not one row outside it."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.domains import Domain
from reluctant.numerics import FloatArray
from reluctant.testing import planted

EXACT = 1e-9  # of the output's deviation
BOX, ORTHANT = (0.0, 1.0), (0.0, np.inf)


class Guarded:
    """A network that refuses to be asked outside a domain, whatever the oracle would let through."""

    def __init__(self, network: rl.ReLUNetwork, domain: Domain) -> None:
        self.network, self.domain = network, domain

    def __call__(self, x: FloatArray) -> FloatArray:
        assert self.domain.contains(x)
        return self.network(x)


def extract(network: rl.ReLUNetwork, bounds: tuple[float, float], seed: int, **options: int) -> rl.Result:
    target = Guarded(network, Domain.of(bounds))
    return rl.extract(rl.open_oracle(target, dim=network.dim, domain=bounds), rng=seed, **options)


def error_inside(found: rl.ReLUNetwork, true: rl.ReLUNetwork, bounds: tuple[float, float], seed: int) -> float:
    """Largest error over the domain and beside every crease that passes it, relative to the output's deviation."""
    rng, domain = np.random.default_rng(seed), Domain.of(bounds)
    rows = domain.sample(rng, 4000, true.dim)
    normals, offsets = true.hyperplanes()
    which = rng.integers(len(normals), size=len(rows))
    feet = rows - ((rows * normals[which]).sum(axis=1) + offsets[which])[:, None] * normals[which]
    feet += 1e-5 * rng.standard_normal(feet.shape)
    feet = feet[((feet >= bounds[0]) & (feet <= bounds[1])).all(axis=1)]
    points = np.concatenate([rows, feet])
    return float(np.abs(found(points) - true(points)).max() / true(rows).std())


@pytest.mark.parametrize("bounds", [BOX, ORTHANT, (-1.0, 2.0)])
@pytest.mark.parametrize(
    "widths", sweep([(10, 20, 1), (5, 30, 2), (30, 12, 4), (64, 10, 1)], fast=[(10, 20, 1), (30, 12, 4)])
)
def test_the_function_on_the_domain_is_recovered(
    widths: tuple[int, ...], bounds: tuple[float, float], seed: int
) -> None:
    network = planted(widths, seed)
    result = extract(network, bounds, seed)
    assert result.ok, result
    assert result.network is not None
    assert error_inside(result.network, network, bounds, seed) < EXACT


def test_a_neuron_costs_little_more_than_its_gradient(seed: int) -> None:
    network = centred(planted((400, 24, 1), seed, bias=0.5))
    result = extract(network, BOX, seed)
    assert result.ok
    assert result.network is not None
    assert result.network.widths[1] == 24
    assert result.queries < 1.25 * 24 * 401 + 900


def centred(network: rl.ReLUNetwork) -> rl.ReLUNetwork:
    """The same neurons with their hyperplanes about the middle of the unit box."""
    (w, a), (b, c) = network.weights, network.biases
    return rl.ReLUNetwork([2 * w, a], [b - w.sum(axis=1), c])


def test_neurons_outside_the_box_are_left_out_and_copies_found_once(seed: int) -> None:
    network = centred(planted((8, 6, 1), seed, bias=0.3))
    (w, a), (b, c) = network.weights, network.biases
    far = rl.ReLUNetwork(
        [np.vstack([w, w[0], w[1]]), np.column_stack([a, a[:, 0], a[:, 1]])],
        [np.concatenate([b, b[:1], [1e3]]), c],
    )
    result = extract(far, BOX, seed)
    assert result.ok
    assert result.network is not None
    assert result.network.widths[1] == 6
    assert error_inside(result.network, far, BOX, seed) < EXACT


def test_every_hyperplane_of_an_orthant_is_found_on_an_axis(seed: int) -> None:
    """A neuron that random points hardly meet: on only far along one axis."""
    network = centred(planted((8, 6, 1), seed, bias=0.3))
    (w, a), (b, c) = network.weights, network.biases
    shy = -np.ones((1, 8))
    shy[0, 3] = 0.05
    network = rl.ReLUNetwork([np.vstack([w, shy]), np.column_stack([a, [2.0]])], [np.append(b, -5.0), c])
    result = extract(network, ORTHANT, seed)
    assert result.ok
    assert result.network is not None
    row = np.zeros((1, 8))
    row[0, 3] = 250.0
    np.testing.assert_allclose(result.network(row), network(row), rtol=1e-9)


def test_an_affine_target_and_one_bend_in_a_corner(seed: int) -> None:
    affine = rl.ReLUNetwork([np.ones((1, 4))], [np.zeros(1)])
    corner = rl.ReLUNetwork([np.ones((1, 4)), np.ones((1, 1))], [np.array([-3.0]), np.zeros(1)], np.eye(4)[:1])
    for network in (affine, corner):
        result = rl.extract(rl.open_oracle(network, domain=BOX), rng=seed)
        assert result.ok
        assert result.network is not None
        x = np.random.default_rng(seed).uniform(size=(500, 4))
        np.testing.assert_allclose(result.network(x), network(x), atol=1e-12)


def test_bounds_of_each_coordinate_are_respected(seed: int) -> None:
    low, high = np.array([-1.0, 0.0, -np.inf, 5.0, -np.inf]), np.array([1.0, np.inf, 3.0, 9.0, np.inf])
    network = planted((5, 12, 2), seed, bias=2.0)
    target = Guarded(network, Domain(low, high))
    result = rl.extract(rl.open_oracle(target, dim=5, domain=(low, high)), rng=seed)
    assert result.ok
    assert result.network is not None
    x = Domain(low, high).sample(np.random.default_rng(seed), 4000, 5)
    assert np.abs(result.network(x) - network(x)).max() / network(x).std() < EXACT


def test_three_layers_in_a_box_are_not_called_two(seed: int) -> None:
    result = extract(planted((6, 8, 8, 1), seed), BOX, seed, attempts=1)
    assert not result.ok
    assert result.network is not None


def test_a_run_can_be_cut_off_by_its_budget_and_keeps_what_it_has(seed: int) -> None:
    network = planted((30, 20, 1), seed)
    result = rl.extract(rl.open_oracle(network, domain=BOX, budget=500), rng=seed)
    assert result.outcome is rl.Outcome.OUT_OF_BUDGET
    assert result.network is not None
    assert result.queries <= 500
