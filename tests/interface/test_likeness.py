"""What a check takes answers for: percentages, the largest probabilities, and curves that are none of these."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.special import expit, softmax

from reluctant import check_health, extract, open_oracle
from reluctant.interface import Shape
from reluctant.interface.kinds import _Straightness
from reluctant.interface.noise import RawDigits
from reluctant.oracles import Kind
from reluctant.results import Outcome
from reluctant.testing import planted

NETWORK, ONE, TWO = planted((6, 8, 3)), planted((6, 8, 1)), planted((6, 8, 2))


def classes(x, network=NETWORK):
    return softmax(network(x), axis=1)


def largest(x, k=1, network=NETWORK, untold=0.0):
    p = classes(x, network)
    return np.where(p >= np.sort(p, axis=1)[:, [-k]], p, untold)


def checked(target, rng=0, **opening):
    return check_health(open_oracle(target, dim=6, **opening), rng=rng)


@pytest.mark.parametrize("digits", [lambda p: p, np.float32, partial(np.round, decimals=3)])
def test_the_largest_probability_alone_is_named(digits, seed):
    health = checked(lambda x: digits(largest(x)), rng=seed)
    assert (health.answers, health.top_k) == (Kind.PROBABILITIES, (1, 3))
    assert health.refusal is Outcome.NOT_PIECEWISE_LINEAR
    assert health.diagnosis.slug == "top-k-incomplete"
    assert health.diagnosis.fields == {"kind": "top-k", "largest": 1, "classes": 3, "percent": False}
    assert [remedy.verb for remedy in health.diagnosis.remedies] == ["train"]
    assert "sigmoid" not in str(health)


@pytest.mark.parametrize(("k", "network"), [(2, NETWORK), (1, TWO)])
def test_all_but_one_are_read_through_their_link_as_advised(k, network):
    health = checked(partial(largest, k=k, network=network))
    assert (health.diagnosis.slug, health.diagnosis.fields["largest"]) == ("answers-of-link", k)
    assert [remedy.options for remedy in health.diagnosis.remedies] == [{"link": "top-k"}]
    assert extract(open_oracle(partial(largest, k=k, network=network), dim=6, link="top-k")).ok


@pytest.mark.parametrize("seed", [10, 30])
def test_one_output_among_0s_inside_a_box_is_a_value(seed):
    network = planted((5, 7, 3), seed)
    oracle = open_oracle(lambda x: np.maximum(network(x), 0), dim=5, domain=(-1, 1))
    assert check_health(oracle, rng=seed).refusal is None


def test_nan_for_what_is_not_told_is_named():
    health = checked(partial(largest, untold=np.nan))
    assert (health.top_k, health.refusal) == ((1, 3), Outcome.NON_FINITE)
    assert (health.diagnosis.slug, health.diagnosis.fields["classes"]) == ("missing-is-nan", 3)


@pytest.mark.parametrize("seed", range(5))
def test_a_largest_probability_in_one_output_is_no_sigmoid(seed):
    """Its log-odds are curved as well, and no step is so short that they are not."""
    health = checked(lambda x: classes(x).max(axis=1), rng=seed)
    assert health.shape is Shape.SMOOTH
    assert (health.sigmoids, health.like_sigmoids, health.curved_odds) == (False, False, True)
    assert health.diagnosis.slug == "not-piecewise-linear"


@pytest.mark.parametrize("seed", range(5))
def test_a_sigmoid_of_many_creases_is_one(seed):
    """Short steps meet some of them, and the shortest do not."""
    wide = planted((6, 2000, 1))
    health = checked(lambda x: expit(wide(x) / 30), rng=seed)
    assert health.sigmoids
    assert not health.curved_odds


def test_a_few_curves_by_chance_do_not_speak_against_many_straight_lines():
    assert _Straightness(as_log_odds=9, as_answered=0, curved=3).of_sigmoids
    assert not _Straightness(as_log_odds=3, as_answered=0, curved=9).of_sigmoids


def test_the_noise_of_a_probability_that_follows_from_the_others():
    """What is left next to 1 has lost most of the digits of float32."""
    p = np.float32(np.tile([[0.999, 0.001]], (20, 1)) + np.linspace(0, 1e-4, 20)[:, None] * [-1, 1]).astype(float)
    both, one = (RawDigits.of(told, "softmax", ratios=True).noise for told in (p, p * [1, 0]))
    assert 500 < one / both < 2000


PERCENT = {
    "softmax": (lambda x: 100 * classes(x), "answers-of-link", "softmax", None),
    "softmax in float32": (lambda x: (100 * classes(x)).astype(np.float32), "answers-of-link", "softmax", None),
    "softmax, 1 decimal": (lambda x: np.round(100 * classes(x), 1), "link-too-coarse", "softmax", 1),
    "softmax, whole": (lambda x: np.round(100 * classes(x)), "link-too-coarse", "softmax", 0),
    "sigmoid": (lambda x: 100 * expit(ONE(x)), "answers-of-link", "sigmoid", None),
    "sigmoids": (lambda x: 100 * expit(NETWORK(x)), "answers-of-link", "sigmoid", None),
    "largest": (lambda x: 100 * largest(x), "top-k-incomplete", "top-k", None),
}


@pytest.mark.parametrize("name", PERCENT)
def test_percentages_are_named_and_advice_works(name):
    target, slug, kind, decimals = PERCENT[name]
    health = checked(target)
    assert health.percent
    found = health.diagnosis
    assert (found.slug, found.fields["kind"], found.fields.get("decimals")) == (slug, kind, decimals)
    assert found.fields["percent"]
    if slug == "answers-of-link":
        assert [remedy.options for remedy in found.remedies] == [{"link": kind, "percent": True}]
        assert extract(open_oracle(target, dim=6, percent=True, link=kind)).ok


@pytest.mark.parametrize(("decimals", "slug"), [(4, "link-too-coarse"), (5, "link-few-digits")])
def test_decimals_of_percentages_count_as_those_of_fractions(decimals, slug):
    assert checked(lambda x: np.round(100 * classes(x), decimals)).diagnosis.slug == slug


def test_clipped_values_up_to_100_may_be_percentages_and_are_not_called_so():
    health = checked(lambda x: np.clip(np.round(50 + 10 * ONE(x), 1), 0, 100))
    assert (health.answers, health.refusal) == (Kind.VALUES, None)
    assert not health.are_probabilities
    assert {"top": 100.0, "percent": True} in [each.fields for each in health.findings()]


OTHERS = {
    "values": NETWORK,
    "values between 0 and 60": lambda x: np.clip(20 * NETWORK(x), 0, 60),
    "softmax": classes,
    "sigmoid": lambda x: expit(ONE(x)),
    "twice a sigmoid": lambda x: 2 * expit(ONE(x)),
    "a thousand times a softmax": lambda x: 1000 * classes(x),
    "labels": lambda x: NETWORK(x).argmax(axis=1),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_answers_are_no_percentages(name, seed):
    health = checked(OTHERS[name], rng=seed)
    assert not health.percent
    assert health.top_k is None
    assert "percent" not in str(health)
