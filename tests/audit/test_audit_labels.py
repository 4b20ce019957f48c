"""The audit of labels, rare ones too, and of targets that gave one answer alone."""

from __future__ import annotations

import numpy as np
import pytest
from audit_kit import UNTRAINED, fields, reason, reasons, step, why
from audit_targets import NETWORK

from reluctant import open_oracle
from reluctant.audit import audit
from reluctant.audit.facts import CopyMethod, ErrorKind
from reluctant.audit.steps.recovery_steps import FEW_ROWS
from reluctant.testing import planted

WIDE_INPUT = planted((12, 4, 2))


def test_labels_alone_give_the_whole_boundary(record):
    found = record(lambda x: WIDE_INPUT(x).argmax(axis=1), 12, steps=UNTRAINED)
    assert (found.verdict.level, found.verdict.confidence) == ("exact", "verified")
    assert {"extractable", "span"} <= set(found.verdict.leaks)
    assert found.span.rank == 4
    assert (found.recovered.method, found.recovered.error.kind) == (CopyMethod.LABELS, ErrorKind.BOUNDARY)
    assert found.recovered.error.largest <= 1e-9
    assert found.extraction.verification.share < 0.1
    assert found.expected.precision == "labels"
    assert found.flip.by == "recovered-network"  # labels have no gradient, their copy has
    assert why(found, "errors") == "copy-apart"


def test_labels_without_a_copy_leave_flips_open(record):
    """Labels have no gradient to follow: nothing was tried, and another attack may flip them."""
    found = record(lambda x: WIDE_INPUT(x).argmax(axis=1), 12, budget=4000, steps=["health", "flip"])
    assert (why(found, "flip"), fields(found, "flip")) == (
        "nothing-to-find",
        {"gives": "labels", "missing": "gradient"},
    )
    assert "flippable" in found.verdict.unsettled


def test_labels_without_the_rows_for_a_copy_leave_it_open(record):
    """Absent it is not: more rows would find it."""
    found = record(
        lambda x: WIDE_INPUT(x).argmax(axis=1), 12, budget=4000, steps=["health", "extraction", "part", "defenses"]
    )
    assert found.extraction.outcome == "out-of-budget"
    assert {"extractable", "approximable"} <= set(found.verdict.unsettled)
    assert why(found, "part") == "no-part"


def test_a_curved_boundary_settles_that_nothing_can_be_extracted(record):
    found = record(lambda x: (np.tanh(x).sum(axis=1) > 0.3).astype(float), 8, steps=["health", "extraction"])
    assert why(found, "extraction") == "curved-boundary"
    assert "extractable" not in found.verdict.unsettled


def test_labels_of_a_file_are_compared_by_neurons(record, tmp_path):
    network = planted((8, 3, 1))
    network.save(tmp_path / "true.npz")
    found = record(
        lambda x: (network(x)[:, 0] > 0).astype(float), 8, file=tmp_path / "true.npz",
        steps=["health", "extraction", "truth", "defenses"],
    )  # fmt: skip
    assert (found.truth.neurons, found.truth.largest_error) == (3, None)
    assert found.truth.neurons_found == found.recovered.widths[1] > 0


@pytest.mark.parametrize("seed", range(4))
def test_one_hot_answers_are_labels_in_every_part(record, seed):
    """The reason of the verdict is that of the interface, whatever the few lines of a step look like."""
    found = record(lambda x: np.eye(3)[NETWORK(x).argmax(axis=1)], 6, rng=seed, steps=["health", "span"])
    assert (found.interface.shape, found.interface.answers) == ("piecewise constant", "labels")
    assert reasons(found.verdict)[0] == "answers-are-labels"
    assert {"not-piecewise-linear", "all-the-same"}.isdisjoint(reasons(found.verdict))


def test_a_target_that_was_constant_where_it_was_asked_is_not_settled(record):
    """A label that is rare, or inputs of another range, look the same to a first look."""
    found = record(lambda x: np.ones(len(x)), 4)
    assert (found.verdict.level, found.verdict.leaks) == ("unknown", ())
    assert set(found.verdict.unsettled) == {"extractable", "approximable", "span", "flippable"}
    advice = [("give-domain", {"domain": None}), ("give-inputs", {"inputs": None})]
    assert reason(found.verdict, "all-the-same")["try"] == advice
    assert step(found, "flip").state == "skipped"


def rare(x):
    """One input of a thousand, and none far out."""
    return (np.linalg.norm(x - 1, axis=1) < 0.5).astype(float)


def test_a_rare_label_of_honest_inputs_is_no_constant(record):
    inputs = np.random.default_rng(0).standard_normal((40, 4))
    assert record(rare, 4, inputs=inputs, steps=["health"]).interface.refusal == "constant"
    found = record(rare, 4, inputs=np.concatenate([inputs, np.ones((2, 4))]), steps=["health", "span"])
    assert found.interface.refusal == "piecewise-constant"
    assert step(found, "health").queries == 102 + 42 + FEW_ROWS
    assert "answers-are-labels" in reasons(found.verdict)
    assert "all-the-same" not in reasons(found.verdict)


def test_a_second_look_is_not_asked_of_a_budget_that_is_too_small(record):
    found = record(rare, 4, budget=200, steps=["health"])
    assert step(found, "health").state == "done"
    assert found.interface.refusal == "constant"


def test_a_step_that_met_one_answer_alone_settles_nothing(record):
    """Labels that differ far out alone: training asks near the origin, and meets one."""
    found = record(lambda x: (x[:, 0] > 9).astype(float), 4, steps=["health", "training"])
    assert found.interface.refusal == "piecewise-constant"
    assert "approximable" in found.verdict.unsettled
    assert why(found, "training") in ("constant", "one-label")


def test_the_domain_is_what_helps_where_a_target_was_constant(valid):
    """Honest inputs do not, of values: the health check asks random ones of the domain."""
    near, network = np.full((8, 4), 50.0), planted((4, 3, 1))

    def target(x):
        return np.where((np.abs(x - 50) < 5).all(axis=1, keepdims=True), network(x - 50), 3.0)

    def seen(**domain):
        with open_oracle(target, dim=4, **domain) as oracle:
            return valid(audit(oracle, inputs=near, steps=["health"]).record).interface.refusal

    assert seen() == "constant"
    assert seen(domain=(46, 54)) is None
