"""Pages whose parts must agree with each other: small budgets, one output, probabilities with few digits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from page_kit import words

from reluctant.audit import audit, looking, sweeping
from reluctant.audit.trained import gives_labels
from reluctant.learning.student import trainer
from reluctant.oracles import open_oracle
from reluctant.report import audit_page, check_audit, three_figures
from reluctant.report.numbers import size
from reluctant.report.tables import interface_facts, one_label, recovered_facts, stand_in
from reluctant.report.text import also_found, flip_sentence, leaks, line_sentence, student_of
from reluctant.testing import in_float32, planted

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


def audited(target: Callable[..., Any], **settings: Any) -> dict[str, Any]:
    with open_oracle(target, dim=6) as oracle:
        return check_audit(json.loads(audit(oracle, **settings).to_json()))


def page(record: dict[str, Any]) -> str:
    return words(audit_page(record))


def states(record: dict[str, Any]) -> dict[str, str]:
    return {leak.what: leak.state for leak in leaks(record)}


@pytest.mark.parametrize("seed", range(4))
def test_a_handful_of_labels_is_no_finding(seed):
    """Of two or three inputs that were held out, all may have the label of the network, and the same one."""
    record = audited(SEVERAL, budget=300, rng=seed, steps=TRAINED)
    measured = record["training"]["evidence"]["accuracy"]
    assert measured["points"] < 10
    assert not student_of(record).telling
    assert "trained" not in states(record)["Close copy"]
    assert all("same label" not in figure.name for figure in three_figures(record))
    assert all("of labels" not in entry["finding"] for entry in record["names"])
    assert f"at {measured['points']} inputs that it was not trained on" in page(record) or (
        f"of {measured['points']} inputs that it was not trained on" in record["verdict"]["sentence"]
    )


def test_chance_and_one_label_are_taken_off():
    told = {"agreement": 1.0, "differing": 0.02, "commonest": 0.6, "labelled": True}
    assert gives_labels(told)
    assert not gives_labels(told | {"differing": 0.9})  # a handful of inputs
    assert not gives_labels(told | {"commonest": 1.0})
    assert not gives_labels(told | {"labelled": False})
    assert gives_labels({"agreement": 0.98, "commonest": 0.6})  # of records that do not tell what chance may hide


def test_one_number_has_no_label():
    """A probability is positive everywhere; its sign says nothing, and is not told as a label."""
    record = audited(curved, budget=10_000, steps=("health", "span", "training"))
    said = page(record)
    assert "of labels" not in said
    assert "same label" not in said
    assert "of the answers' deviation" in said
    assert dict(interface_facts(record))["Answers"] == "values between 0 and 1, which may be probabilities"


def test_answers_are_called_what_they_are_read_as():
    linked, plain = audited(chance, link="sigmoid", steps=["health"]), audited(ONE, steps=["health"])
    assert dict(interface_facts(linked))["Answers"] == "probabilities, as the audit was told"
    assert dict(interface_facts(plain))["Answers"] == "values"


@pytest.fixture(scope="module")
def rounded() -> dict[str, Any]:
    """Probabilities of three decimals, read through the link that they have."""
    return audited(lambda x: softmax(x).round(3), link="softmax", steps=(*REBUILDING, "flip"))


def test_a_reason_is_the_same_wherever_it_stands(rounded):
    reason = "Its probabilities are rounded to 3 decimals: the values before the link cannot be read from so few digits"
    assert next(step for step in rounded["steps"] if step["step"] == "extraction")["why"] == f"{reason}."
    assert f"Exact extraction: {reason}." in also_found(rounded)
    assert reason in rounded["verdict"]["sentence"]
    assert "--precision float64" not in page(rounded)
    refused = rounded["health"]["refusal"] is not None
    assert any("not all of them could be read back" in limit for limit in rounded["limits"]) == refused


def test_labels_give_the_span_that_a_link_cannot_read(rounded):
    assert rounded["span"]["outcome"] == "span-recovered"
    assert "span" in rounded["verdict"]["leaks"]
    assert states(rounded)["Directions it looks at"] == "yes"


def test_probabilities_that_a_link_cannot_read_are_trained_on():
    steps = ("health", "extraction", "training")
    record = audited(lambda x: softmax(x).round(3), link="softmax", budget=5000, steps=steps)
    assert record["training"]["network"] is not None
    assert record["training"]["queries"] > 1000


def test_rounded_probabilities_are_neither_values_nor_straight():
    record = audited(lambda x: softmax(x).round(3), steps=("health", "line"))
    facts = dict(interface_facts(record))
    assert facts["Answers"] == "probabilities, as the audit saw"
    assert facts.get("Shape at small scale") in (None, "curved, by less than its digits show")
    curved_line = line_sentence(record) == "It is curved, not made of straight pieces."
    assert curved_line == (record["target"]["link"] == "identity")  # log-ratios are straight


@pytest.mark.parametrize("decimals", [2, 3])
def test_what_is_too_coarse_is_not_called_noise(decimals):
    record = audited(lambda x: softmax(x).round(decimals), steps=(*REBUILDING, "learning"))
    said = page(record)
    assert f"are rounded to {decimals} decimals: " in record["verdict"]["sentence"]
    assert "so much noise" not in said
    assert "too noisy" not in said
    assert record["span"]["outcome"] == "span-recovered"


def test_a_sigmoid_is_looked_behind():
    """Straight pieces behind it, where the answers are curved, prove it: nobody has to say so."""
    record = audited(chance, steps=REBUILDING)
    assert (record["target"]["link"], record["target"]["link found"]) == ("sigmoid", True)
    assert record["verdict"]["level"] == "exact"
    assert dict(interface_facts(record))["Read through"] == "sigmoid, found by the audit"
    assert "--link sigmoid" not in audited(curved, steps=REBUILDING)["verdict"]["sentence"]


def test_a_sigmoid_of_few_digits_is_read_or_settles_nothing():
    """Digits may hide its curves: then it may as well be made of straight pieces, and nobody can look behind it."""
    record = audited(lambda x: chance(x).astype(np.float32), budget=60_000, steps=(*REBUILDING, "flip"))
    read = record["target"]["link"] == "sigmoid"
    leaking, unsettled = record["verdict"]["leaks"], record["verdict"]["unsettled"]
    assert "extractable" in ([*leaking, *unsettled] if read else unsettled)
    assert states(record)["Exact copy"] in (("yes", "not settled") if read else ("not settled",))
    assert record["verdict"]["sentence"].count("--link sigmoid") == (0 if read else 1)


def test_a_sigmoid_that_nobody_looked_behind_settles_nothing(monkeypatch):
    monkeypatch.setattr(looking, "_likely_link", lambda oracle, served, seed: None)
    record = audited(chance, steps=(*REBUILDING, "flip", "linearity"))
    assert record["target"]["link"] == "identity"
    assert record["verdict"]["unsettled"] == ["extractable", "approximable", "flippable"]  # the span is found
    assert record["verdict"]["leaks"] == ["span"]
    assert sorted(states(record).values()).count("not tried") == 3
    assert record["verdict"]["sentence"].count("--link sigmoid") == 1
    assert "no sign that could flip" in page(record)


def test_nobody_is_told_options_that_an_audit_does_not_have():
    record = audited(lambda x: 1 + np.abs(ONE(x)), steps=("health", "flip"))
    assert {one["outcome"] for one in record["flip"]["tries"]} == {"not-flipped"}
    assert flip_sentence(record) == "One gradient step did not flip the target, as far as it was followed."
    assert "--steps" not in page(record)


def test_tries_that_ended_otherwise_are_counted():
    record = audited(SEVERAL, steps=("health", "flip"))
    tries = [one | {"ok": False, "outcome": "not-flipped"} for one in record["flip"]["tries"]]
    tries[-1]["outcome"] = "out-of-budget"
    cut = record | {"flip": record["flip"] | {"ok": False, "outcome": "not-flipped", "tries": tries}}
    assert flip_sentence(cut).startswith("4 of 5 inputs: One gradient step did not flip the target")
    assert "1 of 5 inputs: Its share of the query budget ran out." in flip_sentence(cut)


def test_a_flip_behind_a_sigmoid_is_one_of_the_probability():
    record = audited(lambda x: (1 + np.tanh((ONE(x) - ONE(x[:1] * 0)) / 2)) / 2, steps=("health", "flip"))
    assert record["flip"]["ok"]
    assert "the probability crosses one half" in flip_sentence(record)


def test_a_flip_that_may_be_smaller_is_no_good_news():
    record = audited(SEVERAL, steps=("health", "flip"))
    large = record | {"verdict": record["verdict"] | {"leaks": [], "unsettled": []}}
    assert next(leak for leak in leaks(large) if leak.state == "by a large one").tone == "good"
    open_ = large | {"verdict": large["verdict"] | {"unsettled": ["flippable"]}}
    assert next(leak for leak in leaks(open_) if leak.state == "by a large one so far").tone == "calm"


def test_one_root_mean_square_has_one_name():
    """The typical error is that of the verification, as `extract` prints it; the copy's own stands beside it."""
    record = audited(in_float32(SEVERAL), steps=("health", "extraction"))
    evidence, error = record["extraction"]["evidence"], record["recovered"]["error"]
    assert error["typical"] == evidence["verification"]["rms_error"]
    assert error["own"] == evidence["precision"]["error"]
    facts = dict(recovered_facts(record))
    assert facts["Typical error (root mean square)"].startswith(size(error["typical"]))
    assert facts["Its own error, without the noise of the answers"].startswith(f"at most {size(error['own'])}")


