"""ONNX files of scikit-learn models, written node by node as the usual converters write them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ML_DOMAIN = "ai.onnx.ml"
VERSIONS = [helper.make_opsetid("", 15), helper.make_opsetid(ML_DOMAIN, 3)]
LABEL, PROBABILITIES = "label", "probabilities"


def save_pipeline(pipeline: Any, path: Path, dtype: type = np.float32) -> Path:
    """A scaler and an MLP: in float32 with a Scaler node, in float64 by Sub and Div, as converters do."""
    scaler, model = (step for _, step in pipeline.steps)
    nodes, constants = _scaler(scaler, dtype)
    value = "scaled"
    for i, (weights, bias) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        last = i == len(model.coefs_) - 1
        constants += [_constant(f"w{i}", weights, dtype), _constant(f"b{i}", bias, dtype)]
        nodes += [helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"])]
        nodes += [helper.make_node("Add", [f"m{i}", f"b{i}"], [f"a{i}"])]
        nodes += [] if last else [helper.make_node("Relu", [f"a{i}"], [f"h{i}"])]
        value = f"a{i}" if last else f"h{i}"
    outputs, output = model.coefs_[-1].shape[1], "variable"
    if hasattr(model, "classes_"):
        links, more = _class_probabilities(value, outputs, dtype)
        nodes, constants, output, outputs = nodes + links, constants + more, PROBABILITIES, max(outputs, 2)
    else:
        nodes.append(helper.make_node("Identity", [value], [output]))
    return _saved(nodes, constants, pipeline.n_features_in_, [(output, outputs)], path, dtype)


def _class_probabilities(value: str, outputs: int, dtype: type) -> tuple[list[Any], list[Any]]:
    """A softmax; of two classes [1 - p, p] of a sigmoid."""
    if outputs > 1:
        return [helper.make_node("Softmax", [value], [PROBABILITIES], axis=1)], []
    nodes = [
        helper.make_node("Sigmoid", [value], ["p"]),
        helper.make_node("Sub", ["one", "p"], ["q"]),
        helper.make_node("Concat", ["q", "p"], [PROBABILITIES], axis=1),
    ]
    return nodes, [_constant("one", np.ones(1), dtype)]


def save_forest(model: Any, path: Path) -> Path:
    """A forest, or one tree: labels beside probabilities of a classifier, values of a regressor; in float32."""
    trees = [each.tree_ for each in getattr(model, "estimators_", [model])]
    classes = len(model.classes_) if hasattr(model, "classes_") else 0
    nodes = [_nodes(tree, k) for k, tree in enumerate(trees)]
    given: dict[str, Any] = {name: list(chain(*(each[name] for each in nodes))) for name in nodes[0]}
    leaves = [_leaves(tree, k, classes, len(trees)) for k, tree in enumerate(trees)]
    part = "class" if classes else "target"
    for at, name in enumerate(("treeids", "nodeids", "ids", "weights")):
        given[f"{part}_{name}"] = list(chain(*(each[at] for each in leaves)))
    dim = model.n_features_in_
    if classes:
        given["classlabels_int64s"] = list(range(classes))
        node = helper.make_node("TreeEnsembleClassifier", ["x"], [LABEL, PROBABILITIES], domain=ML_DOMAIN, **given)
        return _saved([node], [], dim, [(LABEL, None), (PROBABILITIES, classes)], path, np.float32)
    node = helper.make_node("TreeEnsembleRegressor", ["x"], ["variable"], domain=ML_DOMAIN, n_targets=1, **given)
    return _saved([node], [], dim, [("variable", 1)], path, np.float32)


def _nodes(tree: Any, k: int) -> dict[str, list[Any]]:
    """Splits of one tree; a leaf has none."""
    leaf = tree.children_left < 0
    return {
        "nodes_treeids": [k] * tree.node_count,
        "nodes_nodeids": list(range(tree.node_count)),
        "nodes_featureids": [max(int(i), 0) for i in tree.feature],
        "nodes_values": [0.0 if end else float(at) for at, end in zip(tree.threshold, leaf, strict=True)],
        "nodes_modes": ["LEAF" if end else "BRANCH_LEQ" for end in leaf],
        "nodes_truenodeids": [max(int(i), 0) for i in tree.children_left],
        "nodes_falsenodeids": [max(int(i), 0) for i in tree.children_right],
    }


def _leaves(tree: Any, k: int, classes: int, trees: int) -> tuple[list[int], list[int], list[int], list[float]]:
    """Tree, node, output and weight of each leaf, once for each output."""
    ends = np.flatnonzero(tree.children_left < 0)
    values = tree.value[ends, 0]
    shares = values / values.sum(axis=1, keepdims=True) if classes else values
    outputs = max(classes, 1)
    ids = [int(node) for node in ends for _ in range(outputs)]
    weights = [float(share) / trees for row in shares for share in row]
    return [k] * len(ids), ids, list(range(outputs)) * len(ends), weights


def _scaler(scaler: Any, dtype: type) -> tuple[list[Any], list[Any]]:
    if dtype is np.float32:
        offset, scale = scaler.mean_.tolist(), (1 / scaler.scale_).tolist()
        return [helper.make_node("Scaler", ["x"], ["scaled"], domain=ML_DOMAIN, offset=offset, scale=scale)], []
    nodes = [helper.make_node("Sub", ["x", "mean"], ["moved"]), helper.make_node("Div", ["moved", "sd"], ["scaled"])]
    return nodes, [_constant("mean", scaler.mean_, dtype), _constant("sd", scaler.scale_, dtype)]


def _constant(name: str, values: Any, dtype: type) -> Any:
    return numpy_helper.from_array(np.asarray(values, dtype=dtype), name)


def _saved(
    nodes: Sequence[Any], constants: Sequence[Any], dim: int, outputs: Sequence[tuple[str, int | None]], path: Path,
    dtype: type,
) -> Path:  # fmt: skip
    number = TensorProto.FLOAT if dtype is np.float32 else TensorProto.DOUBLE
    infos = [
        helper.make_tensor_value_info(name, TensorProto.INT64, [None])
        if size is None
        else helper.make_tensor_value_info(name, number, [None, size])
        for name, size in outputs
    ]
    rows = helper.make_tensor_value_info("x", number, [None, dim])
    graph = helper.make_graph(list(nodes), "model", [rows], infos, list(constants))
    onnx.save(helper.make_model(graph, opset_imports=VERSIONS, ir_version=8), path)
    return path
