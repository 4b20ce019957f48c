"""Operators of an ONNX graph, one small function each: what they make of affine functions of the input.

Every tensor is an affine function of the input and of the hidden layers met so far; a Relu starts a new one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Literal

import numpy as np

from reluctant.errors import UnsupportedModel
from reluctant.networks.network import Link
from reluctant.numerics import FloatArray

__all__ = ["HANDLERS", "IDENTITY", "INPUT", "SHAPE_ONLY", "Affine", "Reading", "dense", "unsupported"]

INPUT = 0  # the basis "x"; basis k > 0 is the output of hidden layer k
IDENTITY: Literal["identity"] = "identity"


@dataclass(frozen=True)
class Affine:
    """constant + Σ_k terms[k] @ basis_k, laid out in `shape` (the batch axis left out), before a final `link`."""

    shape: tuple[int, ...]
    constant: FloatArray
    terms: dict[int, FloatArray | Literal["identity"]]
    link: Link = "identity"

    def map(self, matrix: Callable[[FloatArray], FloatArray], constant: FloatArray) -> Affine:
        """Apply a linear function to the term matrices and set the constant."""
        size = len(self.constant)
        dense = {k: np.eye(size) if isinstance(t, str) else t for k, t in self.terms.items()}
        return replace(self, constant=constant, terms={k: matrix(t) for k, t in dense.items()})

    def times(self, w: FloatArray, shape: tuple[int, ...]) -> Affine:
        """w @ self; an identity term becomes w itself, so that weights are read exactly."""
        terms = {k: w if isinstance(t, str) else w @ t for k, t in self.terms.items()}
        return Affine(shape, w @ self.constant, terms)  # type: ignore[arg-type]


@dataclass
class Reading:
    """State of one reading: named tensors and the hidden layers so far."""

    constants: dict[str, np.ndarray[Any, Any]]
    values: dict[str, Affine] = field(default_factory=dict)
    layers: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)


def dense(value: Affine, basis: int, width: int) -> FloatArray:
    """The matrix of one term, zeros where there is none."""
    term = value.terms.get(basis)
    if term is None:
        return np.zeros((len(value.constant), width))
    return np.eye(len(value.constant)) if isinstance(term, str) else term


def unsupported(node: Any, got: str, expected: str) -> UnsupportedModel:
    """The error that names a node."""
    name = node.name or (node.output[0] if node.output else "?")
    fix = "The model can still be queried as an oracle."
    return UnsupportedModel.about(f"node '{name}'", got=got, expected=expected, fix=fix)


def _value(node: Any, index: int, reading: Reading) -> Affine:
    if node.input[index] not in reading.values:
        raise unsupported(node, f"input '{node.input[index]}' that is a constant", "a value computed from x")
    return reading.values[node.input[index]]


def _constant(node: Any, index: int, reading: Reading) -> FloatArray:
    if node.input[index] not in reading.constants:
        raise unsupported(node, f"input '{node.input[index]}' that is no constant", "a constant of the model")
    return np.asarray(reading.constants[node.input[index]], dtype=np.float64)


def _gemm(node: Any, attributes: dict[str, Any], reading: Reading) -> Affine:
    x, w = _value(node, 0, reading), _constant(node, 1, reading)
    if attributes.get("transA", 0):
        raise unsupported(node, "transA=1", "transA=0")
    w = w if attributes.get("transB", 0) else w.T
    alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
    if w.shape[1] != len(x.constant):
        raise unsupported(node, f"weights for {w.shape[1]} inputs", f"{len(x.constant)} inputs")
    y = x.times(w if alpha == 1.0 else alpha * w, (len(w),))
    if len(node.input) < 3 or not node.input[2]:
        return y
    bias = np.broadcast_to(_constant(node, 2, reading).reshape(-1), y.constant.shape)
    return replace(y, constant=y.constant + (bias if beta == 1.0 else beta * bias))


def _matmul(node: Any, _: dict[str, Any], reading: Reading) -> Affine:
    x, w = _value(node, 0, reading), _constant(node, 1, reading)
    if w.ndim != 2 or len(x.constant) != len(w) or x.shape[-1] != len(w):
        raise unsupported(node, f"{x.shape} times {w.shape}", "a vector times a matrix")
    return x.times(w.T, (*x.shape[:-1], w.shape[1]))


def _relu(node: Any, _: dict[str, Any], reading: Reading) -> Affine:
    x, below = _value(node, 0, reading), len(reading.layers)
    if set(x.terms) - {below}:
        raise unsupported(node, "a ReLU of more than the layer before it", "layers in a chain")
    width = len(reading.layers[-1][1]) if below else len(x.constant)
    reading.layers.append((dense(x, below, width), x.constant))
    return Affine(x.shape, np.zeros(len(x.constant)), {below + 1: IDENTITY})


def _sum(node: Any, _: dict[str, Any], reading: Reading) -> Affine:
    values = [name for name in node.input if name in reading.values]
    if len(values) == 2:
        return _add_values(node, *(reading.values[name] for name in values))
    if not values:
        raise unsupported(node, f"{node.op_type} of two constants", "a value computed from x")
    index = list(node.input).index(values[0])
    sign = -1.0 if node.op_type == "Sub" else 1.0
    x, other = reading.values[values[0]], _spread(node, 1 - index, reading)
    if index == 0:
        return replace(x, constant=x.constant + sign * other)
    return x.map(lambda t: sign * t, other + sign * x.constant)


def _add_values(node: Any, x: Affine, y: Affine) -> Affine:
    if node.op_type != "Add" or x.shape != y.shape:
        raise unsupported(node, f"{node.op_type} of two computed values", "an Add of a layer and a skip term")
    size = len(x.constant)
    both = {k: dense(x, k, size) + dense(y, k, size) for k in set(x.terms) & set(y.terms)}
    return Affine(x.shape, x.constant + y.constant, {**x.terms, **y.terms, **both})


def _scale(node: Any, _: dict[str, Any], reading: Reading) -> Affine:
    index = 0 if node.input[0] in reading.values else 1
    if node.op_type == "Div" and index == 1:
        raise unsupported(node, "division by a computed value", "division by a constant")
    x, factors = _value(node, index, reading), _spread(node, 1 - index, reading)
    if node.op_type == "Div":
        return x.map(lambda t: t / factors[:, None], x.constant / factors)
    return x.map(lambda t: t * factors[:, None], x.constant * factors)


def _spread(node: Any, index: int, reading: Reading) -> FloatArray:
    """A constant operand broadcast to the layout of the value it meets, then flattened."""
    x, constant = _value(node, 1 - index, reading), _constant(node, index, reading)
    try:
        return np.broadcast_to(constant, (1, *x.shape)).reshape(-1)
    except ValueError as error:
        raise unsupported(node, f"a constant of shape {constant.shape}", f"one that fits {x.shape}") from error


def _reshape(node: Any, attributes: dict[str, Any], reading: Reading) -> Affine:
    x = _value(node, 0, reading)
    if node.op_type == "Flatten":
        if attributes.get("axis", 1) != 1:
            raise unsupported(node, f"axis={attributes['axis']}", "axis=1")
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
        raise unsupported(node, f"reshape to {wanted}", f"a shape of {len(x.constant)} values a row")
    return replace(x, shape=tuple(sizes))


OVER_CLASSES: dict[str, Link] = {"Softmax": "softmax", "LogSoftmax": "log-softmax"}
LINK_OPS: dict[str, Link] = {**OVER_CLASSES, "Sigmoid": "sigmoid", "Tanh": "tanh"}


def _link(node: Any, attributes: dict[str, Any], reading: Reading) -> Affine:
    x = _value(node, 0, reading)
    if node.op_type in OVER_CLASSES and attributes.get("axis", -1) not in (-1, len(x.shape)):
        raise unsupported(node, f"softmax over axis {attributes['axis']}", "softmax over the last axis")
    return replace(x, link=LINK_OPS[node.op_type])


SHAPE_ONLY = {"Flatten", "Reshape", "Identity", "Dropout"}

HANDLERS: dict[str, Callable[[Any, dict[str, Any], Reading], Affine]] = {
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Relu": _relu,
    "Add": _sum,
    "Sub": _sum,
    "Mul": _scale,
    "Div": _scale,
    **dict.fromkeys(LINK_OPS, _link),
    **dict.fromkeys(SHAPE_ONLY, _reshape),
}
