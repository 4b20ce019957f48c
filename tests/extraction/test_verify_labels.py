"""`verify_labels`: a network held against labels alone, with the classes in the order that the labels have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_from_labels import balanced, sign_of

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.testing import planted
from reluctant.verification.label_check import classes

TRUE, CLASSES = balanced(20, 10, seed=6), planted((6, 8, 4), 3)


def moved(network: ReLUNetwork, by: float) -> ReLUNetwork:
    """Another constant, which moves the boundary."""
    return ReLUNetwork(network.weights, [*network.biases[:-1], network.biases[-1] + by])


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (3.0, 7.0)])
def test_the_right_network_agrees_whatever_its_scale_and_the_labels_are(low: float, high: float) -> None:
    network = ReLUNetwork([TRUE.weights[0], 3 * TRUE.weights[1]], [TRUE.biases[0], 3 * TRUE.biases[1]])
    found = rl.verify_labels(sign_of(TRUE, low, high), network, dim=20)
    assert found.ok
    assert found.boundary_error <= 1e-9
    assert 3_500 < found.queries < 4_000


@pytest.mark.parametrize(
    ("true", "network", "low", "high"),
    [(TRUE, TRUE, 3_600, 3_800), (TRUE, moved(TRUE, 1e-4), 5_400, 5_600), (CLASSES, CLASSES, 4_750, 5_000)],
)
def test_every_row_is_counted(true: ReLUNetwork, network: ReLUNetwork, low: int, high: int) -> None:
    """The first look too, and the search for a class that it has not seen."""
    opened = rl.open_oracle(lambda x: classes(true, x).astype(float), dim=true.dim)
    before = opened.queries
    found = rl.verify_labels(opened, network)
    assert found.queries == opened.queries - before
    assert low < found.queries < high


def test_a_boundary_that_is_off_where_no_random_label_shows_it_is_seen() -> None:
    found = rl.verify_labels(sign_of(TRUE), moved(TRUE, 1e-4), dim=20)
    assert not found.ok
    assert found.wrong_inputs == 0
    assert rl.verify_labels(sign_of(TRUE), moved(TRUE, 1e-4), dim=20, tol=1e-2).ok


@pytest.mark.parametrize("answers", [lambda label: label, lambda label: label + 3, lambda label: np.eye(4)[label]])
def test_several_classes_are_compared_in_the_order_of_the_labels(answers) -> None:
    def target(x: np.ndarray) -> np.ndarray:
        return answers(CLASSES(x).argmax(axis=1))

    assert rl.verify_labels(target, CLASSES, dim=6).ok
    order = [1, 0, 2, 3]
    turned = ReLUNetwork([CLASSES.weights[0], CLASSES.weights[1][order]], [CLASSES.biases[0], CLASSES.biases[1][order]])
    assert not rl.verify_labels(target, turned, dim=6).ok
    without = CLASSES.weights[1] * (np.arange(32).reshape(4, 8) != 19)  # one class no longer depends on one neuron
    assert not rl.verify_labels(target, ReLUNetwork([CLASSES.weights[0], without], CLASSES.biases), dim=6).ok


def test_classes_that_may_count_from_1_are_not_guessed_where_one_is_rare() -> None:
    base = planted((6, 8, 3), 3)
    shift = 3 * base(np.random.default_rng(0).standard_normal((20_000, 6))).std()

    last = ReLUNetwork(base.weights, [base.biases[0], base.biases[1] - shift * (np.arange(3) == 2)])
    first = ReLUNetwork([base.weights[0], last.weights[1][::-1]], [base.biases[0], last.biases[1][::-1]])
    with pytest.raises(InvalidInput, match="one for each of the 2 labels seen"):
        rl.verify_labels(lambda x: last(x).argmax(axis=1) + 1, last, dim=6)
    assert rl.verify_labels(lambda x: last(x).argmax(axis=1), last, dim=6).ok
    assert rl.verify_labels(first, first).ok  # outputs have their numbers


def test_raw_columns_are_compared_in_their_units() -> None:
    size, middle = np.geomspace(0.01, 100.0, 20), np.linspace(-50, 50, 20)
    within = sign_of(TRUE)
    rows = middle + size * np.random.default_rng(0).standard_normal((300, 20))
    first, bias = TRUE.weights[0] / size, TRUE.biases[0] - TRUE.weights[0] @ (middle / size)
    network = ReLUNetwork([first, TRUE.weights[1]], [bias, TRUE.biases[1]])

    def target(x: np.ndarray) -> np.ndarray:
        return within((x - middle) / size)

    assert rl.verify_labels(target, network, dim=20, inputs=rows).ok
    assert not rl.verify_labels(target, moved(network, 1e-3), dim=20, inputs=rows).ok


def test_values_have_labels_by_a_threshold() -> None:
    assert rl.verify_labels(TRUE, TRUE, dim=20, threshold=0.0).ok
    assert not rl.verify_labels(TRUE, TRUE, dim=20).ok
    assert rl.verify_labels(lambda x: 1 / (1 + np.exp(-TRUE(x))), TRUE, dim=20).ok


def test_inside_bounds_nothing_beyond_is_asked() -> None:
    within = rl.open_oracle(sign_of(TRUE), dim=20, domain=(-2, 2))
    assert rl.verify_labels(within, TRUE).ok


def test_what_cannot_be_compared_is_named() -> None:
    with pytest.raises(InvalidInput, match="one label alone"):
        rl.verify_labels(lambda x: np.zeros(len(x)), TRUE, dim=20)
    with pytest.raises(InvalidInput, match="one for each of the 4 labels"):
        rl.verify_labels(lambda x: x[:, :4].argmax(axis=1), planted((6, 5, 1), 1), dim=6)
    with pytest.raises(InvalidInput, match="network: got 20 inputs"):
        rl.verify_labels(lambda x: CLASSES(x).argmax(axis=1), TRUE, dim=6)


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_labels_are_not_read_behind_a_link(link) -> None:
    """Log-ratios have no first class, and a logit of 0.5 is no probability of 0.5."""

    def answers(x: np.ndarray) -> np.ndarray:
        values = np.exp(CLASSES(x))
        return values / values.sum(axis=1, keepdims=True) if link == "softmax" else 1 / (1 + 1 / values[:, :1])

    opened = rl.open_oracle(answers, dim=6, link=link)
    before = opened.queries
    for verb in (
        lambda: rl.extract(opened, labels=True),
        lambda: rl.recover_span(opened, labels=True),
        lambda: rl.verify_labels(opened, CLASSES),
    ):
        with pytest.raises(InvalidInput, match="Leave the link out"):
            verb()
    assert opened.queries == before


def test_a_small_share_is_never_written_as_0() -> None:
    found = rl.verify_labels(sign_of(TRUE), TRUE, dim=20)
    assert "less than 1.2% of the boundary" in str(found)
    text = str(replace(found, share=3.7e-4, input_share=2.6e-5))
    assert "less than 0.04% of the boundary" in text
    assert "less than 0.003% of the inputs" in text


def test_advice_to_use_labels_behind_a_link_leaves_the_link_out() -> None:
    def smooth(x: np.ndarray) -> np.ndarray:
        values = np.exp(np.tanh(x @ CLASSES.weights[0].T) @ CLASSES.weights[1].T)
        return values / values.sum(axis=1, keepdims=True)

    ended = rl.extract(smooth, dim=6, link="softmax")
    [options] = [each.options for each in ended.diagnosis.remedies if each.purpose == "span-from-labels"]
    assert rl.recover_span(smooth, dim=6, **{"link": "softmax", **options}).ok
