"""ONNX graphs as other tools write them: read to the same function, or refused by the node's name."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_graphs import Graph, constant, node, run_onnx

from reluctant import ReLUNetwork
from reluctant.errors import UnsupportedModel

RNG = np.random.default_rng(7)
W, V = RNG.standard_normal((3, 4)), RNG.standard_normal((2, 3))  # out × in, as transB=1 takes them
B, C = RNG.standard_normal(3), RNG.standard_normal(2)
DEEP, SKIP = RNG.standard_normal((3, 3)), RNG.standard_normal((2, 4))
WIDE = RNG.standard_normal((3, 16))
FLAT, IMAGE = {"x": (None, 4)}, {"x": (None, 1, 4, 4)}

TAIL = (node("Relu", "z", "h"), node("Gemm", "h V C", "y", transB=1))
TAIL_CONSTANTS = {"V": V, "C": C}


def into_tail(*nodes, inputs=FLAT, dtype=np.float64, **constants) -> Graph:
    """Nodes that compute z (n, 3) from x, followed by a ReLU and a last layer."""
    return Graph([*nodes, *TAIL], constants | TAIL_CONSTANTS, inputs=inputs, dtype=dtype)


def dense(source: str) -> tuple:
    return (node("Gemm", f"{source} W B", "z", transB=1),)


READ = {
    "Gemm, transB=1": into_tail(*dense("x"), W=W, B=B),
    "Gemm, transB=0": into_tail(node("Gemm", "x W B", "z"), W=W.T, B=B),
    "Gemm with alpha and beta": into_tail(node("Gemm", "x W B", "z", transB=1, alpha=0.5, beta=-2.0), W=W, B=B),
    "Gemm without bias": into_tail(node("Gemm", "x W", "z", transB=1), W=W),
    "Gemm with one bias for all": into_tail(*dense("x"), W=W, B=B[:1]),
    "MatMul": into_tail(node("MatMul", "x W", "z"), W=W.T),
    "MatMul and Add": into_tail(node("MatMul", "x W", "a"), node("Add", "a B", "z"), W=W.T, B=B),
    "Add, constant first": into_tail(node("MatMul", "x W", "a"), node("Add", "B a", "z"), W=W.T, B=B),
    "Sub from a constant": into_tail(node("MatMul", "x W", "a"), node("Sub", "B a", "z"), W=W.T, B=B),
    "two layers without a Relu": into_tail(
        node("Gemm", "x W B", "a", transB=1), node("Gemm", "a D B", "z", transB=1), W=W, B=B, D=DEEP
    ),
    "three hidden layers": into_tail(
        node("Gemm", "x W B", "a", transB=1), node("Relu", "a", "b"), node("Gemm", "b D B", "c", transB=1),
        node("Relu", "c", "d"), node("Gemm", "d D", "z", transB=1), W=W, B=B, D=DEEP,
    ),
    "Relu of the input": Graph([node("Relu", "x", "h"), node("Gemm", "h S", "y", transB=1)], {"S": SKIP}),
    "no Relu at all": Graph([node("Gemm", "x S C", "y", transB=1)], {"S": SKIP, "C": C}),
    "a last Relu": Graph([*dense("x"), node("Relu", "z", "y")], {"W": W, "B": B}),
    "Flatten": into_tail(node("Flatten", "x", "f"), *dense("f"), W=WIDE, B=B, inputs=IMAGE),
    "Reshape to (0, -1)": into_tail(
        node("Reshape", "x to", "f"), *dense("f"), W=WIDE, B=B, to=np.array([0, -1]), inputs=IMAGE
    ),
    "Reshape to (-1, 16)": into_tail(
        constant("to", value=np.array([-1, 16])), node("Reshape", "x to", "f"), *dense("f"), W=WIDE, B=B, inputs=IMAGE
    ),
    "Reshape to whole numbers": into_tail(
        constant("to", value_ints=[-1, 16]), node("Reshape", "x to", "f"), *dense("f"), W=WIDE, B=B, inputs=IMAGE
    ),
    "Reshape there and back": into_tail(
        node("Reshape", "x there", "a"), node("Reshape", "a back", "f"), *dense("f"), W=WIDE, B=B,
        there=np.array([0, 2, -1]), back=np.array([-1, 16]), inputs=IMAGE,
    ),
    "normalised by scalars": into_tail(
        node("Sub", "x mean", "a"), node("Div", "a deviation", "f"), *dense("f"), W=W, B=B,
        mean=np.array(0.3), deviation=np.array(0.7),
    ),
    "normalised by feature": into_tail(
        node("Sub", "x mean", "a"), node("Div", "a deviation", "f"), *dense("f"), W=W, B=B,
        mean=RNG.standard_normal(4), deviation=RNG.uniform(1, 2, 4),
    ),
    "normalised by pixel": into_tail(
        node("Sub", "x mean", "a"), node("Div", "a deviation", "b"), node("Flatten", "b", "f"), *dense("f"), W=WIDE,
        B=B, mean=RNG.standard_normal((1, 1, 4, 4)), deviation=RNG.uniform(1, 2, (1, 1, 4, 4)), inputs=IMAGE,
    ),
    "normalised by column": into_tail(
        node("Mul", "x factors", "b"), node("Flatten", "b", "f"), *dense("f"), W=WIDE, B=B,
        factors=RNG.uniform(1, 2, 4), inputs=IMAGE,
    ),
    "Mul, constant first": into_tail(node("Mul", "s x", "f"), *dense("f"), W=W, B=B, s=np.array([1.0, 2.0, 0.5, -1.0])),
    "Mul between the layers": into_tail(node("Gemm", "x W B", "a", transB=1), node("Mul", "a s", "z"), W=W, B=B, s=B),
    "Identity": into_tail(node("Identity", "x", "f"), *dense("f"), W=W, B=B),
    "Dropout": into_tail(node("Dropout", "x", "f"), *dense("f"), W=W, B=B),
    "weights from Constant nodes": into_tail(constant("W", value=W), constant("B", value=B), *dense("x")),
    "initializers listed as inputs": Graph(
        [*dense("x"), *TAIL], {"W": W, "B": B} | TAIL_CONSTANTS, initializers_as_inputs=True
    ),
    "a skip": Graph(
        [*dense("x"), node("Relu", "z", "h"), node("Gemm", "h V C", "a", transB=1), node("MatMul", "x S", "s"),
         node("Add", "a s", "y")], {"W": W, "B": B, "S": SKIP.T} | TAIL_CONSTANTS,
    ),
    "the input itself as skip": Graph(
        [*dense("x"), node("Relu", "z", "h"), node("MatMul", "h U", "a"), node("Add", "x a", "y")],
        {"W": W, "B": B, "U": RNG.standard_normal((3, 4))},
    ),
    "a Relu of a sum with a skip": Graph(
        [*dense("x"), node("Relu", "z", "h"), node("Gemm", "h D", "a", transB=1), node("Gemm", "x W", "s", transB=1),
         node("Add", "a s", "sum"), node("Relu", "sum", "f"), node("Gemm", "f V C", "y", transB=1)],
        {"W": W, "B": B, "D": DEEP} | TAIL_CONSTANTS,
    ),
    "an output that reaches back to hidden layer 1": Graph(
        [*dense("x"), node("Relu", "z", "h"), node("Gemm", "h D", "a", transB=1), node("Relu", "a", "g"),
         node("Add", "h g", "y")], {"W": W, "B": B, "D": DEEP},
    ),
    "layers side by side": Graph(
        [*dense("x"), node("Relu", "z", "h"), node("Concat", "h x", "both", axis=1),
         node("Gemm", "both E C", "y", transB=1)],
        {"W": W, "B": B, "C": C, "E": RNG.standard_normal((2, 7))},
    ),
    "LeakyRelu twice": into_tail(
        node("Gemm", "x W B", "a", transB=1), node("LeakyRelu", "a", "b", alpha=0.25),
        node("Gemm", "b D B", "c", transB=1), node("LeakyRelu", "c", "z", alpha=-0.5), W=W, B=B, D=DEEP,
    ),
    "PRelu": into_tail(
        node("Gemm", "x W B", "a", transB=1), node("PRelu", "a s", "z"), W=W, B=B, s=np.array([0.1, 0.5, 2.0])
    ),
    "BatchNormalization": into_tail(
        node("Gemm", "x W B", "a", transB=1), node("BatchNormalization", "a s B m v", "z", epsilon=0.5), W=W, B=B,
        s=np.array([0.5, -1.0, 2.0]), m=np.array([0.1, 0.2, 0.3]), v=np.array([1.0, 2.0, 0.5]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_graph_is_read_as_the_runtime_runs_it(name, tmp_path, seed):
    path = READ[name].save(tmp_path / "model.onnx")
    network = ReLUNetwork.load(path)
    rows = np.random.default_rng(seed).standard_normal((12, network.dim))
    np.testing.assert_allclose(network(rows), run_onnx(path, rows), rtol=0, atol=1e-13)


def test_weights_are_read_exactly(tmp_path):
    network = ReLUNetwork.load(READ["Gemm, transB=1"].save(tmp_path / "model.onnx"))
    for ours, theirs in zip((*network.weights, *network.biases), (W, V, B, C), strict=True):
        np.testing.assert_array_equal(ours, theirs)


CONSTANT_FORMS = {"value_float": 0.5, "value_floats": [0.5, 1.5, -2.0, 0.25]}


@pytest.mark.parametrize("form", CONSTANT_FORMS)
def test_constants_that_are_plain_numbers_are_read(form, tmp_path, seed):
    graph = into_tail(
        constant("s", **{form: CONSTANT_FORMS[form]}), node("Mul", "x s", "f"), *dense("f"), W=W, B=B, dtype=np.float32
    )
    path = graph.save(tmp_path / "model.onnx")
    rows = np.random.default_rng(seed).standard_normal((12, 4))
    np.testing.assert_allclose(ReLUNetwork.load(path)(rows), run_onnx(path, rows), atol=1e-5)


LINKS = {"Softmax": ("softmax", {"axis": -1}), "Sigmoid": ("sigmoid", {}), "Tanh": ("tanh", {})}
APPLY = {
    "Softmax": lambda z: np.exp(z) / np.exp(z).sum(axis=1, keepdims=True),
    "Sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "Tanh": np.tanh,
}


@pytest.mark.parametrize("op", LINKS)
def test_a_final_link_is_noted(op, tmp_path, seed):
    link, attributes = LINKS[op]
    nodes = [*dense("x"), TAIL[0], node("Gemm", "h V C", "a", transB=1), node(op, "a", "y", **attributes)]
    path = Graph(nodes, {"W": W, "B": B} | TAIL_CONSTANTS).save(tmp_path / "model.onnx")
    network = ReLUNetwork.load(path)
    assert network.link == link
    rows = np.random.default_rng(seed).standard_normal((12, 4))
    np.testing.assert_allclose(APPLY[op](network(rows)), run_onnx(path, rows), atol=1e-13)


REFUSED = {
    "Conv": into_tail(
        node("Conv", "x K", "f"), node("Flatten", "f", "a"), *dense("a"), W=RNG.standard_normal((3, 9)), B=B,
        K=RNG.standard_normal((1, 1, 2, 2)), inputs=IMAGE,
    ),
    "Erf": into_tail(node("Erf", "x", "f"), *dense("f"), W=W, B=B),
    "Tanh in the middle": into_tail(node("Tanh", "x", "s"), node("Gemm", "s W B", "f", transB=1),
                                    node("Identity", "f", "z"), W=W, B=B),
    "Softmax in the middle": into_tail(node("Softmax", "x", "s"), node("Gemm", "s W B", "f", transB=1),
                                       node("Identity", "f", "z"), W=W, B=B),
    "two values multiplied": into_tail(node("Mul", "x x", "f"), *dense("f"), W=W, B=B),
    "a value subtracted from another": into_tail(
        node("Gemm", "x W", "a", transB=1), node("Gemm", "x W B", "b", transB=1), node("Sub", "a b", "f"),
        node("Identity", "f", "z"), W=W, B=B,
    ),
    "division by a value": into_tail(node("Div", "one x", "f"), *dense("f"), W=W, B=B, one=np.array(1.0)),
    "a sum of constants": into_tail(
        node("Add", "B B", "f"), node("Gemm", "x W f", "z", transB=1), W=W, B=B
    ),
    "a matrix times a value": Graph([node("MatMul", "W x", "f"), node("Identity", "f", "y")], {"W": W}),
    "Gemm, transA=1": Graph([node("Gemm", "x W", "f", transA=1), node("Identity", "f", "y")], {"W": W}),
    "Flatten, axis=0": into_tail(node("Flatten", "x", "f", axis=0), *dense("f"), W=WIDE, B=B, inputs=IMAGE),
    "Reshape across rows": Graph(
        [node("Reshape", "x to", "f"), node("Identity", "f", "y")], {"to": np.array([-1, 8])}
    ),
    "a constant for each row": into_tail(node("Add", "x each", "f"), *dense("f"), W=W, B=B, each=np.ones((5, 4))),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_node_that_does_not_fit_is_named(name, tmp_path):
    path = REFUSED[name].save(tmp_path / "model.onnx")
    with pytest.raises(UnsupportedModel, match=r"^node 'f': got .*, expected .*can still be queried"):
        ReLUNetwork.load(path)


REFUSED_MODELS = {
    "2 inputs": Graph([node("Add", "x y0", "y")], inputs={"x": (None, 4), "y0": (None, 4)}),
    "input 'x' of shape": Graph([node("Relu", "x", "y")], inputs={"x": (None, None)}),
}  # fmt: skip


@pytest.mark.parametrize("got", REFUSED_MODELS)
def test_a_graph_without_one_input_of_fixed_size_is_refused(got, tmp_path):
    path = REFUSED_MODELS[got].save(tmp_path / "model.onnx")
    with pytest.raises(UnsupportedModel, match=rf"^model: got {got}.*, expected "):
        ReLUNetwork.load(path)
