"""Networks trained on the answers: in the sweep beside what was rebuilt, and as the audit's last resort."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from audit_kit import limits, reasons, why
from short_students import short_training
from sweeps import sweep

from reluctant import ReLUNetwork, open_oracle
from reluctant.audit import audit, defense_trial, try_defense
from reluctant.audit.copies import CLOSE
from reluctant.audit.record import Confidence, CopyMethod
from reluctant.defenses import defend
from reluctant.learning.student import train_student
from reluctant.oracles import NetworkOracle
from reluctant.testing import planted

DRAWN = planted((6, 5, 3))
MIDDLE = np.median(DRAWN(np.random.default_rng(0).standard_normal((2000, 6))), axis=0)
NETWORK = ReLUNetwork(DRAWN.weights, [DRAWN.biases[0], DRAWN.biases[1] - MIDDLE])  # every label is common
INPUTS = np.random.default_rng(3).standard_normal((200, 6))
TRAINING = ["health", "training"]


def trained(*defenses, **settings):
    return try_defense(NetworkOracle(NETWORK), defenses, inputs=INPUTS, methods=["train"], hidden=(32,), **settings)


@pytest.fixture
def half_the_steps() -> Iterator[None]:
    """Students of half the steps: close enough, and as close on a slow machine."""
    with short_training(swept=4000):
        yield


@pytest.mark.usefixtures("half_the_steps")
@pytest.mark.parametrize("defenses", [("float16",), ("softmax", "decimals=6")])
def test_what_stops_exact_methods_leaves_a_trained_copy(defenses):
    found = trained(*defenses)
    assert found.trained.error < 0.05
    assert found.trained.agreement >= 0.98
    assert (found.tried, found.stopped) == ([], None)  # a trained copy decides nothing about exact recovery
    row = found.facts(None).trained
    assert (row.queries, row.cut_short) == (40_000, False)
    network = found.trained.result.network
    if defenses == ("float16",):
        true = NETWORK(INPUTS)
        assert found.trained.error == pytest.approx(
            np.sqrt(np.mean(((network(INPUTS) - true) / true.std(axis=0)) ** 2))
        )


@pytest.mark.usefixtures("half_the_steps")
def test_labels_leave_labels():
    found = trained("labels")
    assert found.trained.error is None
    assert found.trained.agreement >= 0.9
    assert found.facts(None).trained.held_out_error is None


@pytest.mark.usefixtures("short_training")
def test_equal_labels_are_told_beside_the_commonest_one():
    rare = ReLUNetwork([np.eye(4)[:1], np.eye(1)], [np.zeros(1), np.array([-1.5])])  # positive for few inputs
    inputs = np.random.default_rng(1).standard_normal((500, 4))
    found = try_defense(NetworkOracle(rare), "labels", inputs=inputs, methods=["train"], hidden=(8,), seconds=2.0)
    alone = float((inputs[:, 0] <= 1.5).mean())
    assert found.facts(None).trained.commonest == pytest.approx(alone)
    values = try_defense(NetworkOracle(rare), (), inputs=inputs, methods=["train"], hidden=(8,), seconds=2.0)
    assert values.trained.commonest == pytest.approx(alone)


@pytest.mark.usefixtures("half_the_steps")
@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_probabilities_are_held_against_probabilities(kind):
    """The student gives values before the link, and nobody undid that of the copy."""
    copy = defend(NetworkOracle(NETWORK), kind, "decimals=3")
    found = try_defense(copy, (), inputs=INPUTS, link="identity", methods=["train"], hidden=(32,))
    assert found.trained.error < 0.05
    assert found.trained.agreement >= 0.98


@pytest.mark.usefixtures("half_the_steps")
def test_a_chance_that_was_learned_as_a_value_is_held_against_it():
    """A plain function does not say that its one answer is a probability, though the one who asks reads it so."""

    def chance(x):
        return 1 / (1 + np.exp(-NETWORK(x)[:, :1]))

    found = try_defense(open_oracle(chance, dim=6), (), inputs=INPUTS, link="sigmoid", methods=["train"], hidden=(32,))
    assert found.trained.result.evidence["answers"] == "values"
    assert found.trained.error < 0.05
    assert found.trained.agreement >= 0.95
    likely = float((chance(INPUTS) > 0.5).mean())
    assert found.trained.commonest == pytest.approx(max(likely, 1 - likely))


@pytest.mark.usefixtures("short_training")
def test_a_student_is_trained_once_for_answers_that_hardly_differ():
    first = trained().trained
    again = trained("decimals=6", first=first).trained
    assert again.reused
    assert again.result is first.result
    assert trained("decimals=6", first=first).facts(None).trained.as_undefended
    for other in ("decimals=1", "softmax", "labels"):
        assert not trained(other, first=first, seconds=0.5).trained.reused


@pytest.mark.usefixtures("short_training")
def test_a_student_inside_a_span_is_not_taken_where_the_span_is_lost():
    """Rounding hides the span: without it training is harder, though answers hardly differ."""
    wide, inputs = NetworkOracle(planted((40, 3, 2))), np.random.default_rng(0).standard_normal((50, 40))
    settings = {"inputs": inputs, "methods": ["span", "train"], "hidden": (8,), "seconds": 4.0}
    first = try_defense(wide, (), **settings)
    assert first.trained.narrow
    assert try_defense(wide, "decimals=12", first=first.trained, **settings).trained.reused
    kept = try_defense(wide, "decimals=9", first=first.trained, **(settings | {"methods": ["train"]})).trained
    assert (kept.reused, kept.narrow) == (False, False)


def test_half_of_the_time_is_kept_for_training(monkeypatch):
    """A network that the methods ask until their time is over; the student has its own all the same."""
    clock, given = [0.0], []

    class Slow(NetworkOracle):
        def answer(self, rows):
            clock[0] += 1.0
            return super().answer(rows)

    def train(*arguments, seconds, **settings):
        given.append(seconds)
        return train_student(*arguments, seconds=seconds, **settings)

    monkeypatch.setattr(time, "process_time", lambda: clock[0])
    monkeypatch.setattr(defense_trial, "train_student", train)
    deep, inputs = Slow(planted((8, 20, 20, 20, 3))), np.random.default_rng(0).standard_normal((50, 8))
    assert try_defense(deep, "decimals=3", inputs=inputs, hidden=(8,), seconds=20.0).trained is not None
    assert given == [pytest.approx(10.0, abs=2.0)]  # a method is stopped between two of its batches


def test_without_time_nothing_is_trained():
    assert trained("float16", seconds=0.0).trained is None
    assert trained("float16", seconds=0.1).trained.cut


@pytest.mark.usefixtures("short_training")
def test_labels_of_one_kind_alone_tell_nothing():
    """The answers are positive everywhere: a student gives 100 % of labels, and so does one label alone."""
    copy = open_oracle(lambda x: 5 + np.tanh(NETWORK(x)[:, :1]), dim=6)
    student = try_defense(copy, (), inputs=INPUTS, methods=["train"], hidden=(8,), seconds=2.0).facts(None).trained
    assert (student.labels_kept, student.commonest) == (None, None)
    assert student.error < 1


def test_a_copy_needs_no_student(valid):
    with open_oracle(NETWORK, dim=6) as oracle:
        record = valid(audit(oracle, steps=["health", "extraction", "training"]).record)
    assert why(record, "training") == "copy-exists"
    assert record.training is None
    assert "approximable" in record.verdict.leaks


def test_a_smooth_model_is_approximated(valid):
    """No method here rebuilds tanh units; a network trained on the answers comes close, and is told as no more."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 2)) / 2, rng.standard_normal((2, 2))
    with short_training((32, 32), 12_000), open_oracle(lambda x: np.tanh(x @ a.T) @ b, dim=2) as oracle:
        record = valid(audit(oracle, steps=["health", "extraction", "learning", "training", "errors"]).record)
    assert (record.verdict.level, record.recovered.method) == ("approximate", CopyMethod.TRAINING)
    assert record.training.ok
    assert record.recovered.verified is False
    assert why(record, "training") == "trained-copy"
    assert record.recovered.queries_per_parameter is None  # its parameters are its own
    assert record.verdict.confidence is Confidence.MEASURED
    assert "extractable" not in record.verdict.leaks
    assert record.recovered.error.typical <= CLOSE
    assert record.pictures.errors[1].largest < 0.2  # the copy stands for the target in later steps
    assert "method-limits" in limits(record)


