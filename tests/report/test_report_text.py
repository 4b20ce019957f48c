"""Text of the page is chosen by slugs and fields: each has plain words, and none names an option of a command."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_kit import audited, states, typed, with_verdict, words

import reluctant.report
from reluctant.audit import STEPS
from reluctant.audit.facts import Closeness, HeldOut, NetworkShape, RunFacts, State, TrainingFacts
from reluctant.audit.record import AuditRecord, Confidence, LeakKind, Level, Reason
from reluctant.messages import Diagnosis, Remedy
from reluctant.messages.catalogue import AUDITS, PURPOSES
from reluctant.messages.diagnosis import NOT_THERE, USELESS_ANSWERS
from reluctant.report import audit_page, three_figures, verdict_sentence
from reluctant.report.overview import confidence_sentence, found_leaks, level_words, verdict_parts, when_sentence
from reluctant.report.sweep_text import one_label, owner_actions, sweep_sentence
from reluctant.report.tables import interface_facts, recovered_facts
from reluctant.report.text import also_found, flip_sentence, line_sentence, said, sentence, size, stop_sentence
from reluctant.results import Outcome
from reluctant.testing import in_float32, planted

SOURCES = Path(reluctant.report.__file__).parent
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*\b")
LONGEST = 34  # words of a sentence
CLOSENESS = {"seen": 0.009, "most": 0.012, "allowed": 0.01, "labels": False}
DIGITS = {"link": None, "limit": "decimals", "decimals": 3}
FIELDS: dict[str, list[dict[str, Any]]] = {
    "trained-perhaps-a-copy": [CLOSENESS, CLOSENESS | {"labels": True, "alone": 0.9}],
    "span-with-copy": [{"directions": 2}],
    "too-few-digits": [
        DIGITS,
        {"link": "softmax", "limit": "number-format", "number_format": "float16"},
        {"link": "tanh", "limit": "fresh-noise", "noise": 1e-3},
        {"link": None, "limit": "noise", "noise": 1e-9, "most_noise": 1e-6, "relative_noise": 1e-4},
    ],
    "values-unreadable": [{"link": "tanh", "decimals": 2}, {"link": "softmax", "number_format": "float16"}],
    "answers-too-noisy": [{"noise": 0.1}],
    "answers-too-coarse": [{"decimals": 0}, {"decimals": 1}],
    "clipped-inputs": [{}, {"low": 0.0, "high": 1.0}],
    "step-failed": [{"error": "target-failed", "message": "It fails."}, {"error": "KeyError", "message": "x"}],
    "rows-ran-out": [{"steps": ["span"]}, {"steps": ["span", "extraction", "learning"]}],
    "steps-broken-off": [{"steps": ["span"]}],
    "steps-not-begun": [{"steps": ["extraction", "learning"]}],
    "time-ran-out": [{"step": "extraction"}],
    "step-not-ended": [{"step": "span", "why": None}, {"step": "span", "why": {"slug": "left-out"}}],
    "unread-link": [{"link": "tanh"}, {"link": "sigmoid"}, {"link": "sigmoid", "percent": True}],
    "nothing-to-find": [
        *({"missing": missing, "gives": gives} for missing in NOT_THERE for gives in USELESS_ANSWERS),
        {"missing": "creases", "gives": "rounded-link", "noun": "probabilities", "decimals": 2},
    ],
    "asked": [{"queries": 9, "budget": 10, "domain": "all of space", "inside": inside} for inside in (None, "a box")],
    "class-outputs-left-out": [{"outputs": [3]}, {"outputs": [0, 3]}],
    "read-through-link": [
        {"link": link, "all": all_, "noisy": all_} for link in ("tanh", "top-k", "softmax") for all_ in (True, False)
    ],
    "sweep-inputs": [{"sampled": True, "inputs": 1000}, {"sampled": False, "inputs": 1}],
}  # fmt: skip


def every_text() -> dict[str, str]:
    """What is said of each slug, with fields as an audit gives them."""
    texts = {slug: said(Diagnosis(slug, {"saturates": True})) for slug in ("out-of-reach", "non-finite")}
    texts |= {slug: said(Diagnosis(slug, entry.example or {})) for slug, entry in AUDITS.items()}
    for slug, cases in FIELDS.items():
        texts |= {f"{slug} {k}": said(Diagnosis(slug, fields)) for k, fields in enumerate(cases)}
    return texts


def test_each_slug_has_plain_words():
    for name, text in every_text().items():
        assert text[0].isupper() or name.startswith("step-failed"), name
        assert text.endswith(".") or name.startswith("step-failed"), name
        assert "–" not in text, name  # no field is missing
        assert not OPTION.search(text), name
        assert max(len(each.split()) for each in re.split(r"(?<=[.:;])\s", text)) <= LONGEST, name


def test_each_outcome_has_words():
    for outcome in Outcome:
        assert said(Diagnosis(outcome.slug, {"what": "target"})).endswith(".")


def test_a_slug_without_words_is_not_lost():
    assert said(Diagnosis("something-new")) == "Something new."


def test_remedies_are_settings():
    for purpose in PURPOSES:
        options = {"domain": (0.0, 1.0), "link": "softmax", "percent": True, "rng": None}
        text = sentence(Diagnosis("no-copy", {}, (Remedy(purpose, "audit", options),)))
        assert len(text) > len(said(Diagnosis("no-copy")))
        assert not OPTION.search(text)
        assert 'domain=(0, 1), link="softmax", percent=True' in text


def test_no_option_of_a_command_is_named_in_the_sources():
    for path in [*SOURCES.glob("*.py"), *SOURCES.rglob("*.html")]:
        text = re.sub(r"<!--|-->|<[^>]*>|--(?:step|dot|faint|found|at)\b", "", path.read_text("utf-8"))
        assert re.findall(r"(?<![\w-])--[a-z]{2,}", text) == [], path.name


def test_the_page_takes_the_record_and_nothing_else_of_the_audit():
    allowed = {"reluctant.audit.facts", "reluctant.audit.record"}
    for path in SOURCES.glob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        of_audit = [name for name in modules if name.startswith(("reluctant.audit", "reluctant.interface"))]
        assert set(of_audit) <= allowed, path.name


# ---- the verdict


@pytest.mark.parametrize("level", Level)
def test_each_level_has_a_verdict(record, level):
    text = verdict_sentence(with_verdict(typed(record), level=level))
    assert text.endswith(".")
    assert ("2,410 parameters" in text) == (level in (Level.EXACT, Level.APPROXIMATE))
    assert ("32 of 64 directions" in text) == (level is Level.SPAN)


@pytest.mark.parametrize("confidence", Confidence)
def test_each_confidence_has_words(record, confidence):
    record["steps"].insert(0, {"step": "open", "state": "done", "diagnosis": {"slug": "left-out"}})
    assert confidence_sentence(with_verdict(typed(record), confidence=confidence)).endswith(".")


def test_a_reason_and_its_remedy_stand_once(record):
    why = {
        "slug": "rare-labels",
        "fields": {},
        "remedies": [{"purpose": "another-seed", "verb": "audit", "options": {"rng": None}}],
    }
    other = why | {"slug": "may-be-clipped"}
    record["verdict"] |= {
        "level": "nothing",
        "reasons": [{"diagnosis": why}, {"diagnosis": why, "step": "span"}, {"diagnosis": other}],
    }
    text = verdict_sentence(typed(record))
    assert text.count(said(Diagnosis("rare-labels"))) == 1
    assert text.count("Try another seed") == 1
    assert said(Diagnosis("may-be-clipped")) in text


def test_a_part_that_was_copied_is_named_first(record):
    record |= {"recovered": None, "part": {"neurons": 9, "confirmed": 8, "weights": 520}}
    record["verdict"] |= {"level": "unknown", "leaks": [], "confidence": "unsettled"}
    part = typed(record)
    assert "8 neurons" in verdict_sentence(part)
    assert "520 weights" in verdict_sentence(part)
    assert level_words(part).tone == "warn"
    assert states(part)["Exact copy"] == "a part of it"
    assert three_figures(part)[0].value == "8"


def test_outputs_that_were_left_out_are_named(record):
    record["target"]["outputs_left_out"] = [3, 4]
    assert "output=3 or output=4" in verdict_sentence(typed(record))


# ---- networks that were trained and do not count as copies


def held_out(labels: float, alone: float = 0.5, *, points: int = 4000) -> HeldOut:
    differing = 1 - labels + 0.01
    gives = 1 - differing - alone >= 0.5 * (1 - alone)
    close = Closeness(1 - labels, differing, 0.01, labels=True, open=1 - labels <= 0.01 < differing)
    return HeldOut(points, None, None, labels, differing, alone, None, None, True, None, False, gives, close)


def with_student(record: AuditRecord, measured: HeldOut) -> AuditRecord:
    """As if a network had been trained on the labels of a target that has no copy."""
    run = RunFacts(
        outcome="not-accurate-enough", ok=False, queries=40_000, network=NetworkShape((8, 16, 3), 195),
        held_out=measured, training=TrainingFacts((16,), 36_000, 9, False, False), answers="labels",
    )  # fmt: skip
    return replace(record, training=run, recovered=None, defenses=None)


@pytest.fixture
def nothing(record) -> AuditRecord:
    """An audit that made no copy."""
    bare = typed(record | dict.fromkeys(("recovered", "extraction", "defenses", "truth", "flip", "span")))
    return with_verdict(bare, level=Level.NOTHING, leaks=(), confidence=Confidence.NO_PROOF)


def test_a_trained_network_is_no_good_news(nothing):
    assert level_words(nothing).tone == "good"
    trained = with_student(nothing, held_out(0.972))
    assert level_words(trained).tone == "warn"
    assert states(trained)["Close copy"] == "trained: 97.2% of labels"
    first, queries, _ = three_figures(trained)
    assert (first.value, queries.note) == ("97.2%", "without a closer copy of the network")
    assert "97.2%" in verdict_sentence(trained)
    assert "one label alone: 50.0%" in words(audit_page(trained))


def test_the_measure_of_a_copy_is_given(nothing):
    near, far = (" ".join(also_found(with_student(nothing, held_out(labels)))) for labels in (0.991, 0.9))
    assert "That may be close enough" in near
    assert "1.9% of labels may differ, and in a copy 1% may" in near
    assert "That is not close enough" in far


def test_one_label_alone_is_no_leak(nothing):
    """88 % right is little where one label is right for 80 %."""
    trained = with_student(nothing, held_out(0.88, alone=0.8))
    assert all("trained" not in leak.state for leak in found_leaks(trained))
    assert three_figures(trained)[0].name == "Queries spent"


# ---- sections


def test_a_stop_is_at_the_head(record):
    record["stopped"] = {"step": "span", "number": 2, "of": 13, "recorded": False}
    kept = record | {"stopped": record["stopped"] | {"recorded": True}}
    texts = [stop_sentence(typed(each)) for each in (record, kept)]
    assert all("in step 2 of 13, span" in text for text in texts)
    assert texts[0] != texts[1]
    html = audit_page(typed(record))
    assert html.index("in step 2 of 13") < html.index('<section id="recovered"')


def test_a_step_under_way_is_not_called_untried():
    begun: list[str] = []

    def watch(what: str, done: int, of: int, doing: str) -> None:
        begun.append(doing)

    def target(x):
        if begun and begun[-1] == "line":
            raise KeyboardInterrupt
        return planted((8, 4, 3))(x)

    record = audited(target, dim=8, steps=STEPS, watch=watch)
    assert [step.state for step in record.steps].count(State.STOPPED) == 1
    html = audit_page(record)
    function = html[html.index('<section id="function"') : html.index('<section id="search"')]
    assert "stopped" in function
    assert record.verdict.level is Level.EXACT
    assert states(record)["Flip by one small step"] in ("yes", "by a large one", "not begun")


def test_tries_that_ended_otherwise_are_counted(record):
    for each in record["flip"]["tries"]:
        each |= {"ok": False, "outcome": "not-flipped"}
    record["flip"] |= {"ok": False, "outcome": "not-flipped"}
    assert flip_sentence(typed(record)) == said(Diagnosis("not-flipped"))
    record["flip"]["tries"][-1]["outcome"] = "out-of-budget"
    text = flip_sentence(typed(record))
    assert text.startswith("4 of 5 inputs: ")
    assert "1 of 5 inputs: " in text


def test_a_flip_that_may_be_smaller_is_no_good_news(record):
    large = with_verdict(typed(record), leaks=(), unsettled=())
    assert found_leaks(large)[3].tone == "good"
    assert found_leaks(with_verdict(large, unsettled=(LeakKind.FLIPPABLE,)))[3].tone == "calm"


@pytest.mark.parametrize("open_", [True, False, None])
@pytest.mark.parametrize("cheapest", [True, False])
def test_each_sweep_has_its_sentence(record, open_, cheapest):
    record["defenses"] |= {"open": open_} | ({} if cheapest else {"cheapest": None})
    text = sweep_sentence(typed(record).defenses)
    assert ("cheapest defense" in text) == (open_ is True and cheapest)
    record["defenses"]["rows"] = []
    assert sweep_sentence(typed(record).defenses) == "No defense could be tried."


def test_the_owner_has_actions_in_order(record):
    record["defenses"] |= {"open": True, "cheapest": record["defenses"]["rows"][1]["defense"]}
    actions = owner_actions(typed(record))
    assert [text.split()[0] for text in actions[:3]] == ["Allow", "Say", "Against"]
    assert "may succeed" in actions[2] or "no defense" in actions[2]  # digits alone stop no other copy
    record |= {"recovered": None, "defenses": None}
    assert [text.split()[0] for text in owner_actions(typed(record))][-1] == "Audit"
    assert not any(text.startswith(("Against", "Allow")) for text in owner_actions(typed(record)))


def test_one_root_mean_square_has_one_name():
    """The typical error is that of the verification, as `extract` prints it; the copy's own stands beside it."""
    record = audited(in_float32(planted((6, 5, 3))), steps=("health", "extraction"))
    assert record.extraction is not None
    assert record.recovered is not None
    error = record.recovered.error
    assert error.typical == record.extraction.verification.rms_error
    assert error.own == record.extraction.precision.error
    facts = dict(recovered_facts(record))
    assert facts["Typical error (root mean square)"].startswith(size(error.typical))
    assert facts["Its own error, without the noise of the answers"].startswith(f"at most {size(error.own)}")


