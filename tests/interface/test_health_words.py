"""Why answers that are no plain values are refused, with which remedies, and what extraction would do with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sweeps import sweep

from reluctant import DepthTwo, ReLUNetwork, check_health, extract, learn, open_oracle
from reluctant.defenses import defend
from reluctant.interface import Shape
from reluctant.interface.diagnoses import hidden_structure, too_few_digits
from reluctant.interface.noise import UNIFORM_SD, RawDigits
from reluctant.networks.onnx import write_onnx
from reluctant.oracles import Kind
from reluctant.results import Outcome
from reluctant.testing import in_float32, planted

NETWORK = planted((6, 8, 3))


def slugs(diagnoses):
    return [each.slug for each in diagnoses]


def purposes(diagnosis):
    return [remedy.purpose for remedy in diagnosis.remedies]


def verbs(diagnosis):
    return [remedy.verb for remedy in diagnosis.remedies]


def options(diagnosis):
    """Options of all remedies together."""
    return {name: value for remedy in diagnosis.remedies for name, value in remedy.options.items()}


def one_hot(x):
    return np.eye(3)[NETWORK(x).argmax(axis=1)]


def softmax(x):
    powers = np.exp(NETWORK(x) - NETWORK(x).max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("rng", range(5))
def test_one_hot_answers_are_labels_without_digits(rng):
    health = check_health(open_oracle(one_hot, dim=6), rng=rng)
    assert (health.answers, health.refusal) == (Kind.LABELS, Outcome.PIECEWISE_CONSTANT)
    assert slugs(health.findings()) == ["answers-are-labels", "deterministic"]


def test_probabilities_saturate_and_are_not_called_straight():
    health = check_health(open_oracle(softmax, dim=6))
    assert (health.answers, health.shape) == (Kind.PROBABILITIES, Shape.SMOOTH)
    assert health.constant_beyond is not None
    assert health.findings()[-1].fields == {"scale": health.constant_beyond, "why": "saturated"}
    hidden = replace(health, shape=Shape.PIECEWISE_LINEAR)
    assert hidden.refusal is Outcome.NOT_PIECEWISE_LINEAR
    assert "shape" not in slugs(hidden.findings())
    assert hidden.diagnosis.slug == "answers-of-link"
    assert hidden.diagnosis.fields["hidden"]


def sigmoid(x):
    return (1 + np.tanh(NETWORK(x) / 2)) / 2


SERVED = {
    "float32 softmax": (lambda x: softmax(x).astype(np.float32), "softmax", "answers-of-link"),
    "softmax, three decimals": (lambda x: np.round(softmax(x), 3), None, "link-too-coarse"),
    "sigmoid": (sigmoid, "sigmoid", "answers-of-link"),
    "one-hot": (one_hot, None, "answers-are-labels"),
}


@pytest.mark.parametrize("name", SERVED)
def test_a_refusal_is_one_true_reason_with_advice_that_works(name):
    """What is advised is done: extraction through the link recovers the network, or the advice is another."""
    target, link, slug = SERVED[name]
    found = check_health(open_oracle(target, dim=6)).diagnosis
    assert found.slug == slug
    if link is None:
        assert verbs(found) == ["train", "span"]
    else:
        assert options(found) == {"link": link}
        assert extract(open_oracle(target, dim=6, link=link)).ok


@pytest.mark.parametrize(("method", "decimals"), [(extract, 2), (learn, 3)])
def test_coarse_probabilities_behind_a_link_are_named_at_once(method, decimals):
    oracle = open_oracle(lambda x: np.round(softmax(x), decimals), dim=6, link="softmax")
    found = method(oracle)
    assert found.outcome is Outcome.LOW_PRECISION
    assert found.diagnosis.slug == "values-unreadable"
    assert (found.diagnosis.fields["link"], found.diagnosis.fields["decimals"]) == ("softmax", decimals)
    assert oracle.queries == 69  # the opening row and the health check
    health = found.evidence["health"]
    assert health.noise.absolute > UNIFORM_SD * 1e-3  # of the log-ratios, which short lines do not see
    assert "digits-behind-link" in slugs(health.findings())
    assert slugs(health.prospects) == ["would-refuse" if decimals < 3 else "fits-probabilities"]


@pytest.mark.parametrize(
    ("decimals", "slug"), [(6, "link-too-coarse"), (7, "link-few-digits"), (12, "link-few-digits")]
)
def test_decimals_that_may_do_are_not_said_to_be_too_few(decimals, slug):
    def target(x):
        return np.round(softmax(x), decimals)

    assert check_health(open_oracle(target, dim=6)).diagnosis.slug == slug
    assert check_health(open_oracle(target, dim=6, link="softmax")).raw.too_coarse == (decimals < 7)


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
    health = check_health(open_oracle(one_hot, dim=6, link=link))
    assert health.diagnosis.slug == "nothing-behind-link"
    assert health.diagnosis.remedies[0].options == {"link": "identity"}
    assert "nan" not in str(health)


def test_probabilities_that_saturate_at_the_scale_of_use_are_no_labels():
    """All certain where they are first asked, and not nearer to the origin."""
    sharp = planted((6, 8, 3))
    steep = ReLUNetwork([*sharp.weights[:-1], 3e4 * sharp.weights[-1]], [*sharp.biases[:-1], 3e4 * sharp.biases[-1]])

    def answers(x):
        z = steep(x) - steep(np.zeros((1, 6)))
        powers = np.exp(z - z.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    oracle = open_oracle(answers, dim=6, link="softmax")
    assert check_health(oracle).raw.certain
    assert extract(oracle).outcome is Outcome.OUT_OF_REACH


def test_nearly_certain_probabilities_are_not_rounded_ones():
    """In float32 they lie so near to 0 and 1 that a grid of one decimal would hold them all."""
    p = np.tile(np.array([[1 - 2e-7, 1e-7, 1e-7], [3e-8, 1 - 4e-8, 1e-8]], dtype=np.float32), (3, 1))
    oracle = open_oracle(lambda x: p[: len(x)], dim=6, link="softmax")
    oracle.query(np.zeros((6, 6)))
    assert RawDigits.last_of(oracle).decimals is None


def test_learning_behind_a_link_points_to_extraction():
    found = learn(open_oracle(softmax, dim=6, link="softmax"))
    assert found.outcome is Outcome.OUT_OF_REACH
    assert (found.diagnosis.slug, verbs(found.diagnosis)) == ("saturates-in-space", ["extract"])
    assert found.queries == 68


SQUEEZED = planted((6, 8, 1))


def sigmoid_of_one(x):
    return (1 + np.tanh(SQUEEZED(x) / 2)) / 2


SIGMOIDS = {
    "float64": (sigmoid_of_one, "answers-of-link"),
    "float32": (lambda x: sigmoid_of_one(x).astype(np.float32), "link-few-digits"),
}


@pytest.mark.parametrize("name", sweep(SIGMOIDS, fast=SIGMOIDS.keys() - {"float32"}))
def test_a_sigmoid_is_known_by_its_lines_and_its_advice_works(name):
    """Lines that are straight as log-odds, and not as answered."""
    target, slug = SIGMOIDS[name]
    health = check_health(open_oracle(target, dim=6))
    assert health.refusal is Outcome.NOT_PIECEWISE_LINEAR
    assert (health.diagnosis.slug, health.diagnosis.fields["kind"]) == (slug, "sigmoid")
    assert {"scale": health.constant_beyond, "why": "saturated"} in [each.fields for each in health.findings()]
    if slug == "answers-of-link":
        assert options(health.diagnosis) == {"link": "sigmoid"}
        assert extract(open_oracle(target, dim=6, link="sigmoid")).ok
    else:
        assert extract(open_oracle(target, dim=6)).evidence["found link"] == "sigmoid"  # found by itself, and enough
        assert health.diagnosis.fields["number_format"] == "float32"
        assert verbs(health.diagnosis) == ["train", "extract"]


@pytest.mark.parametrize("decimals", [2, 4])
def test_a_sigmoid_that_few_digits_do_not_tell_is_told_as_a_possibility(decimals):
    """Values that are clipped may look the same: it is not refused."""
    health = check_health(open_oracle(lambda x: np.round(sigmoid_of_one(x), decimals), dim=6))
    assert health.refusal is None
    assert health.may_be_sigmoids
    assert health.findings()[-1].slug == "ends-at-0-and-1"
    assert options(health.findings()[-1]) == {"link": "sigmoid"}


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


@pytest.mark.parametrize(("method", "decimals"), [(extract, 1), (extract, 2), (learn, 1), (learn, 2), (learn, 4)])
def test_rounding_behind_one_sigmoid_is_named_at_once(method, decimals):
    """Of all rows that were asked: a few alone have too few different answers."""
    found = method(open_oracle(lambda x: np.round(sigmoid_of_one(x), decimals), dim=6, link="sigmoid"))
    assert found.outcome is Outcome.LOW_PRECISION
    assert (found.diagnosis.slug, found.diagnosis.fields["decimals"]) == ("values-unreadable", decimals)
    assert found.queries == 68


@pytest.mark.parametrize("rng", range(3))
def test_learning_from_noisy_probabilities_names_the_noise(rng):
    noise = np.random.default_rng(rng)
    noisy_ones = lambda x: np.clip(sigmoid_of_one(x) + 1e-3 * noise.standard_normal((len(x), 1)), 0, 1)  # noqa: E731
    found = learn(open_oracle(noisy_ones, dim=6, link="sigmoid"), rng=rng)
    assert found.outcome is Outcome.LOW_PRECISION
    assert (found.diagnosis.slug, found.diagnosis.fields["limit"]) == ("too-few-digits", "fresh-noise")


@pytest.mark.parametrize("link", ["identity", "softmax"])
def test_noisy_probabilities_are_not_said_to_be_readable(link):
    rng = np.random.default_rng(0)
    found = extract(open_oracle(lambda x: softmax(x) + 1e-3 * rng.standard_normal((len(x), 3)), dim=6, link=link))
    assert not found.ok
    if link == "identity":
        assert found.diagnosis.slug == "link-too-noisy"
        assert verbs(found.diagnosis) == ["train"]
    else:
        assert "noise" in found.evidence["error"]


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
    found = [*([] if health.diagnosis is None else [health.diagnosis]), *health.prospects]
    advised = [options(each) for each in found if "precision" in options(each)]
    assert bool(advised) == (defense is None)
    if defense is None:
        assert link == "identity" or advised == [{"link": link, "precision": "float64"}]
        assert extract(open_oracle(tmp_path / "file.onnx", link=link, precision="float64")).ok


def test_noise_that_stays_the_same_is_not_cured_by_more_digits(tmp_path):
    write_onnx(planted((6, 8, 1), 2), tmp_path / "file.onnx", "float32")
    plain = open_oracle(tmp_path / "file.onnx")
    for target, advice in ((defend(plain, "gaussian=1e-4,fixed"), False), (plain, True)):
        found = extract(open_oracle(target), DepthTwo())
        assert found.outcome is Outcome.LOW_PRECISION
        assert ("precision" in options(found.diagnosis)) == advice


def test_training_is_advised_without_the_link_where_there_is_one():
    health = check_health(open_oracle(NETWORK.__call__, dim=6))
    for behind, unlinked in ((None, {}), (RawDigits(7, 1e-7), {"link": "identity"})):
        for deterministic in (True, False):
            coarse = replace(health, raw=behind, deterministic=deterministic, decimals=7)
            for found in (too_few_digits(coarse, tried=True), hidden_structure(coarse)):
                assert found.remedies[0].options == unlinked
                assert purposes(found) == ["train", "span-from-labels"][: 1 + deterministic]


def test_float16_is_not_said_to_be_decimals():
    found = check_health(open_oracle(lambda x: SQUEEZED(x).astype(np.float16), dim=6)).findings()
    assert {"number_format": "float16", "decimals": None} in [each.fields for each in found]


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
    assert "sigmoid" not in str(health)


@pytest.mark.parametrize(("decimals", "outputs"), [(2, 3), (1, 3), (2, 10), (1, 10)])
def test_coarse_probabilities_are_known_though_they_do_not_add_up(decimals, outputs):
    network = planted((6, 8, outputs))

    def target(x):
        powers = np.exp(network(x) - network(x).max(axis=1, keepdims=True))
        return np.round(powers / powers.sum(axis=1, keepdims=True), decimals)

    assert check_health(open_oracle(target, dim=6)).diagnosis.fields["decimals"] == decimals
    for link in ("identity", "softmax"):
        found = extract(open_oracle(target, dim=6, link=link))
        unread = (Outcome.NOT_PIECEWISE_LINEAR, Outcome.TOO_NOISY)  # by what rounding leaves of their spread
        assert found.outcome in ((Outcome.LOW_PRECISION,) if link == "softmax" else unread)
        assert found.queries < 100
        assert "precision" not in options(found.diagnosis)


def test_noise_that_no_box_helps_against_is_told_before_extraction():
    rng = np.random.default_rng(0)
    target = lambda x: np.clip(sigmoid_of_one(x) + 1e-3 * rng.standard_normal((len(x), 1)), 0, 1)  # noqa: E731
    oracle = open_oracle(target, dim=6, link="sigmoid")
    refused, why = check_health(oracle).prospects
    assert (refused.slug, why.slug, why.fields["limit"]) == ("would-refuse", "too-few-digits", "fresh-noise")
    found = extract(open_oracle(target, dim=6, link="sigmoid"))
    assert found.outcome in (Outcome.LOW_PRECISION, Outcome.TOO_NOISY)
    assert found.queries < 500


TARGETS = {
    "float32": (in_float32(NETWORK), {}, ["with-few-digits"]),
    "three decimals": (lambda x: np.round(NETWORK(x), 3), {}, ["with-few-digits"]),
    "probabilities": (softmax, {"link": "softmax"}, ["inside-a-box"]),
    "float16": (lambda x: NETWORK(x).astype(np.float16), {}, ["would-refuse", "too-few-digits"]),
    "float64": (NETWORK.__call__, {}, ["exact-weights"]),
}


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_said_of_extraction_is_what_it_does(name):
    """A target that it recovers is not said to be refused; one that it refuses is told so."""
    target, opening, slugs_expected = TARGETS[name]
    health = check_health(open_oracle(target, dim=6, **opening))
    expected = health.prospects
    found = extract(open_oracle(target, dim=6, **opening))
    assert slugs(expected) == slugs_expected
    assert found.ok == ("would-refuse" not in slugs_expected)
    if not found.ok:
        assert found.diagnosis == expected[-1]