def test_lines_of_a_caption_are_in_the_picture():
    asked = audited(SEVERAL, steps=("health", "linearity"))
    on_a_copy = audited(SEVERAL, steps=("health", "extraction", "linearity"))
    for record, dotted in ((asked, False), (on_a_copy, True)):
        said = page(record)
        assert "Below the dashed line, a change by half," in said
        assert "changed by half" in said  # the legend
        assert ("Dotted: what a random network of this depth gives." in said) == dotted
        assert ("random network" in said.replace("what a random network", "")) == dotted


def test_what_was_refused_is_told_by_data():
    """No word of a reason decides: a step that was left out is not tried, one that was refused has no method."""
    refused = audited(lambda x: np.logaddexp(0, ONE(x)), steps=("health", "extraction", "learning"))
    assert "extractable" not in refused["verdict"]["unsettled"]
    assert states(refused)["Exact copy"] == "no method here"
    ending = audited(curved, steps=("health", "extraction", "learning"))  # something unknown may stand after values
    assert "extractable" in ending["verdict"]["unsettled"]
    assert states(ending)["Exact copy"] == "not tried"
    left_out = audited(SEVERAL, steps=("health",))
    assert set(states(left_out).values()) == {"not tried"}
    reworded = [step | {"why": "Labels are not what it is about."} for step in left_out["steps"]]
    assert set(states(left_out | {"steps": reworded}).values()) == {"not tried"}


