"""Adapter for ONNX files through onnxruntime, as served or re-cast to float64.

Operators that onnxruntime has in float32 alone run in float64 by onnx's own evaluator.

Any graph with one float input runs, whatever its operators. Re-casting changes constants, types and casts of the
graph, not its answers afterwards. A copy carries the model itself, so it can go where the file is not.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from reluctant.errors import UnsupportedModel, require
from reluctant.networks.onnx import load_onnx_model
from reluctant.numerics import FloatArray
from reluctant.oracles.adapters.dispatch import call_target
from reluctant.oracles.base import Facts, Kind, Oracle, as_answers

FLOAT_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
ERRORS_ONLY = 3  # onnxruntime's severity for errors only


class OnnxOracle(Oracle):
    """Asks a model file; an input of any shape is given flat, row by row.

    Arguments:
        path: the .onnx file.
        precision: "as-served" runs the graph as it is; "float64" re-casts its constants and types first.
    """

    def __init__(self, path: str | Path, precision: Literal["as-served", "float64"] = "as-served") -> None:
        self.path = Path(path)
        self._precision = precision
        self._graph = _serialised_model(self.path, precision)  # the file may change: copies must be of what was opened
        self._session = _open_session(self._graph, self.path, precision)
        asked = self._session.get_inputs()[0]
        self._input = asked.name
        self._output = _float_output(self._session, self.path)
        self._dtype = np.dtype(FLOAT_TYPES[asked.type])
        sizes = asked.shape[1:]
        if not all(isinstance(size, int) and size > 0 for size in sizes):
            raise UnsupportedModel.about(
                "target", got=f"input '{asked.name}' of shape {asked.shape}",
                expected="fixed sizes after the batch axis",
            )  # fmt: skip
        self._shape = tuple(sizes)
        self._batch = asked.shape[0] if isinstance(asked.shape[0], int) else None
        self._facts = self._gather_facts(precision)

    def _gather_facts(self, precision: str) -> Facts:
        # The model as loaded, not the file: weights may live in a file of their own.
        model = load_onnx_model(self.path)
        digest = hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()
        rows = np.zeros((self._batch or 1, prod(self._shape)))  # evaluated on this machine: nobody's service is asked
        return Facts(
            dim=prod(self._shape),
            outputs=as_answers(self._run(rows), len(rows), None).shape[1],
            dtype=self._dtype,
            kind=_kind_of_output(model.graph, self._output),
            name=self.path.name,
            identity=f"onnx sha256:{digest} {precision}",
            recast=self._dtype != np.float64,
        )

    @property
    def facts(self) -> Facts:
        """Facts read off the file."""
        return self._facts

    def answer(self, rows: FloatArray) -> FloatArray:
        """Run the graph, in batches of its own size if that is fixed."""
        if self._batch is None:
            return as_answers(self._run(rows), len(rows), self._facts.outputs)
        full = np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % self._batch, axis=0)])
        parts = [self._run(full[i : i + self._batch]) for i in range(0, len(full), self._batch)]
        answers = [as_answers(part, self._batch, self._facts.outputs) for part in parts]
        return np.concatenate(answers)[: len(rows)]

    def _run(self, rows: FloatArray) -> Any:
        feed = {self._input: rows.astype(self._dtype, copy=False).reshape(-1, *self._shape)}
        return call_target(lambda x: self._session.run([self._output], x)[0], feed)

    def __getstate__(self) -> dict[str, Any]:
        """With the model in the place of the session that runs it: it may go where the file is not."""
        return {name: value for name, value in vars(self).items() if name != "_session"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._session = _open_session(self._graph, self.path, self._precision)

    def __repr__(self) -> str:
        return f"OnnxOracle({self._facts.name})"


def _serialised_model(path: Path, precision: str) -> bytes:
    """The model, serialised, in the precision it is asked in."""
    model = load_onnx_model(path)
    return bytes((recast_to_double(model) if precision == "float64" else model).SerializeToString())


def _open_session(graph: bytes, path: Path, precision: str) -> Any:
    runtime = require("onnxruntime", extra="onnx", purpose="Asking an .onnx file")
    options = runtime.SessionOptions()
    options.log_severity_level = ERRORS_ONLY
    session: Any
    try:
        try:
            session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            if precision != "float64" or NO_KERNEL not in str(error):
                raise
            session = ReferenceSession(graph)
    except Exception as error:
        where = " in float64 (a torch module can be re-cast instead)" if precision == "float64" else ""
        raise UnsupportedModel.about(
            "target",
            got=f"'{path}'",
            expected=f"a model that onnxruntime can run{where}",
            fix=f"It says: {error}",
        ) from error
    inputs = session.get_inputs()
    if len(inputs) != 1 or inputs[0].type not in FLOAT_TYPES or len(inputs[0].shape) < 1:
        found = ", ".join(f"{i.name}: {i.type} {i.shape}" for i in inputs)
        raise UnsupportedModel.about("target", got=f"'{path}' with inputs {found}", expected="one float input")
    return session


NO_KERNEL = "NOT_IMPLEMENTED"  # onnxruntime has no double kernel for an operator
TRIED_ROWS = 16  # at which a graph is asked whether it computes in float64


@dataclass(frozen=True)
class Port:
    """An input or output of a graph, in onnxruntime's words."""

    name: str
    type: str
    shape: tuple[int | str, ...]


