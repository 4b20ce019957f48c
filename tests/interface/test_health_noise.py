"""How much noise is found: rounding of either number format, decimals, fresh noise; and the parts that read it."""

from __future__ import annotations

import numpy as np
import pytest
from health_targets import DIM, lively, network

from reluctant import check_health, open_oracle
from reluctant.interface import NoiseReading, Shape, measure_noise
from reluctant.interface.noise import (
    MEDIAN_OF_ABS_NORMAL,
    NOISE_FALL,
    SECOND_DIFFERENCE_GAIN,
    ShortLines,
    noise_model,
    read_noise,
)
from reluctant.numerics import Noise, unit_roundoff
from reluctant.testing.faults import in_float32, noisy, rounded

NETWORKS = [(784, 32, 1), (10, 100, 1), (20, 16384, 1), (20, 15, 10, 5, 1)]


@pytest.mark.parametrize("widths", NETWORKS, ids=lambda widths: "-".join(map(str, widths)))
def test_noise_of_float64_is_its_rounding(widths, seed):
    health = check_health(open_oracle(lively(widths, seed)))
    near, far = health.readings
    assert 1e-17 * near.magnitude <= health.noise.absolute <= 1e-13 * near.magnitude
    assert 1e-17 <= health.noise.relative <= 1e-13
    assert (near.scale, far.scale) == (1, 1e4)


def test_noise_of_float32_is_its_rounding(seed):
    health = check_health(open_oracle(in_float32(network(seed)), dim=DIM))
    assert health.number_format == "float32"
    assert health.deterministic
    assert 1e-8 <= health.noise.absolute / health.readings[0].magnitude <= 1e-6
    assert 1e-8 <= health.noise.relative <= 1e-6


@pytest.mark.parametrize("decimals", [6, 3, 2])
def test_rounded_answers(decimals, seed):
    health = check_health(open_oracle(rounded(network(seed), decimals), dim=DIM))
    assert health.decimals == decimals
    assert health.deterministic
    assert health.shape is Shape.PIECEWISE_LINEAR
    assert 0.2 * 10.0**-decimals <= health.noise.absolute <= 10.0**-decimals


@pytest.mark.parametrize("sd", [1e-3, 1e-6, 1e-9])
def test_fresh_noise(sd, seed):
    health = check_health(open_oracle(noisy(network(seed, outputs=5), sd, seed), dim=DIM), rng=seed)
    assert not health.deterministic
    assert sd / 2.5 <= health.fresh_noise <= sd * 2.5
    assert sd / 2.5 <= health.noise.absolute <= sd * 2.5
    assert health.shape is Shape.PIECEWISE_LINEAR


# ---- the parts


def lines_with(second_differences: list[list[float]], at_centres: float = 1.0) -> ShortLines:
    """Lines of one output whose second differences, (steps, lines), are these."""
    second = np.array(second_differences)[:, :, None]
    centres = np.full((second.shape[1], 1), at_centres)
    ahead = centres + second
    return ShortLines(np.zeros((len(centres), 3)), centres, ahead, np.broadcast_to(centres, ahead.shape), (3e-4, 3e-5))


def test_read_noise_is_the_deviation_of_one_answer():
    reading = read_noise(lines_with([[6e-3, 6e-3], [5e-3, 5e-3]]), scale=1.0)
    assert reading.sd == pytest.approx(6e-3 / SECOND_DIFFERENCE_GAIN)
    assert (reading.scale, reading.magnitude) == (1.0, 1.0)


def test_read_noise_leaves_out_lines_that_still_fall():
    crease = 2 * NOISE_FALL
    reading = read_noise(lines_with([[6e-3, crease], [5e-3, 1.0]]), scale=1.0)
    assert reading.sd == pytest.approx(6e-3 / SECOND_DIFFERENCE_GAIN)


def test_read_noise_leaves_out_a_line_whose_steps_are_bent_alike():
    reading = read_noise(lines_with([[6e-9, 6e-9, 6e-9, 1e-1], [5e-9, 5e-9, 5e-9, 5e-2]]), scale=1.0)
    assert reading.sd == pytest.approx(6e-9 / SECOND_DIFFERENCE_GAIN)


def test_read_noise_takes_the_median_of_the_shortest_step_if_most_still_fall():
    reading = read_noise(lines_with([[1.0, 1.0, 1.0], [1e-2, 1e-2, 0.9]]), scale=1.0)
    assert reading.sd == pytest.approx(1e-2 / MEDIAN_OF_ABS_NORMAL / SECOND_DIFFERENCE_GAIN)


def test_read_noise_is_never_below_one_rounding():
    reading = read_noise(lines_with([[0.0, 0.0], [0.0, 0.0]], at_centres=8.0), scale=1.0)
    assert reading.sd == 8 * unit_roundoff(np.float64)


def test_measure_noise_of_a_noisy_target(seed):
    oracle = open_oracle(noisy(network(seed, outputs=5), 1e-4, seed), dim=DIM)
    reading = measure_noise(oracle, np.random.default_rng(seed), lines=20)
    assert 1e-4 / 2.5 <= reading.sd <= 2.5e-4


def test_measure_noise_costs_five_rows_a_line():
    oracle = open_oracle(network(0))
    measure_noise(oracle, np.random.default_rng(0), lines=7)
    assert oracle.queries == 5 * 7


def test_measure_noise_of_a_target_without_numbers_is_none():
    oracle = open_oracle(lambda x: np.full(len(x), np.inf), dim=DIM)
    assert measure_noise(oracle, np.random.default_rng(0)) is None


def test_the_noise_model_takes_each_part_from_its_scale():
    model = noise_model(NoiseReading(1.0, 1e-7, 2.0), NoiseReading(1e4, 1e-3, 1e4))
    assert model == Noise(absolute=1e-7, relative=1e-7)
    assert noise_model(NoiseReading(1.0, 1e-7, 2.0), None) == Noise(1e-7, 0.0)
    assert noise_model(NoiseReading(1.0, 1e-7, 2.0), NoiseReading(1e4, 1e-3, 0.0)) == Noise(1e-7, 0.0)


def test_noise_grows_with_the_answer():
    noise = Noise(absolute=3.0, relative=4.0)
    assert noise.at(0) == 3
    assert noise.at(1) == 5
