from __future__ import annotations

import numpy as np
import pytest

from reluctant.fitting.network_fit import neuron_errors, polish
from reluctant.geometry import DistanceNoise
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted

NOISE = DistanceNoise(1e-15, 1e-15)


@pytest.mark.parametrize("widths", [(5, 7, 1), (5, 7, 6, 1), (5, 7, 6, 4, 2)])
@pytest.mark.parametrize("thorough", [False, True])
def test_small_errors_of_all_layers_are_gone(widths: tuple[int, ...], thorough: bool) -> None:
    true, rng = planted(widths, 3, bias=0.1), np.random.default_rng(0)
    rows = rng.standard_normal((12 * true.parameters, widths[0]))
    near = ReLUNetwork(
        [w * (1 + 1e-9 * rng.standard_normal(w.shape)) for w in true.weights],
        [b + 1e-9 * rng.standard_normal(b.shape) for b in true.biases],
    )
    polished = polish(near, rows, true(rows), NOISE, thorough=thorough)
    fresh = rng.standard_normal((500, widths[0]))
    before, after = (np.abs(network(fresh) - true(fresh)).max(axis=1) for network in (near, polished))
    assert np.median(before) > 1e-10
    assert np.quantile(after, 0.95) < 1e-13  # some inputs meet neurons that the fit has hardly seen


def test_a_network_whose_states_no_answer_tells_stays_as_it_is() -> None:
    """A neuron that is never on has the value zero everywhere: exactly on its crease."""
    network = ReLUNetwork([np.eye(2), np.zeros((1, 2)), np.ones((1, 1))], [np.zeros(2), np.zeros(1), np.zeros(1)])
    rows = np.random.default_rng(0).standard_normal((20, 2))
    assert polish(network, rows, network(rows), NOISE) is network


def test_rows_on_creases_alone_say_nothing_of_a_neuron() -> None:
    network = ReLUNetwork([np.ones((2, 3)), np.ones((1, 2))], [np.zeros(2), np.zeros(1)])
    errors = neuron_errors(network, np.zeros((4, 3)), NOISE)
    np.testing.assert_array_equal(errors, [np.inf, np.inf])
