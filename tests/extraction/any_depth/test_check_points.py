"""Points that show what random ones do not: rare neurons, and open coefficients."""

from __future__ import annotations

import numpy as np
from layers_known import crease_points, crease_through, known_part

from reluctant.extraction.any_depth.completion import POINTS_FOR_EACH, check_points, undetermined_points
from reluctant.extraction.any_depth.crease_equations import solve_crease
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted

RARE = 3e-4  # largest share of random inputs at which a neuron counts as rare
TRUE = planted((5, 8, 6, 1), 1, bias=0.3)


def with_rare_neuron(seed: int) -> ReLUNetwork:
    """A neuron of the third layer that one random input in ten thousand switches on."""
    true = planted((10, 12, 8, 5, 1), seed, bias=0.3)
    rows = np.random.default_rng(seed).standard_normal((50_000, 10))
    values = np.maximum(true.preactivations(rows)[1], 0) @ true.weights[2][0]
    biases = true.biases[2].copy()
    biases[0] = -np.quantile(values, 0.9999)
    return ReLUNetwork(true.weights, [*true.biases[:2], biases, true.biases[3]])


def test_a_rare_neuron_is_met() -> None:
    for seed in range(5):
        true = with_rare_neuron(seed)
        points = check_points(known_part(true, 3), 2000, np.random.default_rng(1))
        random = np.random.default_rng(2).standard_normal((20_000, 10))
        assert (true.preactivations(random)[2][:, 0] > 0).mean() < RARE
        assert (true.preactivations(points)[2][:, 0] > 0).any()
        assert len(points) <= 2000


def test_open_coefficients_are_looked_at_where_they_matter() -> None:
    points = crease_points(TRUE, 1, 0, 300)
    share = (TRUE.preactivations(points)[0] > 0).mean(axis=0)
    unit = int(np.argmin(np.abs(share - 0.5)))
    off = points[TRUE.preactivations(points)[0][:, unit] <= 0]
    known = known_part(TRUE, 1)
    incoming = solve_crease(known, crease_through(TRUE, 1, 0, off))
    found = undetermined_points(known, [incoming], np.random.default_rng(0))
    assert 0 < len(found) <= 8 * POINTS_FOR_EACH
    values = TRUE.preactivations(found)
    assert (values[0][:, unit] > 0).all()
    on = (values[1][:, 0] > 0).mean()
    assert 0 < on < 1  # the neuron switches there, and the points are on both sides
    assert len(undetermined_points(known, [], np.random.default_rng(0))) == 0
