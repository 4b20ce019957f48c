"""Read an ONNX graph of dense layers and ReLUs as a ReLUNetwork.

The graph is run symbolically: every tensor is an affine function of the input and of the hidden layers
met so far. A Relu starts a new hidden layer; what is left at the output is the last layer, plus a skip
term if it still depends on the input. A node that does not fit gives an error with its name.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from reluctant.errors import UnsupportedModel
from reluctant.networks.network import ReLUNetwork
from reluctant.networks.onnx_operators import HANDLERS, IDENTITY, INPUT, SHAPE_ONLY, Affine, Reading, dense, unsupported
from reluctant.optional import require

__all__ = ["load_onnx_model", "read_onnx"]


def load_onnx_model(path: Path) -> Any:
    """Parse the file, with a clear error if it is no ONNX."""
    onnx = require("onnx", extra="onnx", purpose="Reading an .onnx file")
    try:
        model = onnx.load(str(path))
        if not model.graph.node:
            raise ValueError("the graph has no nodes")
    except Exception as error:
        raise UnsupportedModel.about(
            "path", got=f"'{path}'", expected="an ONNX model", fix=f"It cannot be parsed: {error}"
        ) from error
    return model


def read_onnx(path: Path) -> ReLUNetwork:
    """Read the file as a ReLUNetwork, or name the node that does not fit."""
    onnx = require("onnx", extra="onnx", purpose="Reading an .onnx file")
    graph = load_onnx_model(path).graph
    reading = Reading({t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer})
    name, shape = _single_input(graph, reading.constants)
    reading.values[name] = Affine(shape, np.zeros(prod(shape)), {INPUT: IDENTITY})
    for node in graph.node:
        _run_node(onnx, node, reading)
    return _network(reading, graph.output[0].name)


def _single_input(graph: Any, constants: dict[str, Any]) -> tuple[str, tuple[int, ...]]:
    inputs = [value for value in graph.input if value.name not in constants]
    if len(inputs) != 1:
        raise UnsupportedModel.about("model", got=f"{len(inputs)} inputs", expected="exactly one input")
    dims = [dim.dim_value for dim in inputs[0].type.tensor_type.shape.dim]
    if len(dims) < 2 or any(size <= 0 for size in dims[1:]):
        raise UnsupportedModel.about(
            "model", got=f"input '{inputs[0].name}' of shape {dims}", expected="a batch axis and fixed sizes"
        )
    return inputs[0].name, tuple(dims[1:])


def _run_node(onnx: Any, node: Any, reading: Reading) -> None:
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "Constant":
        reading.constants[node.output[0]] = _constant_value(onnx, node, attributes)
        return
    handler = HANDLERS.get(node.op_type)
    if handler is None:
        known = ", ".join(sorted({*HANDLERS, "Constant"}))
        raise unsupported(node, f"operator {node.op_type}", f"one of {known}")
    links = {reading.values[name].link for name in node.input if name in reading.values} - {"identity"}
    if links and node.op_type not in SHAPE_ONLY:
        raise unsupported(node, f"{node.op_type} after a {links.pop()}", "a link as last node")
    reading.values[node.output[0]] = handler(node, attributes, reading)


def _constant_value(onnx: Any, node: Any, attributes: dict[str, Any]) -> np.ndarray[Any, Any]:
    if "value" in attributes:
        return np.asarray(onnx.numpy_helper.to_array(attributes["value"]))
    for name in ("value_float", "value_floats", "value_int", "value_ints"):
        if name in attributes:
            return np.asarray(attributes[name])
    raise unsupported(node, f"a constant given as {', '.join(attributes)}", "a tensor or numbers")


def _network(reading: Reading, output: str) -> ReLUNetwork:
    if output not in reading.values:
        raise UnsupportedModel.about("model", got=f"output '{output}' that is a constant", expected="a value of x")
    last = reading.values[output]
    depth = len(reading.layers)
    extra = set(last.terms) - {INPUT, depth}
    if extra:
        raise UnsupportedModel.about(
            "model",
            got=f"an output that reaches back to hidden layer {min(extra)}",
            expected="layers in a chain",
        )
    width = len(reading.layers[-1][1]) if depth else 0
    weight = dense(last, depth, width)
    skip = dense(last, INPUT, width) if depth and INPUT in last.terms else None
    weights, biases = [w for w, _ in reading.layers], [b for _, b in reading.layers]
    return ReLUNetwork([*weights, weight], [*biases, last.constant], skip, last.link)
