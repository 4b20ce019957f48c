"""Networks trained on the answers: the last resort of an audit."""

from __future__ import annotations

import numpy as np
import pytest
from audit_kit import limits, reasons, why
from short_students import short_training
from sweeps import sweep

from reluctant import ReLUNetwork, open_oracle
from reluctant.audit import audit
from reluctant.audit.facts import CLOSE, CopyMethod
from reluctant.audit.record import Confidence
from reluctant.testing import planted

DRAWN = planted((6, 5, 3))
MIDDLE = np.median(DRAWN(np.random.default_rng(0).standard_normal((2000, 6))), axis=0)
NETWORK = ReLUNetwork(DRAWN.weights, [DRAWN.biases[0], DRAWN.biases[1] - MIDDLE])  # every label is common
TRAINING = ["health", "training"]


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
    assert "trained-not-verified" in limits(record)


def test_a_student_of_labels_is_told_and_stands_apart(valid):
    with short_training((64,), 3_000), open_oracle(lambda x: NETWORK(x).argmax(axis=1), dim=6) as oracle:
        found = audit(oracle, steps=[*TRAINING, "learning", "errors"])  # extraction would succeed
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


@pytest.mark.slow
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
