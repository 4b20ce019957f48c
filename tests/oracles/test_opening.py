"""Every keyword of `open_oracle`, good and bad; every way to name a target; files that can run code."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from oracle_models import (
    IMAGE,
    Asked,
    fitted_mlp,
    gaussian_rows,
    linked,
    save_onnx,
    sigmoid,
    softmax,
    torch_module,
)

from reluctant.domains import Domain
from reluctant.errors import (
    BudgetExhausted,
    InvalidInput,
    OutsideDomain,
    TargetUnavailable,
    UnknownTarget,
    UnsafeFile,
    UnsupportedModel,
)
from reluctant.networks import ReLUNetwork
from reluctant.oracles import CallableOracle, Counting, Facts, Kind, Ledger, NetworkOracle, Oracle, open_oracle
from reluctant.oracles.open import as_opened
from reluctant.testing import planted
from reluctant.testing.faults import Dying

NETWORK = planted((4, 6, 3), 1)
ROWS = gaussian_rows(10, 4)


def served(x: np.ndarray) -> np.ndarray:
    return NETWORK(x)


# ---- bad keywords

BAD_KEYWORDS = [
    ("budget", 0),
    ("budget", -1),
    ("budget", True),
    ("budget", 1.5),
    ("budget", "100"),
    ("timeout", 0),
    ("timeout", -1.0),
    ("timeout", float("nan")),
    ("timeout", "5"),
    ("retries", -1),
    ("retries", True),
    ("retries", 1.5),
    ("link", "softsign"),
    ("link", 5),
    ("precision", "float16"),
    ("precision", None),
    ("kind", "numbers"),
    ("dim", 0),
    ("dim", -4),
    ("dim", True),
    ("dim", 4.0),
    ("dim", 5),
    ("shape", (0, 4)),
    ("shape", (2, 2.0)),
    ("shape", 4),
    ("output", 3),
    ("output", -1),
    ("output", True),
    ("output", 1.5),
    ("output", []),
    ("output", [0, 3]),
    ("output", [True]),
    ("output", "0"),
    ("domain", (1.0, 0.0)),
    ("domain", (0.0, 0.0)),
    ("domain", (float("nan"), 1.0)),
    ("domain", (0, 1, 2)),
    ("domain", 1),
    ("domain", "ab"),
]


LEARNT_FROM_THE_TARGET = {"dim", "shape", "output"}


def named(value: object) -> str:
    return value if isinstance(value, str) else repr(value)


@pytest.mark.parametrize(("keyword", "value"), BAD_KEYWORDS, ids=named)
def test_bad_keyword_is_refused_by_name(keyword: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=rf"^{keyword}: got .*, expected ") as caught:
        open_oracle(NETWORK, **{keyword: value})
    assert str(value) in str(caught.value)


@pytest.mark.parametrize(
    ("keyword", "value"),
    [(keyword, value) for keyword, value in BAD_KEYWORDS if keyword not in LEARNT_FROM_THE_TARGET],
    ids=named,
)
def test_bad_keyword_is_refused_before_anything_is_sent(keyword: str, value: object) -> None:
    target = Asked(served)
    with pytest.raises(InvalidInput):
        open_oracle(target, dim=4, **{keyword: value})
    assert target.calls == []


def test_shape_must_agree_with_dim() -> None:
    with pytest.raises(InvalidInput, match=r"^shape: got \(2, 3\), expected a shape of 4 numbers"):
        open_oracle(served, dim=4, shape=(2, 3))


@pytest.fixture(params=["network", "onnx", "torch", "sklearn", "oracle"])
def described(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A target that says itself how many inputs and outputs it has, in each form."""
    forms: dict[str, Any] = {
        "network": NETWORK,
        "onnx": save_onnx(NETWORK, tmp_path / "model.onnx"),
        "torch": torch_module(NETWORK),
        "sklearn": fitted_mlp("MLPRegressor"),
        "oracle": NetworkOracle(NETWORK),
    }
    return forms[request.param]


def test_dim_must_agree_with_the_target(described: Any) -> None:
    assert open_oracle(described, dim=4).dim == 4
    with pytest.raises(InvalidInput, match=r"^dim: got 5, expected 4"):
        open_oracle(described, dim=5)


def test_callable_needs_dim() -> None:
    with pytest.raises(InvalidInput, match=r"^dim: got None, expected the number of inputs"):
        open_oracle(served)


def test_callable_cannot_be_recast() -> None:
    with pytest.raises(InvalidInput, match=r"^precision: got 'float64' for a callable, expected 'as-served'"):
        open_oracle(served, dim=4, precision="float64")


