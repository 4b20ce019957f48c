from __future__ import annotations

import numpy as np
import pytest

from reluctant.numerics import DOUBLE, Tolerances, unit_roundoff


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_thresholds_follow_from_the_format(dtype: str) -> None:
    tol = Tolerances(dtype=dtype)
    one = np.ones((), dtype)
    assert one + one.dtype.type(tol.spacing) > one
    assert one + one.dtype.type(tol.rounding / 2) == one
    assert tol.rounding == unit_roundoff(dtype)
    assert tol.wide == pytest.approx(np.sqrt(tol.spacing))
    assert 0 < tol.tiny < tol.rounding < tol.answer < tol.spacing < tol.wide < 1


@pytest.mark.parametrize("noise", [1e-12, 1.0, 3.0])
def test_thresholds_of_answers_grow_with_their_noise(noise: float) -> None:
    tol = Tolerances(noise=noise)
    assert [tol.in_line, tol.bent, tol.bend] == pytest.approx([30 * noise, 45 * noise, 90 * noise])


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_thresholds_of_positions_grow_with_their_scale(scale: float) -> None:
    tol = Tolerances(scale=scale)
    for name in ("rounding", "answer", "spacing", "wide"):
        assert getattr(tol, name) == pytest.approx(scale * getattr(DOUBLE, name))
    assert tol.in_line == DOUBLE.in_line
