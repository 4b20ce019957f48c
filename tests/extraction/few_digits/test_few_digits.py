"""FewDigits from one end to the other: right to the target's own error, or refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from sweeps import sweep
from targets import error, in_float32, own_error

import reluctant as rl
from reluctant.testing import planted
from reluctant.testing.faults import noisy, rounded

MOST_ROWS_PER_PARAMETER, MOST_ROWS_BESIDES = 60, 6000


@pytest.mark.parametrize("widths", sweep([(20, 12, 1), (16, 10, 3), (5, 12, 2)], fast=[(16, 10, 3)]))
def test_float32_is_recovered_to_its_own_error(widths: tuple[int, ...], seed: int) -> None:
    target, true = in_float32(planted(widths, 30 + seed, bias=0.5))
    result = rl.extract(rl.open_oracle(target, dim=widths[0]), rng=900 + seed)
    assert result.ok
    assert result.network is not None
    assert result.network.widths == widths
    assert error(result.network, true) <= 1.5 * own_error(target, true)
    assert result.queries <= MOST_ROWS_PER_PARAMETER * true.parameters + MOST_ROWS_BESIDES
    precision = result.evidence["precision"]
    assert precision.ok
    assert precision.cost == pytest.approx(result.queries * true.outputs / true.parameters, rel=0.25)


@pytest.mark.parametrize("name", sweep(["6 decimals", "3 decimals", "noise 1e-6", "noise 1e-4"], fast=["3 decimals"]))
def test_absolute_noise_is_left_behind_from_afar(name: str, seed: int) -> None:
    true = planted((40, 24, 1), 60 + seed)
    kinds = {
        "6 decimals": rounded(true, 6),
        "3 decimals": rounded(true, 3),
        "noise 1e-6": noisy(true, 1e-6),
        "noise 1e-4": noisy(true, 1e-4),
    }
    result = rl.extract(rl.open_oracle(kinds[name], dim=40), rng=70 + seed)
    assert result.ok
    assert result.network is not None
    assert result.network.widths == true.widths
    assert error(result.network, true) <= own_error(kinds[name], true)
    assert result.queries <= 4 * true.parameters + 370  # verification asks a small network more than its share


@pytest.mark.slow
def test_float32_rounded_to_decimals() -> None:
    computed, true = in_float32(planted((12, 8, 1), 2))
    target = rounded(computed, 3)
    result = rl.extract(rl.open_oracle(target, dim=12), rng=4)
    assert result.ok
    assert result.network is not None
    assert error(result.network, true) <= 2 * own_error(target, true)


def test_a_target_with_all_digits_gives_the_same_behind_a_closure() -> None:
    true = planted((8, 5, 1), 3)
    one, other = (rl.extract(rl.open_oracle(t, dim=8), rl.FewDigits(), rng=1) for t in (true, lambda x: true(x)))
    assert one.ok
    assert one.rows == other.rows
    assert one.network is not None
    assert other.network is not None
    assert np.array_equal(one.network.weights[0], other.network.weights[0])


def test_one_input() -> None:
    target, true = in_float32(planted((1, 3, 1), 2))
    result = rl.extract(rl.open_oracle(target, dim=1), rng=4, attempts=1)
    assert not result.ok or (result.network is not None and error(result.network, true) <= 1e-5)


@pytest.mark.parametrize("widths", sweep([(4, 3, 2, 1), (6, 5, 3, 1)], fast=[(4, 3, 2, 1)]))
def test_a_deeper_network_is_refused(widths: tuple[int, ...], seed: int) -> None:
    true = planted(widths, 20 + seed)
    target = lambda x: true(x).astype(np.float32)  # noqa: E731
    result = rl.extract(rl.open_oracle(target, dim=widths[0]), rng=seed, attempts=1)
    assert result.outcome is rl.Outcome.LOW_PRECISION
    assert result.evidence["failures"]


def test_a_target_without_creases_and_float16_are_named() -> None:
    affine = lambda x: (x @ np.ones((6, 1)) + 1).astype(np.float32)  # noqa: E731
    assert rl.extract(rl.open_oracle(affine, dim=6), rng=0, attempts=1).network.widths == (6, 1)
    true = planted((6, 4, 1), 3)
    half = lambda x: true(x).astype(np.float16)  # noqa: E731
    assert not rl.extract(rl.open_oracle(half, dim=6), rng=0, attempts=1).ok


def test_settings_are_checked() -> None:
    with pytest.raises(rl.ReluctantError):
        rl.FewDigits(lines=0)


def test_one_neuron_is_recovered_though_half_of_the_lines_have_no_noise() -> None:
    target, true = in_float32(planted((17, 1, 2), 3, bias=0.0))
    result = rl.extract(rl.open_oracle(target, dim=17), rng=0, attempts=1)
    assert result.ok
    assert result.network is not None
    assert result.network.widths == (17, 1, 2)
    assert error(result.network, true) <= own_error(target, true)


def test_weights_below_the_noise_of_a_large_constant_are_found_far_out() -> None:
    planned = planted((10, 6, 1), 4, bias=0.5)
    constant = [planned.biases[0], planned.biases[1] + 300.0]
    target, _ = in_float32(rl.ReLUNetwork(planned.weights, constant))
    result = rl.extract(rl.open_oracle(target, dim=10), rng=0, attempts=1)
    assert result.ok
    far = {group.name: group.rms for group in result.evidence["precision"].groups}
    assert far["random, scale 100"] < 2
