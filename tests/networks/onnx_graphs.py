"""Small ONNX graphs written out node by node, and the runtime's own answer to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

# What onnx and its runtime of the last years all read.
OPSET, IR_VERSION, IR_WITH_INITIALIZERS_AS_INPUTS = 17, 8, 3


def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    """One node, named after its output; inputs are separated by spaces."""
    return helper.make_node(op, inputs.split(), [output], name=output, **attributes)


def constant(output: str, **attribute: Any) -> onnx.NodeProto:
    """A Constant node; an array is given as `value`."""
    if "value" in attribute:
        attribute["value"] = numpy_helper.from_array(np.asarray(attribute["value"]), output)
    return helper.make_node("Constant", [], [output], name=output, **attribute)


@dataclass
class Graph:
    """A graph from inputs to the output "y", in one number format."""

    nodes: Sequence[onnx.NodeProto]
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[str, tuple[int | None, ...]] = field(default_factory=lambda: {"x": (None, 4)})
    initializers_as_inputs: bool = False
    dtype: type = np.float64

    def save(self, path: Path) -> Path:
        """Check the graph and write it."""
        constants = {name: self._cast(np.asarray(array)) for name, array in self.constants.items()}
        values = [self._value(name, ["batch", *shape[1:]]) for name, shape in self.inputs.items()]
        if self.initializers_as_inputs:
            values += [self._value(name, array.shape) for name, array in constants.items()]
        tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
        graph = helper.make_graph(
            self.nodes, "graph", values, [self._value("y", ["rows", "outputs"])], initializer=tensors
        )
        ir_version = IR_WITH_INITIALIZERS_AS_INPUTS if self.initializers_as_inputs else IR_VERSION
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=ir_version)
        onnx.checker.check_model(model)
        onnx.save(model, str(path))
        return path

    def _cast(self, array: np.ndarray) -> np.ndarray:
        return array.astype(self.dtype) if array.dtype.kind == "f" else array

    def _value(self, name: str, shape: Sequence[int | str | None]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype)), shape)


def run_onnx(path: Path, rows: np.ndarray) -> np.ndarray:
    """The runtime's answers to flat rows, one flat row each."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    x = session.get_inputs()[0]
    shape = [size for size in x.shape[1:] if isinstance(size, int)]
    dtype = np.float32 if x.type == "tensor(float)" else np.float64
    answers = session.run(None, {x.name: rows.astype(dtype).reshape(-1, *shape)})[0]
    return answers.reshape(len(rows), -1)
