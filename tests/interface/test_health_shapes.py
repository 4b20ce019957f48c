"""What kind of function a target is: piecewise linear ones pass, all others are refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from health_targets import DIM, labels, lively, network, softmax, with_activation

from reluctant import Outcome, check_health, open_oracle
from reluctant.interface import Shape
from reluctant.oracles import Kind
from reluctant.testing import in_float32, planted
from reluctant.testing.faults import noisy, rounded

NETWORKS = [(784, 32, 1), (10, 100, 1), (20, 16384, 1), (20, 15, 10, 5, 1), (20, 30, 10)]


@pytest.mark.parametrize("widths", NETWORKS, ids=lambda widths: "-".join(map(str, widths)))
def test_a_float64_network_is_healthy(widths, seed):
    health = check_health(open_oracle(lively(widths, seed)))
    assert health.shape is Shape.PIECEWISE_LINEAR
    assert health.refusal is None
    assert health.deterministic
    assert health.fresh_noise == 0
    assert (health.number_format, health.decimals, health.answers) == ("float64", None, Kind.VALUES)
    assert (health.nonfinite, health.largest_scale, health.constant_beyond) == (0, 1e6, None)


REFUSED = {
    "tanh": (lambda seed: with_activation(np.tanh, seed), Shape.SMOOTH, Outcome.NOT_PIECEWISE_LINEAR),
    "softplus": (
        lambda seed: with_activation(lambda z: np.logaddexp(z, 0), seed),
        Shape.SMOOTH,
        Outcome.NOT_PIECEWISE_LINEAR,
    ),
    "quadratic": (lambda seed: with_activation(np.square, seed), Shape.SMOOTH, Outcome.NOT_PIECEWISE_LINEAR),
    "sin": (lambda seed: with_activation(np.sin, seed), Shape.SMOOTH, Outcome.NOT_PIECEWISE_LINEAR),
    "softmax": (lambda seed: softmax(network(seed, outputs=5)), Shape.SMOOTH, Outcome.NOT_PIECEWISE_LINEAR),
    "constant": (lambda seed: lambda x: np.full(len(x), 3.7), Shape.CONSTANT, Outcome.CONSTANT),
    "labels": (lambda seed: labels, Shape.PIECEWISE_CONSTANT, Outcome.PIECEWISE_CONSTANT),
    "NaN everywhere": (lambda seed: lambda x: np.full(len(x), np.nan), Shape.UNCLEAR, Outcome.NON_FINITE),
    "noise alone": (
        lambda seed: noisy(lambda x: np.zeros(len(x)), 1.0, seed),
        Shape.UNCLEAR,
        Outcome.TOO_NOISY,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_target_that_is_no_relu_network_is_refused(name, seed):
    make, shape, refusal = REFUSED[name]
    health = check_health(open_oracle(make(seed), dim=DIM))
    assert health.shape is shape
    assert health.refusal is refusal


def test_a_softmax_in_float32_is_refused_for_its_answers(seed):
    health = check_health(open_oracle(softmax(in_float32(network(seed, outputs=5))), dim=DIM))
    assert health.answers is Kind.PROBABILITIES
    assert health.refusal is Outcome.NOT_PIECEWISE_LINEAR


def test_a_softmax_seen_through_its_link_is_healthy(seed):
    health = check_health(open_oracle(softmax(network(seed, outputs=5)), dim=DIM, link="softmax", domain=(-2, 2)))
    assert health.shape is Shape.PIECEWISE_LINEAR
    assert health.refusal is None


def test_an_affine_target_is_affine_and_not_refused(seed):
    health = check_health(open_oracle(planted((DIM, 1), seed)))
    assert health.shape is Shape.AFFINE
    assert health.refusal is None


@pytest.mark.parametrize("rng", range(20))
def test_labels_are_refused_even_where_a_short_step_changes_one(rng):
    health = check_health(open_oracle(labels, dim=DIM), rng=rng)
    assert health.answers is Kind.LABELS
    assert health.refusal is Outcome.PIECEWISE_CONSTANT


@pytest.mark.parametrize("one_hot", [False, True])
def test_labels_that_differ_far_out_alone_are_not_constant(one_hot):
    def far(x):
        label = (x[:, 0] > 20).astype(int)
        return np.eye(2)[label] if one_hot else label

    health = check_health(open_oracle(far, dim=DIM))
    assert health.answers is Kind.LABELS
    assert health.refusal is Outcome.PIECEWISE_CONSTANT


def test_values_rounded_to_whole_numbers_are_piecewise_constant(seed):
    health = check_health(open_oracle(rounded(network(seed), 0), dim=DIM))
    assert health.refusal in {Outcome.PIECEWISE_CONSTANT, Outcome.TOO_NOISY}


def test_inputs_at_which_nothing_changes_are_named():
    rows = np.random.default_rng(0).normal(size=(50, DIM)) * 1e3 + 1e6
    health = check_health(open_oracle(lambda x: np.minimum(x.sum(axis=1), 100.0), dim=DIM, inputs=rows))
    assert health.refusal is Outcome.CONSTANT
    assert health.diagnosis.slug == "same-at-inputs"
    assert not health.diagnosis.remedies
