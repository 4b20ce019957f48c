"""Answers of kinds that nobody named: read as what they are, or not settled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from audit_kit import fields, limits, reason, reasons, step
from scipy.special import erf, expit, softmax
from short_students import short_training
from sweeps import sweep

from reluctant import check_health, open_oracle
from reluctant.audit import audit
from reluctant.audit.defense_sweep import _file_behind
from reluctant.audit.facts import TopClasses
from reluctant.audit.findings import AuditedTarget, Findings, Settings
from reluctant.audit.steps.recovery_steps import span_from_labels
from reluctant.defenses import defend
from reluctant.domains import Domain
from reluctant.interface import Shape
from reluctant.oracles import Kind
from reluctant.oracles.links import ProbabilityFormat
from reluctant.results import Outcome
from reluctant.span import recover_span
from reluctant.testing import planted

NETWORK, ONE, TWO = planted((6, 8, 3)), planted((6, 8, 1)), planted((6, 8, 2), 1)
SMALL = planted((2, 3, 3))
EXACT = ["health", "extraction"]


def classes(x, network=NETWORK):
    return softmax(network(x), axis=1)


def largest(x, k=1, network=NETWORK, untold=0.0):
    p = classes(x, network)
    return np.where(p >= np.sort(p, axis=1)[:, [-k]], p, untold)


# ---- the largest few probabilities


READABLE = {
    "2 of 3": (lambda x: largest(x, 2), (6, 8, 3)),
    "1 of 2": (lambda x: largest(x, 1, TWO), (6, 8, 2)),
    "2 of 3, the other NaN": (lambda x: largest(x, 2, untold=np.nan), (6, 8, 3)),
    "2 of 3 in percent": (lambda x: 100 * largest(x, 2), (6, 8, 3)),
}


@pytest.mark.parametrize("name", READABLE)
def test_all_but_one_probability_give_the_whole_network(record, name):
    target, widths = READABLE[name]
    found = record(target, 6, steps=EXACT)
    assert (found.target.link, found.target.link_found) == ("top-k", True)
    assert found.verdict.level == "exact"
    assert (found.recovered.widths, found.recovered.link) == (widths, "softmax")


def test_a_model_behind_the_defense_is_read_as_well(record):
    """It says itself that it answers probabilities, and not how many."""
    found = record(defend(open_oracle(classes, dim=6), "top=2"), steps=EXACT)
    assert (found.target.link, found.verdict.level) == ("top-k", "exact")


def test_the_largest_probability_alone_trains_a_copy(record):
    steps = ["health", "extraction", "training"]
    with short_training((32,), 3000):  # enough for so small a network
        found = record(lambda x: largest(x, network=SMALL), 2, steps=steps, budget=30_000)
    assert found.training.link == "softmax"
    assert found.training.held_out.error < 1e-4
    assert list(found.verdict.leaks) == ["approximable"]
    assert step(found, "extraction").state == "skipped"
    assert found.interface.top_k == TopClasses(1, 3)


def test_nan_for_what_is_not_told_is_taken_as_0():
    with open_oracle(lambda x: largest(x, untold=np.nan), dim=6) as oracle:
        found = audit(oracle, steps=["health"])
    assert found.known.target.served.refusal is Outcome.NOT_PIECEWISE_LINEAR
    assert "among-nan" in limits(found.record)


def test_percentages_among_nan_are_told_as_both():
    with open_oracle(lambda x: 100 * largest(x, 2, untold=np.nan), dim=6) as oracle:
        assert {"in-percent", "among-nan"} <= set(limits(audit(oracle, steps=["health"]).record))


# ---- percentages


PERCENT = {
    "softmax": (lambda x: 100 * classes(x), "softmax", (6, 8, 3)),
    "softmax in float32": (lambda x: (100 * classes(x)).astype(np.float32), "softmax", (6, 8, 3)),
    "sigmoid": (lambda x: 100 * expit(ONE(x)), "sigmoid", (6, 8, 1)),
    "sigmoids": (lambda x: 100 * expit(NETWORK(x)), "sigmoid", (6, 8, 3)),
}
PERCENTAGES = [(name, given) for name in PERCENT for given in (True, False)]


@pytest.mark.parametrize(
    ("name", "given"),
    sweep(PERCENTAGES, fast=[each for each in PERCENTAGES if "float32" not in each[0]], arguments=2),
)
def test_percentages_are_read_as_fractions(record, name, given):
    target, link, widths = PERCENT[name]
    found = record(target, 6, steps=EXACT, **({"link": link} if given else {}))
    assert (found.target.link, found.target.link_found) == (link, not given)
    assert (found.verdict.level, found.recovered.widths) == ("exact", widths)
    assert found.target.percent
    assert "in-percent" in limits(found)
    assert found.served.spread < 1
    assert found.served.number_format == ("float32" if "float32" in name else "float64")


def test_a_target_that_is_opened_with_percent_is_looked_at_as_such(valid):
    with open_oracle(lambda x: 100 * classes(x), dim=6, percent=True) as oracle:
        found = valid(audit(oracle, steps=EXACT).record)
    assert found.verdict.level == "exact"
    assert "in-percent" not in limits(found)


@pytest.mark.usefixtures("short_training")
def test_a_network_is_trained_on_rounded_percentages_as_probabilities(record):
    steps = ["health", "extraction", "training"]
    found = record(lambda x: np.round(100 * classes(x, SMALL), 1), 2, steps=steps, budget=30_000)
    assert fields(found, "extraction")["decimals"] == 3
    assert found.training.link == "softmax"


def test_percentages_in_a_range_are_asked_where_none_is_certain(record):
    def confident(x):
        p = softmax(60 * NETWORK(x), axis=1)
        return np.where(np.abs(x).max(axis=1, keepdims=True) <= 300, p, np.nan)

    fractions = record(confident, 6, steps=["health"]).target
    found = record(lambda x: 100 * confident(x), 6, steps=EXACT)
    assert found.target.link == "softmax"
    assert found.target.reach == fractions.reach
    assert found.verdict.level == "exact"


def test_a_file_that_answers_percentages_is_defended_as_fractions(tmp_path):
    NETWORK.save(tmp_path / "model.npz")
    given = Settings(np.zeros((1, 6)), file=tmp_path / "model.npz")
    x = np.ones((1, 6))
    for known in (
        Findings(replace(given, percent=True)),
        Findings(given, AuditedTarget(written=ProbabilityFormat(percent=True))),
    ):
        np.testing.assert_allclose(_file_behind(known, (), Domain()).query(x), NETWORK(x) / 100)


def test_a_link_that_is_given_tells_percentages_from_values(record):
    found = record(lambda x: np.round(100 * expit(ONE(x)), 1), 6, steps=["health"], link="sigmoid")
    assert step(found, "health").state == "done"
    assert "in-percent" in limits(found)


def test_what_may_be_percentages_is_not_divided_and_not_settled(record):
    target = lambda x: np.clip(np.round(50 + 10 * ONE(x), 1), 0, 100)  # noqa: E731
    found = record(target, 6, steps=["health", "extraction"], budget=3000)
    assert "in-percent" not in limits(found)
    assert found.interface.spread > 1
    assert "extractable" in found.verdict.unsettled
    assert reason(found.verdict, "unread-link")["try"] == [("read-link", {"link": "sigmoid", "percent": True})]
    assert found.target.may_be_percent


# ---- curves that nothing here explains


UNEXPLAINED = {
    "a class and its probability": lambda x: np.column_stack([classes(x).argmax(axis=1), classes(x).max(axis=1)]),
    "the largest probability in one output": lambda x: classes(x).max(axis=1),
    "parts of a thousand": lambda x: 1000 * classes(x),
    "values behind an error function": lambda x: erf(NETWORK(x)),
}


@pytest.mark.parametrize("name", UNEXPLAINED)
def test_curves_that_nobody_looked_behind_are_not_settled(record, name):
    found = record(UNEXPLAINED[name], 6, steps=["health", "extraction", "learning"])
    assert {"extractable", "approximable"} <= set(found.verdict.unsettled)
    assert found.verdict.level == "unknown"
    assert "squashed-far-out" in reasons(found.verdict)
    assert "unread-link" not in reasons(found.verdict)


def test_a_span_that_is_not_found_in_such_curves_is_not_settled():
    target = open_oracle(lambda x: erf(NETWORK(x)), dim=6)
    health, span = check_health(target), recover_span(target)
    assert span.outcome is Outcome.NOT_PIECEWISE_LINEAR
    assert not Findings(Settings(np.zeros((1, 6))), AuditedTarget(served=health, health=health), span=span).settled(
        "span"
    )


def test_curves_that_do_not_end_are_no_probabilities(record):
    """Nothing squashes them: they are those of the network itself, and there are no creases to find."""
    found = record(lambda x: np.logaddexp(0, NETWORK(x)), 6, steps=["health", "extraction"])
    assert "extractable" not in found.verdict.unsettled


# ---- branches of the first look


def test_a_model_that_tells_of_probabilities_is_looked_behind_where_digits_hide_its_curves(record):
    """Its answers look straight: that they are probabilities is known from itself alone."""
    found = {}
    for kind in (Kind.VALUES, Kind.PROBABILITIES):
        with open_oracle(lambda x: expit(0.01 * ONE(x)), dim=6, kind=kind, domain=(-1e-4, 1e-4)) as oracle:
            found[kind] = audit(oracle, steps=["health"]).known.target.link
    assert found == {Kind.VALUES: "identity", Kind.PROBABILITIES: "sigmoid"}


@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_sigmoids_with_fresh_noise_are_not_looked_behind(noise):
    rng = np.random.default_rng(0)
    with open_oracle(lambda x: expit(ONE(x)) + noise * rng.standard_normal((len(x), 1)), dim=6) as oracle:
        known = audit(oracle, steps=["health"]).known
    assert known.target.linked == (noise == 0)
    assert not known.target.looked_behind


@pytest.mark.parametrize(("link", "expected"), [("softmax", True), ("identity", False)])
def test_probabilities_that_a_link_cannot_read_give_the_span_from_labels(link, expected):
    served = check_health(open_oracle(classes, dim=6))
    unread = replace(served, nonfinite=1, shape=Shape.UNCLEAR)
    assert unread.refusal is Outcome.NON_FINITE
    known = Findings(Settings(np.zeros((1, 6))), AuditedTarget(link, served=served, health=unread))
    assert span_from_labels(known, 3) is expected