def test_softmax_link_of_one_output_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^link: got 'softmax' for 1 output, expected two classes"):
        open_oracle(planted((4, 3, 1), 0), link="softmax")


@pytest.mark.parametrize("keywords", [{"output": 7}, {"output": 1.5}, {"link": "softmax"}])
def test_refused_keyword_lets_go_of_the_transcript(tmp_path: Path, keywords: dict[str, Any]) -> None:
    network = planted((4, 3, 1), 0)
    with pytest.raises(InvalidInput):
        open_oracle(network, transcript=tmp_path, **keywords)
    open_oracle(network, transcript=tmp_path).close()


# ---- good keywords


@pytest.mark.parametrize(
    "keywords",
    [
        {"dim": 4},
        {"dim": np.int64(4)},
        {"shape": (2, 2)},
        {"shape": [4], "dim": 4},
        {"budget": 10},
        {"budget": np.int64(10)},
        {"timeout": 60},
        {"timeout": 1e9},
        {"timeout": float("inf")},
        {"retries": 2},
        {"domain": (-10, 10)},
        {"domain": Domain(-10, np.inf)},
        {"domain": ([-10] * 4, [10] * 4)},
        {"precision": "float64"},
        {"output": [0, 1, 2]},
        {"output": range(3)},
        {"output": np.arange(3)},
    ],
    ids=str,
)
def test_keyword_changes_no_answer(keywords: dict[str, Any]) -> None:
    np.testing.assert_array_equal(open_oracle(NETWORK, **keywords).query(ROWS), NETWORK(ROWS))


@pytest.mark.parametrize("kind", ["values", "probabilities", "labels", Kind.LABELS])
def test_kind_of_a_callable_is_what_is_said(kind: str) -> None:
    assert open_oracle(served, dim=4, kind=kind).facts.kind == Kind(kind)


def test_shape_of_a_callable_gives_its_dim() -> None:
    assert open_oracle(lambda x: x[:, 0], shape=IMAGE).dim == 16


def test_budget_covers_the_opening_question() -> None:
    oracle = open_oracle(served, dim=4, budget=1)
    with pytest.raises(BudgetExhausted):
        oracle.query(ROWS[:1])


def test_opening_question_is_retried() -> None:
    oracle = open_oracle(Dying(served, rows=0, failures=1), dim=4, retries=1)
    assert (oracle.outputs, oracle.ledger.total.sent) == (3, 2)


def test_opening_question_may_fail() -> None:
    with pytest.raises(TargetUnavailable, match="the target has died"):
        open_oracle(Dying(served, rows=0), dim=4)


def test_selection_keeps_the_order() -> None:
    np.testing.assert_array_equal(open_oracle(NETWORK, output=[2, 0]).query(ROWS), NETWORK(ROWS)[:, [2, 0]])


def test_selection_looks_at_values_after_the_link() -> None:
    oracle = open_oracle(lambda x: softmax(NETWORK(x)), dim=4, link="softmax", output=1)
    z = NETWORK(ROWS)
    assert (oracle.outputs, oracle.facts.kind) == (1, Kind.VALUES)
    np.testing.assert_allclose(oracle.query(ROWS), z[:, 2:] - z[:, :1], rtol=0, atol=1e-12)


def test_selection_is_out_of_range_after_a_softmax_link() -> None:
    with pytest.raises(InvalidInput, match=r"^output: got 2, expected an index from 0 to 1"):
        open_oracle(lambda x: softmax(NETWORK(x)), dim=4, link="softmax", output=2)


def test_link_undoes_the_last_node_of_a_file(tmp_path: Path) -> None:
    path = save_onnx(linked(NETWORK, "sigmoid"), tmp_path / "model.onnx", "float64")
    np.testing.assert_allclose(open_oracle(path, link="sigmoid").query(ROWS), NETWORK(ROWS), rtol=0, atol=1e-10)


def test_link_and_selection_stand_outside_the_transcript(tmp_path: Path) -> None:
    def probabilities(x: np.ndarray) -> np.ndarray:
        return sigmoid(NETWORK(x))

    with open_oracle(probabilities, dim=4, transcript=tmp_path, link="sigmoid", output=0) as oracle:
        oracle.query(ROWS)
    with open_oracle(probabilities, dim=4, transcript=tmp_path) as oracle:
        np.testing.assert_array_equal(oracle.query(ROWS), probabilities(ROWS))
        assert oracle.ledger.total.sent == 3  # the opening question


