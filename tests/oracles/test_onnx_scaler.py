"""Nodes of ONNX-ML in float64: a scaler is computed there, and what stays in float32 is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

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
