"""Outcomes say what happened and what to try; results carry everything, also when they raise."""

from __future__ import annotations

import dataclasses

import pytest

from reluctant import Outcome, Result
from reluctant.errors import NotRecovered
from reluctant.messages import Diagnosis
from reluctant.oracles import Rows
from reluctant.testing import planted

NETWORK = planted((4, 3, 1))
ROWS = {"open": Rows(sent=1), "health": Rows(asked=102, sent=100, replayed=2), "verify": Rows(asked=60, sent=60)}

every_outcome = pytest.mark.parametrize("outcome", Outcome, ids=lambda outcome: outcome.slug)
NETWORKS = {Outcome.RECOVERED, Outcome.LEARNED}
SUCCESSES = NETWORKS | {
    Outcome.FLIPPED,
    Outcome.SPAN_RECOVERED,
    Outcome.FULL_RANK,
    Outcome.OUTPUT_SPACE,
    Outcome.OUTPUTS_FULL,
}
every_failure = pytest.mark.parametrize(
    "outcome", [o for o in Outcome if o not in SUCCESSES], ids=lambda outcome: outcome.slug
)


@every_outcome
def test_an_outcome_says_what_happened(outcome):
    assert str(outcome).startswith(outcome.happened)
    assert outcome.happened.endswith(".")


@every_failure
def test_a_failure_says_what_to_try(outcome):
    assert outcome.advice.endswith(".")
    assert str(outcome) == f"{outcome.happened} {outcome.advice}"


def test_success_needs_no_advice():
    assert Outcome.RECOVERED.diagnosis.remedies == ()
    assert str(Outcome.RECOVERED) == Outcome.RECOVERED.happened


def test_slugs_are_unique_and_fit_an_address():
    slugs = [outcome.slug for outcome in Outcome]
    assert len(set(slugs)) == len(slugs)
    assert all(slug == slug.lower().strip("-") and slug.replace("-", "").isalpha() for slug in slugs)


@every_outcome
def test_only_a_recovered_or_learned_network_is_ok(outcome):
    assert Result(outcome, NETWORK, ROWS).ok is (outcome in NETWORKS)


def test_queries_are_the_rows_that_reached_the_target():
    assert Result(Outcome.RECOVERED, NETWORK, ROWS).queries == 1 + 102 + 60
    assert Result(Outcome.CONSTANT, None, {}).queries == 0


def test_a_good_result_gives_itself():
    result = Result(Outcome.RECOVERED, NETWORK, ROWS)
    assert result.raise_for_status() is result


@every_failure
def test_a_bad_result_raises_with_everything_on_it(outcome):
    result = Result(outcome, NETWORK, ROWS, stage="signs", evidence={"margin": 1e-3})
    with pytest.raises(NotRecovered) as caught:
        result.raise_for_status()
    assert caught.value.result is result
    assert str(caught.value) == f"{outcome} (stage: signs) 163 queries were spent."


def test_the_stage_is_named_only_if_there_is_one():
    with pytest.raises(NotRecovered) as caught:
        Result(Outcome.OUT_OF_BUDGET, None, {}).raise_for_status()
    assert str(caught.value) == f"{Outcome.OUT_OF_BUDGET} 0 queries were spent."


def test_a_result_is_frozen():
    result = Result(Outcome.RECOVERED, NETWORK, ROWS)
    for field in dataclasses.fields(result):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, field.name, None)


def test_evidence_is_empty_and_fixed_by_default():
    evidence = Result(Outcome.RECOVERED, NETWORK, ROWS).evidence
    assert dict(evidence) == {}
    with pytest.raises(TypeError, match="assignment"):
        evidence["margin"] = 1.0


def test_repr_is_short():
    assert repr(Result(Outcome.PARTIAL, NETWORK, ROWS)) == (
        "Result(partial, ReLUNetwork(4-3-1, 19 parameters), queries=163)"
    )


def test_a_result_has_the_diagnosis_of_its_outcome_or_a_more_exact_one():
    exact = Diagnosis("low-precision")
    assert Result(Outcome.LOW_PRECISION, None, {}).diagnosis == Outcome.LOW_PRECISION.diagnosis
    assert Result(Outcome.LOW_PRECISION, None, {}, reason=exact).diagnosis is exact
    assert Result(Outcome.LOW_PRECISION, None, {}, reason=exact).to_dict()["diagnosis"] == exact.to_dict()