def test_order_of_the_stack(tmp_path: Path) -> None:
    with open_oracle(
        lambda x: sigmoid(NETWORK(x)),
        dim=4,
        budget=10,
        transcript=tmp_path,
        output=0,
        link="sigmoid",
        timeout=60,
        retries=1,
    ) as oracle:
        layers, layer = [], oracle
        while hasattr(layer, "inner"):
            layers.append(type(layer).__name__)
            layer = layer.inner
    assert layers == ["Counting", "Selected", "Linked", "Transcript", "Retrying", "Metered", "Timed"]


# ---- domain


@pytest.mark.parametrize("domain", [([0, 0], [1, 1]), (0, [1, 1, 1]), ([[0]] * 4, 1)], ids=repr)
def test_bounds_must_fit_the_dim(domain: tuple[Any, Any]) -> None:
    target = Asked(served)
    with pytest.raises(InvalidInput, match=r"(?s)^domain: got .*, expected "):
        open_oracle(target, dim=4, domain=domain)
    assert target.calls == []
    with pytest.raises(InvalidInput, match=r"(?s)^domain: got .*, expected "):
        open_oracle(NETWORK, domain=domain)


@pytest.mark.parametrize("value", [-1e-9, 1 + 1e-9, 100.0])
def test_row_outside_the_domain_is_not_sent(value: float) -> None:
    target = Asked(served)
    oracle = open_oracle(target, dim=4, domain=(0, 1))
    rows = np.full((5, 4), 0.5)
    rows[3, 2] = value
    with pytest.raises(OutsideDomain, match=r"^x: got a row outside the domain, expected \[0, 1\] in every coordinate"):
        oracle.query(rows)
    assert target.calls == [1]
    assert oracle.ledger.total.asked == 0


def test_boundary_of_the_domain_is_inside() -> None:
    rows = np.array([[0.0] * 4, [1.0] * 4])
    np.testing.assert_array_equal(open_oracle(NETWORK, domain=(0, 1)).query(rows), NETWORK(rows))


@pytest.mark.parametrize("domain", [(5, 6), (0, np.inf), (-np.inf, -3), ([1, 2, 3, 4], [2, 3, 4, 5])])
def test_opening_question_lies_inside_the_domain(domain: tuple[Any, Any]) -> None:
    seen: list[np.ndarray] = []

    def target(x: np.ndarray) -> np.ndarray:
        seen.append(x.copy())
        return NETWORK(x)

    open_oracle(target, dim=4, domain=domain)
    assert Domain.of(domain).contains(seen[0])


def test_facts_are_made_once_and_anew_when_the_outputs_are_known() -> None:
    """Every query reads them."""
    oracle = open_oracle(planted((4, 3, 2)), domain=(0, 1))
    assert oracle.facts is oracle.facts
    asked = Counting(CallableOracle(lambda x: x[:, :2], 4), Ledger(), Domain(0, 1))
    unknown = asked.facts
    asked.query(np.full((3, 4), 0.5))
    assert (unknown.outputs, asked.facts.outputs) == (0, 2)
    assert asked.facts is asked.facts


def test_domain_of_an_oracle_is_kept() -> None:
    class Bounded(NetworkOracle):
        @property
        def facts(self) -> Facts:
            return Facts(4, 3, domain=Domain(0, 1), identity="bounded")

    with pytest.raises(OutsideDomain):
        open_oracle(Bounded(NETWORK)).query(ROWS)


# ---- what opening costs


def test_opening_a_callable_costs_one_row() -> None:
    target = Asked(served)
    oracle = open_oracle(target, dim=4)
    assert target.calls == [1]
    assert (oracle.queries, oracle.ledger.total.asked) == (1, 0)
    assert list(oracle.ledger.stages) == ["open"]


def test_opening_the_rest_costs_nothing(tmp_path: Path, described: Any) -> None:
    with open_oracle(described, transcript=tmp_path / "transcript") as oracle:
        assert oracle.queries == 0


class Nameless(NetworkOracle):
    """An oracle that cannot be told from others but by its answers."""

    @property
    def facts(self) -> Facts:
        return Facts(4, 3)


def test_opening_a_nameless_oracle_costs_the_opening_question(tmp_path: Path) -> None:
    assert open_oracle(Nameless(NETWORK)).queries == 0
    for rows in (6, 3):  # twice when the transcript is made, once when it is opened again
        with open_oracle(Nameless(NETWORK), transcript=tmp_path) as oracle:
            assert oracle.queries == rows


def test_opened_oracle_is_not_opened_twice() -> None:
    opened = open_oracle(NETWORK)
    assert as_opened(opened) is opened
    assert isinstance(as_opened(NetworkOracle(NETWORK)), Counting)


