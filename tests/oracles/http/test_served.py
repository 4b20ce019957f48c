"""A served model is asked as any other: JSON and binary, batches, connections, rate, what its metadata say."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import (
    InvalidAnswer,
    InvalidInput,
    NonFiniteAnswer,
    TargetError,
    TargetRefused,
    UnknownTarget,
    UnsupportedModel,
)
from reluctant.oracles import Kind, Oracle, Retrying
from reluctant.oracles.http.inference_protocol import decode
from reluctant.oracles.http.transport import RateLimit, Reply, Server
from reluctant.oracles.wrappers import OLD_ROWS, WATCH_REPEATS
from reluctant.testing import planted
from reluctant.testing.contract import OracleContract
from reluctant.testing.server import Fault, ModelServer, at

NETWORK = planted((6, 5, 2), 1)
ROWS = np.random.default_rng(2).standard_normal((700, 6))
PLAIN = {"dim": 6, "request": {"instances": "$rows"}, "reply": "predictions"}
WATCHING = OLD_ROWS * WATCH_REPEATS  # rows asked again at the start


def serve(**settings: object) -> ModelServer:
    return ModelServer(NETWORK, 6, outputs=2, **settings)


def ways() -> dict[str, tuple[dict, dict]]:
    return {
        "JSON": ({}, {"encoding": "json"}),
        "binary": ({}, {"encoding": "binary"}),
        "auto": ({}, {}),
        "auto without binary": ({"binary": False}, {}),
        "float32 JSON": ({"datatype": "FP32"}, {"encoding": "json"}),
        "float32 binary": ({"datatype": "FP32"}, {"encoding": "binary"}),
        "not described": ({"describes": False}, {"dim": 6}),
        "one connection": ({}, {"connections": 1}),
        "small batches": ({"most_rows": 3}, {}),
    }


@pytest.mark.parametrize("way", ways())
class TestServedModels(OracleContract):
    @pytest.fixture
    def oracle(self, way: str) -> Iterator[Oracle]:
        settings, options = ways()[way]
        with serve(**settings) as server, rl.open_oracle(server.url, **options) as oracle:
            yield oracle


class TestPlainEndpoints(OracleContract):
    @pytest.fixture
    def oracle(self) -> Iterator[Oracle]:
        with serve() as server, rl.open_oracle(server.plain_url, **PLAIN) as oracle:
            yield oracle


def test_outputs_that_nobody_counted_are_learned_from_an_answer() -> None:
    with ModelServer(lambda x: NETWORK(x), 6) as server, rl.open_oracle(server.url) as oracle:
        assert oracle.facts.outputs == 2
        np.testing.assert_array_equal(oracle.query(ROWS[:3]), NETWORK(ROWS[:3]))


# ---- numbers


@pytest.mark.parametrize("encoding", ["json", "binary"])
def test_float64_comes_through_to_the_last_bit(encoding: str) -> None:
    with serve() as server, rl.open_oracle(server.url, encoding=encoding, batch=700, connections=1) as oracle:
        np.testing.assert_array_equal(oracle.query(ROWS), NETWORK(ROWS))
        assert oracle.facts.dtype == np.float64


@pytest.mark.parametrize("encoding", ["json", "binary"])
def test_float32_is_sent_and_answered_as_such(encoding: str) -> None:
    with serve(datatype="FP32") as server, rl.open_oracle(server.url, encoding=encoding, connections=1) as oracle:
        expected = NETWORK(ROWS[:20].astype(np.float32)).astype(np.float32)
        np.testing.assert_allclose(oracle.query(ROWS[:20]), expected, rtol=1e-6)
        assert oracle.facts.dtype == np.float32


def test_a_plain_endpoint_comes_through_to_the_last_bit() -> None:
    with serve() as server, rl.open_oracle(server.plain_url, **PLAIN, batch=700, connections=1) as oracle:
        np.testing.assert_array_equal(oracle.query(ROWS), NETWORK(ROWS))


def test_nan_is_an_answer_that_is_refused_with_its_rows() -> None:
    for encoding in ("json", "binary"):
        faults = at({1: Fault.NAN})
        with serve(faults=faults) as server, rl.open_oracle(server.url, encoding=encoding, watch=None) as oracle:
            oracle.query(ROWS[:5])
            with pytest.raises(NonFiniteAnswer, match="1 of 5 rows") as caught:
                oracle.query(ROWS[:5])
            assert np.isnan(caught.value.answers[0, 0])


# ---- what it costs


def test_rows_are_counted_where_they_pass() -> None:
    with serve() as server, rl.open_oracle(server.url) as oracle:
        oracle.query(ROWS)
        assert oracle.queries == server.rows == len(ROWS) + WATCHING


def test_opening_costs_nothing_where_the_model_is_described() -> None:
    with serve() as server, rl.open_oracle(server.url) as oracle:
        assert (oracle.dim, oracle.outputs, server.rows) == (6, 2, 0)
        assert "model at localhost" in oracle.facts.name


def test_outputs_are_learned_from_one_row_where_it_is_not() -> None:
    with serve(describes=False) as server, rl.open_oracle(server.url, dim=6, watch=None) as oracle:
        assert (oracle.outputs, server.rows) == (2, 1)


def test_the_budget_is_kept() -> None:
    with serve() as server, rl.open_oracle(server.url, budget=300, batch=10, watch=None) as oracle:
        oracle.query(ROWS[:200])
        with pytest.raises(rl.ReluctantError, match=r"^budget: "):
            oracle.query(ROWS)
        assert server.rows == 300


# ---- batches, connections, rate


def test_batches_are_no_larger_than_asked_for() -> None:
    with serve() as server, rl.open_oracle(server.url, batch=40) as oracle:
        np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), atol=1e-13)
        assert max(server.sizes) == 40


def test_the_limit_of_the_server_is_learned_and_nothing_is_paid_for_it() -> None:
    with serve(most_rows=50) as server, rl.open_oracle(server.url, connections=1, watch=None) as oracle:
        for _ in range(3):
            np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), atol=1e-13)
        assert oracle.queries == server.rows == 3 * len(ROWS)
        assert server.questions <= 3 * -(-len(ROWS) // 25) + 6


def test_a_server_that_takes_nothing_says_so() -> None:
    with (
        serve(most_rows=0) as server,
        rl.open_oracle(server.url, watch=None) as oracle,
        pytest.raises(TargetRefused, match=r"413 \(at most 0 rows\)"),
    ):
        oracle.query(ROWS[:8])


def test_connections_work_at_the_same_time(patience: float) -> None:
    """Each question is answered once five are there: with fewer at a time nobody would ever be answered."""
    five = threading.Barrier(5, timeout=patience)

    def together(x: np.ndarray) -> np.ndarray:
        five.wait()
        return NETWORK(x)

    server = ModelServer(together, 6, outputs=2)
    with server, rl.open_oracle(server.url, connections=5, batch=70, watch=None) as oracle:
        np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), atol=1e-13)


def test_replies_in_another_order_find_their_place() -> None:
    odd_ones = at(dict.fromkeys(range(0, 100, 2), Fault.SLOW))
    with serve(faults=odd_ones) as server, rl.open_oracle(server.url, connections=6, batch=32) as oracle:
        np.testing.assert_allclose(oracle.query(ROWS), NETWORK(ROWS), atol=1e-13)


def test_the_rate_is_kept_over_all_connections() -> None:
    with serve() as server, rl.open_oracle(server.url, rate=1000, batch=32, watch=None) as oracle:
        start = time.monotonic()
        oracle.query(ROWS[:320])
        assert time.monotonic() - start >= 0.9 * (320 - 32) / 1000


def test_a_pace_waits_for_its_turn_and_when_it_is_told_to() -> None:
    now, pauses = [0.0], []
    pace = RateLimit(10, clock=lambda: now[0], sleep=pauses.append)
    for _ in range(3):
        pace.wait(5)
    pace.hold(7)
    pace.wait(5)
    assert pauses == [0.5, 1.0, 7.0]
    now[0] = 100.0
    pace.wait(5)
    assert len(pauses) == 3


# ---- wrong addresses and models


def test_a_wrong_name_lists_what_there_is() -> None:
    with serve(name="digits") as server, pytest.raises(UnknownTarget, match=r"model 'digit', .* one of 'digits'\.$"):
        rl.open_oracle(server.url.replace("digits", "digit"))


def send_404(says_ready: bool) -> Callable[..., Reply]:
    """A server that knows no model by name and lists none; some say `ready` whatever they are asked."""

    def send(self: Server, method: str, url: str, **_: object) -> Reply:
        ok = says_ready and url.endswith("/ready")
        return Reply(200, {}, b"{}") if ok else Reply(404, {}, b'{"error": "no such model"}')

    return send


@pytest.mark.parametrize("says_ready", [False, True])
def test_a_model_that_is_not_found_is_told_in_the_words_of_the_server(
    says_ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Server, "send", send_404(says_ready))
    url = "http://localhost:1/v2/models/digit"
    with pytest.raises(UnknownTarget, match=r"^target: got model 'digit', .*404 \(no such model\).*Check the name in"):
        rl.open_oracle(url)
    with pytest.raises((UnknownTarget, TargetRefused), match=r"404 \(no such model\).*Check the .*name"):
        rl.open_oracle(url, dim=6)


@pytest.mark.parametrize("options", [{}, PLAIN])
def test_a_server_that_is_not_there_is_named_at_once(options: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Retrying, "_wait", lambda *_: pytest.fail("it was asked again"))
    with pytest.raises(
        UnknownTarget, match=r"^target: got no connection to http://localhost:1/v2/models/x \(.*Check the"
    ):
        rl.open_oracle("http://localhost:1/v2/models/x", **options)


@pytest.mark.parametrize("url", ["ftp://host/v2/models/x", "http:///v2/models/x", "http://host:port/v2/models/x"])
def test_no_address_at_all(url: str) -> None:
    with pytest.raises(UnknownTarget, match=r"^target: got .*, expected "):
        rl.open_oracle(url)


def test_dim_is_asked_for_where_nobody_says() -> None:
    with serve(describes=False) as server, pytest.raises(InvalidInput, match=r"^dim: got None"):
        rl.open_oracle(server.url)


def test_dim_is_checked_where_the_server_says() -> None:
    with serve() as server, pytest.raises(InvalidInput, match=r"^dim: got 7, expected 6"):
        rl.open_oracle(server.url, dim=7)


def test_rows_it_does_not_take_give_its_own_words() -> None:
    with serve(describes=False) as server, pytest.raises(TargetError, match="rows of 6 numbers are wanted"):
        rl.open_oracle(server.url, dim=7)


def test_precision_cannot_be_changed() -> None:
    with serve() as server, pytest.raises(InvalidInput, match=r"^precision: got 'float64' for a served model"):
        rl.open_oracle(server.url, precision="float64")


def test_an_input_that_is_no_number_is_refused() -> None:
    with serve(datatype="FP64") as server:
        server.datatype = "BYTES"
        with pytest.raises(InvalidInput, match=r"^target: got input 'x' of type BYTES"):
            rl.open_oracle(server.url)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"connections": 0}, r"^connections: got 0"),
        ({"rate": 0}, r"^rate: got 0, expected rows a second"),
        ({"batch": 1.5}, r"^batch: got 1\.5"),
        ({"watch": -1}, r"^watch: got -1"),
        ({"encoding": "xml"}, r"^encoding: got 'xml', expected one of 'auto', 'json', 'binary'"),
        ({"datatype": "INT8"}, r"^datatype: got 'INT8'"),
        ({"request": "{}"}, r"^request, reply: got request= without reply="),
    ],
)
def test_bad_options_are_named(option: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        rl.open_oracle("http://localhost:1/v2/models/x", **option)


def test_an_unknown_keyword_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        rl.open_oracle("http://localhost:1/v2/models/x", speed=3)


def test_kind_is_what_the_user_says() -> None:
    with serve() as server, rl.open_oracle(server.url, kind="probabilities") as oracle:
        assert oracle.facts.kind is Kind.PROBABILITIES


# ---- the whole way


def test_a_served_network_is_recovered_exactly() -> None:
    with serve() as server, rl.open_oracle(server.url) as oracle:
        result = rl.extract(oracle, rng=0)
        assert result.ok
        assert rl.compare(result.network, NETWORK).parameter_error < 1e-9
        assert oracle.queries == server.rows


def test_several_outputs_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from reluctant.oracles.http.inference_protocol import ModelMetadata, TensorSpec

    label, probability, logits = (
        TensorSpec("label", "INT64", ()),
        TensorSpec("p", "FP32", (3,)),
        TensorSpec("z", "FP32", (3,)),
    )
    assert ModelMetadata(outputs=(label, probability)).output(None) is probability
    assert ModelMetadata(outputs=(label, probability, logits)).output("z") is logits
    with pytest.raises(UnsupportedModel, match="label, p, z"):
        ModelMetadata(outputs=(label, probability, logits)).output(None)


def describing(monkeypatch: pytest.MonkeyPatch, **outputs: str) -> str:
    """The address of a model with these outputs, by name and type."""
    tensors = [{"name": name, "datatype": datatype, "shape": [-1]} for name, datatype in outputs.items()]
    body = json.dumps({"inputs": [{"name": "x", "datatype": "FP64", "shape": [-1, 6]}], "outputs": tensors}).encode()
    monkeypatch.setattr(Server, "send", lambda *_, **__: Reply(200, {}, body))
    return "http://localhost:1/v2/models/m"


@pytest.mark.parametrize(
    ("datatype", "kind"), [("INT64", Kind.VALUES), ("UINT8", Kind.VALUES), ("FP32", Kind.VALUES), ("BOOL", Kind.LABELS)]
)
def test_integers_may_be_labels_or_scores(datatype: str, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    url = describing(monkeypatch, score=datatype)
    assert rl.open_oracle(url).facts.kind is kind
    assert rl.open_oracle(url, kind="labels").facts.kind is Kind.LABELS


def test_texts_are_refused_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    told = r"^target: got output 'label' of type BYTES, expected numbers. "
    for options in ({}, {"tensor": "label"}):
        with pytest.raises(UnsupportedModel, match=told + "Class names are to be served as numbers"):
            rl.open_oracle(describing(monkeypatch, label="BYTES"), **options)
    url = describing(monkeypatch, label="BYTES", number="INT64")
    with pytest.raises(UnsupportedModel, match=told + r"Name one that holds numbers, number: tensor="):
        rl.open_oracle(url, tensor="label")
    assert rl.open_oracle(url, tensor="number").outputs == 1


def test_texts_that_nobody_announced_are_told_in_full() -> None:
    body = json.dumps({"outputs": [{"name": "label", "datatype": "BYTES", "shape": [1], "data": ["cat"]}]}).encode()
    with pytest.raises(
        InvalidAnswer, match=r"of type BYTES in output 'label', .*tensor='NAME'\. Class names are to be"
    ):
        decode(Reply(200, {}, body), None)
