"""Replies that no retry mends, and outputs that are asked for by name."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reluctant.errors import InvalidAnswer, TargetRefused, TargetUnavailable
from reluctant.oracles.base import Facts, Oracle
from reluctant.oracles.http.inference_protocol import OpenInferenceOracle
from reluctant.oracles.http.transport import Reply, failure_of
from reluctant.oracles.keywords import Serving
from reluctant.oracles.retry import Retrying


@pytest.mark.parametrize("reply", [
    Reply(200, {"content-type": "text/html; charset=utf-8"}, b"log in first"),
    Reply(200, {}, b"\n<!doctype html><html><body>log in first</body></html>"),
])  # fmt: skip
def test_a_page_of_html_is_not_asked_for_again(reply):
    with pytest.raises(TargetRefused, match="log in first"):
        reply.json()


def test_a_torn_reply_is_asked_for_again():
    with pytest.raises(TargetUnavailable):
        Reply(200, {}, b'{"outputs": [').json()


class Failing(Oracle):
    """A network whose server says the same to the first questions."""

    def __init__(self, failures: int, text: str = "ValueError: 7 features") -> None:
        self.failures, self.text, self.asked = failures, text, 0

    @property
    def facts(self):
        return Facts(dim=3, outputs=1)

    def answer(self, rows):
        self.asked += 1
        if self.asked <= self.failures:
            raise failure_of(Reply(500, {}, self.text.encode()), "POST model", len(rows), None)
        return np.zeros((len(rows), 1))


def test_a_target_that_never_answers_and_says_the_same_is_given_up_soon():
    waits: list[float] = []
    target = Failing(100)
    with pytest.raises(TargetUnavailable, match="Tried 4 times"):
        Retrying(target, 8, waits.append).answer(np.ones((1, 3)))
    assert sum(waits) < 5


def test_a_target_that_has_answered_is_asked_as_often_as_said():
    target = Failing(0)
    retrying = Retrying(target, 8, lambda _: None)
    retrying.answer(np.ones((2, 3)))
    target.failures = 8
    retrying.answer(np.ones((1, 3)))
    assert target.asked > 8


class Runtime:
    """A server that answers with labels unless probabilities are asked for by name."""

    url = shown = "http://host/v2/models/clf"

    def __init__(self, *declared: str) -> None:
        tensors = [{"name": name, "datatype": "FP64", "shape": [-1, 3]} for name in declared]
        inputs = [{"name": "x", "datatype": "FP64", "shape": [-1, 2]}]
        self.metadata = {"name": "clf", "inputs": inputs, "outputs": tensors}

    def send(self, method, url, *, rows=0, body=b"", headers=None):
        if method == "GET":
            return Reply(200, {}, json.dumps(self.metadata).encode())
        names = [each["name"] for each in json.loads(body).get("outputs", [])]
        width = 3 if names == ["predict_proba"] else 1
        tensor = {"name": names[0] if names else "predict", "datatype": "FP64", "shape": [rows, width]}
        return Reply(200, {}, json.dumps({"outputs": [tensor | {"data": [0.25] * rows * width}]}).encode())

    ask = send


@pytest.mark.parametrize("declared", [("predict_proba",), ()])
def test_an_output_is_asked_for_by_its_name(declared):
    tensor = None if declared else "predict_proba"
    oracle = OpenInferenceOracle(Runtime(*declared), Serving(encoding="json", tensor=tensor), shape=(2,))
    assert oracle.answer(np.ones((4, 2))).shape == (4, 3)


def test_an_answer_of_another_width_names_the_outputs():
    oracle = OpenInferenceOracle(Runtime("predict", "scores"), Serving(encoding="json", tensor="predict"))
    with pytest.raises(InvalidAnswer, match=r"the model has predict, scores. Name another: tensor='NAME'"):
        oracle.answer(np.ones((4, 2)))