# ---- naming a target


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("suffix", [".npz", ".onnx"])
def test_path_is_opened(tmp_path: Path, kind: type, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    NETWORK.save(path)
    np.testing.assert_allclose(open_oracle(kind(path)).query(ROWS), NETWORK(ROWS), rtol=0, atol=1e-13)


@pytest.mark.parametrize("content", [b"", b"no archive", bytes(range(256))])
def test_bad_npz_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    with pytest.raises(UnsupportedModel, match=r"got .*model\.npz', expected an \.npz written by ReLUNetwork\.save"):
        open_oracle(path)


def test_npz_with_pickled_objects_runs_no_code(tmp_path: Path) -> None:
    path, sign = tmp_path / "model.npz", tmp_path / "sign"
    np.savez(path, format=1, link="identity", weight_0=np.array([Touching(sign)], dtype=object))
    with pytest.raises(UnsupportedModel):
        open_oracle(path, trust_code=True)
    assert not sign.exists()


def test_unknown_suffix_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.h5"
    path.touch()
    with pytest.raises(UnknownTarget, match=r"^target: got .*model\.h5', expected a file ending in \.onnx or \.npz"):
        open_oracle(path)


@pytest.mark.parametrize("name", ["nowhere.onnx", "nowhere", "", "folder:", ":attribute"])
def test_missing_file_is_refused(name: str) -> None:
    with pytest.raises(UnknownTarget, match=rf"^target: got '{name}', expected an existing \.onnx or \.npz file"):
        open_oracle(name)


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownTarget, match="expected an existing"):
        open_oracle(tmp_path)


@pytest.mark.parametrize("url", ["http://localhost:8000/predict", "https://example.com/model.onnx"])
def test_address_that_is_no_model_is_refused(url: str) -> None:
    with pytest.raises(UnknownTarget, match=rf"^target: got '{url}', expected http\(s\)://host:port/v2/models/NAME"):
        open_oracle(url)


@pytest.mark.parametrize("option", [{"rate": 5}, {"connections": 2}, {"auth_env": "TOKEN"}])
def test_options_of_served_models_are_for_them_alone(option: dict) -> None:
    with pytest.raises(InvalidInput, match=rf"^{next(iter(option))}: got a value for a local target"):
        open_oracle(NETWORK, **option)


@pytest.mark.parametrize("target", [None, 3, [1.0], {"weights": []}, np.zeros((2, 2))])
def test_thing_that_is_no_target_is_refused(target: object) -> None:
    with pytest.raises(UnknownTarget, match=rf"^target: got {type(target).__name__}, expected a callable"):
        open_oracle(target, dim=4)


# ---- module:attribute

