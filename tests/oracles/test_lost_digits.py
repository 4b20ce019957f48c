"""What is lost of values behind probabilities is about what is seen to be lost, and no less."""

from __future__ import annotations

import numpy as np
import pytest

import reluctant as rl
from reluctant.oracles.links import LINK_FUNCTIONS, lost_digits, on_a_grid

MOST = 30.0  # times: a bound is no more than that above what was met, on the whole
ROUNDINGS = 4.0  # of the numbers that a link is made of


@pytest.mark.parametrize(
    ("link", "values"),
    [("sigmoid", (2.0, 34.0)), ("softmax", (715.0, 735.0)), ("tanh", (1.0, 17.0)), ("tanh", (-17.0, -1.0))],
)
def test_what_is_lost_is_what_is_seen(link: str, values: tuple[float, float]) -> None:
    z, sides = np.linspace(*values, 400)[:, None], np.array([[0.0, -1.0]] if link == "softmax" else [[1.0]])
    oracle = rl.open_oracle(lambda x: LINK_FUNCTIONS[link](x @ sides), dim=1, link=link)
    read, true = oracle.answer(z), z @ sides[:, -1:]
    off, lost = np.abs(read - true), lost_digits(read, oracle)
    assert (off <= ROUNDINGS * (lost + np.finfo(float).eps * np.abs(z))).all()
    assert np.median(lost) < MOST * np.median(off)


def test_small_probabilities_have_all_their_digits() -> None:
    oracle = rl.open_oracle(lambda x: LINK_FUNCTIONS["sigmoid"](x[:, :1]), dim=2, link="sigmoid")
    assert (lost_digits(np.array([[-600.0], [-20.0], [0.0]]), oracle) <= np.finfo(float).eps).all()


def test_what_has_no_such_link_loses_nothing() -> None:
    values, log_p = rl.open_oracle(lambda x: x, dim=2), LINK_FUNCTIONS["log-softmax"]
    read = rl.open_oracle(lambda x: log_p(x), dim=2, link="log-softmax")
    for oracle in (values, read):
        assert not lost_digits(np.full((3, 1), 30.0), oracle).any()


@pytest.mark.parametrize(("link", "sides"), [("sigmoid", [[1.0]]), ("softmax", [[0.0, -1.0]])])
def test_fewer_numbers_of_float32_are_small(link: str, sides: list[list[float]]) -> None:
    far = np.linspace(90.0, 100.0, 200)[:, None] * (-1.0 if link == "sigmoid" else 1.0)
    answers = LINK_FUNCTIONS[link]
    oracle = rl.open_oracle(lambda x: answers(x @ np.array(sides)).astype(np.float32), dim=1, link=link)
    read, true = oracle.answer(far), far @ np.array(sides)[:, -1:]
    off, lost = np.abs(read - true), lost_digits(read, oracle, "float32")
    assert (off <= ROUNDINGS * lost).all()
    assert np.median(lost) < MOST * np.median(off)


def test_what_is_left_of_1_lies_on_its_grid() -> None:
    p = LINK_FUNCTIONS["sigmoid"](np.linspace(-6.0, -2.0, 50)).astype(np.float32)
    left = np.float32(1.0) - (np.float32(1.0) - p)
    assert on_a_grid(left.astype(float), "float32")
    assert not on_a_grid(p.astype(float), "float32")
    assert not on_a_grid(np.array([0.5, 0.75]), "float32")
