"""Findings as text and as data."""

from __future__ import annotations

import json

import numpy as np
from health_targets import DIM, network, softmax, with_activation

from reluctant import check_health, open_oracle
from reluctant.testing.faults import noisy, rounded


def test_a_healthy_target_in_words(seed):
    health = check_health(open_oracle(network(seed)))
    assert [each.slug for each in health.findings()] == ["shape", "deterministic", "digits", "noise-floor"]
    assert health.diagnosis is None
    assert [each.slug for each in health.prospects] == ["exact-weights"]
    assert str(health).splitlines() == [str(each) for each in (*health.findings(), *health.prospects)]


def test_a_refusal_says_what_to_try(seed):
    health = check_health(open_oracle(with_activation(np.tanh, seed), dim=DIM))
    assert health.diagnosis == health.refusal.diagnosis
    assert health.diagnosis in health.findings()


def test_noise_and_rounding_are_said(seed):
    fresh = check_health(open_oracle(noisy(network(seed), 1e-3), dim=DIM)).findings()
    assert any(each.slug == "fresh-noise" for each in fresh)
    coarse = check_health(open_oracle(rounded(network(seed), 3), dim=DIM)).findings()
    assert {"number_format": "float64", "decimals": 3} in [each.fields for each in coarse]


def test_probabilities_are_said(seed):
    first, *others = check_health(open_oracle(softmax(network(seed, outputs=4)), dim=DIM)).findings()
    assert (first.slug, first.fields["kind"], first.fields["percent"]) == ("answers-of-link", "softmax", False)
    assert not {"shape", "likeness"} & {each.slug for each in others}  # said already


def test_non_finite_rows_are_counted_in_words():
    health = check_health(open_oracle(lambda x: np.full(len(x), np.nan), dim=DIM))
    assert {"rows": 102, "queries": 102, "link": None} in [each.fields for each in health.findings()]


def test_findings_are_plain_data(seed):
    data = check_health(open_oracle(with_activation(np.tanh, seed), dim=DIM)).to_dict()
    assert json.loads(json.dumps(data)) == data | {"readings": list(data["readings"]), "class_columns": []}
    assert data["diagnosis"]["slug"] == "not-piecewise-linear"
    assert (data["shape"], data["refusal"]) == ("smooth", "not-piecewise-linear")
