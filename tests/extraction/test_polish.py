from __future__ import annotations

import numpy as np
import pytest

from reluctant.extraction.polish import polish
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