def test_a_student_of_labels_is_told_and_stands_apart(valid):
    with short_training((64,), 3_000), open_oracle(lambda x: NETWORK(x).argmax(axis=1), dim=6) as oracle:
        found = audit(oracle, steps=[*TRAINING, "extraction", "learning", "errors"])
    record = valid(found.record)
    assert found.known.network is None
    accuracy = record.training.held_out
    assert accuracy.agreement > 0.95 > accuracy.commonest + 0.3
    assert ("approximable" in record.verdict.leaks) == record.training.ok
    assert record.pictures.errors == ()
    assert why(record, "training").startswith("trained-")


def test_a_span_makes_training_easier(valid):
    wide = planted((80, 3, 2))
    with short_training((64,), 4_000), open_oracle(lambda x: wide(x).astype(np.float32), dim=80) as oracle:
        found = audit(oracle, steps=["health", "span", "training"])
    assert found.known.span.rank == 3
    basis = found.known.span.basis
    first = found.known.training.network.weights[0]
    assert np.allclose(first @ basis.T @ basis, first)
    assert valid(found.record).verdict.level == "approximate"


def test_training_left_out_leaves_a_close_copy_open():
    def smooth(x):
        return np.tanh(x @ np.ones((3, 1))) + np.tanh(x[:, :1])

    with open_oracle(smooth, dim=3) as oracle:
        verdict = audit(oracle, steps=["health", "extraction", "learning"]).verdict
    assert "approximable" in verdict.unsettled
    assert "step-not-ended" in reasons(verdict) or verdict.level == "unknown"


