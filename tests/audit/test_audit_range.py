"""The audit of targets that take a range of inputs: clipped, checked or given."""

from __future__ import annotations

import numpy as np
import pytest
from audit_kit import Rows, fields, limits, reason, reasons, step, why
from audit_targets import NETWORK, confident

from reluctant import DepthTwo, open_oracle
from reluctant.audit import audit
from reluctant.audit.facts import Bounds
from reluctant.extraction import attempts
from reluctant.extraction.ladder import again_and_again
from reluctant.testing import planted


def test_inside_a_box_nothing_outside_is_asked(valid, seed):
    outside = []
    network = planted((4, 3, 1), seed)

    def target(x):
        outside.append(bool((x < -1).any() or (x > 1).any()))
        return network(x)

    with open_oracle(target, dim=4, domain=(-1, 1)) as oracle:
        found = valid(audit(oracle, rng=seed, steps=["health", "extraction", "line", "plane", "errors"]).record)
    assert not any(outside)
    assert found.pictures.plane is not None


def test_where_inputs_are_clipped_nothing_bends_for_a_neuron(record, monkeypatch):
    monkeypatch.setattr(attempts, "LADDER", again_and_again(DepthTwo()))  # others recover the clipping as a layer
    steps = ["health", "extraction", "part", "learning"]
    found = record(lambda x: NETWORK(np.clip(x, -1, 1)), 6, steps=steps)
    assert found.extraction.outcome == "partial"
    assert found.part is None
    assert "extractable" in found.verdict.unsettled
    box = {"low": -1.0, "high": 1.0}
    clipped = reason(found.verdict, "clipped-inputs")
    assert clipped == {**box, "try": [("give-domain", {"domain": (-1.0, 1.0)})]}
    assert (why(found, "extraction"), fields(found, "extraction")) == ("clipped-inputs", box)
    assert why(found, "learning") == "clipped-inputs"
    few = record(lambda x: NETWORK(np.clip(x, -1, 1)).round(4), 6, steps=["health", "extraction"])
    assert few.extraction.outcome == "low-precision"
    assert "may-be-clipped" in reasons(few.verdict)  # a range is not named: inside digits are as few
    assert "clipped-inputs" not in reasons(few.verdict)


@pytest.mark.slow
def test_a_range_that_learning_was_led_astray_by_is_named(record):
    """Few digits leave the search to learning: no seed would settle it, and the range does."""
    found = record(lambda x: NETWORK(np.clip(x, 0, 1)).round(4), 6, steps=["health", "extraction", "part", "learning"])
    assert (found.extraction.outcome, found.part) == ("low-precision", None)
    assert reason(found.verdict, "clipped-inputs")["try"] == [("give-domain", {"domain": (0.0, 1.0)})]
    assert not any(
        remedy.purpose == "another-seed" for each in found.verdict.reasons for remedy in each.diagnosis.remedies
    )


def only_where(fits, otherwise):
    """The network where inputs fit, and something else for the rest."""

    def checked(x):
        return otherwise(NETWORK(x), ~fits(x))

    return checked


def as_nan(values, wrong):
    values[wrong] = np.nan
    return values


def as_error(values, wrong):
    if wrong.any():
        raise ValueError("out of range")
    return values


@pytest.mark.parametrize("otherwise", [as_nan, as_error])
def test_a_target_that_checks_its_range_is_copied_inside_it(record, otherwise):
    """Beyond the range it answers NaN or an error; the audit finds the range, and keeps to it."""
    target = Rows(only_where(lambda x: np.linalg.norm(x, axis=1) <= 50, otherwise))
    found = record(target, 6)
    assert found.target.reach == Bounds(-16.0, 16.0)
    assert found.verdict.level == "exact"
    assert found.recovered.widths == (6, 8, 3)
    assert "range-found" in limits(found)
    assert found.queries.by_stage["reach"].asked == 8 * 10  # 1/16 to 16, and 32, which is not answered
    assert found.queries.total == target.seen
    assert found.flip is not None
    assert found.pictures.plane is not None


def test_a_range_of_positive_numbers_is_found(record):
    found = record(only_where(lambda x: ((x >= 0) & (x <= 4)).all(axis=1), as_nan), 6, steps=["health", "extraction"])
    assert found.target.reach == Bounds(0.0, 4.0)
    assert found.verdict.level == "exact"


def test_probabilities_in_a_range_are_asked_where_none_is_certain(record):
    def checked(x):
        return as_nan(confident(60.0)(x), np.abs(x).max(axis=1) > 300)

    found = record(checked, 6, steps=["health", "span", "extraction"])
    assert found.target.link == "softmax"
    assert found.target.reach != Bounds(-256.0, 256.0)
    assert found.verdict.level == "exact"


def test_a_served_model_that_refuses_what_is_out_of_range(record):
    from reluctant.testing.server import ModelServer

    with ModelServer(NETWORK, dim=6, accepts=(-10, 10)) as server:
        found = record(server.url, steps=["health", "extraction"])
        assert found.queries.total == server.rows
    assert found.target.reach == Bounds(-8.0, 8.0)
    assert found.verdict.level == "exact"


def test_a_target_that_answers_nowhere_has_no_range(record):
    found = record(lambda x: np.full(len(x), np.nan), 6, steps=["health", "extraction"])
    assert found.target.reach is None
    assert found.verdict.level == "unknown"
    assert found.queries.by_stage["reach"].asked == 16


def test_given_inputs_outside_the_range_are_not_asked(record):
    x = np.random.default_rng(0).uniform(-8, 8, (40, 6))
    x[::8] *= 100
    found = record(only_where(lambda x: np.abs(x).max(axis=1) <= 9, as_error), 6, inputs=x, steps=["health", "line"])
    assert step(found, "line").state == "done"