def test_the_sweep_says_what_its_errors_are_of(record):
    assert stand_in(record) == ""
    trained = record | {"defenses": record["defenses"] | {"on": "the trained network"}}
    off = size(record["recovered"]["error"]["typical"])
    own = f"not against the model, from which that network is off by {off} of the answers' deviation itself."
    assert stand_in(trained).endswith(own)
    assert words(stand_in(trained)) in page(trained)


def test_the_label_of_one_output_is_explained():
    assert one_label(audited(ONE, steps=["health"])) == "The label of one output: whether it is positive."
    assert one_label(audited(chance, steps=["health"])) == "The label of one output: whether it is above one half."
    assert one_label(audited(SEVERAL, steps=["health"])) == ""


def test_noise_is_not_called_coarse():
    rng = np.random.default_rng(0)
    record = audited(lambda x: SEVERAL(x) + 0.3 * rng.standard_normal((len(x), 3)), steps=(*REBUILDING, "flip"))
    assert record["health"]["refusal"] == "too-noisy"
    assert "Its answers have noise of" in record["verdict"]["sentence"]
    said = page(record)
    assert "too coarse" not in said.replace("too coarse or noisy", "")
    assert "does not change around this input" not in said  # it does, by less than its noise
    assert any(figure.name == "Noise of an answer" for figure in three_figures(record))


def test_rows_of_a_sweep_on_a_trained_network_are_all_of_it(monkeypatch):
    """What was found of the target itself does not stand among what was found of its stand-in."""
    monkeypatch.setattr(trainer, "STUDENT_SHAPES", ((64,),))
    monkeypatch.setattr(sweeping, "default_defenses", lambda *_: [(), ("decimals=2",)])
    steps = (*REBUILDING, "training", "defenses")
    record = audited(lambda x: softmax(x).round(3), link="softmax", seconds=ALL_STEPS, steps=steps)
    assert record["recovered"]["method"] == "training on the answers"
    bare = record["defenses"]["rows"][0]
    assert (bare["defense"], bare["rebuilt"]) == ("none", None)
    assert bare["span"]["queries"] != record["span"]["queries"]  # another span, that of the trained network
    assert record["defenses"]["sentence"].startswith("What each defense leaves of the span")
    assert "of the model" not in record["defenses"]["sentence"]


def test_a_trained_network_has_the_classes_of_the_model():
    record = audited(softmax, budget=1500, steps=("health", "training"))
    assert record["training"]["network"]["widths"][-1] == 2  # log-ratios, as other steps see it
    assert student_of(record).shape.endswith("-3")
