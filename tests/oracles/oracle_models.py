"""Models for the oracle tests: one planted network in each of the forms an adapter takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from reluctant.networks import ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.testing import planted

IMAGE = (1, 4, 4)


class Asked:
    """A function that notes the number of rows of each of its calls."""

    def __init__(self, function: Callable[[FloatArray], Any]) -> None:
        self.function = function
        self.calls: list[int] = []

    def __call__(self, x: FloatArray) -> Any:
        self.calls.append(len(x))
        return self.function(x)


def gaussian_rows(n: int, dim: int, seed: int = 3) -> FloatArray:
    return np.random.default_rng(seed).standard_normal((n, dim))


def linked(network: ReLUNetwork, link: str) -> ReLUNetwork:
    return ReLUNetwork(network.weights, network.biases, network.skip, link)


def softmax(z: FloatArray) -> FloatArray:
    powers = np.exp(z - z.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def sigmoid(z: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-z))


# ---- ONNX


def save_onnx(
    network: ReLUNetwork,
    path: Path,
    dtype: str = "float32",
    batch: int | str = "batch",
    shape: tuple[int, ...] | None = None,
) -> Path:
    """Write the network with this batch size; `shape` puts a Flatten in front."""
    network.save(path, dtype)
    model = onnx.load(path)
    graph = model.graph
    sizes = [batch, *(shape or (network.dim,))]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph.input[0].CopyFrom(helper.make_tensor_value_info("input", element, sizes))
    if shape is not None:
        for node in graph.node:
            node.input[:] = ["flat" if name == "input" else name for name in node.input]
        graph.node.insert(0, helper.make_node("Flatten", ["input"], ["flat"]))
    onnx.save(model, path)
    return path


def save_graph(text: str, path: Path) -> Path:
    """Write a graph given in ONNX's own text form."""
    header = '<ir_version: 8, opset_import: ["" : 17]>\n'
    onnx.save(onnx.parser.parse_model(header + text), path)
    return path


# ---- torch


def torch_module(network: ReLUNetwork, *last: Any, first: tuple[Any, ...] = ()) -> Any:
    """A Sequential in evaluation mode with the network's weights, between `first` and `last` layers."""
    import torch

    layers: list[Any] = []
    for w, b in zip(network.weights, network.biases, strict=True):
        linear = torch.nn.Linear(w.shape[1], w.shape[0])
        with torch.no_grad():
            linear.weight.copy_(torch.tensor(w))
            linear.bias.copy_(torch.tensor(b))
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*first, *layers[:-1], *last).eval()


def module_network(module: Any) -> ReLUNetwork:
    """The Linear layers of a Sequential, in float64."""
    linear = [layer for layer in module.modules() if hasattr(layer, "in_features")]
    parts = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in linear]
    return ReLUNetwork([w for w, _ in parts], [b for _, b in parts])


# ---- scikit-learn


def fitted_mlp(kind: str, dim: int = 4, outputs: int = 3, dtype: str = "float64") -> Any:
    """An MLPClassifier or MLPRegressor after one step of training in this number format."""
    from sklearn import neural_network

    x = gaussian_rows(40, dim).astype(dtype)
    model = getattr(neural_network, kind)(hidden_layer_sizes=(8, 5), random_state=0)
    if kind == "MLPClassifier":
        return model.partial_fit(x, np.arange(40) % outputs, classes=np.arange(outputs))
    values = planted((dim, outputs), 1)(x).astype(dtype)
    return model.partial_fit(x, values[:, 0] if outputs == 1 else values)


def mlp_network(model: Any) -> ReLUNetwork:
    """The fitted coefficients, in float64."""
    return ReLUNetwork([w.T for w in model.coefs_], model.intercepts_)