# ---- the interface


def test_answers_are_called_by_their_kind(record):
    def answers(**changes) -> str:
        data = {**record, "target": record["target"] | changes.pop("target", {})}
        data["interface"] = record["interface"] | changes
        return dict(interface_facts(typed(data)))["Answers"]

    assert answers() == "values"
    assert answers(answers="labels").startswith("labels,")
    assert answers(answers="labels", integers="undecided").startswith("labels, or values rounded")
    assert answers(step_function=True).startswith("values that change in steps")
    assert answers(top_k={"largest": 1, "classes": 3}).startswith("the largest probability of 3 classes")
    assert answers(target={"percent": True}).startswith("probabilities in percent")
    assert answers(target={"may_be_percent": True}).startswith("values between 0 and 100")
    assert answers(target={"may_be_sigmoids": True}).startswith("values between 0 and 1")
    assert answers(target={"link": "tanh", "link_found": True}).startswith("values of a tanh")
    assert "(output 3)" in answers(target={"outputs_left_out": [3]})


def test_a_shape_that_digits_hide_is_not_named():
    """Three decimals hide the curves of a sigmoid: straight pieces are seen, and may not be there."""
    network = planted((8, 4, 1), 0)
    record = audited(lambda x: ((1 + np.tanh(network(x) / 2)) / 2).round(3), dim=8, steps=["health"])
    assert record.interface.shape == "piecewise linear"
    assert record.target.may_be_sigmoids
    assert "piecewise linear" not in words(audit_page(record))
    assert line_sentence(record) == ""


