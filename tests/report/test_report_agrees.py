"""Audits whose parts must agree with each other on the page: small budgets, one output, probabilities of few digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from page_kit import audited, slugs, states, words
from short_students import short_training
from sweeps import sweep

from reluctant.audit.facts import CopyMethod
from reluctant.audit.record import AuditRecord, LeakKind, Level
from reluctant.audit.steps import recovery_steps
from reluctant.cli.advice import as_command
from reluctant.report import audit_page, three_figures, verdict_sentence
from reluctant.report.tables import interface_facts
from reluctant.report.text import also_found, flip_sentence, line_sentence, student_of, student_shape
from reluctant.testing import planted

SEVERAL, ONE = planted((6, 5, 3)), planted((6, 5, 1))
TRAINED = ("health", "training")
REBUILDING = ("health", "span", "extraction")
ALL_STEPS = 3600.0  # seconds of processor time: what is trained depends on the seed alone, however slow the machine


def chance(x: Any) -> Any:
    """One probability of a sigmoid, which a plain function does not say."""
    return (1 + np.tanh(ONE(x) / 2)) / 2


def curved(x: Any) -> Any:
    """Between 0 and 1 and curved, with nothing straight behind a sigmoid."""
    return (1 + np.tanh(np.tanh(ONE(x)))) / 4


def softmax(x: Any) -> Any:
    powers = np.exp(SEVERAL(x) - SEVERAL(x).max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def reasons(record: AuditRecord) -> list[str]:
    return [reason.diagnosis.slug for reason in record.verdict.reasons]


@pytest.mark.parametrize("seed", sweep(range(4), fast=[0]))
@pytest.mark.usefixtures("short_training")
def test_a_handful_of_labels_is_no_finding(seed):
    """Of two or three inputs that were held out, all may have the label of the network, and the same one."""
    record = audited(SEVERAL, budget=300, rng=seed, steps=TRAINED)
    measured = record.training.held_out
    assert measured.points < 10
    assert not measured.gives_labels
    assert "trained" not in states(record)["Close copy"]
    assert all("same label" not in figure.name for figure in three_figures(record))


@pytest.mark.usefixtures("short_training")
def test_one_number_has_no_label():
    """A probability is positive everywhere; its sign says nothing, and is no label."""
    record = audited(curved, budget=10_000, steps=("health", "span", "training"))
    text = words(audit_page(record))
    assert "of labels" not in text
    assert "same label" not in text
    assert dict(interface_facts(record))["Answers"].startswith("values between 0 and 1")


@pytest.fixture(scope="module")
def rounded() -> AuditRecord:
    """Probabilities of two decimals, read through the link that they have."""
    return audited(lambda x: softmax(x).round(2), link="softmax", steps=(*REBUILDING, "flip"))


def test_a_reason_is_the_same_wherever_it_stands(rounded):
    extraction = rounded.step("extraction").diagnosis
    assert (extraction.slug, extraction.fields["decimals"]) == ("values-unreadable", 2)
    assert "values-unreadable" in reasons(rounded)
    assert rounded.extraction is None or any("Exact extraction: " in text for text in also_found(rounded))
    read = next(limit for limit in rounded.limits if limit.slug == "read-through-link")
    assert read.fields["all"] == (rounded.interface.refusal is None)


def test_labels_give_the_span_that_a_link_cannot_read(rounded):
    assert rounded.span.outcome == "span-recovered"
    assert LeakKind.SPAN in rounded.verdict.leaks
    assert states(rounded)["Input directions used"] == f"{rounded.span.rank} of {rounded.span.inputs}"


@pytest.mark.usefixtures("short_training")
def test_probabilities_that_a_link_cannot_read_are_trained_on():
    steps = ("health", "extraction", "training")
    record = audited(lambda x: softmax(x).round(2), link="softmax", budget=5000, steps=steps)
    assert record.training.network is not None
    assert record.training.queries > 1000


def test_rounded_probabilities_are_neither_values_nor_straight():
    record = audited(lambda x: softmax(x).round(3), steps=("health", "line"))
    facts = dict(interface_facts(record))
    assert facts["Answers"].startswith("probabilities")
    assert facts.get("Shape at small scale") in (None, "curved, by less than its digits show")
    assert line_sentence(record).startswith("It is curved") == (record.target.link == "identity")  # log-ratios are not


def test_coarse_answers_are_not_called_noisy():
    decimals = 2
    record = audited(lambda x: softmax(x).round(decimals), steps=(*REBUILDING, "learning"))
    found = [reason.diagnosis for reason in record.verdict.reasons if reason.diagnosis.fields.get("decimals")]
    assert {each.fields["decimals"] for each in found} == {decimals}
    assert "answers-too-noisy" not in slugs(record)
    assert record.span.outcome == "span-recovered"


def test_a_sigmoid_is_looked_behind():
    """Straight pieces behind it, where the answers are curved, prove it: nobody has to say so."""
    record = audited(chance, steps=REBUILDING)
    assert (record.target.link, record.target.link_found) == ("sigmoid", True)
    assert record.verdict.level is Level.EXACT
    assert dict(interface_facts(record))["Read through"] == "sigmoid, found by the audit"
    assert "unread-link" not in reasons(audited(curved, steps=REBUILDING))


@pytest.mark.slow
def test_a_sigmoid_of_few_digits_is_read_or_settles_nothing():
    """Digits may hide its curves: then it may as well be made of straight pieces, and nobody can look behind it."""
    record = audited(lambda x: chance(x).astype(np.float32), budget=20_000, steps=(*REBUILDING, "flip"))
    read = record.target.link == "sigmoid"
    leaks, unsettled = record.verdict.leaks, record.verdict.unsettled
    assert LeakKind.EXTRACTABLE in ([*leaks, *unsettled] if read else unsettled)
    assert states(record)["Exact copy"] in (("yes", "not settled") if read else ("not settled",))
    assert reasons(record).count("unread-link") == (0 if read else 1)


def test_a_sigmoid_that_nobody_looked_behind_settles_nothing(monkeypatch):
    monkeypatch.setattr(recovery_steps, "likely_link", lambda oracle, served, rng: None)
    record = audited(chance, steps=(*REBUILDING, "flip", "linearity"))
    assert record.target.link == "identity"
    assert record.verdict.unsettled == (LeakKind.EXTRACTABLE, LeakKind.APPROXIMABLE, LeakKind.FLIPPABLE)
    assert record.verdict.leaks == (LeakKind.SPAN,)
    assert sorted(states(record).values()).count("not tried") == 3
    assert reasons(record).count("unread-link") == 1
    assert 'link="sigmoid"' in verdict_sentence(record)
    assert "--link sigmoid" in verdict_sentence(record, as_command)
    assert record.step("flip").diagnosis.slug == "no-sign"


def test_a_flip_behind_a_sigmoid_is_one_of_the_probability():
    record = audited(lambda x: (1 + np.tanh((ONE(x) - ONE(x[:1] * 0)) / 2)) / 2, steps=("health", "flip"))
    assert record.flip.ok
    assert "one half" in flip_sentence(record)


def test_lines_of_a_caption_are_in_the_picture():
    asked = audited(SEVERAL, steps=("health", "linearity"))
    on_a_copy = audited(SEVERAL, steps=("health", "extraction", "linearity"))
    for record, dotted in ((asked, False), (on_a_copy, True)):
        assert (record.linearity.random_networks is not None) == dotted
        assert words(audit_page(record)).count("random network") == 2 * dotted  # the caption and the legend


def test_states_follow_from_data():
    """A step that was left out is not tried, one that was refused has no method."""
    refused = audited(lambda x: np.logaddexp(0, ONE(x)), steps=("health", "extraction", "learning"))
    assert LeakKind.EXTRACTABLE not in refused.verdict.unsettled
    assert states(refused)["Exact copy"] == "no method here"
    ending = audited(curved, steps=("health", "extraction", "learning"))  # something unknown may stand after values
    assert LeakKind.EXTRACTABLE in ending.verdict.unsettled
    assert states(ending)["Exact copy"] == "not tried"
    left_out = audited(SEVERAL, steps=("health",))
    assert set(states(left_out).values()) == {"not tried"}


def test_noise_is_not_called_coarse():
    rng = np.random.default_rng(0)
    record = audited(lambda x: SEVERAL(x) + 0.3 * rng.standard_normal((len(x), 3)), steps=(*REBUILDING, "flip"))
    assert record.interface.refusal == "too-noisy"
    assert "answers-too-noisy" in reasons(record)
    assert "answers-too-coarse" not in slugs(record)
    assert any(figure.name == "Noise of an answer" for figure in three_figures(record))


@pytest.mark.slow
def test_no_defense_is_tried_on_a_trained_network():
    with short_training((64,), 12_000):
        record = audited(
            lambda x: softmax(x).round(3),
            link="softmax",
            seconds=ALL_STEPS,
            steps=(*REBUILDING, "training", "defenses"),
        )
    assert record.recovered.method is CopyMethod.TRAINING
    assert record.defenses is None
    assert record.step("defenses").diagnosis.slug == "no-local-copy"


@pytest.mark.usefixtures("short_training")
def test_a_trained_network_has_the_classes_of_the_model():
    record = audited(softmax, budget=1500, steps=("health", "training"))
    assert record.training.network.widths[-1] == 2  # log-ratios, as other steps see it
    assert student_shape(record, student_of(record)).endswith("-3")
