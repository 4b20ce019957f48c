"""Gradients of a served model: a tensor by name, a path into JSON, one request and one row for both."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidAnswer, InvalidInput
from reluctant.oracles import Oracle
from reluctant.testing import planted
from reluctant.testing.contract import GradientContract
from reluctant.testing.server import GRADIENTS, ModelServer

NETWORK = planted((6, 5, 2), 1)
ROWS = np.random.default_rng(2).standard_normal((40, 6))
PLAIN = {"dim": 6, "request": {"instances": "$rows"}, "reply": "predictions"}


def serve(**settings: object) -> ModelServer:
    return ModelServer(NETWORK, 6, outputs=2, **{"gradients": NETWORK.gradients, **settings})


def ways() -> dict[str, tuple[dict, dict]]:
    return {
        "JSON": ({}, {"encoding": "json"}),
        "binary": ({}, {"encoding": "binary"}),
        "not described": ({"describes": False}, {"dim": 6}),
        "tensor named": ({}, {"tensor": "y"}),
        "flat rows": ({"gradients": lambda x: NETWORK.gradients(x).reshape(len(x), -1)}, {}),
        "small batches": ({"most_rows": 3}, {}),
    }


@pytest.mark.parametrize("way", ways())
class TestServedModels(GradientContract):
    @pytest.fixture
    def oracle(self, way: str) -> Iterator[Oracle]:
        settings, options = ways()[way]
        with serve(**settings) as server, rl.open_oracle(server.url, gradients=GRADIENTS, **options) as oracle:
            yield oracle


class TestPlainEndpoints(GradientContract):
    @pytest.fixture
    def oracle(self) -> Iterator[Oracle]:
        with serve() as server, rl.open_oracle(server.plain_url, gradients=GRADIENTS, **PLAIN) as oracle:
            yield oracle


@pytest.mark.parametrize("encoding", ["json", "binary"])
def test_both_come_in_one_request_to_the_last_bit(encoding: str) -> None:
    options = {"gradients": GRADIENTS, "encoding": encoding, "watch": None, "connections": 1}
    with serve() as server, rl.open_oracle(server.url, **options) as oracle:
        found = oracle.query_gradients(ROWS)
        np.testing.assert_array_equal(found.values, NETWORK(ROWS))
        np.testing.assert_array_equal(found.gradients, NETWORK.gradients(ROWS))
        assert oracle.queries == server.rows == len(ROWS)
        assert server.questions == 1


def test_gradients_of_one_output_that_is_named() -> None:
    with (
        serve(gradients=lambda x: NETWORK.gradients(x)[:, 1]) as server,
        rl.open_oracle(server.url, gradients=GRADIENTS, output=1) as oracle,
    ):
        np.testing.assert_array_equal(oracle.query_gradients(ROWS).gradients, NETWORK.gradients(ROWS)[:, 1:])


@pytest.mark.parametrize("address", ["url", "plain_url"])
def test_a_served_network_is_recovered_from_its_gradients(address: str) -> None:
    more = PLAIN if address == "plain_url" else {}
    with serve() as server:
        found = rl.extract(getattr(server, address), rng=0, watch=None, gradients=GRADIENTS, **more)
    assert found.ok
    assert "lines" in found.rows
    assert rl.compare(found.network, NETWORK).parameter_error < 1e-9


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"gradients": lambda x: np.zeros((len(x), 5))}, r"gradients: got an answer of shape \(3, 5\) for 3 rows"),
        ({"gradients": None}, "got outputs 'y', expected 'gradients'"),
    ],
)
def test_a_reply_without_gradients_is_named(settings: dict, said: str) -> None:
    with (
        serve(**settings) as server,
        rl.open_oracle(server.url, gradients=GRADIENTS, watch=None, retries=0) as oracle,
        pytest.raises(InvalidAnswer, match=said),
    ):
        oracle.query_gradients(ROWS[:3])


def test_a_path_that_leads_nowhere_is_named() -> None:
    with (
        serve() as server,
        rl.open_oracle(server.plain_url, gradients="slopes", watch=None, retries=0, **PLAIN) as oracle,
        pytest.raises(InvalidAnswer, match="the keys predictions, gradients where the path 'slopes'"),
    ):
        oracle.query_gradients(ROWS[:3])


def test_names_are_for_served_models_and_true_is_not() -> None:
    with pytest.raises(InvalidInput, match="gradients: got 'saliency' for a target that is not served"):
        rl.open_oracle(NETWORK, gradients="saliency")
    with serve() as server, pytest.raises(InvalidInput, match="gradients: got True for a served model"):
        rl.open_oracle(server.url, gradients=True)
