"""The audit of real targets of every kind: a true verdict, whatever they are."""

from __future__ import annotations

import numpy as np
import pytest
from audit_kit import UNTRAINED, Rows, fields, reason, reasons, step, why
from audit_targets import NETWORK

from reluctant import ReLUNetwork, open_oracle
from reluctant.audit import LEAKS, audit
from reluctant.testing import in_float32, planted
from reluctant.testing.faults import FAULTS, Dying, noisy


def test_one_hidden_layer_is_taken_exactly(record, seed):
    found = record(planted((12, 4, 2), seed), rng=seed)
    assert found.verdict.level == "exact"
    assert {"extractable", "approximable", "span"} <= set(found.verdict.leaks)
    assert found.recovered.widths == (12, 4, 2)
    assert found.recovered.error.largest < 1e-8
    assert found.recovered.queries == step(found, "extraction").queries
    assert (found.span.rank, found.ok) == (4, True)


def test_every_input_is_looked_at_so_the_span_is_no_leak(record):
    found = record(NETWORK)
    assert found.span.outcome == "full-rank"
    assert "span" not in found.verdict.leaks


def test_two_hidden_layers_are_taken_and_not_learned(record):
    found = record(planted((10, 6, 5, 1)))
    assert found.recovered.widths == (10, 6, 5, 1)
    assert step(found, "learning").state == "skipped"
    assert set(found.pictures.plane.layers) == {1, 2}


def test_one_output_of_many(record):
    found = record(NETWORK, output=1)
    assert found.recovered.widths == (6, 8, 1)


def test_a_linear_part_beside_the_layers_is_named(record):
    whole = planted((8, 6, 1))
    network = ReLUNetwork(whole.weights, whole.biases, np.ones((1, 8)))
    found = record(network, steps=["health", "extraction"])
    assert (found.recovered.linear_part, found.recovered.parameters) == (True, 69)


def test_few_digits_are_enough(record):
    found = record(in_float32(planted((8, 6, 1))), 8, steps=["health", "extraction", "errors"])
    assert found.verdict.level == "exact"
    assert found.recovered.method == "few-digits"
    assert 1e-10 < found.recovered.error.typical < 1e-5


def test_a_smooth_target_is_not_extracted_but_looked_at(record):
    target = Rows(lambda x: np.tanh(x @ np.arange(12.0).reshape(4, 3)))
    found = record(target, 4, steps=UNTRAINED)
    assert found.verdict.level == "span"
    assert found.interface.refusal == "not-piecewise-linear"
    assert step(found, "extraction").state == "skipped"
    assert "not-piecewise-linear" in reasons(found.verdict)
    assert found.queries.total == target.seen


def test_a_linear_target_is_a_network_without_hidden_layer(record):
    found = record(ReLUNetwork([[[1.0, 2.0, 3.0]]], [[0.5]]))
    assert found.recovered.widths == (3, 1)
    assert found.pictures.first_layer is None


def test_noise_is_told(record):
    found = record(noisy(planted((6, 5, 1)), 1e-3), 6)
    assert found.interface.deterministic is False
    assert found.verdict.level == "exact"


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_faulty_target_has_a_record(fault, valid):
    from reluctant.audit import not_opened
    from reluctant.errors import ReluctantError

    try:
        oracle = open_oracle(FAULTS[fault](planted((4, 5, 1))), dim=4)
    except ReluctantError as error:
        found = valid(not_opened("target", error, seed=0, budget=1000, repeat="").record)
        assert found.verdict.confidence == "not-opened"
    else:
        found = valid(audit(oracle).record)
        assert found.ok
    assert found.verdict.level == "unknown"
    assert (found.verdict.leaks, found.verdict.unsettled) == ((), LEAKS)


def test_a_target_that_dies_keeps_what_was_found(record):
    found = record(Dying(planted((12, 4, 2)), rows=500), 12)
    assert found.interface is not None
    assert found.span.ok
    assert found.extraction.outcome == "target-failed"
    assert found.verdict.level == "span"
    assert reason(found.verdict, "target-failed")["message"].startswith("target: raised")
    assert step(found, "plane").state == "failed"
    assert "died" in fields(found, "plane")["message"]


def answers_once(then):
    """A target that is opened, and from then on has other answers."""
    calls = iter([planted((6, 5, 1))])
    return lambda x: next(calls, then)(x)


def test_answers_that_no_step_can_use_are_told_once(record):
    found = record(answers_once(lambda x: np.array(["cat"] * len(x))), 6)
    assert (why(found, "health"), fields(found, "health")["error"]) == ("step-failed", "invalid-answer")
    asking = [step(found, name) for name in ("span", "extraction", "training", "flip", "line", "plane")]
    assert {(each.state, each.diagnosis.slug, each.queries) for each in asking} == {("skipped", "unusable-answers", 0)}
    assert reasons(found.verdict) == ["step-failed"]
    assert found.verdict.unsettled == LEAKS


def test_steps_without_an_answer_are_not_done(record):
    found = record(answers_once(lambda x: 1 / 0), 6)
    assert "done" not in {each.state for each in found.steps}
    assert "ZeroDivisionError" in fields(found, "span")["message"]
    assert found.flip is None


def test_copies_are_measured_on_inputs_that_no_method_drew():
    with open_oracle(NETWORK) as oracle:
        given = audit(oracle, steps=["health"], rng=3).known.given.inputs
    drawn = oracle.facts.domain.sample(np.random.default_rng(3), len(given), 6)
    assert not np.isin(given, drawn).any()


def test_a_part_of_a_network_is_told(record):
    """Extraction without the rows to end: its first layer is known, and confirmed by questions."""
    deep = planted((5, 10, 10, 10, 10, 2))
    found = record(deep, steps=["health", "extraction", "part"], budget=20_000)
    assert found.recovered is None
    assert found.part.confirmed == found.part.neurons == 10
    assert found.part.weights == 10 * 6
    assert found.verdict.level == "unknown"
    assert "partial" not in reasons(found.verdict)
    assert found.verdict.confidence == "unsettled"


def test_there_is_no_part_beside_a_whole_copy(record):
    found = record(NETWORK)
    assert found.part is None
    assert (step(found, "part").state, step(found, "part").queries) == ("skipped", 0)