class ReferenceSession:
    """A graph in float64 by onnx's own evaluator in numpy: for operators that onnxruntime has in float32 alone."""

    def __init__(self, graph: bytes) -> None:
        onnx = require("onnx", extra="onnx", purpose="precision='float64'")
        reference = require("onnx.reference", extra="onnx", purpose="precision='float64'")
        self._model = onnx.load_model_from_string(graph)
        self._evaluator = reference.ReferenceEvaluator(self._model, new_ops=[_erf_in_double()])
        # A graph whose answers are float32 numbers is refused: an operator of it rounds to them.
        asked = self.get_inputs()[0]
        sizes = [size if isinstance(size, int) else TRIED_ROWS for size in asked.shape]
        rows = np.random.default_rng(0).standard_normal(sizes)
        for answers in self.run(
            [port.name for port in self.get_outputs() if port.type in FLOAT_TYPES], {asked.name: rows}
        ):
            values = np.asarray(answers)
            if values.dtype != np.float64 or (values.size and np.array_equal(values, values.astype(np.float32))):
                raise ValueError("an operator of the model computes in float32")

    def get_inputs(self) -> list[Port]:
        """Inputs that are given, not constants."""
        constants = {tensor.name for tensor in self._model.graph.initializer}
        return [_port(value) for value in self._model.graph.input if value.name not in constants]

    def get_outputs(self) -> list[Port]:
        """Every output."""
        return [_port(value) for value in self._model.graph.output]

    def run(self, outputs: list[str], feed: dict[str, Any]) -> Any:
        """Values of these outputs."""
        return self._evaluator.run(outputs, feed)


def _port(value: Any) -> Port:
    tensor = value.type.tensor_type
    kind = {1: "tensor(float)", 10: "tensor(float16)", 11: "tensor(double)"}.get(tensor.elem_type, "other")
    return Port(
        value.name, kind, tuple(d.dim_value if d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim)
    )


def _erf_in_double() -> Any:
    """The error function in all digits: onnx's own rounds it to float32."""
    from onnx.reference.op_run import OpRun
    from scipy.special import erf

    class Erf(OpRun):  # type: ignore[misc, unused-ignore]
        op_domain = ""

        def _run(self, x: Any) -> Any:
            return (erf(x),)

    return Erf


