"""What a check says of answers that are no plain values, and of what extraction would do with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reluctant import DepthTwo, ReLUNetwork, check_health, extract, learn, open_oracle
from reluctant.defenses import defend
from reluctant.extraction.prospects import IN_A_BOX, WITH_FEW_DIGITS, too_few_digits, what_extraction_would_do
from reluctant.interface import Shape
from reluctant.interface.diagnoses import too_noisy
from reluctant.interface.digits import UNIFORM_SD, Behind
from reluctant.networks.onnx import write_onnx
from reluctant.oracles import Kind
from reluctant.results import Outcome
from reluctant.testing import in_float32, planted

NETWORK = planted((6, 8, 3))


def one_hot(x):
    return np.eye(3)[NETWORK(x).argmax(axis=1)]


def softmax(x):
    powers = np.exp(NETWORK(x) - NETWORK(x).max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("rng", range(5))
def test_one_hot_answers_are_labels_without_digits(rng):
    health = check_health(open_oracle(one_hot, dim=6), rng=rng)
    assert (health.answers, health.refusal) == (Kind.LABELS, Outcome.PIECEWISE_CONSTANT)
    said = " ".join(health.sentences())
    assert "The answers look like labels." in said
    for wrong in ("clipped", "not rounded", "Noise floor", "float"):
        assert wrong not in said


def test_probabilities_saturate_and_are_not_called_straight():
    health = check_health(open_oracle(softmax, dim=6))
    assert (health.answers, health.shape) == (Kind.PROBABILITIES, Shape.SMOOTH)
    assert health.constant_beyond is not None
    assert f"beyond scale {health.constant_beyond:g}: they saturate." in " ".join(health.sentences())
    hidden = replace(health, shape=Shape.PIECEWISE_LINEAR)
    assert hidden.refusal is Outcome.NOT_PIECEWISE_LINEAR
    assert "linear" not in hidden.sentences()[0]
    assert "curved, by less than their noise" in hidden.sentences()[0]


def sigmoid(x):
    return (1 + np.tanh(NETWORK(x) / 2)) / 2


SERVED = {
    "float32 softmax": (lambda x: softmax(x).astype(np.float32), "softmax", "link='softmax' (reluctant extract --link"),
    "softmax, three decimals": (lambda x: np.round(softmax(x), 3), "softmax", "probabilities rounded to 3 decimals"),
    "sigmoid": (sigmoid, "sigmoid", "link='sigmoid' (reluctant extract --link sigmoid"),
    "one-hot": (one_hot, None, "The answers are labels"),
}


@pytest.mark.parametrize("name", SERVED)
def test_a_refusal_is_one_true_reason_with_advice_that_works(name):
    """What is advised is done: extraction through the link recovers the network, or the advice is another."""
    target, link, reason = SERVED[name]
    said = check_health(open_oracle(target, dim=6)).sentences()[0]
    assert reason in said
    assert not ("linear" in said and "curved" in said.replace("ReLU", ""))
    assert "Ask for" not in said
    if "reluctant extract" in said:
        assert extract(open_oracle(target, dim=6, link=link)).ok
    else:
        assert "rl.train_student" in said


@pytest.mark.parametrize("method", [extract, learn])
def test_coarse_probabilities_behind_a_link_are_named_at_once(method):
    oracle = open_oracle(lambda x: np.round(softmax(x), 3), dim=6, link="softmax")
    found = method(oracle)
    assert found.outcome is Outcome.LOW_PRECISION
    assert found.evidence["reason"].startswith("The probabilities behind the link are rounded to 3 decimals.")
    assert oracle.queries == 69  # the opening row and the health check
    health = found.evidence["health"]
    assert health.noise.absolute > UNIFORM_SD * 1e-3  # of the log-ratios, which short lines do not see
    assert "Values were read from probabilities rounded to 3 decimals." in health.sentences()
    assert "would refuse" in what_extraction_would_do(health, oracle)


@pytest.mark.parametrize(("decimals", "said"), [(6, "cannot be read"), (7, "may not recover"), (12, "may not recover")])
def test_decimals_that_may_do_are_not_said_to_be_too_few(decimals, said):
    def target(x):
        return np.round(softmax(x), decimals)

    assert said in check_health(open_oracle(target, dim=6)).reason
    assert check_health(open_oracle(target, dim=6, link="softmax")).behind.too_coarse == (decimals < 7)


def test_twelve_decimals_behind_a_link_are_tried():
    assert extract(open_oracle(lambda x: np.round(softmax(x), 12), dim=6, link="softmax")).ok


def test_one_class_that_is_always_certain_is_not_said_to_be_a_label():
    """A sigmoid far from its threshold answers 1 as well."""
    found = extract(open_oracle(lambda x: 1 / (1 + np.exp(-90 - x[:, :1] / 1e6)), dim=6, link="sigmoid"))
    assert found.outcome is Outcome.WRONG_LINK
    assert "The target answers labels" not in found.evidence["error"]
    assert "They are the same at all of them" in found.evidence["error"]


@pytest.mark.parametrize("link", ["softmax", "sigmoid", "top-k"])
def test_labels_behind_a_link_are_named(link):
    found = extract(open_oracle(one_hot, dim=6, link=link))
    assert found.outcome is Outcome.WRONG_LINK
    assert "The target answers labels" in found.evidence["error"]
    said = " ".join(check_health(open_oracle(one_hot, dim=6, link=link)).sentences())
    assert "Labels are like that, and no link can read them" in said
    assert "nan" not in said


def test_probabilities_that_saturate_at_the_scale_of_use_are_no_labels():
    """All certain where they are first asked, and not nearer to the origin."""
    sharp = planted((6, 8, 3))
    steep = ReLUNetwork([*sharp.weights[:-1], 3e4 * sharp.weights[-1]], [*sharp.biases[:-1], 3e4 * sharp.biases[-1]])

    def answers(x):
        z = steep(x) - steep(np.zeros((1, 6)))
        powers = np.exp(z - z.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    oracle = open_oracle(answers, dim=6, link="softmax")
    assert check_health(oracle).behind.certain
    assert extract(oracle).outcome is Outcome.OUT_OF_REACH


def test_nearly_certain_probabilities_are_not_rounded_ones():
    """In float32 they lie so near to 0 and 1 that a grid of one decimal would hold them all."""
    p = np.tile(np.array([[1 - 2e-7, 1e-7, 1e-7], [3e-8, 1 - 4e-8, 1e-8]], dtype=np.float32), (3, 1))
    oracle = open_oracle(lambda x: p[: len(x)], dim=6, link="softmax")
    oracle.query(np.zeros((6, 6)))
    assert Behind.last_of(oracle).decimals is None


def test_learning_behind_a_link_points_to_extraction():
    found = learn(open_oracle(softmax, dim=6, link="softmax"))
    assert found.outcome is Outcome.OUT_OF_REACH
    assert "Use extract" in found.evidence["reason"]
    assert found.queries == 68


SQUEEZED = planted((6, 8, 1))


def sigmoid_of_one(x):
    return (1 + np.tanh(SQUEEZED(x) / 2)) / 2


SIGMOIDS = {
    "float64": (sigmoid_of_one, "link='sigmoid' (reluctant extract --link sigmoid"),
    "float32": (
        lambda x: sigmoid_of_one(x).astype(np.float32),
        "of a sigmoid in float32. Without all digits",
    ),
}


@pytest.mark.parametrize("name", SIGMOIDS)
def test_a_sigmoid_is_known_by_its_lines_and_its_advice_works(name):
    """Lines that are straight as log-odds, and not as answered."""
    target, said = SIGMOIDS[name]
    health = check_health(open_oracle(target, dim=6))
    assert health.refusal is Outcome.NOT_PIECEWISE_LINEAR
    assert said in health.reason
    assert "they saturate" in " ".join(health.sentences())
    if "reluctant extract" in health.reason:
        assert extract(open_oracle(target, dim=6, link="sigmoid")).ok
    else:
        assert extract(open_oracle(target, dim=6)).queries < 100  # nothing is spent on it
        assert "rl.train_student" in health.reason


@pytest.mark.parametrize("decimals", [2, 4])
def test_a_sigmoid_that_few_digits_do_not_tell_is_told_as_a_possibility(decimals):
    """Values that are clipped may look the same: it is not refused."""
    health = check_health(open_oracle(lambda x: np.round(sigmoid_of_one(x), decimals), dim=6))
    assert health.refusal is None
    assert health.may_be_sigmoids
    assert "may be probabilities of a sigmoid" in " ".join(health.sentences())
    assert "--link sigmoid" in " ".join(health.sentences())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("decimals", [2, 3, 4, 6, None])
def test_values_that_are_clipped_are_not_called_sigmoids(decimals, seed):
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(5)

    def clipped(x):
        values = np.clip(0.5 + 0.1 * (x @ w), 0, 1)[:, None]
        return values if decimals is None else np.round(values, decimals)

    health = check_health(open_oracle(clipped, dim=5), rng=seed)
    assert not health.are_probabilities
    assert health.refusal is not Outcome.NOT_PIECEWISE_LINEAR


@pytest.mark.parametrize("decimals", [1, 2, 4])
@pytest.mark.parametrize("method", [extract, learn])
def test_rounding_behind_one_sigmoid_is_named_at_once(method, decimals):
    """Of all rows that were asked: a few alone have too few different answers."""
    found = method(open_oracle(lambda x: np.round(sigmoid_of_one(x), decimals), dim=6, link="sigmoid"))
    assert found.outcome is Outcome.LOW_PRECISION
    assert f"The probabilities behind the link are rounded to {decimals} decimal" in found.evidence["reason"]
    assert found.queries == 68


@pytest.mark.parametrize("rng", range(3))
def test_learning_from_noisy_probabilities_names_the_noise(rng):
    noise = np.random.default_rng(rng)
    noisy_ones = lambda x: np.clip(sigmoid_of_one(x) + 1e-3 * noise.standard_normal((len(x), 1)), 0, 1)  # noqa: E731
    found = learn(open_oracle(noisy_ones, dim=6, link="sigmoid"), rng=rng)
    assert found.outcome is Outcome.LOW_PRECISION
    assert "change by" in found.evidence["reason"]


@pytest.mark.parametrize("link", ["identity", "softmax"])
def test_noisy_probabilities_are_not_said_to_be_readable(link):
    rng = np.random.default_rng(0)
    found = extract(open_oracle(lambda x: softmax(x) + 1e-3 * rng.standard_normal((len(x), 3)), dim=6, link=link))
    assert not found.ok
    said = found.evidence["health"].reason if link == "identity" else found.evidence["error"]
    assert "noise" in said
    assert "Read them" not in said


FILES = {"values": ("identity", 1), "sigmoid": ("sigmoid", 1), "softmax": ("softmax", 3)}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("defense", [None, "decimals=3", "float32", "gaussian=1e-4,fixed"])
def test_more_digits_are_advised_where_there_are_any_and_with_the_link(name, defense, tmp_path):
    """A file in float32 has more, whatever its link; one behind a defense that takes them away does not."""
    link, outputs = FILES[name]
    network = planted((6, 8, outputs), 2)
    write_onnx(ReLUNetwork(network.weights, network.biases, None, link), tmp_path / "file.onnx", "float32")
    opened = open_oracle(tmp_path / "file.onnx")
    opened = opened if defense is None else open_oracle(defend(opened, defense))
    health = check_health(opened)
    said = " ".join([health.reason, what_extraction_would_do(health, opened)])
    assert ("precision='float64'" in said) == (defense is None)
    if defense is None:
        assert link == "identity" or f"--link {link} --precision float64" in said
        assert extract(open_oracle(tmp_path / "file.onnx", link=link, precision="float64")).ok


def test_noise_that_stays_the_same_is_not_cured_by_more_digits(tmp_path):
    write_onnx(planted((6, 8, 1), 2), tmp_path / "file.onnx", "float32")
    plain = open_oracle(tmp_path / "file.onnx")
    for target, advice in ((defend(plain, "gaussian=1e-4,fixed"), False), (plain, True)):
        found = extract(open_oracle(target), DepthTwo())
        assert found.outcome is Outcome.LOW_PRECISION
        assert ("precision='float64'" in found.evidence["reason"]) == advice


def test_training_is_advised_without_the_link_where_there_is_one():
    health = check_health(open_oracle(NETWORK.__call__, dim=6))
    for behind, advice in ((None, "trained on them (rl"), (Behind(7, 1e-7), "trained on them, without the link (rl")):
        for deterministic in (True, False):
            said = replace(health, behind=behind, deterministic=deterministic, decimals=7)
            for words in (too_few_digits(said, tried=True), too_noisy(said)):
                assert advice in words
                assert ("span --labels" in words) == deterministic


def test_float16_is_not_said_to_be_decimals():
    said = " ".join(check_health(open_oracle(lambda x: SQUEEZED(x).astype(np.float16), dim=6)).sentences())
    assert "Answers fit float16, not rounded." in said


def squeezed(x):
    return 0.5 + SQUEEZED(np.clip(x, -1, 1)) / 8


VALUES = {
    "float64": squeezed,
    "float32": lambda x: squeezed(x).astype(np.float32),
    "three decimals": lambda x: np.round(squeezed(x), 3),
    "one step": lambda x: np.clip(x[:, :1], 0, 1).astype(np.float32),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("rng", range(5))
def test_values_between_0_and_1_are_no_sigmoids(name, rng):
    """Also where inputs are clipped, so that they are the same however far out they are asked."""
    health = check_health(open_oracle(VALUES[name], dim=6), rng=rng)
    assert health.unit
    assert not health.sigmoids
    assert "sigmoid" not in " ".join(health.sentences())


@pytest.mark.parametrize(("decimals", "outputs"), [(2, 3), (1, 3), (2, 10), (1, 10)])
def test_coarse_probabilities_are_known_though_they_do_not_add_up(decimals, outputs):
    network = planted((6, 8, outputs))

    def target(x):
        powers = np.exp(network(x) - network(x).max(axis=1, keepdims=True))
        return np.round(powers / powers.sum(axis=1, keepdims=True), decimals)

    assert "rounded to" in check_health(open_oracle(target, dim=6)).reason
    for link in ("identity", "softmax"):
        found = extract(open_oracle(target, dim=6, link=link))
        unread = (Outcome.NOT_PIECEWISE_LINEAR, Outcome.TOO_NOISY)  # by what rounding leaves of their spread
        assert found.outcome in ((Outcome.LOW_PRECISION,) if link == "softmax" else unread)
        assert found.queries < 100
        assert "float64" not in found.evidence.get("reason", "")


def test_noise_that_no_box_helps_against_is_told_before_extraction():
    rng = np.random.default_rng(0)
    target = lambda x: np.clip(sigmoid_of_one(x) + 1e-3 * rng.standard_normal((len(x), 1)), 0, 1)  # noqa: E731
    oracle = open_oracle(target, dim=6, link="sigmoid")
    said = what_extraction_would_do(check_health(oracle), oracle)
    assert said.startswith("Exact extraction would refuse this target. The values read through the link change by")
    found = extract(open_oracle(target, dim=6, link="sigmoid"))
    assert found.outcome in (Outcome.LOW_PRECISION, Outcome.TOO_NOISY)
    assert found.queries < 500


TARGETS = {
    "float32": (in_float32(NETWORK), {}, WITH_FEW_DIGITS),
    "three decimals": (lambda x: np.round(NETWORK(x), 3), {}, WITH_FEW_DIGITS),
    "probabilities": (softmax, {"link": "softmax"}, IN_A_BOX),
    "float16": (lambda x: NETWORK(x).astype(np.float16), {}, None),
    "float64": (NETWORK.__call__, {}, ""),
}


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_said_of_extraction_is_what_it_does(name):
    """A target that it recovers is not said to be refused; one that it refuses is told so."""
    target, opening, said = TARGETS[name]
    health = check_health(open_oracle(target, dim=6, **opening))
    expected = what_extraction_would_do(health, open_oracle(target, dim=6, **opening))
    found = extract(open_oracle(target, dim=6, **opening))
    if said is None:
        assert expected.startswith("Exact extraction would refuse this target.")
        assert expected.endswith(found.evidence["reason"])
    else:
        assert expected == said
        assert found.ok
