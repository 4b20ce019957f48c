"""What a network says of itself, that it cannot be changed, and which arrays it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from reluctant import ReLUNetwork
from reluctant.errors import InvalidInput, InvalidRows
from reluctant.testing import planted


def test_facts():
    network = planted((784, 128, 10))
    assert network.widths == (784, 128, 10)
    assert (network.dim, network.outputs, network.depth) == (784, 10, 2)
    assert network.parameters == 784 * 128 + 128 + 128 * 10 + 10
    assert network.skip is None
    assert network.link == "identity"


def test_the_skip_counts_as_parameters():
    assert planted((5, 3, 2), skip=True).parameters == planted((5, 3, 2)).parameters + 2 * 5


@pytest.mark.parametrize(
    ("network", "text"),
    [
        (planted((784, 128, 1)), "ReLUNetwork(784-128-1, 100609 parameters)"),
        (planted((4, 3, 2), skip=True), "ReLUNetwork(4-3-2 + skip, 31 parameters)"),
        (ReLUNetwork([[[1.0], [2.0]]], [[0.0, 0.0]], link="softmax"), "ReLUNetwork(1-2, softmax, 4 parameters)"),
    ],
)
def test_repr_is_short(network, text):
    assert repr(network) == text


def test_arrays_are_float64_and_read_only():
    network = ReLUNetwork([np.ones((2, 3), np.float32), [[1, 2]]], [[0, 0], [1]], skip=[[1, 2, 3]])
    for array in (*network.weights, *network.biases, network.skip):
        assert array.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


def test_arrays_are_copies():
    weight = np.ones((1, 2))
    network = ReLUNetwork([weight], [[0.0]])
    weight[:] = 7
    np.testing.assert_array_equal(network.weights[0], [[1, 1]])


def test_the_lists_are_copies_too():
    network = planted((4, 3, 1))
    network.weights.clear()
    assert len(network.weights) == 2


GOOD = {"weights": [np.ones((3, 2)), np.ones((1, 3))], "biases": [np.zeros(3), np.zeros(1)]}
FLAWS = {
    "no layers": ({"weights": [], "biases": []}, "weights, biases", "one of each per layer"),
    "a bias missing": ({"biases": [np.zeros(3)]}, "weights, biases", "one of each per layer"),
    "layers that do not fit": ({"weights": [np.ones((3, 2)), np.ones((1, 4))]}, "weights[1]", "(1, 3)"),
    "a bias of another width": ({"biases": [np.zeros(4), np.zeros(1)]}, "weights[0]", "(4, 2)"),
    "a flat weight": ({"weights": [np.ones(3), np.ones((1, 3))]}, "weights[0]", "2 finite axes"),
    "a square bias": ({"biases": [np.zeros(3), np.zeros((1, 1))]}, "biases[1]", "1 finite axes"),
    "NaN in a weight": ({"weights": [np.full((3, 2), np.nan), np.ones((1, 3))]}, "weights[0]", "2 finite axes"),
    "inf in a bias": ({"biases": [np.zeros(3), np.array([np.inf])]}, "biases[1]", "1 finite axes"),
    "words": ({"weights": [[["cat", "dog"]] * 3, np.ones((1, 3))]}, "weights[0]", "an array of numbers"),
    "a ragged list": ({"weights": [[[1.0, 2.0], [1.0]], np.ones((1, 2))]}, "weights[0]", "an array of numbers"),
    "a skip of another shape": ({"skip": np.ones((1, 3))}, "skip", "(1, 2)"),
    "NaN in the skip": ({"skip": np.full((1, 2), np.nan)}, "skip", "2 finite axes"),
    "an unknown link": ({"link": "softsign"}, "link", "one of identity, softmax, sigmoid, log-softmax, tanh"),
}


@pytest.mark.parametrize(("change", "argument", "expected"), FLAWS.values(), ids=FLAWS)
def test_a_flawed_network_is_refused(change, argument, expected):
    with pytest.raises(InvalidInput) as caught:
        ReLUNetwork(**(GOOD | change))
    message = str(caught.value)
    assert message.startswith(f"{argument}: got ")
    assert f", expected {expected}." in message


@pytest.mark.parametrize("rows", [np.ones(2), np.ones((4, 3)), np.ones((1, 1, 2))], ids=lambda rows: str(rows.shape))
@pytest.mark.parametrize("verb", ["__call__", "preactivations", "patterns", "local_maps"])
def test_rows_of_another_shape_are_refused(rows, verb):
    with pytest.raises(InvalidRows, match=r"^x: got shape \(.*\), expected \(n, 2\)\. One point is"):
        getattr(ReLUNetwork(**GOOD), verb)(rows)


@pytest.mark.parametrize("rows", [[["cat", "dog"]], [[1.0, 2.0], [1.0]]], ids=["words", "ragged"])
def test_rows_that_are_no_numbers_are_refused(rows):
    with pytest.raises(InvalidRows, match=r"^x: got .*, expected "):
        ReLUNetwork(**GOOD)(rows)
