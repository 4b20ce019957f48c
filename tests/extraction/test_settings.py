"""Settings of the methods: what they refuse, and that they reach the stage they are for."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import reluctant as rl
from reluctant.extraction import Bounded, Completion, LayerLimits
from reluctant.testing import planted

SETTINGS = (rl.DepthTwo, rl.DepthThree, rl.AnyDepth, rl.FewDigits, Bounded, LayerLimits, Completion)
NUMBERS: list[tuple[Any, str]] = [
    (kind, field.name) for kind in SETTINGS for field in fields(kind) if type(field.default) in (int, float)
]


@pytest.mark.parametrize("value", [-1, np.nan])
def test_a_number_below_zero_is_refused_by_name(value: float) -> None:
    for kind, name in NUMBERS:
        with pytest.raises(rl.ReluctantError, match=name):
            kind(**{name: value})


def test_every_number_is_explained() -> None:
    assert [name for kind, name in NUMBERS if name not in kind.__doc__.partition("Arguments:")[2]] == []


def failure_of(method: Any, widths: tuple[int, ...], **how: Any) -> str:
    result = rl.extract(rl.open_oracle(planted(widths, 3, bias=0.3), **how), method, rng=0, attempts=1)
    assert not result.ok
    return result.evidence["failures"][0]


@pytest.mark.parametrize(
    ("method", "widths", "stage"),
    [
        (rl.DepthTwo(probe_error=1e-30, polished_parameters=0), (20, 8, 1), "probe"),
        (rl.DepthTwo(weight_error=1e-30, polished_parameters=0), (20, 8, 1), "slivers"),
        (rl.DepthTwo(random_error=1e-30), (20, 8, 1), "biases"),
        (rl.DepthThree(row_error=1e-30), (16, 8, 4, 1), "refine"),
        (rl.AnyDepth(search=LayerLimits(layers=1)), (5, 8, 6, 1), "layers"),
    ],
)
def test_a_limit_of_the_method_is_the_limit_of_its_stage(method: Any, widths: tuple[int, ...], stage: str) -> None:
    assert failure_of(method, widths).startswith(stage)


def test_settings_for_a_bounded_domain_reach_its_stages() -> None:
    oracle = rl.open_oracle(planted((6, 5, 1), 3, bias=0.3), domain=(-2.0, 2.0))
    method = rl.DepthTwo(inside=Bounded(batch_points=16, quiet_batches=1))
    result = rl.extract(oracle, method, rng=0, attempts=1)
    assert result.rows["exploration"].asked < 3 * Bounded.batch_points
