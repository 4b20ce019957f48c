"""Networks trained on the answers: in the sweep beside what was rebuilt, and as the audit's last resort."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from audit_kit import step

from reluctant import ReLUNetwork, open_oracle
from reluctant.audit import audit, leak, leaking
from reluctant.audit.closeness import CLOSE, error_words, is_close
from reluctant.audit.leak import Leak, Rebuilt
from reluctant.audit.sweep import TRAINED, Sweep
from reluctant.audit.trained import NOT_TRAINED, alone_words, trained_sentence, trained_words
from reluctant.defenses import HonestCost, defend
from reluctant.learning.student.student_error import HeldOutError
from reluctant.learning.student.trainer import Training, train_student
from reluctant.oracles import NetworkOracle
from reluctant.results import Outcome, Result
from reluctant.testing import planted

DRAWN = planted((6, 5, 3))
MIDDLE = np.median(DRAWN(np.random.default_rng(0).standard_normal((2000, 6))), axis=0)
NETWORK = ReLUNetwork(DRAWN.weights, [DRAWN.biases[0], DRAWN.biases[1] - MIDDLE])  # every label is common
INPUTS = np.random.default_rng(3).standard_normal((200, 6))
TRAINING = ["health", "training"]


def trained(*defenses, **settings):
    return leak(NetworkOracle(NETWORK), defenses, inputs=INPUTS, methods=["train"], hidden=(32,), **settings)


@pytest.mark.parametrize("defenses", [("float16",), ("softmax", "decimals=6")])
def test_what_stops_exact_methods_leaves_a_trained_copy(defenses):
    found = trained(*defenses)
    assert found.trained.error < 0.05
    assert found.trained.agreement >= 0.98
    assert (found.tried, found.stopped) == ([], None)  # a trained copy decides nothing about exact recovery
    row = found.to_dict()["trained"]
    assert (row["method"], row["queries"], row["cut short"]) == ("train", 40_000, False)
    network = found.trained.result.network
    if defenses == ("float16",):
        true = NETWORK(INPUTS)
        assert found.trained.error == pytest.approx(
            np.sqrt(np.mean(((network(INPUTS) - true) / true.std(axis=0)) ** 2))
        )


def test_labels_leave_labels():
    found = trained("labels", seconds=3.0)
    assert found.trained.error is None
    assert found.trained.agreement >= 0.9
    assert found.to_dict()["trained"]["held out error"] is None


def test_equal_labels_are_told_beside_the_commonest_one():
    rare = ReLUNetwork([np.eye(4)[:1], np.eye(1)], [np.zeros(1), np.array([-1.5])])  # positive for few inputs
    inputs = np.random.default_rng(1).standard_normal((500, 4))
    found = leak(NetworkOracle(rare), "labels", inputs=inputs, methods=["train"], hidden=(8,), seconds=2.0)
    alone = float((inputs[:, 0] <= 1.5).mean())
    assert found.to_dict()["trained"]["commonest label"] == pytest.approx(alone)
    assert alone_words(found.student) == f"one label alone: {alone:.1%}"
    assert trained_sentence((found,), None).count(f"(One label alone: {alone:.1%}.)") == 1
    values = leak(NetworkOracle(rare), (), inputs=inputs, methods=["train"], hidden=(8,), seconds=2.0)
    assert values.trained.commonest == pytest.approx(alone)


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_probabilities_are_held_against_probabilities(kind):
    """The student gives values before the link, and nobody undid that of the copy."""
    copy = defend(NetworkOracle(NETWORK), kind, "decimals=3")
    found = leak(copy, (), inputs=INPUTS, link="identity", methods=["train"], hidden=(32,))
    assert found.trained.error < 0.05
    assert found.trained.agreement >= 0.98


def test_a_chance_that_was_learned_as_a_value_is_held_against_it():
    """A plain function does not say that its one answer is a probability, though the one who asks reads it so."""

    def chance(x):
        return 1 / (1 + np.exp(-NETWORK(x)[:, :1]))

    found = leak(open_oracle(chance, dim=6), (), inputs=INPUTS, link="sigmoid", methods=["train"], hidden=(32,))
    assert found.trained.result.evidence["answers"] == "values"
    assert found.trained.error < 0.05
    assert found.trained.agreement >= 0.95
    likely = float((chance(INPUTS) > 0.5).mean())
    assert found.trained.commonest == pytest.approx(max(likely, 1 - likely))


def test_a_student_is_trained_once_for_answers_that_hardly_differ():
    first = trained().trained
    again = trained("decimals=6", first=first).trained
    assert again.reused
    assert again.result is first.result
    student = trained("decimals=6", first=first).student
    assert student["as undefended"]
    assert "as without the defense, whose answers hardly differ" in trained_words(student)
    for other in ("decimals=1", "softmax", "labels"):
        assert not trained(other, first=first, seconds=0.5).trained.reused


def test_a_student_inside_a_span_is_not_taken_where_the_span_is_lost():
    """Rounding hides the span: without it training is harder, though answers hardly differ."""
    wide, inputs = NetworkOracle(planted((40, 3, 2))), np.random.default_rng(0).standard_normal((50, 40))
    settings = {"inputs": inputs, "methods": ["span", "train"], "hidden": (8,), "seconds": 4.0}
    first = leak(wide, (), **settings)
    assert first.trained.narrow
    assert leak(wide, "decimals=12", first=first.trained, **settings).trained.reused
    kept = leak(wide, "decimals=9", first=first.trained, **(settings | {"methods": ["train"]})).trained
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
    monkeypatch.setattr(leaking, "train_student", train)
    deep, inputs = Slow(planted((8, 20, 20, 20, 3))), np.random.default_rng(0).standard_normal((50, 8))
    assert leak(deep, "decimals=3", inputs=inputs, hidden=(8,), seconds=20.0).trained is not None
    assert given == [pytest.approx(10.0, abs=2.0)]  # a method is stopped between two of its batches


def test_without_time_nothing_is_trained():
    assert trained("float16", seconds=0.0).trained is None
    assert trained("float16", seconds=0.1).trained.cut


def _row(name: str, *, error: float | None, ok: bool = False, agreement: float = 0.98) -> Leak:
    """A row that stops exact methods, unless ok, and leaves such a trained copy."""
    outcome = Outcome.RECOVERED if ok else Outcome.LOW_PRECISION
    measured = HeldOutError(None if error is None else error**2, None, 0.91, 0.1, 0.5, 100)
    evidence = {"accuracy": measured, "training": Training((8,), 100, 10)}
    student = Rebuilt("train", Result(Outcome.LEARNED, None, {}, evidence=evidence), error, error, agreement)
    rebuilt = Rebuilt("extract", Result(outcome, None, {}), 1.0)
    return Leak(name, HonestCost(1e-3, 1e-3, 1.0, 10), None, rebuilt, trained=student)


def test_the_sentence_tells_what_training_leaves_of_the_cheapest_defense():
    bare = _row("none", error=1e-5, ok=True)
    found = Sweep("", (bare, _row("float16", error=1e-4), _row("labels", error=None)), 16.0, "")
    assert "The cheapest defense that stopped exact recovery is float16" in found.sentence
    assert "That does not stop training: a network trained on" in found.sentence
    assert "is within 1.0e-04 of the model and gives the same label for 98.0% of the inputs." in found.sentence
    assert (
        "behind 1 of 2 defenses; behind label alone it gives the same label for 98.0% of the inputs" in found.sentence
    )
    assert "(91.0% of random ones)" in found.sentence
    assert "of random ones" not in replace(found, sampled=True).sentence  # the others are random ones too
    assert NOT_TRAINED not in found.sentence


def test_errors_are_told_of_what_stood_for_the_model():
    """A trained network has an error of its own, which is not in those of the sweep on it."""
    rows = (_row("none", error=1e-5), _row("float16", error=0.02))
    on_a_copy = Sweep("the recovered network", rows, 16.0, "").sentence
    on_a_student = Sweep(TRAINED, rows, 16.0, "").sentence
    assert "within 1% of the model behind none of the defenses" in on_a_copy
    assert "behind float16 it is within 2.0e-02 of the model" in on_a_copy
    assert on_a_student.startswith("What each defense leaves of the span, and of a network trained on the answers")
    told = on_a_copy[on_a_copy.index("A trained copy") :]
    assert on_a_student.endswith(told.replace("of the model", "of the trained network"))


def test_labels_of_one_kind_alone_tell_nothing():
    """The answers are positive everywhere: a student gives 100 % of labels, and so does one label alone."""
    copy = open_oracle(lambda x: 5 + np.tanh(NETWORK(x)[:, :1]), dim=6)
    student = leak(copy, (), inputs=INPUTS, methods=["train"], hidden=(8,), seconds=2.0).student
    assert (student["labels kept"], student["commonest label"]) == (None, None)
    assert student["error"] < 1
    assert trained_words(student).startswith(f"is within {student['error']:.1e} of the model")
    assert "label" not in trained_words(student) + alone_words(student)


def test_defenses_that_leave_the_same_copy_are_told_together():
    rows = (_row("none", error=1e-5, ok=True), *(_row(f"decimals={k}", error=0.5) for k in (6, 3)))
    said = trained_sentence(rows, None)
    assert "behind none of the defenses; behind 6 decimals, 3 decimals it is within 5.0e-01 of the model" in said
    assert said.count("5.0e-01") == 1


def test_a_copy_that_is_far_off_is_not_called_one():
    rows = (_row("none", error=1e-5, ok=True), _row("noise", error=0.5))
    said = Sweep("", rows, 16.0, "").sentence
    assert "Of training it leaves this: a network trained on" in said
    assert f"A trained copy is within {CLOSE:.0%} of the model behind none of the defenses" in said


def test_where_nothing_was_trained_that_is_said():
    bare = Leak("none", HonestCost(0.0, 0.0, 1.0, 10), None, Rebuilt("extract", Result(Outcome.RECOVERED, None, {})))
    assert trained_sentence((bare,), None) == NOT_TRAINED
    with open_oracle(NETWORK, dim=6) as oracle:
        limits = audit(oracle, steps=["health"]).to_dict()["limits"]
    assert any("was not tried; it may give a close copy" in said for said in limits)


def test_a_copy_needs_no_student(valid):
    with open_oracle(NETWORK, dim=6) as oracle:
        record = valid(audit(oracle, steps=["health", "extraction", "training"]).to_dict())
    assert step(record, "training")["why"] == "There is a copy already."
    assert record["training"] is None
    assert "approximable" in record["verdict"]["leaks"]


def test_a_smooth_model_is_approximated(valid):
    """No method here rebuilds tanh units; a network trained on the answers comes close, and is told as no more."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 2)) / 2, rng.standard_normal((2, 2))
    with open_oracle(lambda x: np.tanh(x @ a.T) @ b, dim=2) as oracle:
        record = valid(audit(oracle, steps=["health", "extraction", "learning", "training", "errors"]).to_dict())
    assert (record["verdict"]["level"], record["recovered"]["method"]) == ("approximate", "training on the answers")
    assert record["training"]["ok"]
    assert record["recovered"]["verified"] is False
    assert "close enough to be called a copy" in step(record, "training")["why"]
    assert record["recovered"]["queries per parameter"] is None  # its parameters are its own
    assert record["verdict"]["sentence"].startswith("A close copy of the network can be trained on its answers")
    assert "by a network of its own" in record["verdict"]["sentence"]
    assert record["verdict"]["confidence"].startswith("Measured, not verified.")
    assert "extractable" not in record["verdict"]["leaks"]
    assert record["recovered"]["error"]["typical"] <= CLOSE
    assert record["pictures"]["errors"][1]["largest"] < 0.2  # the copy stands for the target in later steps
    assert any("trained, not verified" in said for said in record["limits"])


