"""Scales of columns by questions, where no rows and no bounds of the inputs are known."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep

import reluctant as rl
from reluctant.oracles.input_units import found_units
from reluctant.testing import planted

SCALE = np.array([1e-6, 1e6, 1.0, 250.0, 3e5, 0.08, 1e-3, 12.0])


def raw(widths: tuple[int, ...], seed: int):
    """A network on columns of very different sizes, with one that does nothing."""
    network = planted(widths, seed)
    return lambda x: network(np.where(np.arange(8) == 2, 0.0, x / SCALE))


@pytest.mark.parametrize("seed", range(3))
def test_scales_are_those_of_the_columns(seed: int) -> None:
    oracle = rl.open_oracle(raw((8, 12, 1), seed), dim=8)
    units = found_units(oracle, np.random.default_rng(seed))
    assert units is not None
    ratio = np.delete(units.scale / SCALE, 2)
    assert ratio.max() < 100 * ratio.min()
    assert oracle.ledger.stages["column scales"].asked == 1 + 8 + 34 * 8 + 408


def test_columns_of_one_size_cost_one_row_each() -> None:
    oracle = rl.open_oracle(planted((8, 12, 1), 0))
    assert found_units(oracle, np.random.default_rng(0)) is None
    assert oracle.ledger.stages["column scales"].asked == 9


def test_a_target_that_never_changes_has_no_scales() -> None:
    oracle = rl.open_oracle(lambda x: np.ones(len(x)), dim=3)
    assert found_units(oracle, np.random.default_rng(0)) is None


@pytest.mark.parametrize("widths", sweep([(8, 4, 1), (8, 6, 4, 1)], fast=[(8, 4, 1)]))
def test_networks_on_columns_of_unlike_size_are_recovered_without_inputs(widths: tuple[int, ...]) -> None:
    target = raw(widths, 1)
    result = rl.extract(target, dim=8, rng=0, budget=100_000)
    assert result.ok
    assert result.units_found is not None
    assert result.units_found.fields["ratio"] > 1e9
    asked = result.rows.get("column scales")  # none where hyperplanes of a first network show them
    assert asked is None or asked.asked == 1 + 8 + 34 * 8 + 408
    rows = SCALE * np.random.default_rng(5).normal(size=(200, 8))
    values = target(rows)
    assert np.abs(result.network(rows) - values).max() < 1e-6 * values.std()


def test_rounding_of_a_column_that_does_nothing_sets_no_step() -> None:
    """Answers to one row and to many may differ in their last digit, as those of a matrix product do."""
    network = planted((8, 12, 1), 0)

    def target(x: np.ndarray) -> np.ndarray:
        return network(np.where(np.arange(8) < 5, 0.0, x)) * (1 + 2e-16 * (len(x) > 1))

    assert found_units(rl.open_oracle(target, dim=8), np.random.default_rng(0)) is None
