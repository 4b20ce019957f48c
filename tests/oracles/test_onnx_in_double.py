"""ONNX in float64: scalers and operators without a double kernel are computed; what stays in float32 is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf

import reluctant as rl
from reluctant.errors import UnsupportedModel

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def model(op, path, **attributes):
    """A file of one ONNX-ML node on three inputs."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    node = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    ends = [[helper.make_tensor_value_info(name, kind, [None, 3])] for name in "xy"]
    graph = helper.make_graph([node], "scaled", *ends)
    versions = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 1)]
    onnx.save(helper.make_model(graph, opset_imports=versions, ir_version=8), path)
    return path


def test_a_scaler_is_computed_in_float64(tmp_path):
    offset, scale = [0.1, 0.2, 0.3], [3.0, 0.7, 1e-3]
    path = model("Scaler", tmp_path / "scaler.onnx", offset=offset, scale=scale)
    rows = np.random.default_rng(0).normal(size=(20, 3))
    truth = (rows - np.float32(offset).astype(float)) * np.float32(scale).astype(float)
    answers = rl.open_oracle(path, precision="float64").query(rows)
    assert np.abs(answers - truth).max() < 1e-14
    assert np.abs(rl.open_oracle(path).query(rows) - truth).max() < 1e-6


def test_a_node_that_stays_in_float32_is_refused_by_name(tmp_path):
    path = model("Normalizer", tmp_path / "norm.onnx", norm="L2")
    with pytest.raises(UnsupportedModel, match="Normalizer, which computes in float32 alone"):
        rl.open_oracle(path, precision="float64")


def layered(path, op, **attributes):
    """A file of one dense layer 3-4, this operator, and one 4-2; with its weights."""
    rng, helper, kind = np.random.default_rng(1), onnx.helper, onnx.TensorProto.FLOAT
    weights = [rng.normal(size=shape).astype(np.float32) for shape in ((3, 4), (4, 2))]
    tensors = [onnx.numpy_helper.from_array(w, name) for w, name in zip(weights, "vw", strict=True)]
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["h"]), helper.make_node(op, ["h"], ["a"], **attributes),
        helper.make_node("MatMul", ["a", "w"], ["y"]),
    ]  # fmt: skip
    ends = [[helper.make_tensor_value_info(name, kind, [None, size])] for name, size in (("x", 3), ("y", 2))]
    graph = helper.make_graph(nodes, "layered", *ends, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path, [w.astype(float) for w in weights]


@pytest.mark.parametrize(
    ("op", "attributes", "function"),
    [("LeakyRelu", {"alpha": 0.25}, lambda h: np.where(h > 0, h, 0.25 * h)), ("Erf", {}, erf)],
)
def test_operators_without_a_double_kernel_keep_all_digits(tmp_path, op, attributes, function):
    path, (v, w) = layered(tmp_path / "model.onnx", op, **attributes)
    rows = np.random.default_rng(0).normal(size=(20, 3))
    oracle = rl.open_oracle(path, precision="float64")
    assert np.abs(oracle.query(rows) - function(rows @ v) @ w).max() < 1e-14
    assert oracle.facts.dtype == np.float64


def test_a_leaky_network_in_a_file_is_recovered_in_float64(tmp_path):
    path, _ = layered(tmp_path / "model.onnx", "LeakyRelu", alpha=0.25)
    result = rl.extract(path, precision="float64")
    assert result.ok
    assert result.network.widths == (3, 4, 2)
