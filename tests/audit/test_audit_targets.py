"""The audit of real targets of every kind: a true verdict, whatever they are."""

from __future__ import annotations

import numpy as np
import pytest
from audit_kit import UNTRAINED, Rows, step
from scipy.special import expit

from reluctant import ReLUNetwork, open_oracle
from reluctant.audit import LEAKS, audit, looking
from reluctant.audit.rare import FEW_ROWS
from reluctant.report.interface import interface_facts
from reluctant.report.summary import _digits
from reluctant.testing import in_float32, planted
from reluctant.testing.faults import FAULTS, Dying, noisy

NETWORK = planted((6, 8, 3))
WIDE_INPUT = planted((12, 4, 2))


def softmax(x):
    values = NETWORK(x)
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_one_hidden_layer_is_taken_exactly(record, seed):
    found = record(planted((12, 4, 2), seed), rng=seed)
    assert found["verdict"]["level"] == "exact"
    assert {"extractable", "approximable", "span"} <= set(found["verdict"]["leaks"])
    assert found["recovered"]["widths"] == [12, 4, 2]
    assert found["recovered"]["error"]["largest"] < 1e-8
    assert found["recovered"]["queries"] == step(found, "extraction")["queries"]
    assert (found["span"]["rank"], found["ok"]) == (4, True)


def test_every_input_is_looked_at_so_the_span_is_no_leak(record):
    found = record(NETWORK)
    assert found["span"]["outcome"] == "full-rank"
    assert "span" not in found["verdict"]["leaks"]


def test_two_hidden_layers_are_taken_and_not_learned(record):
    found = record(planted((10, 6, 5, 1)))
    assert found["recovered"]["widths"] == [10, 6, 5, 1]
    assert step(found, "learning")["state"] == "skipped"
    assert set(found["pictures"]["slice"]["layers"]) == {1, 2}


def test_probabilities_are_read_through_their_softmax(record):
    found = record(softmax, 6)
    assert found["verdict"]["level"] == "exact"
    assert found["target"]["link"] == "softmax"
    assert found["target"]["link found"] is True
    assert (found["recovered"]["widths"], found["recovered"]["link"]) == ([6, 8, 3], "softmax")
    assert found["recovered"]["parameters"] == NETWORK.parameters
    assert "6-8-3 with a softmax, 83 parameters" in found["verdict"]["sentence"]
    assert any("probabilities" in sentence for sentence in found["limits"])


def test_a_link_that_is_given_is_not_found(record):
    found = record(softmax, 6, link="softmax")
    assert (found["target"]["link"], found["target"]["link found"]) == ("softmax", False)
    assert found["verdict"]["level"] == "exact"


def test_one_output_of_many(record):
    found = record(NETWORK, output=1)
    assert found["recovered"]["widths"] == [6, 8, 1]


def test_a_linear_part_beside_the_layers_is_named(record):
    whole = planted((8, 6, 1))
    network = ReLUNetwork(whole.weights, whole.biases, np.ones((1, 8)))
    found = record(network, steps=["health", "extraction"])
    assert found["recovered"]["linear part"] is True
    assert "8-6-1 with a direct linear part, 69 parameters" in found["verdict"]["sentence"]


def test_few_digits_are_enough(record):
    found = record(in_float32(planted((8, 6, 1))), 8)
    assert found["verdict"]["level"] == "exact"
    assert found["recovered"]["method"] == "extraction from few digits"
    assert 1e-10 < found["recovered"]["error"]["typical"] < 1e-5


def test_inside_a_box_nothing_outside_is_asked(valid, seed):
    outside = []
    network = planted((4, 3, 1), seed)

    def target(x):
        outside.append(bool((x < -1).any() or (x > 1).any()))
        return network(x)

    with open_oracle(target, dim=4, domain=(-1, 1)) as oracle:
        found = valid(audit(oracle, rng=seed, steps=["health", "extraction", "line", "plane", "errors"]).to_dict())
    assert not any(outside)
    assert found["pictures"]["slice"] is not None


