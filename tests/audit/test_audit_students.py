"""What a trained network adds to the verdict: whether it is a copy, and what chance leaves open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from verdict_kit import NETWORK, SETTLED, off_by

from reluctant import open_oracle, recover_span
from reluctant.audit.closeness import closeness
from reluctant.audit.names import names
from reluctant.audit.owner import told_of
from reluctant.audit.recovered import best_copy
from reluctant.audit.verdict import judge
from reluctant.learning.student import train_student
from reluctant.learning.student.student_error import HeldOutError
from reluctant.oracles import Rows
from reluctant.results import Outcome, Result

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


def test_a_student_that_may_be_too_far_off_is_no_copy() -> None:
    """One rule for verdict, steps and sweep: the upper end of its error is to be within the limit, not its mean."""
    measured = HeldOutError(error=6e-5, high=1.2e-4, agreement=0.99, differing=0.02, commonest=0.5, points=4000)
    rows = {"training": Rows(40, 40)}
    run = Result(Outcome.NOT_ACCURATE, NETWORK, rows, evidence={"accuracy": measured})
    assert best_copy([run]) is None
    assert best_copy([replace(run, outcome=Outcome.LEARNED)]) is not None


def near_the_limit(**measured: float | None) -> Result:
    told = {"error": None, "high": None, "agreement": 0.991, "differing": 0.012, "commonest": 0.4, "points": 4000}
    evidence = {"accuracy": HeldOutError(**told | measured), "training": STUDENT.evidence["training"]}
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
