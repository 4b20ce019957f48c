"""A network as a torch module and as a scikit-learn model gives what the network gives, skip and link included."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax

import reluctant as rl
from reluctant.networks.frameworks import in_a_chain

LINKS = {
    "identity": lambda values: values,
    "softmax": lambda values: softmax(values, axis=1),
    "log-softmax": lambda values: log_softmax(values, axis=1),
    "sigmoid": expit,
    "tanh": np.tanh,
}
SHAPES = [((5, 7, 3), False), ((5, 7, 3), True), ((2, 6, 4, 3), True), ((5, 4, 4, 1), True), ((4, 2), True)]


def network_of(widths: tuple[int, ...], skip: bool, link: str = "identity") -> rl.ReLUNetwork:
    rng = np.random.default_rng(len(widths))
    weights = [rng.standard_normal((m, n)) for n, m in pairwise(widths)]
    biases = [rng.standard_normal(m) for m in widths[1:]]
    term = rng.standard_normal((widths[-1], widths[0])) if skip else None
    return rl.ReLUNetwork(weights, biases, term, link)


def rows_for(network: rl.ReLUNetwork) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((40, network.dim))


def answers(network: rl.ReLUNetwork) -> np.ndarray:
    """What a model with these values and this link answers."""
    return LINKS[network.link](network(rows_for(network)))


@pytest.mark.parametrize(("widths", "skip"), SHAPES)
def test_without_its_skip_a_network_is_the_same_function(widths, skip):
    network = network_of(widths, skip)
    chain = in_a_chain(network)
    assert chain.skip is None
    np.testing.assert_allclose(chain(rows_for(network)), network(rows_for(network)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(("widths", "skip"), SHAPES)
def test_torch_gives_the_same(widths, skip, link):
    torch = pytest.importorskip("torch")
    network = network_of(widths, skip, link)
    module = network.to_torch()
    with torch.no_grad():
        found = module(torch.tensor(rows_for(network))).numpy()
    np.testing.assert_allclose(found, answers(network), rtol=1e-12, atol=1e-12)
    assert not module.training
    assert next(network.to_torch("float32").parameters()).dtype is torch.float32


@pytest.mark.parametrize("link", ["identity", "tanh"])
@pytest.mark.parametrize(("widths", "skip"), SHAPES)
def test_sklearn_predicts_the_same_values(widths, skip, link):
    network = network_of(widths, skip, link)
    model = pickle.loads(pickle.dumps(network.to_sklearn()))
    found = model.predict(rows_for(network)).reshape(-1, network.outputs)
    np.testing.assert_allclose(found, answers(network), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("widths", "skip"), [each for each in SHAPES if each[0][-1] > 1])
@pytest.mark.parametrize("link", ["softmax", "log-softmax", "sigmoid"])
def test_sklearn_predicts_the_same_probabilities(widths, skip, link):
    network = network_of(widths, skip, link)
    model, rows = network.to_sklearn(), rows_for(network)
    found = model.predict_log_proba(rows) if link == "log-softmax" else model.predict_proba(rows)
    np.testing.assert_allclose(found, answers(network), rtol=1e-10, atol=1e-12)
    on = answers(network) > 0.5
    np.testing.assert_array_equal(model.predict(rows), on if link == "sigmoid" else found.argmax(axis=1))


def test_one_sigmoid_is_a_classifier_of_two_classes():
    network = network_of((5, 7, 1), False, "sigmoid")
    model, rows = network.to_sklearn(), rows_for(network)
    np.testing.assert_allclose(model.predict_proba(rows)[:, 1:], answers(network), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(rows), network(rows)[:, 0] > 0)


def test_both_are_targets_again():
    network = network_of((5, 7, 3), False)
    pytest.importorskip("torch")
    for target in (network.to_torch(), network.to_sklearn()):
        with rl.open_oracle(target) as oracle:
            np.testing.assert_allclose(oracle(rows_for(network)), network(rows_for(network)), rtol=1e-12, atol=1e-12)
