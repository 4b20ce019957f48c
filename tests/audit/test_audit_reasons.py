"""The words of a verdict: why something could not be taken or settled, each reason told once."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from verdict_kit import NETWORK, NOTHING, SETTLED, SPAN, refused, unverified

from reluctant import check_health, extract, open_oracle
from reluctant.audit.known import Given, Known, Skip, skip_where
from reluctant.audit.names import names
from reluctant.audit.owner import OF_A_STEP, happened, told, told_of
from reluctant.audit.states import State
from reluctant.audit.verdict import judge
from reluctant.interface import Interface, Shape
from reluctant.results import Outcome, Result
from reluctant.span import Span
from reluctant.testing.faults import rounded


def noisy(noise: float) -> Interface:
    return replace(NOTHING.health, shape=Shape.UNCLEAR, deterministic=False, fresh_noise=noise)


def of_span(outcome: Outcome, noise: float) -> Span:
    return replace(SPAN, outcome=outcome, evidence={"health": noisy(noise)})


def rounded_in_a_box() -> Result:
    return extract(open_oracle(rounded(NETWORK, 4), dim=8, domain=(0, 1)), rng=0)


def test_few_digits_inside_bounds_are_told_with_what_would_do():
    """The method for few digits is refused there: neither "could not be used" nor "did not succeed" is left open."""
    run = rounded_in_a_box()
    said = told_of(run)
    assert said.startswith("The answers are rounded to 4 decimals: too few digits for exact extraction, and for the")
    assert "inside bounds that takes noise of at most 1e-06 of their deviation; this is " in said
    assert "did not succeed" not in said


def test_beside_a_close_copy_stands_what_an_exact_one_lacks():
    learned = unverified(1e-4, Outcome.LEARNED)
    said = judge(replace(NOTHING, extraction=rounded_in_a_box(), learning=learned)).sentence
    assert said.startswith("A close copy of the network can be taken")
    assert "rounded to 4 decimals: too few digits for exact extraction" in said


def test_answers_that_changed_after_all_are_not_called_the_same_everywhere():
    """A rare label: the first look sees one alone, and the span is found from others."""
    constant = check_health(open_oracle(lambda x: np.ones(len(x)), dim=8))
    once = replace(NOTHING, health=constant, served=constant)
    assert "same answer everywhere it was asked" in judge(once).sentence
    later = judge(replace(once, span=replace(SPAN, outcome=Outcome.FULL_RANK))).sentence
    assert "everywhere it was asked" not in later
    assert "The first look saw the same answer everywhere; others are rare, and came later." in later
    with pytest.raises(Skip, match=r"^Answers that are nearly all alike have no creases to find"):
        skip_where(replace(once, span=SPAN), Outcome.CONSTANT, missing="no creases to find")


def test_a_reason_of_all_steps_is_told_once_with_one_number():
    """Each step measures noise for itself."""
    assert noisy(0.1).refusal is Outcome.TOO_NOISY
    extraction = replace(refused(Outcome.TOO_NOISY), evidence={"health": noisy(0.2)})
    known = replace(SETTLED, health=noisy(0.1), extraction=extraction, span=of_span(Outcome.TOO_NOISY, 0.3), refused=())
    assert judge(known).sentence.count("noise of") == judge(known).sentence.count("noise of 1.0e-01") == 1
    assert told_of(extraction, known.health) == told_of(known.span, known.health)


def test_a_reason_of_the_span_alone_is_told_as_such():
    known = replace(
        SETTLED, extraction=refused(Outcome.OUT_OF_BUDGET), span=of_span(Outcome.TOO_NOISY, 0.3), refused=()
    )
    assert "Directions it looks at: Its answers have noise of 3.0e-01" in judge(known).sentence


def test_steps_without_rows_are_told_together():
    steps = ("span", "extraction", "learning", "training")
    said = dict.fromkeys(steps, "No rows of the budget are left.")
    verdict = judge(replace(NOTHING, without_rows=steps, said=said))
    assert verdict.sentence.endswith("The rows for span, extraction, learning and training ran out.")
    assert "No rows" not in verdict.sentence


def test_a_step_that_fails_is_told():
    known = replace(SETTLED, extraction=None, said={"extraction": "RuntimeError: broken"})
    assert "Extraction did not come to its end: RuntimeError: broken" in judge(known).sentence


def test_the_box_in_which_probabilities_were_read_is_in_the_verdict():
    run = unverified(0.0, Outcome.RECOVERED)
    known = replace(NOTHING, extraction=replace(run, evidence={**run.evidence, "inside": "[-16, 16]"}))
    assert judge(known).sentence.endswith("the copy was looked for in [-16, 16], and holds there.")
    assert "looked for in" not in judge(replace(NOTHING, extraction=run)).sentence


def test_a_stop_is_told_once_for_all_steps():
    states = {"span": State.STOPPED} | dict.fromkeys(("extraction", "learning", "training"), State.NOT_BEGUN)
    verdict = judge(replace(NOTHING, states=states))
    assert verdict.sentence.endswith(
        "The audit was stopped: span was broken off, extraction, learning and training were not begun."
    )
    assert verdict.sentence.count("stopped") == 1
    assert verdict.confidence == "None: the audit was stopped before it could look far enough."
    first = judge(
        Known(Given(np.zeros((1, 8))), states={"health": State.STOPPED, **dict.fromkeys(states, State.NOT_BEGUN)})
    )
    assert "health was broken off" in first.sentence


def test_the_verdict_stands_in_no_other_entry():
    for known in (SETTLED, NOTHING, replace(NOTHING, extraction=unverified(0.0, Outcome.RECOVERED))):
        verdict = judge(known)
        findings = [entry["finding"] for entry in names(known, verdict)]
        assert verdict.sentence not in findings
        assert len(set(findings)) == len(findings)
        assert max(map(len, findings)) < 120


def test_an_owner_is_not_told_what_is_for_those_who_ask():
    for outcome in Outcome:
        assert told(outcome).startswith(happened(outcome))
        assert (happened(outcome) == outcome.happened) == (outcome not in OF_A_STEP)
        assert not re.search(r"Ask for|ask the target|--eps|--steps|--labels|--threshold|Average", told(outcome))


@pytest.mark.parametrize("outcome", [Outcome.LOW_PRECISION, Outcome.RANK_UNCLEAR])
@pytest.mark.parametrize("failures", [[], ["gates: few"]])
def test_more_digits_are_advised_only_where_they_can_be_had(outcome, failures):
    for recast in (False, True):
        health = replace(NOTHING.health, recast=recast, number_format="float32")
        run = Result(outcome, None, {}, evidence={"health": health, "failures": failures})
        assert ("--precision float64" in told_of(run)) == recast
    assert "--precision float64" not in told(outcome)


def test_a_copy_that_is_not_accurate_enough_tells_its_error():
    known = replace(SETTLED, learning=unverified(0.5, Outcome.NOT_ACCURATE))
    rms = known.learning.evidence["verification"].rms_error
    assert f"The best one is off by {rms:.1e} of the output's deviation" in judge(known).sentence