def test_where_inputs_are_clipped_nothing_bends_for_a_neuron(record):
    steps = ["health", "extraction", "part", "learning"]
    found = record(lambda x: NETWORK(np.clip(x, -1, 1)), 6, steps=steps)
    assert found["extraction"]["outcome"] == "partial"
    assert found["part"] is None
    assert "extractable" in found["verdict"]["unsettled"]
    assert "part of the network" not in found["verdict"]["sentence"]
    assert "High for the part" not in found["verdict"]["confidence"]
    assert found["verdict"]["sentence"].count("clipped to [-1, 1]") == 1
    assert "--domain=-1,1" in found["verdict"]["sentence"]
    assert "--domain=-1,1" in step(found, "extraction")["why"]
    assert "more than one hidden layer" not in step(found, "learning")["why"]
    few = record(lambda x: NETWORK(np.clip(x, -1, 1)).round(4), 6, steps=["health", "extraction"])
    assert few["extraction"]["outcome"] == "low-precision"
    assert "as if inputs were clipped" in few["verdict"]["sentence"]  # a range is not named: inside digits are as few
    assert "clipped to" not in few["verdict"]["sentence"]


def test_a_range_that_learning_was_led_astray_by_is_named(record):
    """Few digits leave the search to learning: no seed would settle it, and the range does."""
    found = record(lambda x: NETWORK(np.clip(x, 0, 1)).round(4), 6, steps=["health", "extraction", "part", "learning"])
    assert (found["extraction"]["outcome"], found["part"]) == ("low-precision", None)
    assert "clipped to [0, 1]" in found["verdict"]["sentence"]
    assert "--domain=0,1" in found["verdict"]["sentence"]
    assert "--seed" not in found["verdict"]["sentence"]


def test_labels_alone_still_give_the_span(record):
    found = record(lambda x: WIDE_INPUT(x).argmax(axis=1), 12, steps=UNTRAINED)
    assert found["verdict"]["level"] == "span"
    assert found["verdict"]["leaks"] == ["span"]
    assert found["span"]["rank"] == 4
    assert found["extraction"] is None
    assert step(found, "extraction")["why"] == step(found, "learning")["why"] == "Labels have no creases to find."
    assert step(found, "flip")["why"] == "Labels have no gradient to follow."
    assert "The answers are labels" in found["verdict"]["sentence"]
    assert found["verdict"]["confidence"].startswith("High for the directions: long steps along all others")
    assert "Ask for" not in str(found["steps"])  # the model is the reader's own
    assert found["flip"] is None
    assert found["recovered"] is None


@pytest.mark.parametrize("seed", range(4))
def test_one_hot_answers_are_labels_in_every_part(record, seed):
    """The reason of the verdict is that of the interface, whatever the few lines of a step look like."""
    found = record(lambda x: np.eye(3)[NETWORK(x).argmax(axis=1)], 6, rng=seed, steps=["health", "span", "extraction"])
    assert (found["health"]["shape"], found["health"]["answers"]) == ("piecewise constant", "labels")
    assert "do not change under small steps" in found["verdict"]["sentence"]
    assert "curved" not in found["verdict"]["sentence"]
    assert "the same answer everywhere" not in found["verdict"]["sentence"]


def test_a_smooth_target_is_not_extracted_but_looked_at(record):
    target = Rows(lambda x: np.tanh(x @ np.arange(12.0).reshape(4, 3)))
    found = record(target, 4, steps=UNTRAINED)
    assert found["verdict"]["level"] == "span"
    assert found["health"]["refusal"] == "not-piecewise-linear"
    assert step(found, "extraction")["state"] == "skipped"
    assert "curved at small scale" in found["verdict"]["sentence"]
    assert found["queries"]["total"] == target.seen


def test_a_target_that_was_constant_where_it_was_asked_is_not_settled(record):
    """A label that is rare, or inputs of another range, look the same to a first look."""
    found = record(lambda x: np.ones(len(x)), 4)
    assert (found["verdict"]["level"], found["verdict"]["leaks"]) == ("unknown", [])
    assert set(found["verdict"]["unsettled"]) == {"extractable", "approximable", "span", "flippable"}
    assert "same answer everywhere" in found["verdict"]["sentence"]
    assert "--domain" in found["verdict"]["sentence"]
    assert "--inputs" not in str(found["steps"]) + found["verdict"]["sentence"]
    assert step(found, "flip")["state"] == "skipped"


def rare(x):
    """One input of a thousand, and none far out."""
    return (np.linalg.norm(x - 1, axis=1) < 0.5).astype(float)


