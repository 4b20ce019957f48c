"""Whole numbers beside other answers: what is taken for the number of a class, and what is not."""

import numpy as np
import pytest

from reluctant.audit import audit
from reluctant.interface import Interface, check_health
from reluctant.oracles import Kind, open_oracle
from reluctant.testing import planted

DIM = 6
SEEDS = range(4)
BOX, WIDE = (-1.0, 1.0), (-3.0, 3.0)
CLASSES, ONE = planted((DIM, 12, 10), 1), planted((DIM, 12, 1), 3)
MIDDLE = np.median(ONE(np.random.default_rng(0).standard_normal((500, DIM))))
THREE = planted((DIM, 8, 3), 2)
LEAD = np.array([20.0, 0.0, 0.0])  # of class 0 over others
RAYS = np.random.default_rng(11).standard_normal((4, DIM))


def checked(target, seed: int, domain=None) -> Interface:
    return check_health(open_oracle(target, dim=DIM, domain=domain), rng=seed)


def softmax(z: np.ndarray) -> np.ndarray:
    powers = np.exp(z - z.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 0.5 + 0.5 * np.tanh(z / 2)


def values(x: np.ndarray) -> np.ndarray:
    return ONE(x)[:, 0] - MIDDLE


def beside(column):
    """A target that answers these numbers before three values."""
    return lambda x: np.column_stack([column(x), THREE(x)])


def with_probabilities(total: float, lead: np.ndarray = LEAD):
    """The number of the class before all probabilities, of which one is the largest nearly everywhere."""
    return lambda x: np.column_stack([(THREE(x) + lead).argmax(axis=1), total * softmax(THREE(x) + lead)])


def not_finite_far_out(x: np.ndarray) -> np.ndarray:
    answers = np.column_stack([CLASSES(x).argmax(axis=1), CLASSES(x)])
    answers[np.abs(x).max(axis=1) > 1e5] = np.nan
    return answers


def zero_near(x: np.ndarray) -> np.ndarray:
    return (np.maximum(x @ RAYS.T - 12.0, 0) @ np.array([0.3, 1.2, 0.7, 0.4]))[:, None]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("domain", [None, BOX])
@pytest.mark.parametrize(
    "column",
    [
        lambda x: np.rint(100 * sigmoid(values(x))),
        lambda x: (x > 0).sum(axis=1),
        lambda x: np.rint(9 * sigmoid(values(x))),
        lambda x: np.rint(np.clip(5 * values(x), 0, 20)),
        lambda x: np.clip(30 * values(x), 0, 1),
        lambda x: np.round(sigmoid(200 * values(x)), 6),
    ],
    ids=["percent", "count", "score", "clipped score", "clipped value", "steep sigmoid"],
)
def test_scores_and_steep_values_are_no_classes(column, domain, seed) -> None:
    assert checked(beside(column), seed, domain).class_columns == ()


@pytest.mark.parametrize("seed", SEEDS)
def test_probabilities_with_one_decimal_are_no_classes(seed) -> None:
    assert checked(lambda x: np.round(softmax(THREE(x)), 1), seed).class_columns == ()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_class_is_found_though_some_answers_are_not_finite(seed) -> None:
    assert checked(not_finite_far_out, seed).class_columns == (0,)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_of_many_classes_is_found_though_hardly_any_comes_back(seed) -> None:
    many = planted((DIM, 16, 60), seed)
    middle = np.median(many(np.random.default_rng(0).uniform(*WIDE, (500, DIM))), axis=0)

    def target(x):
        scores = many(x) - middle
        return np.column_stack([scores.argmax(axis=1), scores.max(axis=1)])

    assert checked(target, seed, WIDE).class_columns == (0,)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("total", [1.0, 100.0])
@pytest.mark.parametrize("lead", [LEAD, LEAD / 5])
def test_a_class_beside_probabilities_is_found_though_it_is_nearly_always_0(total, lead, seed) -> None:
    assert checked(with_probabilities(total, lead), seed).class_columns == (0,)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_class_beside_a_whole_score_is_found(seed) -> None:
    def target(x):
        return np.column_stack([CLASSES(x).argmax(axis=1), np.rint(100 * softmax(CLASSES(x)).max(axis=1))])

    assert checked(target, seed).class_columns == (0,)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("offset", [0.0, 3.0])
def test_whole_numbers_that_grow_to_others_far_out_are_no_labels(offset, seed) -> None:
    health = checked(lambda x: offset + zero_near(x), seed)
    assert health.answers is Kind.VALUES
    assert health.diagnosis.slug == "same-near"


def test_the_same_answer_everywhere_is_told_so() -> None:
    assert checked(lambda x: np.full((len(x), 1), 0.1), 0).diagnosis.slug == "constant"


def test_outputs_that_a_second_look_finds_are_left_out_too() -> None:
    """Without the class the other two are seen to be one output that is always 0, and probabilities."""
    inner = with_probabilities(1.0)
    found = audit(
        open_oracle(lambda x: np.column_stack([CLASSES(x).argmax(axis=1), inner(x)]), dim=DIM, domain=WIDE),
        budget=3_000, seconds=2.0, steps=["health"],
    )  # fmt: skip
    assert found.known.target.without == (0, 1)
    assert found.known.target.link == "softmax"
    assert found.record.target.outputs_left_out == (0, 1)
    assert "class-outputs-left-out" in [limit.slug for limit in found.record.limits]
