"""What each adapter says of its target, that it answers as the framework does, and that float64 is real."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from oracle_models import (
    IMAGE,
    fitted_mlp,
    gaussian_rows,
    linked,
    mlp_network,
    module_network,
    save_graph,
    save_onnx,
    sigmoid,
    softmax,
    torch_module,
)
from sweeps import sweep

from reluctant.errors import InvalidAnswer, InvalidInput, TargetUnavailable, UnsupportedModel
from reluctant.networks import ReLUNetwork
from reluctant.oracles import CallableOracle, Kind, NetworkOracle, open_oracle
from reluctant.oracles.adapters.onnxruntime import OnnxOracle
from reluctant.oracles.base import UNKNOWN_OUTPUTS
from reluctant.testing import planted, single_precision

NETWORK = single_precision(planted((6, 20, 10, 3), 1))
IMAGES = single_precision(planted((16, 12, 2), 2))
ROWS = gaussian_rows(50, 6)

# Single precision differs visibly from double, but by few roundings only.
FLOAT32_VISIBLE = 1e-8
FLOAT32_CLOSE = 1e-5
FLOAT64_CLOSE = 1e-13


def assert_same(answers: Any, expected: Any) -> None:
    np.testing.assert_array_equal(answers, np.asarray(expected, dtype=np.float64))


def assert_double_is_real(open_with: Callable[[str], Any], expected: np.ndarray, rows: np.ndarray) -> None:
    """As served is off by roundings of float32, re-cast by roundings of float64."""
    served, double = open_with("as-served"), open_with("float64")
    assert served.facts.dtype == np.float32
    assert double.facts.dtype == np.float64
    assert served.facts.identity != double.facts.identity
    error = np.abs(served.query(rows) - expected).max()
    assert FLOAT32_VISIBLE < error < FLOAT32_CLOSE
    np.testing.assert_allclose(double.query(rows), expected, rtol=0, atol=FLOAT64_CLOSE * (1 + np.abs(expected).max()))


# ---- callable


def test_callable_learns_its_outputs() -> None:
    oracle = CallableOracle(NETWORK, 6)
    assert oracle.outputs == UNKNOWN_OUTPUTS
    oracle.query(ROWS)
    assert (oracle.dim, oracle.outputs, oracle.facts.kind, oracle.facts.identity) == (6, 3, Kind.VALUES, "")


def test_callable_has_its_functions_name() -> None:
    def served_model(x: np.ndarray) -> np.ndarray:
        return x

    assert CallableOracle(served_model, 2).facts.name.endswith("served_model")


def test_callable_must_be_callable() -> None:
    with pytest.raises(InvalidInput, match=r"^target: got int, expected a callable"):
        CallableOracle(3, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "uint8", "bool", "longdouble"])
def test_callable_may_answer_any_number_format(dtype: str) -> None:
    oracle = CallableOracle(lambda x: np.ones((len(x), 2), dtype), 6)
    assert_same(oracle.query(ROWS), np.ones((50, 2)))


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_callable_may_answer_any_shape_of_a_row(shape: tuple[int, ...]) -> None:
    values = np.arange(50.0 * int(np.prod(shape))).reshape(50, *shape)
    assert_same(CallableOracle(lambda _: values, 6).query(ROWS), values.reshape(50, -1))


def test_callable_may_answer_a_tensor() -> None:
    module = torch_module(NETWORK).requires_grad_(False)
    oracle = CallableOracle(lambda x: module(torch.tensor(x, dtype=torch.float32)), 6)
    assert_same(oracle.query(ROWS), module(torch.tensor(ROWS, dtype=torch.float32)))


def test_class_names_are_refused_with_the_way_to_number_them() -> None:
    with pytest.raises(InvalidAnswer, match=r"Number class names: .*searchsorted"):
        open_oracle(lambda x: np.full(len(x), "cat"), dim=3)


def test_tensor_with_gradient_is_an_invalid_answer() -> None:
    module = torch_module(NETWORK)
    oracle = CallableOracle(lambda x: module(torch.tensor(x, dtype=torch.float32)), 6)
    with pytest.raises(InvalidAnswer, match=r"^target: got Tensor .*, expected an array of numbers"):
        oracle.query(ROWS)


def test_callable_may_reuse_its_buffer() -> None:
    buffer = np.empty((50, 1))

    def sums(x: np.ndarray) -> np.ndarray:
        return np.sum(x, axis=1, keepdims=True, out=buffer)

    oracle = CallableOracle(sums, 6)
    first = oracle.query(ROWS)
    oracle.query(2 * ROWS)
    assert_same(first, ROWS.sum(axis=1, keepdims=True))


def test_callable_cannot_change_the_rows() -> None:
    def careless(x: np.ndarray) -> np.ndarray:
        x *= 2
        return x

    rows = ROWS.copy()
    with pytest.raises(TargetUnavailable, match="read-only"):
        CallableOracle(careless, 6).query(rows)
    assert_same(rows, ROWS)


# ---- network


def test_network_facts() -> None:
    facts = NetworkOracle(NETWORK).facts
    assert (facts.dim, facts.outputs, facts.dtype, facts.kind) == (6, 3, np.float64, Kind.VALUES)
    assert facts.name == "6-20-10-3"
    assert facts.identity != NetworkOracle(planted((6, 20, 10, 3), 2)).facts.identity


def test_network_answers_as_itself() -> None:
    network = planted((6, 5, 2), 3, skip=True)
    assert_same(NetworkOracle(network).query(ROWS), network(ROWS))


# ---- ONNX


def run_onnx(path: Path, rows: np.ndarray, output: str = "output") -> np.ndarray:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return np.asarray(session.run([output], {session.get_inputs()[0].name: rows})[0])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx_facts_and_answers(tmp_path: Path, dtype: str) -> None:
    path = save_onnx(NETWORK, tmp_path / "model.onnx", dtype)
    oracle = open_oracle(path)
    facts = oracle.facts
    assert (facts.dim, facts.outputs, facts.dtype, facts.kind) == (6, 3, np.dtype(dtype), Kind.VALUES)
    assert facts.name == "model.onnx"
    assert_same(oracle.query(ROWS), run_onnx(path, ROWS.astype(dtype)))


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 50])
def test_onnx_fixed_batch_size_is_kept(tmp_path: Path, batch: int, rows: int) -> None:
    path = save_onnx(NETWORK, tmp_path / "model.onnx", batch=batch)
    oracle = open_oracle(path)
    expected = NETWORK(ROWS[:rows])
    np.testing.assert_allclose(oracle.query(ROWS[:rows]), expected, rtol=0, atol=FLOAT32_CLOSE)
    assert oracle.ledger.total.sent == rows


def test_onnx_input_of_any_shape_is_given_flat(tmp_path: Path) -> None:
    path = save_onnx(IMAGES, tmp_path / "model.onnx", shape=IMAGE)
    rows = gaussian_rows(5, 16)
    oracle = open_oracle(path)
    assert oracle.dim == 16
    assert_same(oracle.query(rows), run_onnx(path, rows.astype(np.float32).reshape(-1, *IMAGE)))


@pytest.mark.parametrize(
    ("link", "kind"),
    [("identity", Kind.VALUES), ("softmax", Kind.PROBABILITIES), ("sigmoid", Kind.PROBABILITIES)],
)
def test_onnx_kind_follows_from_the_last_node(tmp_path: Path, link: str, kind: Kind) -> None:
    path = save_onnx(linked(NETWORK, link), tmp_path / "model.onnx")
    assert open_oracle(path).facts.kind == kind


@pytest.mark.parametrize("link", ["identity", "softmax", "sigmoid"])
def test_onnx_float64_is_real(tmp_path: Path, link: str) -> None:
    path = save_onnx(linked(NETWORK, link), tmp_path / "model.onnx")
    function = {"identity": lambda z: z, "softmax": softmax, "sigmoid": sigmoid}[link]
    assert_double_is_real(lambda precision: open_oracle(path, precision=precision), function(NETWORK(ROWS)), ROWS)


def test_onnx_float64_of_a_float64_file_changes_nothing(tmp_path: Path) -> None:
    path = save_onnx(NETWORK, tmp_path / "model.onnx", "float64")
    assert_same(open_oracle(path, precision="float64").query(ROWS), open_oracle(path).query(ROWS))


CONSTANT_NODES = """
model (float[batch, 2] x) => (float[batch, 2] y) {
    w = Constant <value = float[2, 2] {0.1, 0.2, 0.3, 0.4}> ()
    s = Constant <value_float = 0.1> ()
    v = Constant <value_floats = [0.7, 0.9]> ()
    h = MatMul (x, w)
    c = Cast <to = 1> (h)
    m = Mul (c, s)
    y = Add (m, v)
}
"""


def test_onnx_float64_reaches_constant_nodes_and_casts(tmp_path: Path) -> None:
    path = save_graph(CONSTANT_NODES, tmp_path / "model.onnx")
    w = np.array([[0.1, 0.2], [0.3, 0.4]], np.float32).astype(float)
    s, v = float(np.float32(0.1)), np.array([0.7, 0.9], np.float32).astype(float)
    rows = gaussian_rows(50, 2)
    assert_double_is_real(lambda precision: open_oracle(path, precision=precision), rows @ w * s + v, rows)


def test_onnx_identity_follows_the_weights(tmp_path: Path) -> None:
    first = open_oracle(save_onnx(NETWORK, tmp_path / "first.onnx"))
    second = open_oracle(save_onnx(planted((6, 20, 10, 3), 2), tmp_path / "second.onnx"))
    assert first.facts.identity != second.facts.identity


def test_onnx_identity_follows_weights_in_a_file_of_their_own(tmp_path: Path) -> None:
    identities = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = save_onnx(planted((6, 5, 1), seed), folder / "model.onnx")
        onnx.save(onnx.load(path), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        identities.append(open_oracle(path).facts.identity)
    assert identities[0] != identities[1]


CONVOLUTION = """
model (float[batch, 1, 4, 4] x) => (float[batch, 4] y)
<float[1, 1, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
    c = Conv (x, w)
    r = Relu (c)
    y = Flatten (r)
}
"""


def test_onnx_convolution_can_be_asked(tmp_path: Path) -> None:
    oracle = open_oracle(save_graph(CONVOLUTION, tmp_path / "model.onnx"))
    assert (oracle.dim, oracle.outputs) == (16, 4)
    assert_same(oracle.query(np.ones((2, 16))), np.full((2, 4), 45))


def test_onnx_that_the_runtime_lacks_in_float64_is_refused_by_name(tmp_path: Path) -> None:
    path = save_graph(
        """
        model (float[batch, 2] x) => (float[batch, 2] y) {
            y = Celu (x)
        }
        """,
        tmp_path / "model.onnx",
    )
    assert open_oracle(path).outputs == 2
    with pytest.raises(UnsupportedModel, match=r"^target: got .*model\.onnx'.*in float64.*Celu"):
        open_oracle(path, precision="float64")


VALUES_THEN_PROBABILITIES = """
model (float[batch, 3] x) => (float[batch, 3] values, float[batch, 3] probabilities) {
    values = Relu (x)
    probabilities = Softmax <axis = -1> (x)
}
"""

LABELS_THEN_PROBABILITIES = """
model (float[batch, 3] x) => (int64[batch] labels, float[batch, 3] probabilities) {
    labels = ArgMax <axis = -1, keepdims = 0> (x)
    probabilities = Softmax <axis = -1> (x)
}
"""


@pytest.mark.parametrize(
    ("text", "output", "kind"),
    [
        (VALUES_THEN_PROBABILITIES, "values", Kind.VALUES),
        (LABELS_THEN_PROBABILITIES, "probabilities", Kind.PROBABILITIES),
    ],
    ids=["values", "probabilities"],
)
def test_onnx_first_float_output_is_taken(tmp_path: Path, text: str, output: str, kind: Kind) -> None:
    path = save_graph(text, tmp_path / "model.onnx")
    oracle, rows = open_oracle(path), gaussian_rows(5, 3)
    assert_same(oracle.query(rows), run_onnx(path, rows.astype(np.float32), output))
    assert oracle.facts.kind == kind


@pytest.mark.parametrize("content", [b"", bytes(range(256)), b"\x89PNG\r\n"], ids=["empty", "bytes", "picture"])
def test_file_that_is_no_onnx_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(UnsupportedModel, match=r"got .*model\.onnx', expected an ONNX model"):
        open_oracle(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model (float[batch, 2] a, float[batch, 2] b) => (float[batch, 2] y) { y = Add (a, b) }", "one float input"),
        ("model (int64[batch, 2] x) => (int64[batch, 2] y) { y = Abs (x) }", "one float input"),
        ("model (float[batch, size] x) => (float[batch, size] y) { y = Relu (x) }", "fixed sizes"),
        ("model (float[batch, 2] x) => (int64[batch] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }", "a float output"),
    ],
    ids=["two inputs", "whole numbers", "free size", "labels"],
)
def test_onnx_without_float_rows_and_answers_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    path = save_graph(text, tmp_path / "model.onnx")
    with pytest.raises(UnsupportedModel, match=rf"^target: got .*, expected {expected}"):
        open_oracle(path)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("dynamo", sweep([False, True], fast=[False]), ids=["torchscript", "dynamo"])
def test_onnx_of_torchs_own_exporter(dynamo: bool, tmp_path: Path) -> None:
    path, module = tmp_path / "exported.onnx", torch_module(NETWORK)
    batch = {"dynamic_shapes": ({0: torch.export.Dim("batch")},)} if dynamo else {"dynamic_axes": {"x": {0: "batch"}}}
    torch.onnx.export(module, (torch.zeros(2, 6),), str(path), input_names=["x"], dynamo=dynamo, verbose=False, **batch)
    assert_double_is_real(lambda precision: open_oracle(path, precision=precision), NETWORK(ROWS), ROWS)
    np.testing.assert_allclose(ReLUNetwork.load(path)(ROWS), NETWORK(ROWS), rtol=1e-5, atol=1e-5)  # read as float32


# ---- torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_facts_and_answers(dtype: torch.dtype) -> None:
    module = torch_module(NETWORK).to(dtype)
    oracle = open_oracle(module)
    facts = oracle.facts
    assert (facts.dim, facts.outputs, facts.kind, facts.name) == (6, 3, Kind.VALUES, "Sequential")
    assert str(facts.dtype) == str(dtype).removeprefix("torch.")
    assert_same(oracle.query(ROWS), module(torch.tensor(ROWS, dtype=dtype)).detach())


@pytest.mark.parametrize("last", [torch.nn.Softmax(dim=1), torch.nn.Sigmoid()])
def test_torch_probabilities_are_noticed(last: torch.nn.Module) -> None:
    assert open_oracle(torch_module(NETWORK, last)).facts.kind == Kind.PROBABILITIES


@pytest.mark.parametrize("shape", [IMAGE, (16,), (4, 4)])
def test_torch_input_of_any_shape_is_given_flat(shape: tuple[int, ...]) -> None:
    module = torch_module(IMAGES, first=(torch.nn.Flatten(),))
    rows = gaussian_rows(5, 16)
    oracle = open_oracle(module, shape=shape)
    assert oracle.dim == 16
    assert_same(oracle.query(rows), module(torch.tensor(rows, dtype=torch.float32).reshape(-1, *shape)).detach())


def test_torch_float64_is_real() -> None:
    module = torch_module(NETWORK)
    assert_double_is_real(lambda precision: open_oracle(module, precision=precision), NETWORK(ROWS), ROWS)
    assert module[0].weight.dtype == torch.float32


def test_torch_float64_is_real_with_a_link() -> None:
    module = torch_module(NETWORK, torch.nn.Softmax(dim=1))
    expected = softmax(module_network(module)(ROWS))
    assert_double_is_real(lambda precision: open_oracle(module, precision=precision), expected, ROWS)


def test_torch_training_mode_is_left_alone() -> None:
    module = torch_module(NETWORK, torch.nn.Dropout(0.5)).train()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    oracle = open_oracle(module)
    np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), rtol=0, atol=FLOAT32_CLOSE)
    assert_same(oracle.query(ROWS), oracle.query(ROWS))
    assert all(layer.training for layer in module.modules())
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())


def test_torch_batch_norm_statistics_are_left_alone() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4)).train()
    open_oracle(module).query(ROWS)
    assert int(module[1].num_batches_tracked) == 0


def test_torch_gives_no_gradients() -> None:
    module = torch_module(NETWORK)
    open_oracle(module).query(ROWS)
    assert all(parameter.grad is None for parameter in module.parameters())
    assert torch.is_grad_enabled()


class Buffered(torch.nn.Module):
    """A linear map whose matrix is a buffer, not a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("matrix", torch.tensor(NETWORK.weights[0].T, dtype=torch.float32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.matrix


def test_torch_module_of_buffers() -> None:
    expected = ROWS @ NETWORK.weights[0].T
    assert_double_is_real(lambda precision: open_oracle(Buffered(), dim=6, precision=precision), expected, ROWS)


def test_torch_module_of_unknown_input_size_needs_dim() -> None:
    module = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.Flatten())
    with pytest.raises(InvalidInput, match=r"^dim: got None, expected the input size"):
        open_oracle(module)
    assert open_oracle(module, shape=IMAGE).outputs == 8


def test_torch_identity_follows_the_weights() -> None:
    first, second = torch_module(NETWORK), torch_module(NETWORK)
    assert open_oracle(first).facts.identity == open_oracle(second).facts.identity
    with torch.no_grad():
        second[0].bias[0] += 1
    assert open_oracle(first).facts.identity != open_oracle(second).facts.identity


# ---- scikit-learn


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("outputs", [2, 3])
def test_classifier_facts_and_answers(dtype: str, outputs: int) -> None:
    model = fitted_mlp("MLPClassifier", 6, outputs, dtype)
    oracle = open_oracle(model)
    facts = oracle.facts
    assert (facts.dim, facts.outputs, facts.dtype, facts.kind) == (6, outputs, np.dtype(dtype), Kind.PROBABILITIES)
    assert facts.name == "MLPClassifier"
    assert_same(oracle.query(ROWS), model.predict_proba(ROWS.astype(dtype)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_regressor_facts_and_answers(dtype: str, outputs: int) -> None:
    model = fitted_mlp("MLPRegressor", 6, outputs, dtype)
    oracle = open_oracle(model)
    facts = oracle.facts
    assert (facts.dim, facts.outputs, facts.dtype, facts.kind) == (6, outputs, np.dtype(dtype), Kind.VALUES)
    assert_same(oracle.query(ROWS), model.predict(ROWS.astype(dtype)).reshape(50, outputs))


@pytest.mark.parametrize(("kind", "link"), [("MLPRegressor", lambda z: z), ("MLPClassifier", softmax)])
def test_sklearn_float64_is_real(kind: str, link: Callable[[Any], Any]) -> None:
    model = fitted_mlp(kind, 6, dtype="float32")
    expected = link(mlp_network(model)(ROWS))
    assert_double_is_real(lambda precision: open_oracle(model, precision=precision), expected, ROWS)
    assert model.coefs_[0].dtype == np.float32


def test_sklearn_model_must_be_fitted() -> None:
    from sklearn.linear_model import LinearRegression
    from sklearn.neural_network import MLPRegressor
    from sklearn.preprocessing import StandardScaler

    for model in (MLPRegressor(), LinearRegression(), StandardScaler().fit(ROWS)):
        with pytest.raises(InvalidInput, match=rf"^target: got {type(model).__name__}, expected a fitted model"):
            open_oracle(model)


def test_a_pipeline_answers_what_it_predicts() -> None:
    """Probabilities where it has them, else the values it decides by, else its prediction."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    classes = (ROWS.sum(axis=1) > 0).astype(int)
    for model, verb in (
        (LogisticRegression(), "predict_proba"),
        (LinearSVC(), "decision_function"),
        (Ridge(), "predict"),
    ):
        pipeline = make_pipeline(StandardScaler(), model).fit(ROWS, classes)
        oracle = open_oracle(pipeline)
        expected = getattr(pipeline, verb)(ROWS)
        assert_same(oracle.query(ROWS), expected.reshape(len(ROWS), -1))
        assert (oracle.facts.kind is Kind.PROBABILITIES) == (verb == "predict_proba")


# ---- one network in all forms


def test_all_forms_answer_alike(tmp_path: Path) -> None:
    forms = [NETWORK, save_onnx(NETWORK, tmp_path / "model.onnx", "float64"), torch_module(NETWORK).double()]
    NETWORK.save(tmp_path / "model.npz")
    forms.append(tmp_path / "model.npz")
    for form in forms:
        np.testing.assert_allclose(open_oracle(form).query(ROWS), NETWORK(ROWS), rtol=0, atol=FLOAT64_CLOSE)


def test_skip_term_survives_onnx(tmp_path: Path) -> None:
    network: ReLUNetwork = planted((6, 5, 2), 4, skip=True)
    network.save(tmp_path / "model.onnx")
    answers = open_oracle(tmp_path / "model.onnx").query(ROWS)
    np.testing.assert_allclose(answers, network(ROWS), rtol=0, atol=FLOAT64_CLOSE)


def test_a_copy_is_of_the_model_that_was_opened(tmp_path: Path) -> None:
    path = save_onnx(NETWORK, tmp_path / "model.onnx", "float64")
    oracle = OnnxOracle(path)
    before = oracle.answer(ROWS)
    save_onnx(planted(NETWORK.widths, 99), path, "float64")
    assert_same(copy.deepcopy(oracle).answer(ROWS), before)
