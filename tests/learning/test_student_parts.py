"""Parts of a student: slopes are those of the losses, answers are read as what they are, fits depend on their seed."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant.fitting.adam import STEPS_BETWEEN_LOOKS, TrainingPace, fit_network
from reluctant.learning.student import Coordinates, _Questions
from reluctant.learning.student_losses import (
    Chances,
    Classes,
    Labels,
    OneHot,
    Values,
    measure_student,
    reading_of,
    upper_end,
)
from reluctant.networks import ReLUNetwork
from reluctant.oracles import Kind, open_oracle
from reluctant.testing import planted

RNG = np.random.default_rng(1)
PROBABILITIES = RNG.dirichlet(np.ones(4), 50)
TOP = np.where(PROBABILITIES.max(axis=1, keepdims=True) == PROBABILITIES, PROBABILITIES, 0.0)

SURE_AND_UNSURE = np.where(np.arange(50)[:, None] % 2, np.sign(TOP), TOP)
NOISY_TOP = np.where(TOP > 0, SURE_AND_UNSURE + 1e-3 * np.random.default_rng(2).standard_normal(TOP.shape), 0)


def cross_entropy(values, told):
    """Of what was told, the rest being one event."""
    said = np.exp(values - values.max(axis=1, keepdims=True))
    said /= said.sum(axis=1, keepdims=True)
    rest, left = np.where(told > 0, 0, said).sum(axis=1), 1 - told.sum(axis=1)
    known = -(told * np.log(said)).sum(axis=1)
    return known - np.where(rest > 0, left * np.log(np.where(rest > 0, rest, 1)), 0)


@pytest.mark.parametrize("told", [PROBABILITIES, TOP, np.eye(4)[RNG.integers(4, size=50)]], ids=["all", "top", "label"])
def test_the_slope_is_the_derivative_of_the_cross_entropy(told):
    values, step = RNG.standard_normal(told.shape), 1e-6
    slope = Classes(4).slope(values, told)
    for k in range(4):
        move = step * np.eye(4)[k]
        by_steps = (cross_entropy(values + move, told) - cross_entropy(values - move, told)) / (2 * step)
        np.testing.assert_allclose(slope[:, k], by_steps, atol=1e-7)


def test_the_slope_of_chances():
    values, told = RNG.standard_normal((20, 2)), RNG.uniform(size=(20, 2))
    np.testing.assert_allclose(Chances(2).slope(values, told), 1 / (1 + np.exp(-values)) - told, atol=1e-12)


@pytest.mark.parametrize(
    ("answers", "told", "reading"),
    [
        (RNG.standard_normal((30, 2)), Kind.VALUES, Values),
        (PROBABILITIES, Kind.VALUES, Classes),
        (TOP, Kind.PROBABILITIES, Classes),
        (TOP, Kind.VALUES, Classes),
        (TOP.astype(np.float32).astype(float), Kind.VALUES, Classes),
        (TOP.round(3), Kind.VALUES, Classes),
        (NOISY_TOP, Kind.VALUES, Classes),
        (np.maximum(RNG.standard_normal((50, 4)), 0), Kind.VALUES, Values),
        (np.clip(RNG.standard_normal((50, 4)), 0, 1), Kind.VALUES, Values),
        (np.eye(4)[RNG.integers(4, size=50)], Kind.VALUES, OneHot),
        (RNG.integers(3, size=(50, 1)).astype(float), Kind.VALUES, Labels),
        (RNG.uniform(size=(50, 1)), Kind.PROBABILITIES, Chances),
        (RNG.uniform(0.5, 1, size=(50, 3)), Kind.PROBABILITIES, Chances),
    ],
)
def test_answers_are_read_as_what_they_are(answers, told, reading):
    assert type(reading_of(answers, told)) is reading


@pytest.mark.parametrize("noise", [0.0, 0.002, 0.006])
@pytest.mark.parametrize("seed", range(5))
def test_noise_does_not_turn_classes_into_chances_nor_back(noise, seed):
    """By most rows: of many some sum to more than one, and small chances of their own seldom do."""
    rng = np.random.default_rng(seed)
    values = planted((6, 8, 3), seed)(rng.standard_normal((4000, 6)))
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    classes, chances = powers / powers.sum(axis=1, keepdims=True), (1 + np.tanh((values - 4) / 2)) / 2
    moved = noise * rng.standard_normal(values.shape)
    assert type(reading_of(classes + moved, Kind.PROBABILITIES)) is Classes
    assert type(reading_of(chances + moved, Kind.PROBABILITIES)) is Chances


def test_noisy_classes_are_put_right_and_untold_ones_stay_untold():
    answers = np.array([[-0.01, 0.5, 0.55], [0.4, 0.4, 0.3], [0.6, 0.0, 0.0], [0.333, 0.333, 0.333]])
    targets = Classes(3).targets(answers)
    np.testing.assert_allclose(targets[:2].sum(axis=1), 1)
    np.testing.assert_array_equal(targets[2:], answers[2:])


def test_labels_keep_their_names():
    reading = Labels(np.array([-1.0, 1.0, 7.0]))
    np.testing.assert_array_equal(reading.targets(np.array([[7.0], [-1.0]])), [[0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(reading.value_labels(np.array([[0, 3, 1.0], [5, 1, 2.0]])), [1, -1])


def test_a_network_of_coordinates_is_one_of_inputs():
    rows = 3 + 2 * RNG.standard_normal((100, 4))
    span = np.linalg.qr(RNG.standard_normal((4, 2)))[0].T
    network = ReLUNetwork([RNG.standard_normal((3, 2)), np.ones((1, 3))], [np.ones(3), np.zeros(1)])
    for within in (Coordinates.of(rows, span), Coordinates.of(rows[:, :2], None)):
        x = rows[:, :2] if within.directions is None else rows
        assert np.allclose(within(x).mean(axis=0), 0)
        assert np.allclose(within(x).std(axis=0), 1)
        np.testing.assert_allclose(within.unfolded(network)(x), network(within(x)))


def test_a_pace_without_a_clock_is_its_steps():
    pace = TrainingPace(10)
    assert [pace.at(step) for step in (0, 5, 10)] == [0.0, 0.5, 1.0]
    hurried = TrainingPace(10**9, seconds=0.0)
    hurried.at(STEPS_BETWEEN_LOOKS)
    assert hurried.hurried
    assert hurried.steps == STEPS_BETWEEN_LOOKS


def test_a_fit_lowers_the_error_it_is_measured_by():
    x = RNG.standard_normal((500, 2))
    answers = np.abs(x[:, :1])
    reading = Values(answers)
    targets, errors = reading.targets(answers), []
    for steps in (1, 1000):
        network = fit_network(x, targets, reading.slope, (8,), 1, TrainingPace(steps), np.random.default_rng(0))
        errors.append(measure_student(network, reading, x, answers).error)
    assert errors[1] < 1e-3 < errors[0]


@pytest.mark.parametrize(("probed", "cut"), [(4, 6), (4, 8), (5, 5), (4, 3)])
def test_rows_asked_twice_are_held_beside_themselves(probed: int, cut: int) -> None:
    """Where the budget ends in the middle of the second time, too."""
    rows = np.arange(20.0)[:, None]
    asking = _Questions(open_oracle(lambda x: x, dim=1, budget=cut), rows, None)
    asking.answers = [np.tile(rows[:probed], (2, 1))[:cut]]
    assert not asking.differs(probed)
    asking.answers = [np.concatenate([rows[:probed], rows[:probed] + 1])[:cut]]
    assert asking.differs(probed) == (cut > probed)


def test_whole_numbers_are_not_taken_for_rounded_ones() -> None:
    """They may be exact: then what a student is off by is its own."""
    answers = 30 * np.random.default_rng(2).standard_normal((500, 2))
    assert Values(np.round(answers, 1)).rounding(np.round(answers, 1)) > 0
    assert Values(np.round(answers)).rounding(np.round(answers)) == 0


def test_no_more_labels_may_differ_than_there_are() -> None:
    assert upper_end(np.ones(40), 1.0) == 1.0
    assert upper_end(np.zeros(40), 1.0) > 0
