"""Re-cast an ONNX graph to float64: its constants, its types and its casts, not its answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluctant.optional import require

__all__ = ["recast_to_double"]


def recast_to_double(model: Any) -> Any:
    """A copy of the model that computes in float64 with the same (exactly converted) constants."""
    onnx = require("onnx", extra="onnx", purpose="precision='float64'")
    double = type(model)()
    double.CopyFrom(model)
    graph = double.graph
    for tensor in graph.initializer:
        _recast_tensor(onnx, tensor)
    for node in graph.node:
        _recast_node(onnx, node)
    del graph.value_info[:]  # inferred again by the runtime
    for value in (*graph.input, *graph.output):
        tensor_type = value.type.tensor_type
        if tensor_type.elem_type in _narrow(onnx):
            tensor_type.elem_type = onnx.TensorProto.DOUBLE
    return double


def _narrow(onnx: Any) -> set[int]:
    return {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16}


def _recast_tensor(onnx: Any, tensor: Any) -> None:
    if tensor.data_type in _narrow(onnx):
        values = onnx.numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))


def _recast_node(onnx: Any, node: Any) -> None:
    for attribute in node.attribute:
        if attribute.HasField("t"):
            _recast_tensor(onnx, attribute.t)
        elif node.op_type == "Cast" and attribute.name == "to" and attribute.i in _narrow(onnx):
            attribute.i = onnx.TensorProto.DOUBLE
        elif node.op_type == "Constant" and attribute.name in {"value_float", "value_floats"}:
            values = onnx.helper.get_attribute_value(attribute)
            tensor = onnx.numpy_helper.from_array(np.asarray(values, dtype=np.float64))
            attribute.CopyFrom(onnx.helper.make_attribute("value", tensor))
