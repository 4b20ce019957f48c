"""Rows of the first layer measured again where the whole network says they are seen best."""

from __future__ import annotations

import numpy as np
import pytest
from three_layers import opened

from reluctant.extraction.depth_three.rows import (
    ROW_AGREEMENT,
    MixedGradients,
    best_places,
    remeasure_rows,
    solve_mixed,
)
from reluctant.extraction.method import StageFailed
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted

POOR = np.array([2, 5, 11])


def unit_network(widths: tuple[int, ...], seed: int) -> ReLUNetwork:
    """A target whose first rows have norm one."""
    true = planted(widths, seed, bias=0.3)
    norms = np.linalg.norm(true.weights[0], axis=1)
    weights = [true.weights[0] / norms[:, None], true.weights[1] * norms, *true.weights[2:]]
    return ReLUNetwork(weights, [true.biases[0] / norms, *true.biases[1:]])


def spoiled(true: ReLUNetwork, by: float, seed: int) -> ReLUNetwork:
    """The network with an error of this size in some of the rows."""
    weights = true.weights[0].copy()
    off = np.random.default_rng(seed).standard_normal((len(POOR), true.dim))
    weights[POOR] += by * off / np.linalg.norm(off, axis=1, keepdims=True)
    weights[POOR] /= np.linalg.norm(weights[POOR], axis=1, keepdims=True)
    return ReLUNetwork([weights, *true.weights[1:]], true.biases)


def errors_of(by: float, n: int) -> np.ndarray:
    errors = np.full(n, 1e-14)
    errors[POOR] = by
    return errors


@pytest.mark.parametrize("widths", [(40, 20, 10, 1), (40, 20, 30, 1), (40, 20, 10, 3), (200, 20, 10, 1)])
def test_poor_rows_get_their_digits_back(widths: tuple[int, ...], seed: int) -> None:
    true = unit_network(widths, 50 + seed)
    oracle, noise, rng = opened(true, seed)
    before, by = oracle.queries, 1e-10
    found = remeasure_rows(oracle, spoiled(true, by, seed), errors_of(by, 20), noise, rng, 1.5e-13)
    off = np.linalg.norm(found.weights[0] - true.weights[0], axis=1)
    assert off.max() < 3e-13
    assert oracle.queries - before == 2 * len(POOR) * (widths[0] + 2) == oracle.ledger.stages["rows again"].asked


def test_good_rows_cost_nothing() -> None:
    true = unit_network((40, 20, 10, 1), 0)
    oracle, noise, rng = opened(true, 0)
    before = oracle.queries
    assert remeasure_rows(oracle, true, np.full(20, 1e-14), noise, rng, 1.5e-13) is true
    assert oracle.queries == before


def test_places_promise_what_they_keep(seed: int) -> None:
    """On both sides the same second-layer neurons are active, and no step changes the state of any neuron."""
    true = unit_network((40, 20, 15, 1), 60 + seed)
    _, noise, rng = opened(true, seed)
    places = best_places(true, POOR, noise, rng)
    inside, outside = true.preactivations(places.inside), true.preactivations(places.outside)
    assert (inside[0][np.arange(3), POOR] > 0).all()
    assert (outside[0][np.arange(3), POOR] < 0).all()
    assert ((inside[1] > 0) == (outside[1] > 0)).all()
    for points, values in ((places.inside, inside), (places.outside, outside)):
        for i, point in enumerate(points):
            moved = true.preactivations(point + places.steps[i] * np.eye(40))
            assert all(((a > 0) == (b[i] > 0)).all() for a, b in zip(moved[:2], values[:2], strict=True))


def test_a_row_that_is_another_one_is_refused() -> None:
    true = unit_network((40, 20, 10, 1), 0)
    oracle, noise, rng = opened(true, 0)
    with pytest.raises(StageFailed) as failure:
        remeasure_rows(oracle, spoiled(true, 1e-4, 0), errors_of(1e-4, 20), noise, rng, 1.5e-13)
    assert failure.value.stage == "rows again"
    assert failure.value.number > failure.value.limit == ROW_AGREEMENT


def test_rows_are_found_among_others(seed: int) -> None:
    """Gradients in which several rows are missing, and the rest is known."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((8, 50))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    basis = np.linalg.qr(rng.standard_normal((50, 12)))[0].T
    active = rng.random((3, 8)) < 0.6
    unknown = np.array([1, 4, 6])
    active[np.arange(3), unknown] = True
    parts = rng.standard_normal((3, 2, 8)) * active[:, None, :]
    known, normals = rows.copy(), rows @ basis.T
    known[unknown] = 0.0
    normals[unknown] /= np.linalg.norm(normals[unknown], axis=1, keepdims=True)
    mixed = MixedGradients(unknown, parts @ rows, np.full(3, 1e-15), active)
    found, errors = solve_mixed(mixed, known, np.full(8, 1e-15), normals, basis)
    assert np.linalg.norm(found - rows[unknown], axis=1).max() < 1e-12
    assert (errors > 1e-16).all()
    assert errors.max() < 1e-11
