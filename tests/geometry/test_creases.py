"""Crease search: every crease of a planted network on every line, at a stated number of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluctant.geometry import DistanceNoise, Lines, scan_lines
from reluctant.geometry.creases import merge_slivers
from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.testing import planted

NOISE = DistanceNoise(near=5e-16, growth=5e-16)


def true_creases(network: ReLUNetwork, lines: Lines, line: int) -> FloatArray:
    normals, offsets = network.hyperplanes()
    return np.sort(-(normals @ lines.origins[line] + offsets) / (normals @ lines.directions[line]))


class Asked:
    """A network that counts the rows it is asked and the calls."""

    def __init__(self, network: ReLUNetwork) -> None:
        self.network, self.rows, self.calls = network, 0, 0

    def __call__(self, x: FloatArray) -> FloatArray:
        self.rows, self.calls = self.rows + len(x), self.calls + 1
        return self.network(x)


@pytest.mark.parametrize(
    ("widths", "most_rows"),
    [((784, 32, 1), 6.0), ((64, 128, 1), 5.6), ((10, 100, 1), 5.6), ((64, 128, 10), 4.6), ((30, 128, 2), 5.2)],
)
def test_all_creases_are_found(widths: tuple[int, ...], most_rows: float, seed: int) -> None:
    network, rng = planted(widths, seed, bias=0.5), np.random.default_rng(seed)
    lines, asked = Lines.random(rng, 1, widths[0]), Asked(network)
    scan = scan_lines(asked, lines, NOISE, rng)
    true = true_creases(network, lines, 0)
    assert not scan.open.any()
    np.testing.assert_allclose(np.arctan(scan.creases.t / lines.scale), np.arctan(true / lines.scale), atol=1e-5)
    assert asked.rows <= most_rows * widths[1]


def test_jumps_are_the_neurons_own(seed: int) -> None:
    network, rng = planted((20, 15, 3), seed), np.random.default_rng(seed)
    lines = Lines.random(rng, 1, 20)
    scan = scan_lines(network, lines, NOISE, rng)
    slopes = network.weights[0] @ lines.directions[0]
    order = np.argsort(-network.preactivations(lines.origins)[0][0] / slopes)
    expected = (network.weights[1] * np.abs(slopes)).T[order]
    np.testing.assert_allclose(scan.creases.jump, expected, atol=1e-6)


def test_many_lines_are_one_batch() -> None:
    network, rng = planted((20, 30, 1), 0), np.random.default_rng(0)
    lines, asked = Lines.random(rng, 40, 20), Asked(network)
    scan = scan_lines(asked, lines, NOISE, rng)
    assert np.bincount(scan.creases.line).tolist() == [30] * 40
    assert asked.calls < 40  # as many rounds as one line takes, not as many as there are lines


def test_affine_function_has_no_crease() -> None:
    network, rng = ReLUNetwork([[[1.0, 2.0, -1.0]]], [[0.5]]), np.random.default_rng(0)
    scan = scan_lines(network, Lines.random(rng, 3, 3), NOISE, rng)
    assert len(scan.creases) == 0
    assert not scan.open.any()


@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-6])
def test_close_pairs_are_told_apart_or_count_as_one(distance: float) -> None:
    w = np.array([[1.0, 0.3], [1.0, 0.3], [-0.5, 1.0]])
    network = ReLUNetwork([w, [[1.0, 1.0, -1.0]]], [[0.0, distance, 0.2], [0.0]])
    rng = np.random.default_rng(3)
    lines = Lines.random(rng, 1, 2)
    scan = scan_lines(network, lines, NOISE, rng)
    true = true_creases(network, lines, 0)
    for t in true:  # whatever was found, nothing is far from a crease that was
        assert np.abs(scan.creases.t - t).min() < 2 * distance


@given(h=st.integers(1, 25), d=st.integers(1, 6), m=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_no_crease_is_invented(h: int, d: int, m: int, seed: int) -> None:
    network, rng = planted((d, h, m), seed), np.random.default_rng(seed)
    lines = Lines.random(rng, 1, d)
    scan = scan_lines(network, lines, NOISE, rng)
    true = true_creases(network, lines, 0)
    assert len(scan.creases) <= h
    if not scan.open.any():
        distance = np.abs(np.arctan(scan.creases.t[:, None] / lines.scale) - np.arctan(true / lines.scale)).min(axis=1)
        assert distance.max(initial=0) < 1e-4


@pytest.mark.parametrize("outputs", [1, 5])
def test_two_creases_that_nearly_cancel_are_not_taken_for_a_weak_one(outputs: int, seed: int) -> None:
    plain, rng = planted((20, 10, outputs), seed), np.random.default_rng(seed)
    (w, a), (b, c) = (part.copy() for part in plain.weights), (part.copy() for part in plain.biases)
    w[1] = w[0] + 1e-5 * rng.standard_normal(20) / np.sqrt(20)
    a[:, 1], b[1] = -0.999 * a[:, 0], b[0]
    network, lines = ReLUNetwork([w, a], [b, c]), Lines.random(rng, 100, 20)
    scan = scan_lines(network, lines, NOISE, rng)
    found = np.bincount(scan.creases.line, minlength=100)
    slopes = lines.directions @ w[:2].T
    gap = np.abs(np.diff(-(lines.origins @ w[:2].T + b[:2]) / slopes, axis=1)[:, 0])
    depth = gap * np.abs(slopes[:, 0]) * np.linalg.norm(a[:, 0])
    assert np.all((found == 10) | (scan.open > 0) | (depth < 1e-8))
    assert (found == 10).mean() > 0.9


def test_creases_close_together_can_be_taken_for_one() -> None:
    w = np.array([[1.0, 0.3], [1.0, 0.3], [-0.5, 1.0]])
    network = ReLUNetwork([w, [[1.0, 1.0, -1.0]]], [[0.0, 1e-4, 0.2], [0.0]])
    rng = np.random.default_rng(3)
    lines = Lines.random(rng, 1, 2)
    scan = scan_lines(network, lines, NOISE, rng)
    assert (
        len(scan.creases)
        == len(merge_slivers(scan, 1e-6, 1.0).creases)
        == len(merge_slivers(scan, 1.0, 1e-9).creases)
        == 3
    )
    merged = merge_slivers(scan, 1e-2, 1e-2).creases
    near = np.argmin(np.abs(merged.t - true_creases(ReLUNetwork([w[:1], [[1.0]]], [[0.0], [0.0]]), lines, 0)))
    assert len(merged) == 2
    np.testing.assert_allclose(np.abs(merged.jump[near]), 2 * abs(w[0] @ lines.directions[0]), rtol=1e-9)
