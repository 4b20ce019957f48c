"""Flips from gradients that a target answers: few queries, classes, links, float32, and false gradients."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.adversarial.flip import MOST_FLIP_ROWS_EXPLAINED
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted


def inputs(dim, count=6):
    return np.random.default_rng(1).standard_normal((count, dim))


@pytest.mark.parametrize("widths", [(784, 128, 1), (50, 20, 10, 1), (30, 20, 5)])
def test_few_queries_and_the_same_size_as_from_values(widths):
    network = planted(widths, 3, bias=0.3)
    for x in inputs(widths[0]):
        flip, exact = rl.flip_sign(network, x, gradients=True), rl.flip_sign(network, x)
        if not exact.ok:
            continue
        assert flip.ok
        assert flip.queries <= 15
        before, after = network(np.stack([x, flip.x]))
        if widths[-1] == 1:
            assert np.sign(before) != np.sign(after)
        else:
            assert np.argmax(before) != np.argmax(after)
        assert flip.size <= 1.05 * exact.size


def test_float32_and_links():
    network = planted((40, 20, 3), 2)
    x = inputs(40, 1)[0]
    linked = ReLUNetwork(network.weights, network.biases, None, "softmax")
    assert rl.flip_sign(linked, x, gradients=True, link="softmax").ok
    single = rl.flip_sign(
        lambda rows: network(rows).astype(np.float32), x, dim=40,
        gradients=lambda rows: network.gradients(rows).astype(np.float32),
    )  # fmt: skip
    assert single.ok
    assert single.queries <= 15


def test_false_gradients_do_not_hinder():
    network = planted((20, 10, 1), 3, bias=0.3)
    for x in inputs(20, 3):
        flip = rl.flip_sign(network, x, gradients=lambda rows: np.abs(network.gradients(rows)))
        assert flip.ok == rl.flip_sign(lambda rows: network(rows), x, dim=20).ok


@pytest.mark.parametrize("budget", [80, 100])
def test_false_gradients_take_no_rows_from_the_flip(budget):
    """What they are is a note: it is asked last, and left out where the budget ends."""
    network = planted((20, 10, 1), 3, bias=0.3)
    x, false = inputs(20, 1)[0], {"gradients": lambda rows: -network.gradients(rows)}
    flip = rl.flip_sign(lambda rows: network(rows), x, dim=20, budget=budget, **false)
    assert flip.ok
    assert flip.queries <= budget
    assert flip.stage != "gradients"
    assert "gradients are" not in flip.evidence
    whole = rl.flip_sign(lambda rows: network(rows), x, dim=20, **false)
    assert budget < whole.queries <= 20 + MOST_FLIP_ROWS_EXPLAINED


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (lambda slopes: -slopes, "explanation-other"),
        (lambda slopes: np.nan * slopes, "explanation-not-finite"),
        (lambda slopes: slopes[:, :, :5], "explanation-invalid"),
    ],
)
def test_gradients_that_lead_to_no_flip_are_named(answer, kind):
    network = planted((20, 10, 1), 3, bias=0.3)
    x = inputs(20, 1)[0]
    flip = rl.flip_sign(network, x, gradients=lambda rows: answer(network.gradients(rows)))
    assert flip.ok
    assert flip.evidence["gradients are"].slug == kind
    assert "gradients are" not in rl.flip_sign(network, x, gradients=True).evidence
