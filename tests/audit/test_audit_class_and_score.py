"""Answers that tell the number of a class beside values: one kind of answer is looked at, and that is said."""

import numpy as np
import pytest
from audit_kit import limits

import reluctant as rl
from reluctant.audit import audit
from reluctant.interface import check_health
from reluctant.oracles import open_oracle
from reluctant.testing import planted

DIM = 6
CLASSES = planted((DIM, 12, 4), 1)
MIDDLE = np.median(CLASSES(np.random.default_rng(0).uniform(-2, 2, (500, DIM)))[:, 0])
STEPS = ["health", "span", "extraction", "part", "learning", "flip"]


def with_its_class(x: np.ndarray) -> np.ndarray:
    z = CLASSES(x)
    return np.column_stack([z.argmax(axis=1), z.max(axis=1)])


def all_and_the_class(x: np.ndarray) -> np.ndarray:
    z = CLASSES(x)
    return np.column_stack([z, z.argmax(axis=1)])


def sign_and_value(x: np.ndarray) -> np.ndarray:
    z = CLASSES(x)[:, :1] - MIDDLE
    return np.column_stack([z > 0, z])


def rounded_and_value(x: np.ndarray) -> np.ndarray:
    z = CLASSES(x)
    return np.column_stack([np.rint(20 * z[:, 0]), z[:, 1]])


def one_in_a_box(x: np.ndarray) -> np.ndarray:
    """A class that is rare."""
    return np.column_stack([x[:, 0] > 1.6, x @ np.arange(1.0, 1 + DIM)])


@pytest.mark.parametrize(
    ("target", "columns"),
    [
        (with_its_class, (0,)),
        (all_and_the_class, (4,)),
        (sign_and_value, (0,)),
        (CLASSES, ()),
        (lambda x: CLASSES(x).round(1), ()),
        (lambda x: np.eye(4)[CLASSES(x).argmax(axis=1)], ()),
        (lambda x: np.rint(20 * CLASSES(x)), ()),
        (rounded_and_value, ()),
        (lambda x: np.column_stack([np.zeros(len(x)), CLASSES(x)]), ()),
    ],
    ids=["class first", "class last", "sign", "values", "rounded", "one-hot", "whole", "scores", "dead output"],
)
@pytest.mark.parametrize("domain", [None, (-2.0, 2.0)])
def test_numbers_of_classes_are_found_beside_values(target, columns, domain, seed: int) -> None:
    health = check_health(open_oracle(target, dim=DIM, domain=domain), rng=seed)
    assert health.class_columns == columns
    assert ("class-beside-values" in [each.slug for each in health.findings()]) == bool(columns)


def test_a_rare_class_is_asked_for(seed: int) -> None:
    target = open_oracle(one_in_a_box, dim=DIM, domain=(-2.0, 2.0))
    assert check_health(target, rng=seed).class_columns == (0,)


def test_values_alone_cost_nothing_more() -> None:
    assert check_health(open_oracle(CLASSES)).queries == 102


def test_an_audit_leaves_the_class_out_and_says_so() -> None:
    found = audit(open_oracle(with_its_class, dim=DIM), budget=8_000, seconds=5.0, steps=STEPS)
    assert found.known.target.without == (0,)
    assert {*found.verdict.leaks, *found.verdict.unsettled} == {"extractable", "approximable", "span", "flippable"}
    record = found.record
    assert record.target.outputs_left_out == (0,)
    assert limits(record)["class-outputs-left-out"] == {"outputs": (0,)}


def test_flips_are_of_the_value_beside_a_class() -> None:
    found = audit(open_oracle(sign_and_value, dim=DIM), budget=8_000, seconds=5.0, steps=STEPS)
    flipped = [flip for flip in found.known.flips if flip.ok]
    assert flipped
    assert all(np.ptp(sign_and_value(np.array([f.start, f.x]))[:, 0]) == 1 for f in flipped)


def test_all_values_beside_a_class_are_taken_as_without_it() -> None:
    found = audit(open_oracle(all_and_the_class, dim=DIM), budget=60_000, steps=STEPS, classes=list("abcde"))
    assert "extractable" in found.verdict.leaks
    assert found.known.network is not None
    assert found.known.network.outputs == 4
    x = np.random.default_rng(5).standard_normal((50, DIM))
    np.testing.assert_allclose(found.known.network(x), CLASSES(x), atol=1e-8)
    assert found.record.target.classes is None  # their names are those of all outputs


def test_the_class_alone_is_looked_at_where_asked_for() -> None:
    found = audit(open_oracle(with_its_class, dim=DIM), budget=4_000, seconds=2.0, steps=["health"], output=0)
    assert found.known.target.without == ()
    assert found.known.target.health is not None
    assert found.known.target.health.answers is rl.oracles.Kind.LABELS
