"""A `ReLUNetwork` as a torch module or a scikit-learn model, with its link as the last step.

Both know layers in a chain alone. Skips are carried through the hidden layers by pairs of neurons: s is
max(s, 0) - max(-s, 0), and a number that is not negative passes a ReLU unchanged.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from reluctant.errors import require
from reluctant.networks.network import ReLUNetwork
from reluctant.numerics import FloatArray

TORCH_LINKS: dict[str, tuple[str, dict[str, int]]] = {
    "softmax": ("Softmax", {"dim": -1}),
    "log-softmax": ("LogSoftmax", {"dim": -1}),
    "sigmoid": ("Sigmoid", {}),
    "tanh": ("Tanh", {}),
}
# What scikit-learn calls the last step; the logarithm of a softmax is `predict_log_proba` of the same model.
SKLEARN_LINKS = {
    "identity": "identity",
    "tanh": "tanh",
    "sigmoid": "logistic",
    "softmax": "softmax",
    "log-softmax": "softmax",
}
OF_VALUES = ("identity", "tanh")


def torch_module(network: ReLUNetwork, dtype: Literal["float64", "float32"] = "float64") -> Any:
    """`torch.nn.Sequential` of Linear and ReLU, then the link; in evaluation mode."""
    torch = require("torch", extra="torch", purpose="A torch module")
    chain = in_a_chain(network)
    steps: list[Any] = []
    for w, b in zip(chain.weights, chain.biases, strict=True):
        layer = torch.nn.Linear(w.shape[1], w.shape[0], dtype=getattr(torch, dtype))
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(w))
            layer.bias.copy_(torch.tensor(b))
        steps += [*([torch.nn.ReLU()] if steps else []), layer]
    if network.link != "identity":
        name, options = TORCH_LINKS[network.link]
        steps.append(getattr(torch.nn, name)(**options))
    return torch.nn.Sequential(*steps).eval()


def sklearn_model(network: ReLUNetwork) -> Any:
    """A fitted `MLPRegressor`, or `MLPClassifier` where the link gives probabilities; classes are 0, 1, 2, ..."""
    mlp = require("sklearn.neural_network", extra="sklearn", purpose="A scikit-learn model")
    chain, regression = in_a_chain(network), network.link in OF_VALUES
    kind = mlp.MLPRegressor if regression else mlp.MLPClassifier
    model = kind(hidden_layer_sizes=chain.widths[1:-1], activation="relu")
    model.coefs_ = [w.T.copy() for w in chain.weights]
    model.intercepts_ = [b.copy() for b in chain.biases]
    model.n_features_in_, model.n_outputs_, model.n_layers_ = chain.dim, chain.outputs, chain.depth + 1
    model.out_activation_ = SKLEARN_LINKS[network.link]
    if not regression:
        _name_classes(model, network)
    return model


def _name_classes(model: Any, network: ReLUNetwork) -> None:
    """Classes by number. Several sigmoids are labels of their own, each on or off."""
    preprocessing = require("sklearn.preprocessing", extra="sklearn", purpose="A scikit-learn model")
    several = network.link == "sigmoid" and network.outputs > 1
    known = np.eye(network.outputs, dtype=int) if several else np.arange(max(network.outputs, 2))
    model._label_binarizer = preprocessing.LabelBinarizer().fit(known)
    model.classes_ = model._label_binarizer.classes_


def in_a_chain(network: ReLUNetwork) -> ReLUNetwork:
    """The function as a network without skips: wider hidden layers, two neurons for each number carried on."""
    weights, biases, skip = network.weights, network.biases, network.skip
    if not network.is_chain:
        return _all_carried(network)
    if skip is None:
        return network
    if network.depth == 1:
        return ReLUNetwork([weights[0] + skip], biases, link=network.link)
    few_outputs = network.outputs <= network.dim
    carried = skip if few_outputs else np.eye(network.dim)
    back = np.eye(network.outputs) if few_outputs else skip
    pairs = 2 * len(carried)
    first = np.concatenate([weights[0], carried, -carried])
    middle = [_beside(w, np.eye(pairs)) for w in weights[1:-1]]
    last = np.concatenate([weights[-1], back, -back], axis=1)
    wider = [np.concatenate([b, np.zeros(pairs)]) for b in biases[:-1]]
    return ReLUNetwork([first, *middle, last], [*wider, biases[-1]], link=network.link)


def _all_carried(network: ReLUNetwork) -> ReLUNetwork:
    """The network without skips: every hidden layer carries on what a later one sees of those below.

    Inputs go on as pairs. Numbers of a hidden layer are not negative, so one neuron carries each.
    """
    pair = np.concatenate([np.eye(network.dim), -np.eye(network.dim)])
    last = {source: max(target for s, target in network.skips if s == source) for source, _ in network.skips}
    weights, biases = [], []
    given: dict[int, FloatArray] = {0: np.eye(network.dim)}  # each layer below as rows of what the one before gives
    for k, b in enumerate(network.biases, 1):
        own = np.add.reduce([w @ given[source] for source, w in network.incoming(k).items()])
        going = {source: rows for source, rows in given.items() if last.get(source, 0) > k}
        parts = {k: own, **{s: pair @ rows if (s, k) == (0, 1) else rows for s, rows in going.items()}}
        if k > 1 and 0 in going:
            parts[0] = np.concatenate([np.maximum(going[0], 0), np.maximum(-going[0], 0)])
        weights.append(np.concatenate(list(parts.values())))
        biases.append(np.concatenate([b, np.zeros(len(weights[-1]) - len(b))]))
        given, start = {}, 0
        for source, rows in parts.items():
            columns = np.eye(len(weights[-1]))[start : start + len(rows)]
            given[source] = pair.T @ columns if source == 0 else columns
            start += len(rows)
    return ReLUNetwork(weights, biases, link=network.link)


def _beside(w: FloatArray, other: FloatArray) -> FloatArray:
    """Two matrices as one, each with inputs and outputs of its own."""
    both = np.zeros((w.shape[0] + len(other), w.shape[1] + len(other)))
    both[: w.shape[0], : w.shape[1]], both[w.shape[0] :, w.shape[1] :] = w, other
    return both
