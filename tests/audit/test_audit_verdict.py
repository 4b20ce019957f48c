"""The verdict follows from what was found: levels, leaks, and the words for what could not be settled."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from reluctant import ReLUNetwork, check_health, extract, flip_sign, open_oracle, recover_span, verify
from reluctant.audit.closeness import closeness
from reluctant.audit.known import Given, Known, Skip, skip_where
from reluctant.audit.leaks import LEAKS, SMALL_FLIP
from reluctant.audit.names import names
from reluctant.audit.owner import OF_A_STEP, happened, told, told_of
from reluctant.audit.recovered import best_copy, recovered
from reluctant.audit.states import State
from reluctant.audit.verdict import judge
from reluctant.health import Health, Shape
from reluctant.learning.student import train_student
from reluctant.learning.student.measured import HeldOut
from reluctant.oracles import Rows
from reluctant.results import Outcome, Result
from reluctant.span import Span
from reluctant.testing import planted
from reluctant.testing.faults import rounded

NETWORK = planted((8, 4, 2))
SPAN = recover_span(open_oracle(NETWORK))
NOTHING = Known(Given(np.zeros((1, 8))), health=check_health(open_oracle(NETWORK)))


def off_by(share: float) -> ReLUNetwork:
    """The network with its output weights a little wrong."""
    first, last = NETWORK.weights
    return ReLUNetwork([first, last * (1 + share)], NETWORK.biases)


def unverified(share: float, outcome: Outcome = Outcome.UNVERIFIED) -> Result:
    wrong = off_by(share)
    found = verify(open_oracle(NETWORK), wrong)
    return Result(outcome, wrong, {"line": Rows(100, 100)}, evidence={"verification": found})


def refused(outcome: Outcome = Outcome.LOW_PRECISION) -> Result:
    """A run that came to its end without a network."""
    return Result(outcome, None, {})


# Every step that looks for a copy or the span has come to its end, and found none.
SETTLED = replace(
    NOTHING, extraction=refused(), learning=refused(Outcome.NOT_ACCURATE), training=refused(Outcome.NOT_ACCURATE),
    refused=("span",),
)  # fmt: skip


def test_nothing_was_tried():
    assert judge(Known(Given(np.zeros((1, 8))))).level == "unknown"
    assert judge(NOTHING).level == "unknown"
    assert judge(NOTHING).unsettled == LEAKS
    assert "Extraction did not come to its end: it was not tried." in judge(NOTHING).sentence


def test_nothing_leaks_only_where_every_step_came_to_its_end():
    assert (judge(SETTLED).level, judge(SETTLED).unsettled) == ("nothing", ("flippable",))


@pytest.mark.parametrize(
    ("change", "unsettled"),
    [
        ({"extraction": None}, ("extractable", "approximable", "flippable")),
        ({"learning": None}, ("approximable", "flippable")),
        ({"training": None}, ("approximable", "flippable")),
        ({"timed_out": ("training",)}, ("approximable", "flippable")),
        ({"refused": ()}, ("span", "flippable")),
        ({"timed_out": ("extraction",)}, ("extractable", "approximable", "flippable")),
        ({"timed_out": ("learning",)}, ("approximable", "flippable")),
        ({"extraction": refused(Outcome.TOO_NOISY)}, ("extractable", "approximable", "flippable")),
        ({"extraction": refused(Outcome.NON_FINITE)}, ("extractable", "approximable", "flippable")),
        ({"learning": refused(Outcome.TARGET_FAILED)}, ("approximable", "flippable")),
    ],
)
def test_one_step_without_an_end_leaves_it_open(change, unsettled):
    verdict = judge(replace(SETTLED, **change))
    assert (verdict.level, verdict.unsettled) == ("unknown", unsettled)


def test_few_digits_that_were_tried_in_vain_settle_nothing():
    """Another seed may take the whole network: one attempt without luck is no absence of a leak."""
    failed = {"failures": ["verification: a tolerance of 1.2e-01 decides nothing."]}
    verdict = judge(replace(SETTLED, extraction=replace(refused(), evidence=failed)))
    assert (verdict.level, verdict.unsettled) == ("unknown", ("extractable", "approximable", "flippable"))
    assert "did not succeed. Another seed (--seed) may settle it." in verdict.sentence
    close = unverified(1e-4, Outcome.LOW_PRECISION)
    digits = SimpleNamespace(error=1e-4)
    found = replace(close, evidence={**close.evidence, **failed, "precision": digits})
    verdict = judge(replace(SETTLED, extraction=found))
    assert (verdict.level, verdict.unsettled) == ("approximate", ("extractable", "flippable"))
    assert "by a network that was not verified (largest error seen" in verdict.sentence
    assert "in every digit" not in verdict.sentence
    assert "Another seed (--seed) may settle it." in verdict.sentence


def noisy(noise: float) -> Health:
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


def test_an_interface_that_refuses_settles_it():
    verdict = judge(replace(SETTLED, extraction=None, learning=None, refused=("extraction", "learning", "span")))
    assert verdict.level == "nothing"


@pytest.mark.parametrize(("share", "level"), [(1e-4, "approximate"), (0.5, "unknown")])
def test_a_network_that_is_not_verified_counts_by_its_error(share, level):
    verdict = judge(replace(NOTHING, extraction=unverified(share)))
    assert verdict.level == level
    assert ("approximable" in verdict.leaks) == (level == "approximate")
    assert "extractable" not in verdict.leaks


def test_the_better_of_two_copies_is_told():
    known = replace(NOTHING, extraction=unverified(1e-3), learning=unverified(1e-5))
    assert known.copy is known.learning
    assert recovered(known.copy, 2, None)["verified"] is False
    exact = replace(known, learning=unverified(0.0, Outcome.RECOVERED))
    assert judge(exact).level == "exact"


@pytest.mark.parametrize(
    ("outcome", "level", "said"),
    [
        (Outcome.OUT_OF_BUDGET, "unknown", "The rows for extraction ran out."),
        (Outcome.PARTIAL, "unknown", Outcome.PARTIAL.happened),
        (Outcome.NOT_PIECEWISE_LINEAR, "nothing", Outcome.NOT_PIECEWISE_LINEAR.happened),
    ],
)
def test_a_run_that_was_cut_short_settles_nothing(outcome, level, said):
    verdict = judge(replace(SETTLED, extraction=Result(outcome, None, {})))
    assert verdict.level == level
    assert said in verdict.sentence


def test_time_that_ran_out_is_not_called_a_budget():
    known = replace(NOTHING, extraction=Result(Outcome.OUT_OF_BUDGET, None, {}), timed_out=("extraction",))
    assert "The time for extraction ran out." in judge(known).sentence
    assert "budget" not in judge(known).sentence


def test_a_span_leaks_only_if_something_is_invisible():
    part, whole = (recover_span(open_oracle(network)) for network in (NETWORK, planted((4, 6, 1))))
    assert judge(replace(NOTHING, span=part)).leaks == ("span",)
    assert judge(replace(NOTHING, span=whole)).leaks == ()


@pytest.mark.parametrize("size", [0.5, 2.0])
def test_a_flip_leaks_only_if_it_is_small(size):
    """A linear function flips at a distance that is known."""
    linear = ReLUNetwork([np.array([[1.0, 0.0]])], [np.array([0.0])])
    flip = flip_sign(open_oracle(linear), np.array([size * SMALL_FLIP, 1.0]))
    assert flip.ok
    assert ("flippable" in judge(replace(NOTHING, flips=(flip,))).leaks) == (flip.relative_size <= SMALL_FLIP)
    assert (flip.relative_size <= SMALL_FLIP) == (size < 1)


def test_one_copy_for_all_parts_of_the_record():
    """A close network that is not verified is the copy everywhere, or nowhere."""
    known = replace(NOTHING, extraction=unverified(1e-4))
    assert known.copy is known.extraction
    assert known.network is known.extraction.network
    limit = next(name["finding"] for name in names(known, judge(known)) if name["id"] == "AML.M0004")
    assert limit.startswith("A copy took 100 queries")
    far = replace(NOTHING, extraction=unverified(0.5))
    assert far.copy is None
    limit = next(name["finding"] for name in names(far, judge(far)) if name["id"] == "AML.M0004")
    assert limit.startswith("Whether a copy can be made was not settled")


def test_every_outcome_settles_or_leaves_open():
    left_open = {outcome.slug for outcome in Outcome if not outcome.settles}
    assert left_open == {
        "constant", "non-finite", "one-label", "on-boundary", "out-of-budget", "out-of-reach", "partial",
        "rank-unclear", "span-partial", "target-failed", "too-noisy", "unverified", "wrong-link",
    }  # fmt: skip


STUDENT = train_student(open_oracle(lambda x: NETWORK(x).argmax(axis=1), dim=8), rows=400, hidden=(4,), steps=20, rng=0)


def trained(labels: float, *, error: float | None = None, hurried: bool = False) -> Result:
    """A network trained on 40,000 answers that is no copy."""
    told = {"agreement": labels, "differing": 1.01 - labels, "commonest": 0.6, "points": 4000, "labelled": True}
    accuracy = replace(STUDENT.evidence["accuracy"], error=error, **told)
    evidence = {"accuracy": accuracy, "training": replace(STUDENT.evidence["training"], short="", hurried=hurried)}
    return Result(Outcome.NOT_ACCURATE, off_by(0.5), {"training": Rows(40_000, 40_000)}, evidence=evidence)


def test_a_trained_network_is_told_before_that_no_closer_copy_was_made():
    verdict = judge(replace(SETTLED, training=trained(0.97)))
    assert verdict.sentence.startswith(
        "A network trained on 40,000 answers gives the same label for 97.0% of 4,000 inputs that it was not trained on "
        "(the commonest label alone: 60.0%). No closer copy was made."
    )
    span = recover_span(open_oracle(NETWORK))
    seen = judge(replace(SETTLED, training=trained(0.97, error=0.04, hurried=True), span=span))
    assert "comes to an error of 2.0e-01 of the answers' deviation, root mean square, and the same" in seen.sentence
    assert "; its training was cut short. No closer copy was made." in seen.sentence
    assert "no copy of the network was made" not in seen.sentence
    assert "Measured for the trained network" in seen.confidence
    findings = {entry["id"]: entry["finding"] for entry in names(replace(SETTLED, training=trained(0.97)), verdict)}
    assert findings["AML.T0024.002"].endswith("A trained network gives 97.0% of labels.")


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


def test_a_student_that_may_be_too_far_off_is_no_copy() -> None:
    """One rule for verdict, steps and sweep: the upper end of its error is to be within the limit, not its mean."""
    measured = HeldOut(error=6e-5, high=1.2e-4, agreement=0.99, differing=0.02, commonest=0.5, points=4000)
    rows = {"training": Rows(40, 40)}
    run = Result(Outcome.NOT_ACCURATE, NETWORK, rows, evidence={"accuracy": measured})
    assert best_copy([run]) is None
    assert best_copy([replace(run, outcome=Outcome.LEARNED)]) is not None


def near_the_limit(**measured: float | None) -> Result:
    told = {"error": None, "high": None, "agreement": 0.991, "differing": 0.012, "commonest": 0.4, "points": 4000}
    evidence = {"accuracy": HeldOut(**told | measured), "training": STUDENT.evidence["training"]}
    return Result(Outcome.NOT_ACCURATE, NETWORK, {"training": Rows(40, 40)}, evidence=evidence)


@pytest.mark.parametrize(
    ("measured", "settled", "lacks"),
    [
        ({}, False, "as many as 1.2% of labels may differ, and 1% is asked"),
        ({"agreement": 0.98, "differing": 0.03}, True, "as many as 3% of labels may differ, and 1% is asked"),
        ({"error": 0.0089**2, "high": 0.01004**2}, False, "as large as 1.004% of the answers' deviation, and 1% is"),
        ({"error": 0.012**2, "high": 0.014**2}, True, "as large as 1.4% of the answers' deviation, and 1% is asked"),
        ({"agreement": 0.998, "differing": 0.0041, "commonest": 0.943}, True,
         "as many as 0.4% of labels may differ, and 0.1% is asked, for one label alone is right for 94.3%"),
    ],
)  # fmt: skip
def test_what_chance_alone_keeps_from_a_copy_is_not_settled(measured, settled, lacks) -> None:
    run = near_the_limit(**measured)
    verdict = judge(replace(SETTLED, training=run))
    assert (verdict.level, "approximable" not in verdict.unsettled) == ("nothing" if settled else "unknown", settled)
    assert (lacks in verdict.sentence) == (not settled)
    assert ("as measured" in told_of(run)) == (not settled)
    assert lacks in closeness(run.evidence["accuracy"].to_dict()).lacks