MODULE = """
import numpy as np
from reluctant.networks import ReLUNetwork

network = ReLUNetwork([[[1.0, 2.0]]], [[3.0]])
path = "model.onnx"


def total(x):
    return x.sum(axis=1)


class Models:
    first = network
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a module in the working folder."""
    (tmp_path / "served_models.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "served_models", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return "served_models"


@pytest.mark.parametrize("attribute", ["network", "Models.first"])
def test_attribute_of_a_module_is_opened(module: str, attribute: str) -> None:
    assert open_oracle(f"{module}:{attribute}").query([[1, 1]]).item() == 6


def test_function_of_a_module_is_opened(module: str) -> None:
    assert open_oracle(f"{module}:total", dim=2).query([[1, 1]]).item() == 2


@pytest.mark.parametrize("name", ["served_models:nothing", "served_models:network.nothing", "no_such_module:network"])
@pytest.mark.usefixtures("module")
def test_missing_attribute_or_module_is_refused(name: str) -> None:
    with pytest.raises(UnknownTarget, match=rf"^target: got '{name}' .*, expected module:attribute"):
        open_oracle(name)


def test_name_of_a_name_is_refused(module: str) -> None:
    with pytest.raises(InvalidInput, match=r"^target: got 'served_models:path', which is a string, expected"):
        open_oracle(f"{module}:path")


# ---- files that can run code


class Touching:
    """Unpickling this touches a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def dump(thing: object, path: Path) -> None:
    if path.suffix in {".pt", ".pth"}:
        torch.save(thing, path)
    elif path.suffix == ".joblib":
        joblib.dump(thing, path)
    else:
        path.write_bytes(pickle.dumps(thing))


CODE_FILES = [".pkl", ".pickle", ".joblib", ".pt", ".pth"]


@pytest.mark.parametrize("suffix", CODE_FILES)
def test_file_that_can_run_code_is_refused(tmp_path: Path, suffix: str) -> None:
    path, sign = tmp_path / f"model{suffix}", tmp_path / "sign"
    dump(Touching(sign), path)
    with pytest.raises(UnsafeFile, match=rf"^target: got .*model{suffix}', expected .*trust_code=True"):
        open_oracle(path, dim=4)
    assert not sign.exists()
    with pytest.raises(UnknownTarget):
        open_oracle(path, dim=4, trust_code=True)
    assert sign.exists()


@pytest.mark.parametrize("suffix", CODE_FILES)
def test_trusted_file_is_opened(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    model = torch_module(NETWORK) if suffix in {".pt", ".pth"} else fitted_mlp("MLPRegressor")
    dump(model, path)
    oracle = open_oracle(path, trust_code=True)
    np.testing.assert_array_equal(oracle.query(ROWS), open_oracle(model).query(ROWS))


@pytest.mark.parametrize("suffix", CODE_FILES)
@pytest.mark.parametrize("content", [b"", b"no model", bytes(range(95, 200)), b"I1x\n."], ids=range(4))
def test_trusted_file_may_be_unreadable(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    with pytest.raises(UnknownTarget, match=rf"^target: got .*model{suffix}' .*, expected a readable model file"):
        open_oracle(path, trust_code=True)


def test_trusted_state_dict_is_no_target(tmp_path: Path) -> None:
    torch.save(torch_module(NETWORK).state_dict(), tmp_path / "weights.pt")
    with pytest.raises(UnknownTarget, match=r"^target: got OrderedDict, expected"):
        open_oracle(tmp_path / "weights.pt", trust_code=True)


def test_file_is_no_longer_needed_once_opened(tmp_path: Path) -> None:
    path = save_onnx(NETWORK, tmp_path / "model.onnx", "float64")
    oracle = open_oracle(path)
    os.remove(path)
    np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), rtol=0, atol=1e-13)


def test_oracle_of_ones_own_is_opened() -> None:
    class Sum(Oracle):
        @property
        def facts(self) -> Facts:
            return Facts(4, 1, name="sum")

        def answer(self, rows: np.ndarray) -> np.ndarray:
            return rows.sum(axis=1, keepdims=True)

    oracle = open_oracle(Sum(), dim=4, budget=10)
    np.testing.assert_array_equal(oracle.query(ROWS), ROWS.sum(axis=1, keepdims=True))
    assert oracle.queries == 10


def test_network_of_one_layer_is_opened() -> None:
    network = ReLUNetwork([[[1.0, -1.0]]], [[0.5]])
    assert open_oracle(network).query([[2, 1]]).item() == 1.5


# ---- few rows at once


def few(most: int, sizes: list[int]):
    """The network, as one that refuses more than so many rows."""

    def target(x):
        sizes.append(len(x))
        if len(x) > most:
            raise ValueError(f"at most {most} rows")
        return NETWORK(x)

    return target


def test_a_local_target_is_asked_in_batches(tmp_path) -> None:
    rows = np.random.default_rng(0).standard_normal((25, NETWORK.dim))
    for kept in ({}, {"transcript": tmp_path}):
        sizes: list[int] = []
        with open_oracle(few(10, sizes), dim=NETWORK.dim, batch=10, **kept) as oracle:
            opening = len(sizes)
            np.testing.assert_array_equal(oracle.query(rows), NETWORK(rows))
            assert sizes[opening:] == [10, 10, 5]


def test_a_batch_that_failed_is_repeated_alone() -> None:
    sizes: list[int] = []
    failing = iter([False, False, True, False, False])

    def target(x):
        sizes.append(len(x))
        if next(failing):
            raise RuntimeError("now and then")
        return NETWORK(x)

    with open_oracle(target, dim=NETWORK.dim, batch=4, retries=1) as oracle:
        oracle.query(np.zeros((8, NETWORK.dim)))
    assert sizes == [1, 4, 4, 4]


def test_a_target_that_takes_few_rows_says_what_to_do() -> None:
    with open_oracle(few(10, []), dim=NETWORK.dim) as oracle, pytest.raises(TargetUnavailable, match="batch=N"):
        oracle.query(np.zeros((25, NETWORK.dim)))


@pytest.mark.parametrize("batch", [0, -1, 2.5, True, "many"])
def test_a_batch_is_a_number_of_rows(batch) -> None:
    with pytest.raises(InvalidInput, match="batch"):
        open_oracle(NETWORK, batch=batch)