@pytest.mark.parametrize("link", sweep(["sigmoid", "log-softmax"], fast=["sigmoid"]))
def test_a_student_of_answers_is_not_taken_for_values_behind_a_link(valid, link):
    """A plain function does not say that its answers are probabilities: the student gives these, not the logits."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 2)) / 2, rng.standard_normal((2, 3))

    def target(x):
        values = np.tanh(x @ a.T) @ b
        if link == "sigmoid":
            return 1 / (1 + np.exp(-values[:, :1]))
        return values - np.log(np.exp(values).sum(axis=1, keepdims=True))

    with short_training((32, 32), 12_000), open_oracle(target, dim=2) as oracle:
        found = audit(oracle, link=link, budget=30_000, steps=[*TRAINING, "errors"])
    record, x = valid(found.record), rng.standard_normal((500, 2))
    copy, true = found.known.training.network, target(x)
    assert np.sqrt(np.mean(((copy(x) - true) / true.std(axis=0)) ** 2)) < 0.1  # of the answers as they are
    assert found.known.network is None
    assert record.recovered.link == "identity"
    assert record.recovered.widths == tuple(copy.widths)
    assert record.pictures.errors == ()
    assert why(record, "errors") == "copy-apart"


def test_a_student_that_stands_apart_has_its_own_link(valid):
    """Nobody reads this interface through a softmax; the network that was trained on it has one."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 2)) / 2, rng.standard_normal((2, 3))

    def target(x):
        values = np.exp(np.tanh(x @ a.T) @ b)
        return values / values.sum(axis=1, keepdims=True)

    with short_training((32, 32), 12_000), open_oracle(target, dim=2) as oracle:
        found = audit(oracle, link="identity", budget=30_000, steps=TRAINING)
    assert found.known.apart
    record = valid(found.record)
    assert record.recovered.link == "softmax"
    assert record.recovered.widths[-1] == 3


def test_a_small_budget_is_trained_on():
    with short_training(), open_oracle(lambda x: np.tanh(x @ np.ones((3, 1))), dim=3) as oracle:
        found = audit(oracle, budget=5000, steps=TRAINING)
    training = next(each for each in found.steps if each.step == "training")
    assert training.queries == training.allowed
    assert found.known.training.network is not None