def test_a_student_of_labels_is_told_and_stands_apart(valid):
    with open_oracle(lambda x: NETWORK(x).argmax(axis=1), dim=6) as oracle:
        found = audit(oracle, steps=[*TRAINING, "extraction", "learning", "errors"])
    record = valid(found.to_dict())
    assert found.known.network is None
    accuracy = record["training"]["evidence"]["accuracy"]
    assert accuracy["agreement"] > 0.95 > accuracy["commonest"] + 0.3
    assert "with the same label for" in record["verdict"]["sentence"]
    assert ("approximable" in record["verdict"]["leaks"]) == record["training"]["ok"]
    assert record["pictures"]["errors"] is None
    assert "as asked for" not in step(record, "training")["why"]


def test_a_span_makes_training_easier(valid):
    wide = planted((80, 3, 2))
    with open_oracle(lambda x: wide(x).astype(np.float32), dim=80) as oracle:
        found = audit(oracle, steps=["health", "span", "training"])
    assert found.known.span.rank == 3
    basis = found.known.span.basis
    first = found.known.training.network.weights[0]
    assert np.allclose(first @ basis.T @ basis, first)
    assert valid(found.to_dict())["verdict"]["level"] == "approximate"


def test_training_left_out_leaves_a_close_copy_open():
    def smooth(x):
        return np.tanh(x @ np.ones((3, 1))) + np.tanh(x[:, :1])

    with open_oracle(smooth, dim=3) as oracle:
        verdict = audit(oracle, steps=["health", "extraction", "learning"]).verdict
    assert "approximable" in verdict.unsettled
    assert "Training did not come to its end" in verdict.sentence or verdict.level == "unknown"


