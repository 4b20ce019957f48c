"""One line with few digits: knots of a noisy piecewise linear function are found, and no others."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.extraction.few_digits.noisy_line import (
    LineData,
    first_knots,
    fit_spline,
    more_knots,
    only_clear_knots,
    straight_runs,
)

NOISE = 1e-5
KNOTS = np.array([-2.0, -0.3, 0.4, 1.5])


def samples(outputs: int, seed: int = 0) -> LineData:
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(-4, 4, 400))
    bends = rng.choice([-1.0, 1.0], (len(KNOTS), outputs)) * rng.uniform(0.5, 1, (len(KNOTS), outputs))
    f = np.maximum(t[:, None] - KNOTS, 0) @ bends + 0.3 * t[:, None]
    return LineData(t, f + NOISE * rng.standard_normal(f.shape), np.full(len(t), 1 / NOISE))


@pytest.mark.parametrize("outputs", [1, 3])
def test_runs_and_fit_find_the_knots(outputs: int, seed: int) -> None:
    data = samples(outputs, seed)
    spline, residual = fit_spline(first_knots(data, straight_runs(data), 5.0), data)
    knots = only_clear_knots(spline, data, residual)
    assert len(knots) == len(KNOTS) + 2
    assert np.abs(knots[1:-1] - KNOTS).max() < 10 * NOISE
    assert np.sqrt(np.mean(residual**2)) == pytest.approx(1, abs=0.1)


def test_a_missing_knot_is_added_and_a_false_one_dropped() -> None:
    data = samples(1)
    spline, residual = fit_spline(np.array([-5, -2.0, -0.3, 1.5, 5]), data)
    more = more_knots(spline, data, residual, 5.5)
    assert len(more) >= 1
    spline, residual = fit_spline(np.sort(np.concatenate([[-5, 5, 0.1], KNOTS])), data)
    assert len(only_clear_knots(spline, data, residual)) == len(KNOTS) + 2
    spline, residual = fit_spline(np.concatenate([[-5], KNOTS, [5]]), data)
    assert not len(more_knots(spline, data, residual, 5.5))
