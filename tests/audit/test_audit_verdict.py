"""The verdict follows from what was found: levels, leaks, and what could not be settled."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from audit_kit import reason, reasons
from verdict_kit import NETWORK, NOTHING, SETTLED, refused, unverified

from reluctant import ReLUNetwork, flip_sign, open_oracle, recover_span
from reluctant.audit.facts import ErrorKind
from reluctant.audit.findings import Findings, Settings, copy_error
from reluctant.audit.record import LEAKS
from reluctant.audit.verdict import SMALL_FLIP, judge
from reluctant.results import Outcome, Result
from reluctant.testing import planted


def test_nothing_was_tried():
    assert judge(Findings(Settings(np.zeros((1, 8))))).level == "unknown"
    assert judge(NOTHING).level == "unknown"
    assert judge(NOTHING).unsettled == LEAKS
    assert reasons(judge(NOTHING)) == ["step-not-ended"] * 4


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
    assert reason(verdict, "few-digits-in-vain")["try"] == [("another-seed", {"rng": None})]
    close = unverified(1e-4, Outcome.LOW_PRECISION)
    digits = SimpleNamespace(error=1e-4)
    found = replace(close, evidence={**close.evidence, **failed, "precision": digits})
    verdict = judge(replace(SETTLED, extraction=found))
    assert (verdict.level, verdict.unsettled) == ("approximate", ("extractable", "flippable"))
    assert copy_error(found).kind is ErrorKind.UNVERIFIED
    assert "few-digits-in-vain" in reasons(verdict)


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
    exact = replace(known, learning=unverified(0.0, Outcome.RECOVERED))
    assert judge(exact).level == "exact"


@pytest.mark.parametrize(
    ("outcome", "level", "said"),
    [
        (Outcome.OUT_OF_BUDGET, "unknown", "rows-ran-out"),
        (Outcome.PARTIAL, "unknown", "partial"),
        (Outcome.NOT_PIECEWISE_LINEAR, "nothing", "not-piecewise-linear"),
    ],
)
def test_a_run_that_was_cut_short_settles_nothing(outcome, level, said):
    verdict = judge(replace(SETTLED, extraction=Result(outcome, None, {})))
    assert verdict.level == level
    assert said in reasons(verdict)


def test_time_that_ran_out_is_not_called_a_budget():
    known = replace(NOTHING, extraction=Result(Outcome.OUT_OF_BUDGET, None, {}), timed_out=("extraction",))
    assert reason(judge(known), "time-ran-out")["step"] == "extraction"
    assert "rows-ran-out" not in reasons(judge(known))


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
    far = replace(NOTHING, extraction=unverified(0.5))
    assert far.copy is None


def test_every_outcome_settles_or_leaves_open():
    left_open = {outcome.slug for outcome in Outcome if not outcome.settles}
    assert left_open == {
        "constant", "non-finite", "one-label", "on-boundary", "out-of-budget", "out-of-reach", "partial",
        "rank-unclear", "span-partial", "target-failed", "too-noisy", "unverified", "wrong-link",
    }  # fmt: skip