def test_a_rare_label_of_honest_inputs_is_no_constant(record):
    inputs = np.random.default_rng(0).standard_normal((40, 4))
    assert record(rare, 4, inputs=inputs, steps=["health"])["health"]["refusal"] == "constant"
    found = record(rare, 4, inputs=np.concatenate([inputs, np.ones((2, 4))]), steps=["health", "span"])
    assert found["health"]["refusal"] == "piecewise-constant"
    assert step(found, "health")["queries"] == 102 + 42 + FEW_ROWS
    assert "The answers are labels" in found["verdict"]["sentence"]
    assert "same answer everywhere" not in found["verdict"]["sentence"]


def test_a_second_look_is_not_asked_of_a_budget_that_is_too_small(record):
    found = record(rare, 4, budget=200, steps=["health"])
    assert step(found, "health")["state"] == "done"
    assert found["health"]["refusal"] == "constant"


def test_a_step_that_met_one_answer_alone_settles_nothing(record):
    """Labels that differ far out alone: training asks near the origin, and meets one."""
    found = record(lambda x: (x[:, 0] > 9).astype(float), 4, steps=["health", "training"])
    assert found["health"]["refusal"] == "piecewise-constant"
    assert "approximable" in found["verdict"]["unsettled"]
    assert "others, if there are any, are rare or elsewhere" in step(found, "training")["why"]


def test_the_domain_is_what_helps_where_a_target_was_constant(valid):
    """Honest inputs do not, of values: the health check asks random ones of the domain."""
    near, network = np.full((8, 4), 50.0), planted((4, 3, 1))

    def target(x):
        return np.where((np.abs(x - 50) < 5).all(axis=1, keepdims=True), network(x - 50), 3.0)

    def seen(**domain):
        with open_oracle(target, dim=4, **domain) as oracle:
            return valid(audit(oracle, inputs=near, steps=["health"]).to_dict())["health"]["refusal"]

    assert seen() == "constant"
    assert seen(domain=(46, 54)) is None


def test_a_linear_target_is_a_network_without_hidden_layer(record):
    found = record(ReLUNetwork([[[1.0, 2.0, 3.0]]], [[0.5]]))
    assert found["recovered"]["widths"] == [3, 1]
    assert found["pictures"]["first layer"] is None


def test_noise_is_told(record):
    found = record(noisy(planted((6, 5, 1)), 1e-3), 6)
    assert found["health"]["deterministic"] is False
    assert found["verdict"]["level"] == "exact"


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_faulty_target_has_a_record(fault, valid):
    from reluctant.audit import not_opened
    from reluctant.errors import ReluctantError

    try:
        oracle = open_oracle(FAULTS[fault](planted((4, 5, 1))), dim=4)
    except ReluctantError as error:
        found = valid(not_opened("target", error, seed=0, budget=1000, repeat="").to_dict())
        assert "could not be opened" in found["verdict"]["sentence"]
    else:
        found = valid(audit(oracle).to_dict())
        assert found["ok"]
    assert found["verdict"]["level"] == "unknown"
    assert (found["verdict"]["leaks"], found["verdict"]["unsettled"]) == ([], list(LEAKS))


def test_a_target_that_dies_keeps_what_was_found(record):
    found = record(Dying(planted((12, 4, 2)), rows=500), 12)
    assert found["health"] is not None
    assert found["span"]["ok"]
    assert found["extraction"]["outcome"] == "target-failed"
    assert found["verdict"]["level"] == "span"
    assert "The target stopped answering properly. target: raised" in found["verdict"]["sentence"]
    assert step(found, "plane")["state"] == "failed"
    assert "died" in step(found, "plane")["why"]


