"""Several hidden layers inside the bounds that a user has set: equal there, and nothing is asked outside."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.domains import Domain
from reluctant.extraction.any_depth import DeepInBounds
from reluctant.extraction.any_depth.features import KnownLayers, Layer, OpenWeights
from reluctant.extraction.any_depth.open_weights import with_fitted_weights
from reluctant.extraction.any_depth.output_layer import fit_most, readout_deviations
from reluctant.testing import planted


class Guarded:
    """A network that is never asked outside its bounds."""

    def __init__(self, network: rl.ReLUNetwork, domain: Domain) -> None:
        self.network, self.domain = network, domain

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        assert self.domain.contains(rows)
        return self.network(rows)


@pytest.mark.parametrize(
    ("widths", "low", "high"),
    [
        pytest.param((8, 10, 6, 1), -3.0, 3.0, marks=pytest.mark.slow),
        ((5, 6, 4, 2), np.array([-3.0, -2.0, -4.0, -2.0, -3.0]), np.array([3.0, 4.0, 2.0, 3.0, 4.0])),
        pytest.param((8, 10, 6, 4, 1), -3.0, 3.0, marks=pytest.mark.slow),
    ],
)
def test_several_hidden_layers_inside_bounds(widths, low, high):
    network, domain = planted(widths, 2), Domain(low, high)
    found = rl.extract(Guarded(network, domain), dim=widths[0], domain=(low, high), rng=0)
    assert found.ok
    assert found.evidence["attempts"].entries[-1].method == "DeepInBounds"
    rows = domain.sample(np.random.default_rng(1), 10_000, widths[0])
    assert np.abs(found.network(rows) - network(rows)).max() < 1e-9 * network(rows).std()


def test_what_is_out_of_reach_is_named():
    network = planted((5, 6, 4, 1), 0)
    half = rl.extract(network, DeepInBounds(), dim=5, domain=(-3.0, np.inf), rng=0, attempts=1)
    assert "bounds that leave a side open" in half.evidence["failures"][0]
    few = rl.extract(network, DeepInBounds(most_inputs=4), dim=5, domain=(-3.0, 3.0), rng=0, attempts=1)
    assert "many inputs" in few.evidence["failures"][0]
    assert not half.ok
    assert not few.ok


def test_answers_tell_weights_that_creases_leave_open():
    rng = np.random.default_rng(0)
    network = planted((4, 6, 3, 2), 5)
    first = Layer.of(network.weights[0], network.biases[0])
    first = KnownLayers(4, (first,)).with_open_sides().layers[0]
    below = KnownLayers(4, (first,), Domain(-3, 3))
    weights, biases = np.hstack([network.weights[1], np.zeros((3, 4))]), network.biases[1].copy()
    rows = rng.uniform(-3, 3, (600, 4))
    answers = network(rows)
    on_crease = rows[np.argmin(np.abs(below.features(rows) @ weights[0] + biases[0]))]
    biases[0] = -weights[0] @ below.features(on_crease[None])[0]
    answers = np.maximum(below.features(rows) @ weights.T + biases, 0) @ network.weights[2].T
    basis = np.eye(10)[:, :2]
    off = weights.copy()
    off[0] += 0.3 * basis @ rng.standard_normal(2)
    shifted = biases.copy()
    shifted[0] = -off[0] @ below.features(on_crease[None])[0]
    nothing = np.empty((0, 4))
    open_ = (OpenWeights(0, basis, on_crease, nothing, nothing),)
    layer = Layer(off, shifted, np.ones(3, dtype=bool), np.empty(0, dtype=np.intp), open=open_)
    known = below.extended(layer)
    assert (readout_deviations(known, fit_most(known, rows, answers), rows, answers) > 1e-6).any()
    known = with_fitted_weights(known, fit_most(known, rows, answers), rows, answers)
    assert readout_deviations(known, fit_most(known, rows, answers), rows, answers).max() < 1e-9
