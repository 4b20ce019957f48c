"""FewDigitsDeep: two hidden layers from float32, right to the target's own error, or refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep
from targets import error, in_float32, own_error

import reluctant as rl
from reluctant.extraction.deep_few_digits.two_layers import TwoLayers, Weighed, fit_two_layers, without_past_term
from reluctant.extraction.few_digits.growth import LAYERS
from reluctant.extraction.few_digits.incomplete_lines import bent_share, read_incomplete_line
from reluctant.extraction.few_digits.view import look_from
from reluctant.numerics import FloatArray
from reluctant.testing import planted
from reluctant.verification.precision import rounding_sizes

SHAPES = [(8, 5, 4, 1), (20, 10, 10, 1), (12, 8, 6, 2), (64, 32, 16, 1)]


@pytest.mark.parametrize("widths", sweep(SHAPES, fast=SHAPES[:1]))
def test_two_hidden_layers_are_recovered_to_their_own_error(widths: tuple[int, ...], seed: int) -> None:
    target, true = in_float32(planted(widths, 40 + seed, bias=0.5))
    result = rl.extract(rl.open_oracle(target, dim=widths[0]), rng=seed)
    assert result.ok
    assert result.network is not None
    assert result.network.widths == widths
    assert error(result.network, true) <= own_error(target, true)
    assert result.evidence["precision"].ok
    assert result.evidence["failures"][0].startswith(LAYERS)
    assert {"first layer", "second layer", "frame", "last fit"} <= set(result.rows)


def test_one_hidden_layer_is_no_second_one() -> None:
    target, _ = in_float32(planted((12, 6, 1), 3, bias=0.5))
    result = rl.extract(rl.open_oracle(target, dim=12), rl.FewDigitsDeep(), rng=0, attempts=1)
    assert not result.ok
    assert result.evidence["failures"][0].startswith("second layer")
    assert result.network is not None
    assert result.network.widths == (12, 6, 1)


@pytest.mark.parametrize(("widths", "bent"), [((20, 10, 1), False), ((20, 10, 10, 1), True)])
def test_creases_of_a_second_layer_bend(widths: tuple[int, ...], bent: bool) -> None:
    target, _ = in_float32(planted(widths, 5, bias=0.5))
    rng = np.random.default_rng(0)
    view = look_from(rl.open_oracle(target, dim=widths[0]), 1.0, rng)
    direction, across = np.linalg.qr(rng.standard_normal((widths[0], 2)))[0].T
    assert (bent_share(view, rng.standard_normal(widths[0]), direction, across) > 0.22) is bent


def test_kinks_of_a_noisy_line() -> None:
    rng, places, noise = np.random.default_rng(0), np.array([-1.3, -0.2, 0.4, 2.0]), 1e-6

    def ask(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        f = np.maximum(t[:, None] - places, 0) @ np.array([1.0, -0.7, 1.5, -2.0])
        return (f + noise * rng.standard_normal(len(t)))[:, None], np.full(len(t), noise)

    reading = read_incomplete_line(ask, np.tan(np.linspace(-1.5, 1.5, 80)))
    np.testing.assert_allclose(reading.positions, places, atol=1e-5)
    assert len(reading.samples) < 150


def two_layers(rng: np.random.Generator, *, past: bool = False) -> TwoLayers:
    shapes = [(4, 6), (4,), (3, 4), (3,), (2, 3), (2,)]
    parts = [rng.standard_normal(shape) for shape in shapes]
    return TwoLayers(*parts, rng.standard_normal((2, 4)) if past else None)


@pytest.mark.parametrize("past", [False, True])
def test_the_fit_comes_from_a_percent_to_the_noise(past: bool) -> None:
    rng = np.random.default_rng(1)
    true, y, noise = two_layers(rng, past=past), rng.standard_normal((400, 6)), 1e-7
    start = true.moved(1e-2 * rng.standard_normal(true.parameters))
    answers = Weighed(y, true(y) + noise * rng.standard_normal((400, 2)), np.full((400, 2), noise))
    found = fit_two_layers(start, answers, rng, huber=1e3, steps=30, damping=1e-3)
    assert np.sqrt(np.mean(answers.left_by(found) ** 2)) < 1.2
    np.testing.assert_allclose(found.network()(y), true(y), atol=1e-5)


def test_a_neuron_the_wrong_way_round_is_turned() -> None:
    rng = np.random.default_rng(2)
    true, y = two_layers(rng), rng.standard_normal((50, 6))
    sides = np.array([1.0, -1.0, -1.0])
    past = true.a[:, 1:] @ true.v[1:]
    turned = TwoLayers(
        true.w, true.b, true.v * sides[:, None], true.c * sides, true.a, true.e + true.a[:, 1:] @ true.c[1:], past
    )
    np.testing.assert_allclose(turned(y), true(y), atol=1e-12)
    found, left = without_past_term(turned)
    assert left < 1e-12
    np.testing.assert_allclose(TwoLayers(*found.parts[:-1])(y), true(y), atol=1e-12)


def test_roundings_carried_through_a_network_are_those_of_float32() -> None:
    target, true = in_float32(planted((30, 20, 10, 2), 4, bias=0.5))
    rng = np.random.default_rng(3)
    ratios = []
    for scale in (0.1, 1.0, 100.0):
        rows = (scale * rng.standard_normal((2000, 30))).astype(np.float32).astype(np.float64)
        ratios.append(np.sqrt(np.mean(((target(rows) - true(rows)) / rounding_sizes(true, rows)) ** 2)))
    assert max(ratios) < 1.6 * min(ratios)
    assert max(ratios) < np.finfo(np.float32).eps