def test_no_claim_about_values_stands_on_a_page_about_labels():
    network = planted((8, 4, 3))
    untrained = [step for step in STEPS if step not in ("training", "defenses")]
    record = audited(lambda x: np.eye(3)[network(x).argmax(axis=1)], dim=8, steps=untrained)
    text = words(audit_page(record))
    for wrong in ("Where a curve bends", "Digits seen", "not rounded", "No change beyond", "largest answer"):
        assert wrong not in text
    assert {leak.state for leak in found_leaks(record)} >= {"yes"}


def test_the_label_of_one_output_is_explained(record):
    one = record | {"target": record["target"] | {"outputs": 1}}
    linked = record | {"target": one["target"] | {"link": "sigmoid"}}
    assert one_label(typed(record)) == ""
    assert one_label(typed(one)).endswith("positive.")
    assert one_label(typed(linked)).endswith("above one half.")


def test_a_range_that_the_audit_found_is_named():
    def boxed(x):
        if np.abs(x).max() > 3:
            raise ValueError("too large")
        return planted((8, 4, 3))(x)

    record = audited(boxed, dim=8, steps=["health", "extraction"])
    facts = dict(interface_facts(record))
    assert "Domain" not in facts
    assert facts["Answers only in"].startswith("[-2, 2] in every coordinate")
    assert "[-2, 2]" in verdict_sentence(record)
    html = audit_page(record)
    assert '<span class="nowrap">[-2, 2]</span>' in html
    assert "all of space" not in words(html)


def test_an_undecided_audit_opens_with_few_lines(record):
    """The headline, one reason and what a trained network does; the rest stands below the figures."""
    reasons = tuple(
        Reason(Diagnosis("time-ran-out", {"step": step}), step)
        for step in ("span", "extraction", "learning", "training")
    )
    undecided = with_verdict(typed(record), level=Level.UNKNOWN, reasons=reasons)
    headline, details, rest = verdict_parts(undecided)
    assert "time for span" in details
    assert "time for training" not in details
    assert "time for training" in rest
    assert len(headline) + len(details) < 360  # three lines of the page
    assert rest in verdict_sentence(undecided)


def test_the_day_and_the_duration_are_those_of_the_record(record):
    began = typed(record | {"began": "2026-11-17T19:30:12+00:00"})
    assert when_sentence(began).startswith("Audited on 17 November 2026 at 19:30 UTC; its steps took ")
    assert when_sentence(typed(record | {"began": None})) == ""