def _float_output(session: Any, path: Path) -> str:
    for output in session.get_outputs():
        if output.type in FLOAT_TYPES:
            return str(output.name)
    found = ", ".join(f"{o.name}: {o.type}" for o in session.get_outputs())
    raise UnsupportedModel.about("target", got=f"'{path}' with outputs {found}", expected="a float output")


def _kind_of_output(graph: Any, output: str) -> Kind:
    """Probabilities if the output comes from a softmax or sigmoid, seen through shape-only nodes."""
    producers = {name: node for node in graph.node for name in node.output}
    node = producers.get(output)
    while node is not None and node.op_type in {"Identity", "Reshape", "Flatten", "Cast"}:
        node = producers.get(node.input[0])
    is_link = node is not None and node.op_type in {"Softmax", "Sigmoid"}
    return Kind.PROBABILITIES if is_link else Kind.VALUES


def recast_to_double(model: Any) -> Any:
    """A copy of the model that computes in float64 with the same (exactly converted) constants."""
    onnx = require("onnx", extra="onnx", purpose="precision='float64'")
    double = type(model)()
    double.CopyFrom(model)
    graph = double.graph
    _recast_scalers(onnx, graph)
    for tensor in graph.initializer:
        _recast_tensor(onnx, tensor)
    for node in graph.node:
        _recast_node(onnx, node)
    del graph.value_info[:]  # inferred again by the runtime
    for value in (*graph.input, *graph.output):
        tensor_type = value.type.tensor_type
        if tensor_type.elem_type in _narrow_types(onnx):
            tensor_type.elem_type = onnx.TensorProto.DOUBLE
    return double


ML_DOMAIN = "ai.onnx.ml"
OF_LABELS = {"ZipMap", "ArrayFeatureExtractor", "LabelEncoder", "CategoryMapper"}  # they pass numbers on, or make none


def _recast_scalers(onnx: Any, graph: Any) -> None:
    """Scalers as (x - offset) · scale in float64; a model with other nodes that compute in float32 alone is refused."""
    nodes = []
    for node in graph.node:
        if node.domain != ML_DOMAIN or node.op_type in OF_LABELS:
            nodes.append(node)
        elif node.op_type == "Scaler":
            nodes += _scaler_in_double(onnx, node, graph)
        else:
            raise UnsupportedModel.about(
                "precision", got=f"'float64' for a model with a node {node.op_type}, which computes in float32 alone",
                expected="'as-served' for it", fix="Leave precision out, or export the model without this node.",
            )  # fmt: skip
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _scaler_in_double(onnx: Any, node: Any, graph: Any) -> list[Any]:
    given = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    names = []
    for part, usual in (("offset", [0.0]), ("scale", [1.0])):
        names.append(f"{node.output[0]}_{part}_in_double")
        values = np.asarray(given.get(part, usual), dtype=np.float64)
        graph.initializer.append(onnx.numpy_helper.from_array(values, names[-1]))
    moved = f"{node.output[0]}_moved_in_double"
    return [
        onnx.helper.make_node("Sub", [node.input[0], names[0]], [moved]),
        onnx.helper.make_node("Mul", [moved, names[1]], list(node.output)),
    ]


def _narrow_types(onnx: Any) -> set[int]:
    return {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16}


def _recast_tensor(onnx: Any, tensor: Any) -> None:
    if tensor.data_type in _narrow_types(onnx):
        values = onnx.numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))


def _recast_node(onnx: Any, node: Any) -> None:
    for attribute in node.attribute:
        if attribute.HasField("t"):
            _recast_tensor(onnx, attribute.t)
        elif node.op_type == "Cast" and attribute.name == "to" and attribute.i in _narrow_types(onnx):
            attribute.i = onnx.TensorProto.DOUBLE
        elif node.op_type == "Constant" and attribute.name in {"value_float", "value_floats"}:
            values = onnx.helper.get_attribute_value(attribute)
            tensor = onnx.numpy_helper.from_array(np.asarray(values, dtype=np.float64))
            attribute.CopyFrom(onnx.helper.make_attribute("value", tensor))
