"""Write a ReLUNetwork as ONNX: Gemm and Relu, one Gemm and Add for a skip, the link as last node."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from reluctant._version import __version__
from reluctant.networks.network import ReLUNetwork
from reluctant.optional import require

__all__ = ["write_onnx"]

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
    graph = _Graph(onnx, np.dtype(dtype))
    hidden = "input"
    for k, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        if k:
            hidden = graph.node("Relu", [hidden], f"relu_{k}")
        hidden = graph.gemm(hidden, w, b, f"layer_{k + 1}")
    if network.skip is not None:
        skip = graph.gemm("input", network.skip, None, "skip")
        hidden = graph.node("Add", [hidden, skip], "with_skip")
    if network.link != "identity":
        op, attributes = LINK_NODES[network.link]
        hidden = graph.node(op, [hidden], network.link, **attributes)
    onnx.save(graph.model(network, hidden), str(path))


class _Graph:
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
