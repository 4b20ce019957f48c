"""Oracles that answer gradients: the contract, the stack around them, the transcript, links, and bad gradients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from oracle_models import gaussian_rows, linked, torch_module

from reluctant.errors import BudgetExhausted, InvalidAnswer, InvalidInput, NonFiniteAnswer
from reluctant.oracles import Oracle, open_oracle
from reluctant.testing import planted
from reluctant.testing.contract import GradientContract

NETWORK = planted((4, 6, 5, 3), 1)
ROWS = gaussian_rows(7, 4)

Maker = Callable[[Path], Oracle]


def times_input(rows):
    return NETWORK.gradients(rows) * rows[:, None]


def everything(folder: Path) -> Oracle:
    return open_oracle(
        linked(NETWORK, "softmax"), gradients=True, budget=10_000, transcript=folder / "transcript", keep_rows=True,
        output=[1, 0], link="softmax", domain=(-2, 2), timeout=60, retries=2, batch=3,
    )  # fmt: skip


MAKERS: dict[str, Maker] = {
    "callable": lambda _: open_oracle(NETWORK, dim=4, gradients=NETWORK.gradients),
    "function": lambda _: open_oracle(lambda x: NETWORK(x), dim=4, gradients=NETWORK.gradients),
    "network": lambda _: open_oracle(NETWORK, gradients=True),
    "torch": lambda _: open_oracle(torch_module(NETWORK), gradients=True),
    "torch float64": lambda _: open_oracle(torch_module(NETWORK), gradients=True, precision="float64"),
    "one output": lambda _: open_oracle(NETWORK, gradients=lambda x: NETWORK.gradients(x)[:, 2], output=2),
    "sigmoid": lambda _: open_oracle(linked(NETWORK, "sigmoid"), gradients=True, link="sigmoid"),
    "softmax": lambda _: open_oracle(linked(NETWORK, "softmax"), gradients=True, link="softmax"),
    "log-softmax": lambda _: open_oracle(linked(NETWORK, "log-softmax"), gradients=True, link="log-softmax"),
    "tanh": lambda _: open_oracle(linked(NETWORK, "tanh"), gradients=True, link="tanh"),
    "times input": lambda _: open_oracle(NETWORK, gradients=times_input, explanation="input-times-gradient"),
    "everything": everything,
}


class TestContract(GradientContract):
    @pytest.fixture(params=MAKERS)
    def oracle(self, request, tmp_path):
        with MAKERS[request.param](tmp_path) as oracle:
            yield oracle


def test_a_row_asked_for_both_counts_once():
    oracle = open_oracle(NETWORK, gradients=True, budget=10)
    oracle.query_gradients(ROWS)
    assert oracle.queries == len(ROWS)
    with pytest.raises(BudgetExhausted):
        oracle.query_gradients(ROWS)
    assert oracle.queries == len(ROWS)


def test_a_transcript_replays_gradients_and_values_apart(tmp_path):
    with open_oracle(NETWORK, gradients=True, transcript=tmp_path) as oracle:
        before = oracle.query(ROWS[:2]), oracle.query_gradients(ROWS)
    with open_oracle(NETWORK, gradients=True, transcript=tmp_path) as oracle:
        again = oracle.query_gradients(ROWS)
        np.testing.assert_array_equal(again.gradients, before[1].gradients)
        np.testing.assert_array_equal(oracle.query(ROWS[:2]), before[0])
        assert oracle.ledger.total.sent == 0
        assert oracle.queries == len(ROWS) + 2


def test_a_transcript_without_gradients_opens_with_them(tmp_path):
    with open_oracle(NETWORK, transcript=tmp_path) as oracle:
        oracle.query(ROWS)
    with open_oracle(NETWORK, gradients=True, transcript=tmp_path) as oracle:
        oracle.query(ROWS)
        assert oracle.ledger.total.sent == 0
        oracle.query_gradients(ROWS)
        assert oracle.ledger.total.sent == len(ROWS)


def test_units_of_inputs_scale_gradients():
    from reluctant.oracles.open import in_units

    samples = np.array([3.0, 50.0, 700.0, 9e3]) * gaussian_rows(40, 4) + 1e3
    scaled, units = in_units(open_oracle(NETWORK, gradients=True, inputs=samples))
    assert units is not None
    found = scaled.query_gradients(ROWS)
    np.testing.assert_allclose(found.gradients, NETWORK.gradients(units.rows(ROWS)) * units.scale)


def test_input_times_gradient_is_read_beside_zeros():
    oracle = open_oracle(NETWORK, gradients=times_input, explanation="input-times-gradient")
    rows = np.where(np.eye(4), 0.0, ROWS[:4])
    found = oracle.query_gradients(np.vstack([rows, np.zeros(4)]))
    np.testing.assert_allclose(found.gradients[:4], NETWORK.gradients(rows), atol=1e-9)
    np.testing.assert_allclose(found.values[:4], NETWORK(rows), atol=1e-12)


def test_a_target_without_gradients_says_so():
    with pytest.raises(InvalidInput, match="gradients: got a target without gradients"):
        open_oracle(NETWORK).query_gradients(ROWS)


@pytest.mark.parametrize("shape", [(7, 4), (7, 4, 3), (7, 3), (3, 7, 4), ()])
def test_gradients_of_another_shape_are_named(shape):
    oracle = open_oracle(NETWORK, gradients=lambda _: np.zeros(shape))
    with pytest.raises(InvalidAnswer, match=r"gradients: got an answer of shape .* expected \(7, 3, 4\)"):
        oracle.query_gradients(ROWS)


def test_gradients_that_are_no_numbers_are_named():
    with pytest.raises(InvalidAnswer, match="gradients: got list"):
        open_oracle(NETWORK, gradients=lambda _: ["a"]).query_gradients(ROWS)
    with pytest.raises(NonFiniteAnswer, match="gradient: got NaN or inf for 7 of 7 rows"):
        open_oracle(NETWORK, gradients=lambda x: NETWORK.gradients(x) * np.nan).query_gradients(ROWS)


@pytest.mark.parametrize(
    ("keywords", "named"),
    [
        ({"gradients": 3}, "gradients: got int"),
        ({"gradients": True}, "gradients: got True"),
        ({"gradients": NETWORK.gradients, "explanation": "saliency"}, "explanation: got 'saliency'"),
    ],
)
def test_bad_keywords_are_named(keywords, named):
    with pytest.raises(InvalidInput, match=named):
        open_oracle(lambda x: NETWORK(x), dim=4, **keywords)
