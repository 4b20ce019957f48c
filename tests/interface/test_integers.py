"""Whole numbers: labels, or rounded values?"""

import numpy as np
import pytest

from reluctant.errors import BudgetExhausted
from reluctant.interface import check_health
from reluctant.interface.kinds import IntegerKind, are_integers, classify_integers, grow
from reluctant.interface.noise import find_decimals, integer_format
from reluctant.oracles import Kind, open_oracle
from reluctant.results import Outcome
from reluctant.testing import planted

DIM, ROWS, SEEDS = 6, 400, 30
UNEVEN = np.array([-1.6, -1.1, -0.2, 0.1, 0.9, 1.4])


def score(seed: int):
    """Values of a network with a mean of 0 and a deviation of 1."""
    network = planted((DIM, 12, 1), seed)
    values = network(np.random.default_rng(0).standard_normal((ROWS, DIM)))
    return lambda x: (network(x) - values.mean()) / values.std()


def in_levels(levels, seed: int):
    f = score(seed)
    return lambda x: levels(f(x)) + 0.0


def classes(k: int, seed: int):
    """Of so many classes, as often as each other: the largest of random linear functions of the inputs."""
    normals = np.random.default_rng(seed).standard_normal((k, DIM))
    return lambda x: (x @ (normals / np.linalg.norm(normals, axis=1, keepdims=True)).T).argmax(axis=1)[:, None] + 0.0


def steps_of(trees: int, seed: int):
    """A sum of many steps, in whole numbers: a forest that counts."""
    rng = np.random.default_rng(seed)
    axes, bounds, sizes = rng.integers(DIM, size=trees), rng.standard_normal(trees), 40 * rng.standard_normal(trees)
    return lambda x: np.rint((x[:, axes] > bounds) @ sizes)[:, None]


def told(target, seed: int, box: bool = True) -> IntegerKind | None:
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-2, 2, (ROWS, DIM)) if box else rng.standard_normal((ROWS, DIM))
    return classify_integers(target, rows, target(rows), rng)


@pytest.mark.parametrize("k", [3, 4, 5, 10, 100])
def test_classes_are_labels_and_never_scores(k: int) -> None:
    found = [told(classes(k, seed), seed) for seed in range(SEEDS)]
    assert IntegerKind.SCORES not in found
    assert found.count(IntegerKind.LABELS) >= 0.9 * SEEDS


@pytest.mark.parametrize("times", [2, 10, 100, 1e6])
def test_rounded_values_are_scores(times: float, seed: int) -> None:
    f = score(seed)
    assert told(lambda x: np.rint(times * f(x)), seed) is IntegerKind.SCORES


@pytest.mark.parametrize(
    "levels",
    [
        lambda z: np.digitize(z, UNEVEN),
        lambda z: np.clip(np.rint(3 * z), 0, 5),
        lambda z: np.rint(1000 / (1 + np.exp(-4 * z))),
    ],
    ids=["uneven levels", "counts", "squashed"],
)
def test_levels_in_order_are_scores_and_never_labels(levels) -> None:
    found = [told(in_levels(levels, seed), seed) for seed in range(SEEDS)]
    assert IntegerKind.LABELS not in found
    assert found.count(IntegerKind.SCORES) >= 0.9 * SEEDS


@pytest.mark.parametrize(
    "target", [lambda z: np.digitize(z, UNEVEN[[1, 4]]), lambda z: np.clip(np.rint(z), 0, 3)], ids=["three", "four"]
)
def test_few_levels_in_order_cannot_be_told(target, seed: int) -> None:
    assert told(in_levels(target, seed), seed) is IntegerKind.UNDECIDED


def test_two_whole_numbers_are_a_label_and_cost_nothing(seed: int) -> None:
    def refuse(rows):
        raise AssertionError(rows)

    rows = np.zeros((3, DIM))
    assert classify_integers(refuse, rows, np.array([[0.0], [7.0], [0.0]]), np.random.default_rng(seed)) is None


def test_small_jumps_of_a_forest_are_neither(seed: int) -> None:
    assert told(steps_of(300, seed), seed) is IntegerKind.UNDECIDED


def test_a_budget_that_ends_leaves_it_open(seed: int) -> None:
    def over(rows):
        raise BudgetExhausted(budget=1, spent=1, asked=1)

    rows = np.arange(3.0)[:, None]
    assert classify_integers(over, rows, rows, np.random.default_rng(seed)) is IntegerKind.UNDECIDED


def test_what_grows_far_out_is_no_label() -> None:
    near, far = np.array([[40.0], [-30.0], [0.0]]), np.array([[4_000.0], [-2_990.0], [0.0]])
    assert grow(near, far, 100.0)
    assert not grow(near, near, 100.0)
    assert not grow(np.array([[5.0], [5.0]]), np.array([[900.0], [5.0]]), 100.0)  # one of a thousand classes
    assert are_integers(near)
    assert not are_integers(near + 0.5)
    assert not are_integers(np.column_stack([near, near]))


def test_five_whole_numbers_in_a_row_have_no_decimal() -> None:
    assert find_decimals(np.array([1.0, 2.0, 3.0, 4.0, 5.0])) == 0


@pytest.mark.parametrize("box", [None, (-2.0, 2.0)])
@pytest.mark.parametrize("times", [3, 10])
def test_health_reads_scores_as_rounded_values(times: int, box, seed: int) -> None:
    f = score(seed)
    health = check_health(open_oracle(lambda x: np.rint(times * f(x)), dim=DIM, domain=box), rng=seed)
    assert (health.integers, health.answers, health.decimals) == (IntegerKind.SCORES, Kind.VALUES, 0)
    assert health.number_format == "float64"  # small whole numbers fit any, which says nothing
    assert health.refusal in (Outcome.TOO_NOISY, None)  # some spread so far that straight pieces are seen
    assert {"number_format": "float64", "decimals": 0} in [each.fields for each in health.findings()]
    assert "whole-in-order" in [each.slug for each in health.findings()]


def test_large_whole_numbers_show_their_format_and_small_ones_do_not(seed: int) -> None:
    large = np.rint(1e9 * np.random.default_rng(seed).random(10))
    assert integer_format(large.astype(np.float32).astype(float)) == "float32"
    assert integer_format(large) == integer_format(np.arange(1000.0)) == "float64"


def test_health_says_where_it_cannot_tell(seed: int) -> None:
    target = open_oracle(lambda x: np.digitize(x.sum(axis=1), [-1.5, 1.5]), dim=DIM)
    health = check_health(target, rng=seed)
    assert (health.integers, health.answers) == (IntegerKind.UNDECIDED, Kind.LABELS)
    assert health.diagnosis.slug == "labels-or-numbers"
    assert [each.slug for each in health.findings()] == ["labels-or-numbers", "deterministic"]


def test_health_asks_no_more_of_other_answers(seed: int) -> None:
    sign = open_oracle(lambda x: (score(seed)(x) > 0) + 0.0, dim=DIM)
    assert check_health(sign, rng=seed).integers is None
    constant = check_health(open_oracle(lambda x: np.full(len(x), 3.0), dim=DIM), rng=seed)
    assert (constant.integers, constant.queries, constant.refusal) == (None, 102, Outcome.CONSTANT)


def test_what_differs_each_time_does_not_tell(seed: int) -> None:
    f, noise = score(seed), np.random.default_rng(seed)
    target = open_oracle(lambda x: np.rint(3 * f(x) + noise.standard_normal((len(x), 1))), dim=DIM, domain=(-2, 2))
    assert check_health(target, rng=seed).integers is IntegerKind.UNDECIDED
