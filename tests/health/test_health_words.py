"""What a check says of answers that are no plain values, and of what extraction would do with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reluctant import check_health, extract, open_oracle
from reluctant.extraction.prospects import IN_A_BOX, WITH_FEW_DIGITS, what_extraction_would_do
from reluctant.health import Shape
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
    assert "whose curves the noise hides" not in health.sentences()[0]
    hidden = replace(health, shape=Shape.PIECEWISE_LINEAR)
    assert hidden.refusal is Outcome.NOT_PIECEWISE_LINEAR
    assert "whose curves the noise hides" in hidden.sentences()[0]


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
        assert expected.endswith(str(found.outcome))
    else:
        assert expected == said
        assert found.ok
