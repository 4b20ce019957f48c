"""Large networks: crowded lines, and arrays that live beside the target."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.extraction.depth_two.main_pass import _Candidates, _showing_all
from reluctant.extraction.depth_two.scaffold import neurons_on_a_line
from reluctant.geometry import DistanceNoise, Lines, scan_lines
from reluctant.numerics import HOST, TorchArrays
from reluctant.testing import planted

NOISE = 1e-15


@pytest.mark.parametrize("widths", sweep([(64, 40, 1), (40, 30, 3), (60, 640, 1)], fast=[(40, 30, 3)]))
def test_arrays_beside_the_target_give_the_same_network(widths: tuple[int, int, int]) -> None:
    torch = pytest.importorskip("torch")
    from reluctant.oracles.adapters.torch import TorchOracle

    true = planted(widths, 3, bias=0.5)
    layers = []
    for w, b in zip(true.weights, true.biases, strict=True):
        layer = torch.nn.Linear(w.shape[1], w.shape[0], dtype=torch.float64)
        layer.weight.data, layer.bias.data = torch.tensor(w), torch.tensor(b)
        layers += [layer, torch.nn.ReLU()]
    module = torch.nn.Sequential(*layers[:-1]).eval()
    here = rl.extract(rl.open_oracle(true), rng=1).raise_for_status()
    there = rl.extract(rl.open_oracle(TorchOracle(module, resident=True)), rng=1).raise_for_status()
    assert there.queries == pytest.approx(here.queries, rel=0.01)
    assert there.network is not None
    assert rl.compare(there.network, true).output_error < 1e-8


def test_numbers_drawn_beside_the_target_follow_the_generator() -> None:
    pytest.importorskip("torch")
    arrays = TorchArrays("cpu")
    one, same, other = (arrays.get(arrays.normals(np.random.default_rng(seed), (500, 40))) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1
    assert abs(one.mean()) < 0.03
    assert abs(one.std() - 1) < 0.03


@pytest.mark.parametrize(
    "network", sweep([9, 47, 94], fast=[9])
)  # creases of the first line are too close to each other
def test_a_line_that_a_few_creases_spoil_is_not_the_last(network: int) -> None:
    oracle, rng = rl.open_oracle(planted((20, 600, 1), 77_000 + network, bias=1.0)), np.random.default_rng(network)
    found, regions = neurons_on_a_line(oracle, DistanceNoise(5e-15, 5e-15), rng, lines=5)
    assert (found.neurons, len(regions)) == (600, 601)
    assert 10 * 600 < oracle.queries < 12 * 600  # two lines


def test_every_crease_of_a_crowded_line_is_found(seed: int) -> None:
    """Thousands of creases, some a millionth of the scale apart: what is seen of the line of a wide network."""
    rng, h, scale = np.random.default_rng(seed), 4000, 28.0
    slope, at_origin = rng.standard_normal(h) / scale, 1.5 * rng.standard_normal(h)
    outputs = rng.standard_normal(h) / np.sqrt(h)

    def ask(rows: np.ndarray) -> np.ndarray:
        exact = [
            np.maximum(part * slope + at_origin, 0) @ outputs for part in np.array_split(rows, 1 + len(rows) // 500)
        ]
        return (np.concatenate(exact) + NOISE * rng.standard_normal(len(rows)))[:, None]

    far = np.full(1, 2e6 * scale)
    lines = Lines(np.zeros((1, 1)), np.ones((1, 1)), scale, -far, far)
    scan = scan_lines(ask, lines, DistanceNoise(3 * NOISE, 3 * NOISE / scale), rng)
    assert not scan.open.any()
    assert len(scan.creases) == h
    true = np.sort(-at_origin / slope)
    np.testing.assert_allclose(scan.creases.t, true, rtol=1e-6, atol=1e-6)
    assert len(scan.samples) < 6.5 * h


@pytest.mark.parametrize(("shown", "expected"), [(16, 40), (15, 50)])
def test_a_neuron_that_is_hardly_ever_on_is_looked_at_on_the_line(shown: int, expected: int) -> None:
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.standard_normal((50, 3)), np.column_stack([np.arange(10.0) + 1, np.zeros((10, 2))])])
    values = np.where(np.arange(60) % 2, 1.0, -1.0)[:, None] * np.ones(4)
    values[:40, 2] = np.where(np.arange(40) < shown, 1.0, -1.0)
    candidates = _Candidates(y, values, np.ones(60), np.ones((1, 4)), HOST)
    points = _showing_all(candidates, np.arange(40))
    assert len(points) == expected
    assert set(range(50, 60)) <= set(points) or expected == 40
