"""Whole numbers that are no labels, and bounds of clipped inputs that are no neurons."""

import numpy as np
import pytest
from audit_kit import reasons

import reluctant as rl
from reluctant.audit import audit
from reluctant.audit.defense_sweep import StandIn
from reluctant.audit.record import StandsFor
from reluctant.interface import check_health
from reluctant.interface.kinds import IntegerKind
from reluctant.oracles import Kind, NetworkOracle, open_oracle
from reluctant.testing import planted

NETWORK = planted((8, 12, 1), 1)
REBUILDING = ["health", "extraction", "part", "learning", "training"]


def rating(x: np.ndarray) -> np.ndarray:
    return np.rint(50 + 15 * NETWORK(x))


def score(x: np.ndarray) -> np.ndarray:
    return np.rint(1000 / (1 + np.exp(-np.clip(NETWORK(x), -500, 500))))


def fine_score(x: np.ndarray) -> np.ndarray:
    return np.rint(1500 / (1 + np.exp(-np.clip(NETWORK(x) / 2, -500, 500))))


def clipped(x: np.ndarray) -> np.ndarray:
    return NETWORK(np.clip(x, 0, 1))


def test_whole_numbers_that_grow_are_no_labels(seed: int) -> None:
    assert check_health(open_oracle(rating, dim=8), rng=seed).answers is Kind.VALUES
    classes = planted((8, 12, 5), 1)
    labels = check_health(open_oracle(lambda x: classes(x).argmax(axis=1), dim=8), rng=seed)
    assert labels.answers is Kind.LABELS


def test_scores_that_were_seen_as_values_stay_so_where_the_rows_for_training_end() -> None:
    """Among many answers whole numbers repeat, and no rows are left then to tell what they are."""
    found = audit(rl.open_oracle(fine_score, dim=8), budget=6_000, seconds=1.0, steps=["health", "training"])
    assert (found.known.target.health.answers, found.known.target.health.integers) == (Kind.VALUES, None)
    assert found.known.training.evidence["training"].short
    assert found.known.training.evidence["answers"] == "values"


@pytest.mark.usefixtures("short_training")
@pytest.mark.parametrize("target", [rating, score])
def test_scores_do_not_pass_as_labels(target) -> None:
    found = audit(rl.open_oracle(target, dim=8), budget=4_000, steps=REBUILDING)
    assert {"extractable", "approximable"} <= {*found.verdict.leaks, *found.verdict.unsettled}
    assert "answers-are-labels" not in reasons(found.verdict)
    assert found.known.training.evidence["answers"] == "values"


def in_four_levels(x: np.ndarray) -> np.ndarray:
    return np.digitize(NETWORK(x), [-0.5, 0.5, 1.5])


def in_twelve_levels(x: np.ndarray) -> np.ndarray:
    return np.digitize(NETWORK(x), np.linspace(-2.0, 2.0, 11) ** 3)


@pytest.mark.usefixtures("short_training")
@pytest.mark.parametrize(("target", "domain"), [(in_four_levels, None), (in_twelve_levels, (-2.0, 2.0))])
def test_levels_of_a_score_leave_it_open_what_values_would_give(target, domain) -> None:
    found = audit(rl.open_oracle(target, dim=8, domain=domain), budget=6_000, steps=REBUILDING)
    assert {"extractable", "approximable"} <= {*found.verdict.leaks, *found.verdict.unsettled}
    assert found.known.whole in (IntegerKind.SCORES, IntegerKind.UNDECIDED)
    assert {"rounded-numbers", "maybe-rounded-numbers"} & set(reasons(found.verdict))


@pytest.mark.usefixtures("short_training")
@pytest.mark.parametrize("classes", [2, 3, 20])
def test_numbers_of_classes_are_labels_however_many_they_are(classes: int) -> None:
    normals = np.random.default_rng(0).standard_normal((classes, 8))
    target = rl.open_oracle(lambda x: (x @ normals.T).argmax(axis=1), dim=8)
    found = audit(target, budget=6_000, steps=REBUILDING)
    assert found.known.whole in (None, IntegerKind.LABELS)
    assert not found.known.perhaps_numbers
    assert found.known.extraction is not None  # from labels
    assert {"rounded-numbers", "maybe-rounded-numbers"}.isdisjoint(reasons(found.verdict))


def test_what_cannot_be_told_is_open_without_training() -> None:
    found = audit(rl.open_oracle(in_four_levels, dim=8), budget=6_000, steps=["health", "extraction"])
    assert found.known.whole is IntegerKind.UNDECIDED
    assert "extractable" in found.verdict.unsettled
    assert "labels-or-numbers" in reasons(found.verdict)
    assert found.record.target.may_be_numbers


def test_a_student_of_rounded_values_is_told_apart_from_their_rounding() -> None:
    target = rl.open_oracle(lambda x: np.rint(20 * NETWORK(x)), dim=8)
    found = rl.train_student(target, rows=4_000, hidden=(16,), steps=400)
    assert found.evidence["whole"] is IntegerKind.SCORES
    assert found.evidence["accuracy"].own is not None
    assert 0 < found.queries - 4_000 <= 240
    known = rl.train_student(target, rows=4_000, hidden=(16,), steps=1, whole=IntegerKind.SCORES)
    assert known.queries == 4_000


def test_a_student_of_few_levels_has_labels() -> None:
    target = rl.open_oracle(in_twelve_levels, dim=8)
    found = rl.train_student(target, rows=1_000, hidden=(8,), steps=1)
    assert found.evidence["whole"] is IntegerKind.SCORES
    assert found.evidence["answers"] == "labels"


def test_what_bends_at_bounds_is_no_part_also_when_rows_run_out() -> None:
    found = audit(rl.open_oracle(clipped, dim=8), budget=10_000, steps=["health", "extraction", "part"])
    assert found.known.extraction.outcome is rl.Outcome.OUT_OF_BUDGET
    assert found.known.part is None
    assert found.known.needed_rows is None
    assert "may-be-clipped" in reasons(found.verdict)


def test_a_label_that_is_always_the_same_is_no_defense() -> None:
    inputs = np.random.default_rng(0).standard_normal((30, 8))
    (w, a), (b, c) = NETWORK.weights, NETWORK.biases
    positive = NetworkOracle(rl.ReLUNetwork([w, a], [b, c + 100]))
    assert not StandIn(positive, StandsFor.FILE, inputs).has_labels
    assert StandIn(NetworkOracle(NETWORK), StandsFor.FILE, inputs).has_labels


def test_a_rare_label_is_looked_for_inside_the_range_that_is_answered() -> None:
    def strict(x: np.ndarray) -> np.ndarray:
        if np.abs(x).max() > 2:
            raise ValueError("inputs must be in [-2, 2]")
        return (x[:, 0] > 1.9).astype(float)

    found = audit(rl.open_oracle(strict, dim=4), budget=3_000, steps=["health"])
    assert found.steps[0].state.value == "done"
    assert found.known.target.reach is not None
