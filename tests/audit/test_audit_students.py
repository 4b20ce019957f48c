"""What a trained network adds to the verdict: whether it is a copy, and what chance leaves open."""

from __future__ import annotations

from dataclasses import replace

import pytest
from audit_kit import reasons
from verdict_kit import NETWORK, SETTLED, off_by

from reluctant import open_oracle
from reluctant.audit.findings import best_copy, closeness, gives_labels
from reluctant.audit.verdict import ending_of, judge
from reluctant.learning.student import train_student
from reluctant.learning.student_losses import HeldOutError
from reluctant.oracles import Rows
from reluctant.results import Outcome, Result

STUDENT = train_student(open_oracle(lambda x: NETWORK(x).argmax(axis=1), dim=8), rows=400, hidden=(4,), steps=20, rng=0)


def trained(labels: float, *, error: float | None = None, high: float | None = None, hurried: bool = False) -> Result:
    """A network trained on 40,000 answers that is no copy."""
    told = {"agreement": labels, "differing": 1.01 - labels, "commonest": 0.6, "points": 4000, "labelled": True}
    accuracy = replace(STUDENT.evidence["accuracy"], error=error, high=high, **told)
    evidence = {"accuracy": accuracy, "training": replace(STUDENT.evidence["training"], short="", hurried=hurried)}
    return Result(Outcome.NOT_ACCURATE, off_by(0.5), {"training": Rows(40_000, 40_000)}, evidence=evidence)


def test_a_trained_network_that_is_no_copy_says_so_itself():
    run = trained(0.75)
    known = replace(SETTLED, training=run)
    assert (judge(known).level, ending_of(run, known).slug) == ("nothing", "trained-no-copy")
    assert all(reason.step != "training" for reason in judge(known).reasons)
    assert not gives_labels(run.evidence["accuracy"])  # one label alone gives 60 %


@pytest.mark.parametrize(
    "run", [trained(0.97), trained(0.99), trained(0.65, error=0.02, high=0.03)], ids=["labels", "99 %", "values"]
)
def test_a_gate_stays_shut_where_a_trained_network_gives_most_of_the_answers(run):
    known = replace(SETTLED, training=run)
    assert "approximable" in judge(known).unsettled
    assert ending_of(run, known).slug == "trained-short-of-a-copy"
    assert "trained-short-of-a-copy" in reasons(judge(known))


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
        ({}, False, (0.012, 0.01, True, None)),
        ({"agreement": 0.3, "differing": 0.71}, True, (0.71, 0.01, True, None)),
        ({"error": 0.0089**2, "high": 0.01004**2}, False, (0.01004, 0.01, False, None)),
        ({"agreement": 0.3, "differing": 0.71, "error": 0.6**2, "high": 0.7**2}, True, (0.7, 0.01, False, None)),
        ({"agreement": 0.960, "differing": 0.0431, "commonest": 0.943}, True, (0.0431, 0.00114, True, 0.943)),
    ],
)  # fmt: skip
def test_what_chance_alone_keeps_from_a_copy_is_not_settled(measured, settled, lacks) -> None:
    run = near_the_limit(**measured)
    verdict = judge(replace(SETTLED, training=run))
    assert (verdict.level, "approximable" not in verdict.unsettled) == ("nothing" if settled else "unknown", settled)
    perhaps = "trained-perhaps-a-copy"
    assert (perhaps in reasons(verdict)) == (ending_of(run, SETTLED).slug == perhaps) == (not settled)
    found = closeness(run.evidence["accuracy"])
    assert (found.most, found.allowed, found.labels, found.alone) == (
        pytest.approx(lacks[0]),
        pytest.approx(lacks[1]),
        *lacks[2:],
    )
