"""A span that random inputs show in part, beside a copy that has the rest."""

from dataclasses import replace

import numpy as np
import pytest
from audit_kit import fields, why

import reluctant as rl
from reluctant.audit import audit
from reluctant.audit.steps.recovery_steps import with_directions_of
from reluctant.evidence import COPY_DIRECTIONS
from reluctant.networks import ReLUNetwork
from reluctant.results import Outcome
from reluctant.span import Span, Subspace
from reluctant.testing import planted


def span_of(*rows: int, dim: int = 4, outcome: Outcome = Outcome.SPAN_RECOVERED) -> Span:
    return Span(outcome, Subspace(np.eye(dim)[list(rows)]), {}, 1e-6, 1e-9)


def looking_at(*rows: list[float]) -> ReLUNetwork:
    return ReLUNetwork([np.array(rows), np.ones((1, len(rows)))], [np.zeros(len(rows)), np.zeros(1)])


def test_a_direction_of_the_copy_alone_is_added() -> None:
    network = looking_at([1.0, 0, 0, 0], [0, 2.0, 0, 0], [1.0, 0, 3.0, 0], [2.0, 0, 1.0, 0])
    wider = with_directions_of(network, span_of(0, 1))
    assert wider is not None
    assert (wider.rank, wider.outcome, wider.evidence[COPY_DIRECTIONS]) == (3, Outcome.SPAN_RECOVERED, 1)
    assert wider.subspace.distance(Subspace(np.eye(4)[:3])) < 1e-12


def test_with_all_directions_none_is_invisible() -> None:
    wider = with_directions_of(looking_at([1.0, 0, 0, 0], [0, 0, 0, 1e-9]), span_of(0, 1, 2))
    assert wider is not None
    assert wider.outcome is Outcome.FULL_RANK


@pytest.mark.parametrize("error", [0.0, 1e-3])
def test_errors_of_weights_are_no_directions(error: float) -> None:
    assert with_directions_of(looking_at([1.0, 0, error, 0], [0, 2.0, 0, error], [0, 0, 0, 0]), span_of(0, 1)) is None


def test_labels_tell_no_more_than_the_copy_can_look_at() -> None:
    """Two neurons look at two directions; corners of a boundary of stairs may make up a third."""
    network, made_up = looking_at([1.0, 0, 0, 0], [0, 2.0, 0, 0]), span_of(0, 1, 2)
    assert with_directions_of(network, made_up) is None
    unclear = with_directions_of(network, replace(made_up, evidence={"labels": 2}))
    assert unclear is not None
    assert unclear.outcome is Outcome.RANK_UNCLEAR
    assert with_directions_of(network, replace(span_of(0, 1), evidence={"labels": 2})) is None


def test_a_span_that_is_not_whole_stays_so() -> None:
    partial = span_of(0, outcome=Outcome.SPAN_PARTIAL)
    assert with_directions_of(looking_at([0, 1.0, 0, 0]), partial) is None
    assert with_directions_of(looking_at([0, 1.0, 0, 0]), None) is None


def test_one_record_has_one_number_of_directions() -> None:
    """No typical input makes its last neuron active; the search along a line meets its crease far out."""
    true = planted([12, 6, 3], rng=0)
    (w, a), (b, c) = true.weights, [each.copy() for each in true.biases]
    b[-1] = -40 * np.linalg.norm(w[-1])
    oracle = rl.open_oracle(ReLUNetwork([w, a], [b, c]))
    record = audit(oracle, steps=["health", "span", "extraction"], rng=0).record
    assert (record.extraction.outcome, record.span.rank) == ("recovered", 6)
    assert (why(record, "span"), fields(record, "span")) == ("span-with-copy", {"directions": 1})
    assert why(record, "extraction") == "recovered"
