"""What may be shown of an address and of a request: nothing that could be a key."""

from __future__ import annotations

import json

import pytest

import reluctant as rl
from reluctant.oracles.http.security import HIDDEN, shown_command_target, shown_request, shown_target
from reluctant.testing import planted
from reluctant.testing.server import Fault, ModelServer, at

KEY = "abcSECRETxyz"
BODY_KEY = "bodySECRETxyz"
ASKED = {"dim": 4, "reply": "predictions", "retries": 0}


@pytest.mark.parametrize(
    "target",
    [
        f"http://host:8000/predict?token={KEY}",
        f"https://host/predict#{KEY}",
        f"https://user:{KEY}@host/predict",
        f"https://user:{KEY}/1@host/predict",
        f"ftp://{KEY}@host/predict?a=b",
    ],
)
def test_no_key_of_an_address_is_shown(target: str) -> None:
    assert KEY not in shown_target(target)
    assert KEY not in shown_command_target(target)
    with pytest.raises(rl.ReluctantError) as caught:
        rl.open_oracle(target)
    assert KEY not in str(caught.value)


def test_what_is_no_key_is_shown() -> None:
    assert shown_target("http://host:8000/predict?a=b") == "http://host:8000/predict"
    assert shown_command_target("http://host:8000/predict?a=b") == f"http://host:8000/predict?{HIDDEN}"
    assert shown_command_target("http://host/predict") == "http://host/predict"
    assert shown_target("what?/model.onnx") == shown_command_target("what?/model.onnx") == "what?/model.onnx"


def test_a_request_is_shown_without_its_values() -> None:
    template = {"instances": "$rows", "auth": {"key": BODY_KEY, "pin": 1234}, "list": [BODY_KEY], "fast": True}
    hidden = {"instances": "$rows", "auth": {"key": HIDDEN, "pin": HIDDEN}, "list": [HIDDEN], "fast": True}
    assert json.loads(shown_request(json.dumps(template))) == json.loads(shown_request(template)) == hidden
    assert shown_request(f'{{"key": "{BODY_KEY}"') == HIDDEN


@pytest.mark.parametrize("request_text", [f'{{"key": "{BODY_KEY}"}}', f'{{"key": "{BODY_KEY}"'])
def test_a_wrong_request_is_not_repeated(request_text: str) -> None:
    with ModelServer(planted((4, 3, 1), 0), 4) as server, pytest.raises(rl.ReluctantError) as caught:
        rl.open_oracle(server.plain_url, request=request_text, **ASKED)
    assert BODY_KEY not in str(caught.value)


def test_a_server_that_repeats_the_query_does_not_give_it_away() -> None:
    with ModelServer(planted((4, 3, 1), 0), 4) as server:
        url = f"{server.base}/nowhere?token={KEY}"
        with pytest.raises(rl.ReluctantError, match="Model not found") as caught:
            rl.open_oracle(url, request='{"instances": "$rows"}', **ASKED).query([[0.0] * 4])
    assert KEY not in str(caught.value)
    assert HIDDEN in str(caught.value)


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.TRUNCATE, Fault.BUSY, Fault.ERROR, Fault.GARBLE])
def test_no_failed_request_shows_the_query(fault: Fault) -> None:
    template = {"instances": "$rows", "key": BODY_KEY}
    with ModelServer(planted((4, 3, 1), 0), 4, faults=at(dict.fromkeys(range(9), fault))) as server:
        url = f"{server.plain_url}?token={KEY}"
        with pytest.raises(rl.ReluctantError) as caught:
            rl.open_oracle(url, request=json.dumps(template), **ASKED).query([[0.0] * 4])
    assert KEY not in str(caught.value)
    assert BODY_KEY not in str(caught.value)
