"""Reasons of a verdict: why something could not be taken or settled, each given once, as slugs with fields."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audit_kit import reason, reasons
from verdict_kit import NETWORK, NOTHING, SETTLED, SPAN, refused, unverified

from reluctant import check_health, extract, open_oracle
from reluctant.audit.facts import State
from reluctant.audit.findings import AuditedTarget, Findings, Settings, Skip, skip_where
from reluctant.audit.record import Confidence
from reluctant.audit.verdict import ending_of, judge
from reluctant.interface import Interface, Shape
from reluctant.messages import Diagnosis
from reluctant.results import Outcome, Result
from reluctant.span import Span
from reluctant.testing.faults import rounded


def noisy(noise: float) -> Interface:
    return replace(NOTHING.target.health, shape=Shape.UNCLEAR, deterministic=False, fresh_noise=noise)


def of_span(outcome: Outcome, noise: float) -> Span:
    return replace(SPAN, outcome=outcome, evidence={"health": noisy(noise)})


def rounded_in_a_box() -> Result:
    return extract(open_oracle(rounded(NETWORK, 4), dim=8, domain=(0, 1)), rng=0)


def test_few_digits_inside_bounds_are_given_with_what_would_do():
    found = ending_of(rounded_in_a_box(), NOTHING)
    assert (found.slug, found.fields["limit"], found.fields["decimals"]) == ("too-few-digits", "decimals", 4)
    assert found.fields["most_noise"] == 1e-6 < found.fields["relative_noise"]


def test_beside_a_close_copy_stands_what_an_exact_one_lacks():
    learned = unverified(1e-4, Outcome.LEARNED)
    verdict = judge(replace(NOTHING, extraction=rounded_in_a_box(), learning=learned))
    assert verdict.level == "approximate"
    assert reason(verdict, "too-few-digits")["decimals"] == 4


def test_answers_that_changed_after_all_are_not_called_the_same_everywhere():
    """A rare label: the first look sees one alone, and the span is found from others."""
    constant = check_health(open_oracle(lambda x: np.ones(len(x)), dim=8))
    once = replace(NOTHING, target=AuditedTarget(health=constant, served=constant))
    assert "all-the-same" in reasons(judge(once))
    later = reasons(judge(replace(once, span=replace(SPAN, outcome=Outcome.FULL_RANK))))
    assert "all-the-same" not in later
    assert "rare-labels" in later
    with pytest.raises(Skip) as skipped:
        skip_where(replace(once, span=SPAN), Outcome.CONSTANT, missing="creases")
    assert skipped.value.diagnosis == Diagnosis("nothing-to-find", {"missing": "creases", "gives": "alike"})


def test_a_reason_of_all_steps_is_given_once_with_one_number():
    """Each step measures noise for itself."""
    assert noisy(0.1).refusal is Outcome.TOO_NOISY
    extraction = replace(refused(Outcome.TOO_NOISY), evidence={"health": noisy(0.2)})
    known = replace(
        SETTLED,
        target=AuditedTarget(health=noisy(0.1)),
        extraction=extraction,
        span=of_span(Outcome.TOO_NOISY, 0.3),
        refused=(),
    )
    assert reason(judge(known), "answers-too-noisy")["noise"] == 0.1
    assert ending_of(extraction, known) == ending_of(known.span, known)


def test_a_reason_of_the_span_alone_is_under_its_name():
    known = replace(
        SETTLED, extraction=refused(Outcome.OUT_OF_BUDGET), span=of_span(Outcome.TOO_NOISY, 0.3), refused=()
    )
    (found,) = [each for each in judge(known).reasons if each.diagnosis.slug == "answers-too-noisy"]
    assert (found.step, found.diagnosis.fields) == ("span", {"noise": 0.3})


def test_steps_without_rows_are_given_together():
    steps = ("span", "extraction", "learning", "training")
    ended = dict.fromkeys(steps, Diagnosis("no-rows-left"))
    verdict = judge(replace(NOTHING, without_rows=steps, ended=ended))
    assert reasons(verdict) == ["rows-ran-out"]
    assert reason(verdict, "rows-ran-out")["steps"] == steps


def test_a_step_that_fails_is_given_with_its_error():
    broken = Diagnosis("step-failed", {"error": "RuntimeError", "message": "broken"})
    found = reason(judge(replace(SETTLED, extraction=None, ended={"extraction": broken})), "step-not-ended")
    assert (found["step"], found["why"]["fields"]["message"]) == ("extraction", "broken")


def test_a_stop_is_given_once_for_all_steps():
    states = {"span": State.STOPPED} | dict.fromkeys(("extraction", "learning", "training"), State.NOT_BEGUN)
    verdict = judge(replace(NOTHING, states=states))
    assert reason(verdict, "steps-broken-off")["steps"] == ("span",)
    assert reason(verdict, "steps-not-begun")["steps"] == ("extraction", "learning", "training")
    assert verdict.confidence is Confidence.STOPPED
    first = judge(
        Findings(Settings(np.zeros((1, 8))), states={"health": State.STOPPED, **dict.fromkeys(states, State.NOT_BEGUN)})
    )
    assert reason(first, "steps-broken-off")["steps"] == ("health",)


def test_remedies_are_for_the_one_who_audits():
    """The model is the reader's own: nobody is advised to ask for values instead of labels."""
    for outcome in Outcome:
        for remedy in ending_of(Result(outcome, None, {}), NOTHING).remedies:
            assert remedy.verb == "audit"
            assert set(remedy.options) <= {"budget", "domain", "inputs", "link", "rng", "precision"}


@pytest.mark.parametrize("outcome", [Outcome.LOW_PRECISION, Outcome.RANK_UNCLEAR])
@pytest.mark.parametrize("failures", [[], ["gates: few"]])
def test_more_digits_are_advised_only_where_they_can_be_had(outcome, failures):
    for recast in (False, True):
        health = replace(NOTHING.target.health, recast=recast, number_format="float32")
        run = Result(outcome, None, {}, evidence={"health": health, "failures": failures})
        assert ("more-digits" in [remedy.purpose for remedy in ending_of(run, NOTHING).remedies]) == recast


def test_a_copy_that_is_not_accurate_enough_has_its_error():
    known = replace(SETTLED, learning=unverified(0.5, Outcome.NOT_ACCURATE))
    rms = known.learning.evidence["verification"].rms_error
    (found,) = [each.diagnosis for each in judge(known).reasons if each.step == "learning"]
    assert (found.slug, found.fields) == ("not-accurate-enough", {"typical_error": rms})
