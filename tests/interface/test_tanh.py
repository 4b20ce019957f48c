"""Answers of a tanh are known by their halves, and curves that only look like one are not taken for it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.special import erf

from reluctant import Outcome, check_health, extract, open_oracle
from reluctant.interface.noise import RawDigits
from reluctant.testing import planted

ONE, NETWORK = planted((6, 8, 1)), planted((6, 8, 3))


def checked(target, rng=0, **opening):
    return check_health(open_oracle(target, dim=6, **opening), rng=rng)


TANH = {
    "one output": (ONE, 1.0, {}),
    "several": (NETWORK, 1.0, {}),
    "steep": (ONE, 6.0, {}),
    "in a box": (NETWORK, 1.0, {"domain": (-1, 1)}),
}


@pytest.mark.parametrize("name", TANH)
def test_a_tanh_is_named_with_its_link(name, seed):
    network, scale, opening = TANH[name]
    health = checked(lambda x: np.tanh(scale * network(x)), rng=seed, **opening)
    assert health.tanh
    assert health.refusal is Outcome.NOT_PIECEWISE_LINEAR
    assert (health.diagnosis.slug, health.diagnosis.fields["kind"]) == ("answers-of-link", "tanh")
    assert [remedy.options for remedy in health.diagnosis.remedies] == [{"link": "tanh"}]
    assert "probabilit" not in str(health)
    assert "clipped" not in str(health)


def test_a_tanh_in_float32_is_named_with_its_digits():
    health = checked(lambda x: np.tanh(NETWORK(x)).astype(np.float32))
    assert health.tanh
    fields = health.diagnosis.fields
    assert (health.diagnosis.slug, fields["kind"], fields["number_format"]) == ("link-few-digits", "tanh", "float32")
    assert "probabilit" not in str(health)


SIMILAR = {
    "error function": erf,
    "softsign": lambda z: z / (1 + np.abs(z)),
    "arctangent": lambda z: 2 / np.pi * np.arctan(z),
    "Gudermannian": lambda z: 4 / np.pi * np.arctan(np.tanh(z / 2)),
    "square root": lambda z: z / np.sqrt(1 + z * z),
    "sine": np.sin,
    "cosine": np.cos,
    "clipped": lambda z: np.clip(z, -1, 1),
    "small": lambda z: z / 50,
}
DIGITS = {
    "float64": lambda y: y,
    "float32": np.float32,
    "8 decimals": partial(np.round, decimals=8),
    "6 decimals": partial(np.round, decimals=6),
    "2 decimals": partial(np.round, decimals=2),
}


@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize("name", SIMILAR)
@pytest.mark.parametrize("domain", [None, (-1, 1)], ids=["everywhere", "in a box"])
def test_similar_curves_are_no_tanh(name, digits, domain, seed):
    network = planted((6, 8, 1 + seed % 3), seed)
    health = checked(lambda x: DIGITS[digits](SIMILAR[name](network(x))), rng=seed, domain=domain)
    assert not health.tanh
    advised = () if health.diagnosis is None else health.diagnosis.remedies
    assert all(remedy.options.get("link") != "tanh" for remedy in advised)


@pytest.mark.parametrize("network", [ONE, NETWORK], ids=["one", "three"])
def test_the_network_before_a_tanh_is_recovered(network):
    found = extract(open_oracle(lambda x: np.tanh(network(x)), dim=6, link="tanh"))
    assert found.ok
    rows = np.random.default_rng(1).standard_normal((200, 6))
    np.testing.assert_allclose(found.network(rows), network(rows), rtol=0, atol=1e-9)
    assert "probabilit" not in str(found.evidence["verification"])


@pytest.mark.parametrize("decimals", [2, 6])
def test_a_rounded_tanh_is_refused_behind_its_link(decimals):
    found = extract(open_oracle(lambda x: np.round(np.tanh(ONE(x)), decimals), dim=6, link="tanh"))
    assert found.outcome is Outcome.LOW_PRECISION
    fields = found.diagnosis.fields
    assert (found.diagnosis.slug, fields["link"], fields["decimals"]) == ("values-unreadable", "tanh", decimals)
    assert "probabilit" not in str(found.diagnosis)


def test_signs_behind_a_tanh_are_labels():
    found = extract(open_oracle(lambda x: np.sign(ONE(x)), dim=6, link="tanh"))
    assert found.outcome is Outcome.WRONG_LINK
    assert "got nothing but -1 and 1" in found.evidence["error"]
    assert "probabilit" not in found.evidence["error"]


def test_the_noise_behind_a_tanh_is_that_of_its_rounding():
    values = np.linspace(-2, 2, 400)[:, None]
    told = np.round(np.tanh(values), 4)
    behind = RawDigits.of(told, "tanh", ratios=False)
    assert (behind.decimals, behind.certain, behind.noun, behind.ends()) == (4, False, "answers", "-1 or 1")
    seen = np.std(np.arctanh(told) - values)
    assert seen / 3 < behind.noise < 3 * seen
