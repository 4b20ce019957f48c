"""The bundled digits model is what its card says, accuracy included."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reluctant import ReLUNetwork, open_oracle
from reluctant.bundled import digits_card, digits_inputs, digits_model


@pytest.fixture(scope="module")
def network() -> ReLUNetwork:
    return ReLUNetwork.load(digits_model())


@pytest.fixture(scope="module")
def card() -> dict:
    return json.loads(digits_card().read_text("utf-8"))


def test_the_card_agrees_with_the_model(network, card):
    assert tuple(card["widths"]) == network.widths == (64, 32, 10)
    assert card["parameters"] == network.parameters
    assert digits_model().stem == digits_card().stem == "digits-" + "-".join(map(str, network.widths))


def test_the_weights_are_float32(network):
    for array in (*network.weights, *network.biases):
        np.testing.assert_array_equal(array, array.astype(np.float32))


def test_the_accuracy_on_the_card_is_measured_again(network, card):
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    train_x, test_x, train_y, test_y = parts
    assert f"{len(train_x)} images" in card["training"]
    assert card["accuracy"] == {
        "train": accuracy(network, train_x, train_y),
        "held out": accuracy(network, test_x, test_y),
    }


def test_the_inputs_are_held_out_images():
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    held_out = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)[1]
    np.testing.assert_array_equal(np.load(digits_inputs()), held_out[:100])


def accuracy(network: ReLUNetwork, images: np.ndarray, labels: np.ndarray) -> float:
    return round(float(np.mean(network(images).argmax(axis=1) == labels)), 4)


def test_the_served_model_answers_ten_logits(network, seed):
    rows = np.random.default_rng(seed).uniform(0, 1, (20, 64))
    with open_oracle(digits_model()) as oracle:
        assert (oracle.dim, oracle.outputs, oracle.facts.dtype) == (64, 10, np.float32)
        np.testing.assert_allclose(oracle.query(rows), network(rows), atol=1e-4)
