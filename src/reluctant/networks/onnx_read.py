"""Read an ONNX graph of dense layers and ReLUs as a ReLUNetwork.

The graph is run symbolically: every tensor is an affine function of the input and of the hidden layers
met so far. A Relu starts a new hidden layer; what is left at the output is the last layer, plus a skip
term if it still depends on the input. A node that does not fit gives an error with its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from reluctant.errors import UnsupportedModel
from reluctant.networks.network import Link, ReLUNetwork
from reluctant.numerics import FloatArray
from reluctant.optional import require

__all__ = ["load_onnx_model", "read_onnx"]

INPUT = 0  # the basis "x"; basis k > 0 is the output of hidden layer k
IDENTITY: Literal["identity"] = "identity"


@dataclass(frozen=True)
class _Affine:
    """constant + Σ_k terms[k] @ basis_k, laid out in `shape` (the batch axis left out), before a final `link`."""

    shape: tuple[int, ...]
    constant: FloatArray
    terms: dict[int, FloatArray | Literal["identity"]]
    link: Link = "identity"

    def map(self, matrix: Callable[[FloatArray], FloatArray], constant: FloatArray) -> _Affine:
        """Apply a linear function to the term matrices and set the constant."""
        size = len(self.constant)
        dense = {k: np.eye(size) if isinstance(t, str) else t for k, t in self.terms.items()}
        return replace(self, constant=constant, terms={k: matrix(t) for k, t in dense.items()})

    def times(self, w: FloatArray, shape: tuple[int, ...]) -> _Affine:
        """w @ self; an identity term becomes w itself, so that weights are read exactly."""
        terms = {k: w if isinstance(t, str) else w @ t for k, t in self.terms.items()}
        return _Affine(shape, w @ self.constant, terms)  # type: ignore[arg-type]


@dataclass
class _Reading:
    """State of one reading: named tensors and the hidden layers so far."""

    constants: dict[str, np.ndarray[Any, Any]]
    values: dict[str, _Affine] = field(default_factory=dict)
    layers: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)


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
    reading = _Reading({t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer})
    name, shape = _single_input(graph, reading.constants)
    reading.values[name] = _Affine(shape, np.zeros(prod(shape)), {INPUT: IDENTITY})
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


def _run_node(onnx: Any, node: Any, reading: _Reading) -> None:
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "Constant":
        reading.constants[node.output[0]] = _constant_value(onnx, node, attributes)
        return
    handler = HANDLERS.get(node.op_type)
    if handler is None:
        known = ", ".join(sorted({*HANDLERS, "Constant"}))
        raise _unsupported(node, f"operator {node.op_type}", f"one of {known}")
    links = {reading.values[name].link for name in node.input if name in reading.values} - {"identity"}
    if links and node.op_type not in SHAPE_ONLY:
        raise _unsupported(node, f"{node.op_type} after a {links.pop()}", "a link as last node")
    reading.values[node.output[0]] = handler(node, attributes, reading)


def _constant_value(onnx: Any, node: Any, attributes: dict[str, Any]) -> np.ndarray[Any, Any]:
    if "value" in attributes:
        return np.asarray(onnx.numpy_helper.to_array(attributes["value"]))
    for name in ("value_float", "value_floats", "value_int", "value_ints"):
        if name in attributes:
            return np.asarray(attributes[name])
    raise _unsupported(node, f"a constant given as {', '.join(attributes)}", "a tensor or numbers")


def _network(reading: _Reading, output: str) -> ReLUNetwork:
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
    weight = _dense(last, depth, width)
    skip = _dense(last, INPUT, width) if depth and INPUT in last.terms else None
    weights, biases = [w for w, _ in reading.layers], [b for _, b in reading.layers]
    return ReLUNetwork([*weights, weight], [*biases, last.constant], skip, last.link)


def _dense(value: _Affine, basis: int, width: int) -> FloatArray:
    term = value.terms.get(basis)
    if term is None:
        return np.zeros((len(value.constant), width))
    return np.eye(len(value.constant)) if isinstance(term, str) else term


def _unsupported(node: Any, got: str, expected: str) -> UnsupportedModel:
    name = node.name or (node.output[0] if node.output else "?")
    fix = "The model can still be queried as an oracle."
    return UnsupportedModel.about(f"node '{name}'", got=got, expected=expected, fix=fix)


# ---- one small function per operator


def _value(node: Any, index: int, reading: _Reading) -> _Affine:
    if node.input[index] not in reading.values:
        raise _unsupported(node, f"input '{node.input[index]}' that is a constant", "a value computed from x")
    return reading.values[node.input[index]]


def _constant(node: Any, index: int, reading: _Reading) -> FloatArray:
    if node.input[index] not in reading.constants:
        raise _unsupported(node, f"input '{node.input[index]}' that is no constant", "a constant of the model")
    return np.asarray(reading.constants[node.input[index]], dtype=np.float64)


def _gemm(node: Any, attributes: dict[str, Any], reading: _Reading) -> _Affine:
    x, w = _value(node, 0, reading), _constant(node, 1, reading)
    if attributes.get("transA", 0):
        raise _unsupported(node, "transA=1", "transA=0")
    w = w if attributes.get("transB", 0) else w.T
    alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
    if w.shape[1] != len(x.constant):
        raise _unsupported(node, f"weights for {w.shape[1]} inputs", f"{len(x.constant)} inputs")
    y = x.times(w if alpha == 1.0 else alpha * w, (len(w),))
    if len(node.input) < 3 or not node.input[2]:
        return y
    bias = np.broadcast_to(_constant(node, 2, reading).reshape(-1), y.constant.shape)
    return replace(y, constant=y.constant + (bias if beta == 1.0 else beta * bias))


def _matmul(node: Any, _: dict[str, Any], reading: _Reading) -> _Affine:
    x, w = _value(node, 0, reading), _constant(node, 1, reading)
    if w.ndim != 2 or len(x.constant) != len(w) or x.shape[-1] != len(w):
        raise _unsupported(node, f"{x.shape} times {w.shape}", "a vector times a matrix")
    return x.times(w.T, (*x.shape[:-1], w.shape[1]))


def _relu(node: Any, _: dict[str, Any], reading: _Reading) -> _Affine:
    x, below = _value(node, 0, reading), len(reading.layers)
    if set(x.terms) - {below}:
        raise _unsupported(node, "a ReLU of more than the layer before it", "layers in a chain")
    width = len(reading.layers[-1][1]) if below else len(x.constant)
    reading.layers.append((_dense(x, below, width), x.constant))
    return _Affine(x.shape, np.zeros(len(x.constant)), {below + 1: IDENTITY})


def _sum(node: Any, _: dict[str, Any], reading: _Reading) -> _Affine:
    values = [name for name in node.input if name in reading.values]
    if len(values) == 2:
        return _add_values(node, *(reading.values[name] for name in values))
    if not values:
        raise _unsupported(node, f"{node.op_type} of two constants", "a value computed from x")
    index = list(node.input).index(values[0])
    sign = -1.0 if node.op_type == "Sub" else 1.0
    x, other = reading.values[values[0]], _spread(node, 1 - index, reading)
    if index == 0:
        return replace(x, constant=x.constant + sign * other)
    return x.map(lambda t: sign * t, other + sign * x.constant)


def _add_values(node: Any, x: _Affine, y: _Affine) -> _Affine:
    if node.op_type != "Add" or x.shape != y.shape:
        raise _unsupported(node, f"{node.op_type} of two computed values", "an Add of a layer and a skip term")
    size = len(x.constant)
    both = {k: _dense(x, k, size) + _dense(y, k, size) for k in set(x.terms) & set(y.terms)}
    return _Affine(x.shape, x.constant + y.constant, {**x.terms, **y.terms, **both})


def _scale(node: Any, _: dict[str, Any], reading: _Reading) -> _Affine:
    index = 0 if node.input[0] in reading.values else 1
    if node.op_type == "Div" and index == 1:
        raise _unsupported(node, "division by a computed value", "division by a constant")
    x, factors = _value(node, index, reading), _spread(node, 1 - index, reading)
    if node.op_type == "Div":
        return x.map(lambda t: t / factors[:, None], x.constant / factors)
    return x.map(lambda t: t * factors[:, None], x.constant * factors)


def _spread(node: Any, index: int, reading: _Reading) -> FloatArray:
    """A constant operand broadcast to the layout of the value it meets, then flattened."""
    x, constant = _value(node, 1 - index, reading), _constant(node, index, reading)
    try:
        return np.broadcast_to(constant, (1, *x.shape)).reshape(-1)
    except ValueError as error:
        raise _unsupported(node, f"a constant of shape {constant.shape}", f"one that fits {x.shape}") from error


def _reshape(node: Any, attributes: dict[str, Any], reading: _Reading) -> _Affine:
    x = _value(node, 0, reading)
    if node.op_type == "Flatten":
        if attributes.get("axis", 1) != 1:
            raise _unsupported(node, f"axis={attributes['axis']}", "axis=1")
        return replace(x, shape=(len(x.constant),))
    if node.op_type != "Reshape":
        return x
    wanted = [int(size) for size in _constant(node, 1, reading)]
    kept = (0, *x.shape)  # a size of 0 keeps the one at its place
    sizes = [kept[i] if size == 0 and i < len(kept) else size for i, size in enumerate(wanted)][1:]
    if -1 in sizes:
        known = prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = len(x.constant) // max(known, 1)
    if prod(sizes) != len(x.constant):
        raise _unsupported(node, f"reshape to {wanted}", f"a shape of {len(x.constant)} values a row")
    return replace(x, shape=tuple(sizes))


LINK_OPS: dict[str, Link] = {"Softmax": "softmax", "LogSoftmax": "log-softmax", "Sigmoid": "sigmoid"}


def _link(node: Any, attributes: dict[str, Any], reading: _Reading) -> _Affine:
    x = _value(node, 0, reading)
    if node.op_type != "Sigmoid" and attributes.get("axis", -1) not in (-1, len(x.shape)):
        raise _unsupported(node, f"softmax over axis {attributes['axis']}", "softmax over the last axis")
    return replace(x, link=LINK_OPS[node.op_type])


SHAPE_ONLY = {"Flatten", "Reshape", "Identity", "Dropout"}

HANDLERS: dict[str, Callable[[Any, dict[str, Any], _Reading], _Affine]] = {
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Relu": _relu,
    "Add": _sum,
    "Sub": _sum,
    "Mul": _scale,
    "Div": _scale,
    "LogSoftmax": _link,
    "Softmax": _link,
    "Sigmoid": _link,
    **dict.fromkeys(SHAPE_ONLY, _reshape),
}