def confident(times: float):
    """Probabilities of a network whose values are so many times as large."""
    first, last = NETWORK.weights
    sure = ReLUNetwork([first, times * last], [NETWORK.biases[0], times * NETWORK.biases[1]])

    def target(x):
        values = sure(x)
        powers = np.exp(values - values.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return target


def test_errors_of_a_confident_softmax_are_measured_where_it_tells(record):
    """Where a class is certain to the last digit its log-ratio is infinite: such rows are left out, and counted."""
    found = record(confident(60.0), 6, link="softmax")
    assert found["verdict"]["level"] == "exact"
    points = sum(each["points"] for each in found["pictures"]["errors"])
    assert 0 < points < 300
    assert f'In the picture "errors" {300 - points} rows are left out: they have no finite answer.' in found["limits"]


def test_a_confident_softmax_has_pictures(record):
    found = record(confident(400.0), 6, link="softmax", steps=["health", "line", "plane"])
    points = len(found["pictures"]["line"]["positions"])
    assert 0 < points < 201
    assert np.shape(found["pictures"]["slice"]["values"]) == (31, 31)
    assert sum("are left out" in sentence for sentence in found["limits"]) == 2


def test_copies_are_measured_on_inputs_that_no_method_drew():
    with open_oracle(NETWORK) as oracle:
        given = audit(oracle, steps=["health"], rng=3).known.given.inputs
    drawn = oracle.facts.domain.sample(np.random.default_rng(3), len(given), 6)
    assert not np.isin(given, drawn).any()


def only_where(fits, otherwise):
    """The network where inputs fit, and something else for the rest."""

    def checked(x):
        return otherwise(NETWORK(x), ~fits(x))

    return checked


def as_nan(values, wrong):
    values[wrong] = np.nan
    return values


def as_error(values, wrong):
    if wrong.any():
        raise ValueError("out of range")
    return values


@pytest.mark.parametrize("otherwise", [as_nan, as_error])
def test_a_target_that_checks_its_range_is_copied_inside_it(record, otherwise):
    """Beyond the range it answers NaN or an error; the audit finds the range, and keeps to it."""
    target = Rows(only_where(lambda x: np.linalg.norm(x, axis=1) <= 50, otherwise))
    found = record(target, 6)
    assert found["target"]["answers only in"] == "[-16, 16] in every coordinate"
    assert found["verdict"]["level"] == "exact"
    assert found["recovered"]["widths"] == [6, 8, 3]
    assert "was asked in [-16, 16] in every coordinate" in found["verdict"]["sentence"]
    assert any("the audit found that range itself" in sentence for sentence in found["limits"])
    assert found["queries"]["by stage"]["reach"]["asked"] == 8 * 10  # 1/16 to 16, and 32, which is not answered
    assert found["queries"]["total"] == target.seen
    assert found["flip"] is not None
    assert found["pictures"]["slice"] is not None


def test_a_range_of_positive_numbers_is_found(record):
    found = record(only_where(lambda x: ((x >= 0) & (x <= 4)).all(axis=1), as_nan), 6, steps=["health", "extraction"])
    assert found["target"]["answers only in"] == "[0, 4] in every coordinate"
    assert found["verdict"]["level"] == "exact"


def test_probabilities_in_a_range_are_asked_where_none_is_certain(record):
    def checked(x):
        return as_nan(confident(60.0)(x), np.abs(x).max(axis=1) > 300)

    found = record(checked, 6, steps=["health", "span", "extraction"])
    assert found["target"]["link"] == "softmax"
    assert found["target"]["answers only in"] != "[-256, 256] in every coordinate"
    assert found["verdict"]["level"] == "exact"


def test_a_served_model_that_refuses_what_is_out_of_range(record):
    from reluctant.testing.server import ModelServer

    with ModelServer(NETWORK, dim=6, accepts=(-10, 10)) as server:
        found = record(server.url, steps=["health", "extraction"])
        assert found["queries"]["total"] == server.rows
    assert found["target"]["answers only in"] == "[-8, 8] in every coordinate"
    assert found["verdict"]["level"] == "exact"


def test_a_target_that_answers_nowhere_has_no_range(record):
    found = record(lambda x: np.full(len(x), np.nan), 6, steps=["health", "extraction"])
    assert found["target"]["answers only in"] is None
    assert found["verdict"]["level"] == "unknown"
    assert found["queries"]["by stage"]["reach"]["asked"] == 16


def test_given_inputs_outside_the_range_are_not_asked(record):
    x = np.random.default_rng(0).uniform(-8, 8, (40, 6))
    x[::2] *= 100
    found = record(only_where(lambda x: np.abs(x).max(axis=1) <= 9, as_error), 6, inputs=x, steps=["health", "line"])
    assert step(found, "line")["state"] == "done"


def test_a_part_of_a_network_is_told(record):
    """Extraction without the rows to end: its first layer is known, and confirmed by questions."""
    from reluctant.report.levels import leaks, level_of
    from reluctant.report.summary import three_figures

    deep = planted((5, 20, 20, 20, 20, 2))
    found = record(deep, steps=["health", "extraction", "part"], budget=30_000)
    assert found["recovered"] is None
    assert found["part"]["confirmed"] == found["part"]["neurons"] == 20
    assert found["part"]["weights"] == 20 * 6
    assert found["verdict"]["level"] == "unknown"
    assert found["verdict"]["sentence"].startswith(
        f"A part of the network can be taken: 20 neurons of its first layer, 120 weights and biases, in "
        f"{found['extraction']['queries']:,} queries; the target bends where they say. What else can be taken"
    )
    assert "Only a part" not in found["verdict"]["sentence"]
    assert found["verdict"]["confidence"].startswith("High for the part: ")
    assert level_of(found).words == "Part of it copied, the rest not decided"
    assert (leaks(found)[0].state, three_figures(found)[0].value) == ("a part of it", "20")


def test_there_is_no_part_beside_a_whole_copy(record):
    found = record(NETWORK)
    assert found["part"] is None
    assert (step(found, "part")["state"], step(found, "part")["queries"]) == ("skipped", 0)


@pytest.mark.parametrize("given", ["identity", "softmax"])
@pytest.mark.parametrize(("noise", "ends"), [(1e-5, {"low-precision"}), (1e-2, {"too-noisy", "out-of-reach"})])
def test_noisy_probabilities_are_not_called_a_wrong_link(given, noise, ends, record):
    """Noise leaves numbers below 0 and rows that do not add up to 1: that is no other link, and no failed target."""
    rng = np.random.default_rng(0)

    def target(x):
        answers = softmax(x)
        return answers + noise * rng.standard_normal(answers.shape)

    found = record(target, 6, steps=["health", "span", "extraction", "learning"], link=given)
    assert step(found, "health")["state"] == "done"
    assert found["extraction"]["outcome"] in ends
    assert "link is not that" not in str(found)
    read = found["target"]["link"] == "softmax"
    assert any("Their noise was put right" in said for said in found["limits"]) == read
    assert "NaN or inf" not in found["verdict"]["sentence"]


def test_noisy_values_are_no_probabilities(record):
    found = record(noisy(NETWORK, 1e-2), 6, steps=["health", "extraction"], link="softmax")
    assert "expected probabilities for link='softmax'" in step(found, "health")["why"]
    assert found["extraction"]["outcome"] == "wrong-link"


def test_few_decimals_of_probabilities_are_told_as_the_reason(record):
    found = record(lambda x: np.round(softmax(x), 3), 6, steps=["health", "extraction", "learning"])
    for tried in ("extraction", "learning"):
        assert step(found, tried)["why"] == "Probabilities rounded to 3 decimals have no creases to find."
    assert "rounded to 3 decimals" in found["verdict"]["sentence"]


def test_far_out_it_is_probabilities_that_end_and_not_the_answers(record):
    found = record(lambda x: np.round(softmax(x), 7), 6, steps=["health", "extraction", "learning"])
    assert found["learning"]["outcome"] == "out-of-reach"
    said = step(found, "learning")["why"]
    assert "its probabilities are certain, to the last digit" in said
    assert "does not answer" not in said
    assert str(_digits(found)) == "Digits in an answer: 7 decimals (of probabilities, read through their softmax)"
    facts = dict(interface_facts(found))
    assert facts["Digits seen"] == "float64, rounded to 7 decimals"  # the interface, and not what was read from it
    assert facts["Largest inputs answered"] != facts["Largest inputs that tell values"]


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_sigmoid_is_looked_behind_or_not_settled(record, outputs, monkeypatch):
    network = planted((6, 8, outputs))
    behind = record(lambda x: expit(network(x)), 6, steps=["health", "extraction"])
    assert (behind["target"]["link"], behind["target"]["link found"]) == ("sigmoid", True)
    assert "extractable" in behind["verdict"]["leaks"]
    monkeypatch.setattr(looking, "_likely_link", lambda oracle, served, seed: None)
    found = record(lambda x: expit(network(x)), 6, steps=["health", "extraction", "learning"])
    assert {"extractable", "approximable"} <= set(found["verdict"]["unsettled"])
    assert found["verdict"]["level"] == "unknown"
    assert "--link sigmoid" in found["verdict"]["sentence"]
