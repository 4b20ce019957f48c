"""The cost model: against runs made here, against every measured point, and how it grows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluctant as rl
from reluctant.estimation.cost import fitted, measured_points
from reluctant.estimation.formulas import (
    ANY_DEPTH,
    DEPTH_THREE,
    DEPTH_TWO,
    FLOAT32_DIGITS,
    FROM_LABELS,
    LABELS_ONLY,
    ROUNDED_FLOAT32,
    STEADY_NOISE,
    formula_for,
)
from reluctant.testing import in_float32, planted
from reluctant.testing.faults import rounded

MODELS = (DEPTH_TWO, DEPTH_THREE, ANY_DEPTH, FLOAT32_DIGITS, ROUNDED_FLOAT32, STEADY_NOISE, FROM_LABELS, LABELS_ONLY)
POINTS = tuple(point for point in measured_points() if not point.answers.between)
VERIFICATION_STEPS = (
    100  # rows that verification may ask less after a larger network: points are a share of what is spent
)
ROUNDED_DOWN, ROUNDED_UP = 1 - 1e-9, 1 + 1e-9  # the range ends at measured points
LARGEST_ERROR = {
    DEPTH_TWO: 0.06, DEPTH_THREE: 0.15, ANY_DEPTH: 0.2, FLOAT32_DIGITS: 0.1, ROUNDED_FLOAT32: 0.1, STEADY_NOISE: 0.02,
    FROM_LABELS: 1.5, LABELS_ONLY: 0.6,
}  # fmt: skip


@pytest.mark.parametrize("widths", [(64, 40, 1), (30, 30, 1), (300, 20, 1), (64, 32, 10), (10, 5, 2), (200, 60, 3)])
def test_stages_are_those_of_a_run(widths, seed):
    """Each stage that the settings fix is as long as in a run; one base point more may be needed."""
    result = rl.extract(rl.open_oracle(planted(widths, 9_000 + seed, bias=0.5)), rng=seed)
    assert result.ok
    parts = rl.estimate(widths).parts
    told = {stage: rows.queries for stage, rows in result.rows.items()}
    assert set(told) == set(parts) - {"close creases"}
    for stage, rows in told.items():
        room = widths[0] + 1 if stage == "main pass" and widths[-1] > 1 else 0.15 * rows + 12
        assert abs(parts[stage] - rows) <= room, stage


def test_a_fresh_network_is_within_the_range(seed):
    found = rl.estimate((120, 50, 1))
    queries = rl.extract(rl.open_oracle(planted((120, 50, 1), 9_100 + seed, bias=0.5)), rng=seed).queries
    assert found.queries.low <= queries <= found.queries.high


def test_the_check_at_a_targets_own_precision_is_as_long_as_in_a_run(seed):
    network = planted((30, 10, 1), 9_200 + seed, bias=0.5)
    result = rl.extract(rl.open_oracle(lambda x: np.round(network(x), 4), dim=30), rng=seed)
    parts = rl.estimate((30, 10, 1), precision="decimals=4").parts
    assert result.ok
    for stage in ("noise", "scaffold", "precision", "verify"):
        assert parts[stage] == result.rows[stage].queries, stage
    assert parts["biases"] + parts["biases nearby"] == result.rows["biases"].queries


@pytest.mark.slow
def test_rounded_float32_is_looked_at_and_refitted_as_often_as_in_a_run(seed):
    network = planted((30, 10, 1), 9_300 + seed, bias=0.5)
    result = rl.extract(rl.open_oracle(rounded(in_float32(network), 3), dim=30), rng=seed)
    parts = rl.estimate((30, 10, 1), precision="float32,decimals=3").parts
    assert result.ok
    assert parts["noise"] == result.rows["noise"].queries
    assert parts["biases nearby"] == result.rows["biases"].queries


def test_every_measured_point_is_within_its_range():
    for point in POINTS:
        found = rl.estimate(point.widths, precision=str(point.answers))
        low, high = ROUNDED_DOWN * found.queries.low, ROUNDED_UP * found.queries.high
        assert low <= point.queries <= point.most_queries <= high, point
        assert found.beyond == {}, point
        assert (point.most_out or 0.0) <= ROUNDED_UP * found.error, point


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_shapes_it_has_not_seen(model):
    """Without its own point every measured shape is still predicted."""
    errors = fitted(model).errors
    assert len(errors) > len(model.terms)
    assert max(abs(error.usual) for error in errors) <= LARGEST_ERROR[model]


def test_a_large_network_costs_one_answer_a_parameter():
    for shape in ("784-1024-1", "3072-2048-1", "1500-1500-1", "3072-16384-1"):
        assert 1.0 < rl.estimate(shape).per_parameter.expected < 1.03


def test_every_point_belongs_to_one_model():
    assert sum(len(fitted(model).points) for model in MODELS) == len(POINTS)
    assert {formula_for(point.widths, point.answers) for point in POINTS} == set(MODELS)


inputs, neurons, outputs = st.integers(1, 4000), st.integers(1, 3000), st.integers(1, 20)
answers = st.sampled_from(["float64", "float32", "float32,decimals=3", "decimals=4", "noise=1e-5", "labels"])


@settings(deadline=None)
@given(inputs, neurons, outputs, answers, st.integers(0, 500), st.integers(0, 500))
def test_wider_networks_cost_more(d, h, m, precision, more_d, more_h):
    small, large = (rl.estimate(widths, precision=precision) for widths in ((d, h, m), (d + more_d, h + more_h, m)))
    assert large.queries.expected >= small.queries.expected - VERIFICATION_STEPS
    doubled = rl.estimate((2 * d, 2 * h, m), precision=precision)
    assert doubled.queries.expected > small.queries.expected


@settings(deadline=None)
@given(st.lists(st.integers(1, 60), min_size=2, max_size=3), st.integers(1, 900))
def test_deeper_networks_cost_more_when_they_are_wider(hidden, d):
    once, twice = (rl.estimate((d, *(times * width for width in hidden), 1)) for times in (1, 2))
    assert twice.queries.expected > once.queries.expected


@settings(deadline=None)
@given(inputs, neurons, outputs, answers)
def test_a_range_holds_what_is_expected(d, h, m, precision):
    found = rl.estimate((d, h, m), precision=precision)
    for value in (found.queries, found.per_parameter):
        assert 0 < value.low <= value.expected <= value.high
    assert sum(found.parts.values()) == pytest.approx(found.queries.expected)


@settings(deadline=None)
@given(inputs, neurons, outputs, st.integers(1, 4))
def test_rounding_makes_no_range_end_earlier(d, h, m, decimals):
    """Rounded float32 was measured on fewer and smaller networks: that is no reason to expect less of it."""
    single, rounded_too = (rl.estimate((d, h, m), precision=f"float32{more}") for more in ("", f",decimals={decimals}"))
    assert rounded_too.queries.high >= single.queries.high


@pytest.mark.parametrize("widths", [(784, 128, 10), (784, 256, 10), (3072, 512, 1), (30, 128, 2)])
def test_a_crowd_in_float32_may_take_another_attempt(widths):
    """However many small networks were measured: one of ten with 128 neurons took four times the rows."""
    crowd = next(point for point in fitted(FLOAT32_DIGITS).points if point.widths == (30, 128, 2))
    found = rl.estimate(widths, precision="float32").queries
    assert crowd.most_queries > 3 * crowd.queries
    assert found.high > 3 * found.expected
