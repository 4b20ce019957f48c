"""ONNX files of dense layers and ReLUs: import and export of a `ReLUNetwork`.

Reading runs the graph symbolically. Every tensor is an affine function of the input and of the hidden layers so
far, and there is one small function for each operator. A Relu starts a new hidden layer; its other sources
besides the layer before become skips, and so do those of the output. A leaky unit is a ReLU and a skip: its value is
a z + (1 - a) max(z, 0). A node that does not fit gives an error with its name.

Writing uses Gemm and Relu, one more Gemm and an Add for an affine term, Concat and one Gemm where a layer sees several
below, and the link as last node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from reluctant._files import replacement
from reluctant._version import __version__
from reluctant.errors import UnsupportedModel, require
from reluctant.networks.network import Link, ReLUNetwork, Skips
from reluctant.numerics import FloatArray


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
    reading = GraphReading({t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer})
    name, shape = _single_input(graph, reading.constants)
    reading.inputs = prod(shape)
    reading.values[name] = AffineValue(shape, np.zeros(prod(shape)), {INPUT_BASIS: IDENTITY_TERM})
    for node in graph.node:
        _run_node(onnx, node, reading)
    return _network_of_reading(reading, graph.output[0].name)


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


def _run_node(onnx: Any, node: Any, reading: GraphReading) -> None:
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type == "Constant":
        reading.constants[node.output[0]] = _constant_value(onnx, node, attributes)
        return
    handler = HANDLERS.get(node.op_type)
    if handler is None:
        known = ", ".join(sorted({*HANDLERS, "Constant"}))
        raise unsupported_node(node, f"operator {node.op_type}", f"one of {known}")
    links = {reading.values[name].link for name in node.input if name in reading.values} - {"identity"}
    if links and node.op_type not in SHAPE_ONLY:
        raise unsupported_node(node, f"{node.op_type} after a {links.pop()}", "a link as last node")
    reading.values[node.output[0]] = handler(node, attributes, reading)


def _constant_value(onnx: Any, node: Any, attributes: dict[str, Any]) -> np.ndarray[Any, Any]:
    if "value" in attributes:
        return np.asarray(onnx.numpy_helper.to_array(attributes["value"]))
    for name in ("value_float", "value_floats", "value_int", "value_ints"):
        if name in attributes:
            return np.asarray(attributes[name])
    raise unsupported_node(node, f"a constant given as {', '.join(attributes)}", "a tensor or numbers")


def _network_of_reading(reading: GraphReading, output: str) -> ReLUNetwork:
    if output not in reading.values:
        raise UnsupportedModel.about("model", got=f"output '{output}' that is a constant", expected="a value of x")
    last = reading.values[output]
    reading.add_layer(last)
    weights, biases = [w for w, _ in reading.layers], [b for _, b in reading.layers]
    return ReLUNetwork(weights, biases, None, last.link, reading.skips)


INPUT_BASIS = 0  # the basis "x"; basis k > 0 is the output of hidden layer k
IDENTITY_TERM: Literal["identity"] = "identity"


@dataclass(frozen=True)
class AffineValue:
    """constant + Σ_k terms[k] @ basis_k, laid out in `shape` (the batch axis left out), before a final `link`."""

    shape: tuple[int, ...]
    constant: FloatArray
    terms: dict[int, FloatArray | Literal["identity"]]
    link: Link = "identity"

    def map(self, matrix: Callable[[FloatArray], FloatArray], constant: FloatArray) -> AffineValue:
        """Apply a linear function to the term matrices and set the constant."""
        size = len(self.constant)
        dense = {k: np.eye(size) if isinstance(t, str) else t for k, t in self.terms.items()}
        return replace(self, constant=constant, terms={k: matrix(t) for k, t in dense.items()})

    def times(self, w: FloatArray, shape: tuple[int, ...]) -> AffineValue:
        """w @ self; an identity term becomes w itself, so that weights are read exactly."""
        terms = {k: w if isinstance(t, str) else w @ t for k, t in self.terms.items()}
        return AffineValue(shape, w @ self.constant, terms)  # type: ignore[arg-type]


@dataclass
class GraphReading:
    """State of one reading: named tensors and the hidden layers so far."""

    constants: dict[str, np.ndarray[Any, Any]]
    values: dict[str, AffineValue] = field(default_factory=dict)
    layers: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)
    skips: Skips = field(default_factory=dict)
    inputs: int = 0

    def add_layer(self, x: AffineValue) -> None:
        """One layer more, with this value before its ReLU."""
        below = len(self.layers)
        width = len(self.layers[-1][1]) if below else self.inputs
        self.skips |= {(source, below + 1): dense_term(x, source, 0) for source in sorted(set(x.terms) - {below})}
        self.layers.append((dense_term(x, below, width), x.constant))


def dense_term(value: AffineValue, basis: int, width: int) -> FloatArray:
    """The matrix of one term, zeros where there is none."""
    term = value.terms.get(basis)
    if term is None:
        return np.zeros((len(value.constant), width))
    return np.eye(len(value.constant)) if isinstance(term, str) else term


def unsupported_node(node: Any, got: str, expected: str) -> UnsupportedModel:
    """The error that names a node."""
    name = node.name or (node.output[0] if node.output else "?")
    fix = "The model can still be queried as an oracle."
    return UnsupportedModel.about(f"node '{name}'", got=got, expected=expected, fix=fix)


def _operand_value(node: Any, index: int, reading: GraphReading) -> AffineValue:
    if node.input[index] not in reading.values:
        raise unsupported_node(node, f"input '{node.input[index]}' that is a constant", "a value computed from x")
    return reading.values[node.input[index]]


def _operand_constant(node: Any, index: int, reading: GraphReading) -> FloatArray:
    if node.input[index] not in reading.constants:
        raise unsupported_node(node, f"input '{node.input[index]}' that is no constant", "a constant of the model")
    return np.asarray(reading.constants[node.input[index]], dtype=np.float64)


def _gemm(node: Any, attributes: dict[str, Any], reading: GraphReading) -> AffineValue:
    x, w = _operand_value(node, 0, reading), _operand_constant(node, 1, reading)
    if attributes.get("transA", 0):
        raise unsupported_node(node, "transA=1", "transA=0")
    w = w if attributes.get("transB", 0) else w.T
    alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
    if w.shape[1] != len(x.constant):
        raise unsupported_node(node, f"weights for {w.shape[1]} inputs", f"{len(x.constant)} inputs")
    y = x.times(w if alpha == 1.0 else alpha * w, (len(w),))
    if len(node.input) < 3 or not node.input[2]:
        return y
    bias = np.broadcast_to(_operand_constant(node, 2, reading).reshape(-1), y.constant.shape)
    return replace(y, constant=y.constant + (bias if beta == 1.0 else beta * bias))


def _matmul(node: Any, _: dict[str, Any], reading: GraphReading) -> AffineValue:
    x, w = _operand_value(node, 0, reading), _operand_constant(node, 1, reading)
    if w.ndim != 2 or len(x.constant) != len(w) or x.shape[-1] != len(w):
        raise unsupported_node(node, f"{x.shape} times {w.shape}", "a vector times a matrix")
    return x.times(w.T, (*x.shape[:-1], w.shape[1]))


def _relu(node: Any, _: dict[str, Any], reading: GraphReading) -> AffineValue:
    x = _operand_value(node, 0, reading)
    reading.add_layer(x)
    return AffineValue(x.shape, np.zeros(len(x.constant)), {len(reading.layers): IDENTITY_TERM})


def _leaky_relu(node: Any, attributes: dict[str, Any], reading: GraphReading) -> AffineValue:
    """a z + (1 - a) max(z, 0), with the layer z before it still in reach."""
    default_slope = 0.01
    x = _operand_value(node, 0, reading)
    if node.op_type == "PRelu":
        slopes = _broadcast_constant(node, 1, reading)
    else:
        slopes = np.full(len(x.constant), float(np.float32(attributes.get("alpha", default_slope))))
    above = _relu(node, attributes, reading).map(lambda t: t * (1 - slopes)[:, None], np.zeros(len(slopes)))
    return _sum(x.map(lambda t: t * slopes[:, None], x.constant * slopes), above)


def _batch_norm(node: Any, attributes: dict[str, Any], reading: GraphReading) -> AffineValue:
    """(z - mean) / sqrt(variance + ε) · scale + bias, as it is after training."""
    default_epsilon = 1e-5
    x, (scale, bias, mean, variance) = (
        _operand_value(node, 0, reading),
        (_operand_constant(node, k, reading).reshape(-1) for k in range(1, 5)),
    )
    if len(x.shape) != 1 or attributes.get("training_mode", 0):
        raise unsupported_node(
            node, f"batch normalisation of {x.shape}", "one number for each neuron, in evaluation mode"
        )
    factors = scale / np.sqrt(variance + attributes.get("epsilon", default_epsilon))
    return x.map(lambda t: t * factors[:, None], (x.constant - mean) * factors + bias)


def _concat(node: Any, attributes: dict[str, Any], reading: GraphReading) -> AffineValue:
    parts = [_operand_value(node, k, reading) for k in range(len(node.input))]
    if any(len(part.shape) != 1 for part in parts) or attributes.get("axis", 1) not in (1, -1):
        raise unsupported_node(node, f"a Concat over axis {attributes.get('axis')}", "rows side by side")
    constant = np.concatenate([part.constant for part in parts])
    ends = np.cumsum([len(part.constant) for part in parts])
    terms: dict[int, FloatArray | Literal["identity"]] = {}
    for basis in sorted(set().union(*(part.terms for part in parts))):
        width = reading.inputs if basis == INPUT_BASIS else len(reading.layers[basis - 1][1])
        whole = np.zeros((len(constant), width))
        for part, end in zip(parts, ends, strict=True):
            whole[end - len(part.constant) : end] = dense_term(part, basis, width)
        terms[basis] = whole
    return AffineValue(constant.shape, constant, terms)


def _add_or_sub(node: Any, _: dict[str, Any], reading: GraphReading) -> AffineValue:
    values = [name for name in node.input if name in reading.values]
    if len(values) == 2:
        return _add_values(node, *(reading.values[name] for name in values))
    if not values:
        raise unsupported_node(node, f"{node.op_type} of two constants", "a value computed from x")
    index = list(node.input).index(values[0])
    sign = -1.0 if node.op_type == "Sub" else 1.0
    x, other = reading.values[values[0]], _broadcast_constant(node, 1 - index, reading)
    if index == 0:
        return replace(x, constant=x.constant + sign * other)
    return x.map(lambda t: sign * t, other + sign * x.constant)


def _add_values(node: Any, x: AffineValue, y: AffineValue) -> AffineValue:
    if node.op_type != "Add" or x.shape != y.shape:
        raise unsupported_node(node, f"{node.op_type} of two computed values", "an Add of a layer and a skip")
    return _sum(x, y)


def _sum(x: AffineValue, y: AffineValue) -> AffineValue:
    size = len(x.constant)
    both = {k: dense_term(x, k, size) + dense_term(y, k, size) for k in set(x.terms) & set(y.terms)}
    return AffineValue(x.shape, x.constant + y.constant, {**x.terms, **y.terms, **both})


def _mul_or_div(node: Any, _: dict[str, Any], reading: GraphReading) -> AffineValue:
    index = 0 if node.input[0] in reading.values else 1
    if node.op_type == "Div" and index == 1:
        raise unsupported_node(node, "division by a computed value", "division by a constant")
    x, factors = _operand_value(node, index, reading), _broadcast_constant(node, 1 - index, reading)
    if node.op_type == "Div":
        return x.map(lambda t: t / factors[:, None], x.constant / factors)
    return x.map(lambda t: t * factors[:, None], x.constant * factors)


def _broadcast_constant(node: Any, index: int, reading: GraphReading) -> FloatArray:
    """A constant operand broadcast to the layout of the value it meets, then flattened."""
    x, constant = _operand_value(node, 1 - index, reading), _operand_constant(node, index, reading)
    try:
        return np.broadcast_to(constant, (1, *x.shape)).reshape(-1)
    except ValueError as error:
        raise unsupported_node(node, f"a constant of shape {constant.shape}", f"one that fits {x.shape}") from error


def _reshape(node: Any, attributes: dict[str, Any], reading: GraphReading) -> AffineValue:
    x = _operand_value(node, 0, reading)
    if node.op_type == "Flatten":
        if attributes.get("axis", 1) != 1:
            raise unsupported_node(node, f"axis={attributes['axis']}", "axis=1")
        return replace(x, shape=(len(x.constant),))
    if node.op_type != "Reshape":
        return x
    wanted = [int(size) for size in _operand_constant(node, 1, reading)]
    kept = (0, *x.shape)  # a size of 0 keeps the one at its place
    sizes = [kept[i] if size == 0 and i < len(kept) else size for i, size in enumerate(wanted)][1:]
    if -1 in sizes:
        known = prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = len(x.constant) // max(known, 1)
    if prod(sizes) != len(x.constant):
        raise unsupported_node(node, f"reshape to {wanted}", f"a shape of {len(x.constant)} values a row")
    return replace(x, shape=tuple(sizes))


OVER_CLASSES: dict[str, Link] = {"Softmax": "softmax", "LogSoftmax": "log-softmax"}
LINK_OPS: dict[str, Link] = {**OVER_CLASSES, "Sigmoid": "sigmoid", "Tanh": "tanh"}


def _link_node(node: Any, attributes: dict[str, Any], reading: GraphReading) -> AffineValue:
    x = _operand_value(node, 0, reading)
    if node.op_type in OVER_CLASSES and attributes.get("axis", -1) not in (-1, len(x.shape)):
        raise unsupported_node(node, f"softmax over axis {attributes['axis']}", "softmax over the last axis")
    return replace(x, link=LINK_OPS[node.op_type])


SHAPE_ONLY = {"Flatten", "Reshape", "Identity", "Dropout"}

HANDLERS: dict[str, Callable[[Any, dict[str, Any], GraphReading], AffineValue]] = {
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Relu": _relu,
    **dict.fromkeys(("LeakyRelu", "PRelu"), _leaky_relu),
    "BatchNormalization": _batch_norm,
    "Concat": _concat,
    "Add": _add_or_sub,
    "Sub": _add_or_sub,
    "Mul": _mul_or_div,
    "Div": _mul_or_div,
    **dict.fromkeys(LINK_OPS, _link_node),
    **dict.fromkeys(SHAPE_ONLY, _reshape),
}

# Read by every runtime of the last years; nothing newer is needed for Gemm and Relu.
OPSET = 17
IR_VERSION = 8

LINK_NODES = {
    "softmax": ("Softmax", {"axis": -1}),
    "sigmoid": ("Sigmoid", {}),
    "log-softmax": ("LogSoftmax", {"axis": -1}),
    "tanh": ("Tanh", {}),
}


def write_onnx(network: ReLUNetwork, path: Path, dtype: Literal["float64", "float32"] = "float64") -> None:
    """Write the network with a free batch size."""
    onnx = require("onnx", extra="onnx", purpose="Writing an .onnx file")
    graph = _GraphWriter(onnx, np.dtype(dtype))
    names = ["input"]
    for k, b in enumerate(network.biases, 1):
        hidden = _write_layer(graph, network, k, b, names)
        names.append(hidden if k == network.depth else graph.node("Relu", [hidden], f"relu_{k}"))
    if network.link != "identity":
        op, attributes = LINK_NODES[network.link]
        hidden = graph.node(op, [hidden], network.link, **attributes)
    with replacement(path) as fresh:
        onnx.save(graph.model(network, hidden), str(fresh))


def _write_layer(graph: _GraphWriter, network: ReLUNetwork, k: int, b: FloatArray, names: list[str]) -> str:
    """Weight layer k: of the layer before, plus an affine term, or of several layers side by side."""
    incoming = network.incoming(k) if not network.is_chain else {k - 1: network.weights[k - 1]}
    if len(incoming) > 1:
        below = graph.node("Concat", [names[source] for source in incoming], f"below_{k}", axis=1)
        return graph.gemm(below, np.hstack(list(incoming.values())), b, f"layer_{k}")
    (source, w), *_ = incoming.items()
    hidden = graph.gemm(names[source], w, b, f"layer_{k}")
    if k < network.depth or network.skip is None or not network.is_chain:
        return hidden
    skip = graph.gemm("input", network.skip, None, "skip")
    return graph.node("Add", [hidden, skip], "with_skip")


class _GraphWriter:
    """Nodes and initializers as they are added; names are the names of the layers."""

    def __init__(self, onnx: Any, dtype: np.dtype[Any]) -> None:
        self.onnx, self.dtype = onnx, dtype
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def constant(self, values: np.ndarray[Any, Any], name: str) -> str:
        self.initializers.append(self.onnx.numpy_helper.from_array(values.astype(self.dtype), name))
        return name

    def node(self, op: str, inputs: list[str], output: str, **attributes: object) -> str:
        self.nodes.append(self.onnx.helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def gemm(self, x: str, w: np.ndarray[Any, Any], b: np.ndarray[Any, Any] | None, name: str) -> str:
        inputs = [x, self.constant(w, f"{name}.weight")]
        if b is not None:
            inputs.append(self.constant(b, f"{name}.bias"))
        return self.node("Gemm", inputs, name, transB=1)

    def model(self, network: ReLUNetwork, output: str) -> Any:
        helper = self.onnx.helper
        element = helper.np_dtype_to_tensor_dtype(self.dtype)
        self.node("Identity", [output], "output")
        graph = helper.make_graph(
            self.nodes,
            "reluctant",
            [helper.make_tensor_value_info("input", element, ["batch", network.dim])],
            [helper.make_tensor_value_info("output", element, ["batch", network.outputs])],
            initializer=self.initializers,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="reluctant",
            producer_version=__version__,
        )
        self.onnx.checker.check_model(model)
        return model
