"""Findings as words and as data."""

from __future__ import annotations

import json

import numpy as np
from health_targets import DIM, network, softmax, with_activation

from reluctant import check_health, open_oracle
from reluctant.testing.faults import noisy, rounded


def test_a_healthy_target_in_words(seed):
    sentences = check_health(open_oracle(network(seed))).sentences()
    assert sentences[:3] == [
        "Looks piecewise linear at small scale.",
        "Deterministic.",
        "Answers fit float64, not rounded.",
    ]
    assert sentences[3].startswith("Noise floor ")
    assert len(sentences) == 4


def test_a_refusal_says_what_to_try(seed):
    health = check_health(open_oracle(with_activation(np.tanh, seed), dim=DIM))
    assert health.refusal.advice in health.sentences()[0]


def test_noise_and_rounding_are_said(seed):
    fresh = check_health(open_oracle(noisy(network(seed), 1e-3), dim=DIM)).sentences()
    assert any(sentence.startswith("Not deterministic: fresh noise of ") for sentence in fresh)
    coarse = check_health(open_oracle(rounded(network(seed), 3), dim=DIM)).sentences()
    assert "Answers fit float64, rounded to 3 decimals." in coarse


def test_probabilities_are_said(seed):
    sentences = check_health(open_oracle(softmax(network(seed, outputs=4)), dim=DIM)).sentences()
    assert "The answers look like probabilities." in sentences


def test_non_finite_rows_are_counted_in_words():
    health = check_health(open_oracle(lambda x: np.full(len(x), np.nan), dim=DIM))
    assert "102 of 102 rows were answered with NaN or inf." in health.sentences()


def test_findings_are_plain_data(seed):
    data = check_health(open_oracle(with_activation(np.tanh, seed), dim=DIM)).to_dict()
    assert json.loads(json.dumps(data)) == data | {"readings": list(data["readings"])}
    assert (data["shape"], data["refusal"]) == ("smooth", "not-piecewise-linear")