@pytest.mark.parametrize("link", ["sigmoid", "log-softmax"])
def test_a_student_of_answers_is_not_taken_for_values_behind_a_link(valid, link):
    """A plain function does not say that its answers are probabilities: the student gives these, not the logits."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 2)) / 2, rng.standard_normal((2, 3))

    def target(x):
        values = np.tanh(x @ a.T) @ b
        if link == "sigmoid":
            return 1 / (1 + np.exp(-values[:, :1]))
        return values - np.log(np.exp(values).sum(axis=1, keepdims=True))

    with open_oracle(target, dim=2) as oracle:
        found = audit(oracle, link=link, budget=30_000, steps=[*TRAINING, "errors"])
    record, x = valid(found.to_dict()), rng.standard_normal((500, 2))
    copy, true = found.known.training.network, target(x)
    assert np.sqrt(np.mean(((copy(x) - true) / true.std(axis=0)) ** 2)) < 0.1  # of the answers as they are
    assert found.known.network is None
    assert record["recovered"]["link"] == "identity"
    assert record["recovered"]["widths"] == list(copy.widths)
    assert link not in record["verdict"]["sentence"]
    assert record["pictures"]["errors"] is None
    assert "no copy" not in step(record, "errors")["why"]  # there is one


def test_a_student_that_stands_apart_has_its_own_link(valid):
    """Nobody reads this interface through a softmax; the network that was trained on it has one."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 2)) / 2, rng.standard_normal((2, 3))

    def target(x):
        values = np.exp(np.tanh(x @ a.T) @ b)
        return values / values.sum(axis=1, keepdims=True)

    with open_oracle(target, dim=2) as oracle:
        found = audit(oracle, link="identity", budget=30_000, steps=TRAINING)
    assert found.known.apart
    record = valid(found.to_dict())
    assert record["recovered"]["link"] == "softmax"
    assert record["recovered"]["widths"][-1] == 3
    assert "with a softmax" in record["verdict"]["sentence"]


def test_a_small_budget_is_trained_on():
    with open_oracle(lambda x: np.tanh(x @ np.ones((3, 1))), dim=3) as oracle:
        found = audit(oracle, budget=5000, steps=TRAINING)
    training = next(each for each in found.steps if each.step == "training")
    assert training.queries == training.allowed
    assert found.known.training.network is not None


@pytest.mark.parametrize(
    ("error", "words"), [(0.0101, "1.01e-02"), (0.01, "1.0e-02"), (0.0099, "9.9e-03"), (0.2, "2.0e-01")]
)
def test_an_error_is_told_on_the_side_of_what_is_asked_that_it_is_on(error, words) -> None:
    """Of 1.0e-02 nobody would believe that it is more than 1 %."""
    assert error_words(error) == words
    assert is_close(float(words)) == is_close(error)
