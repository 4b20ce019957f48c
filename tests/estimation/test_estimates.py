"""Estimates: what follows from the rows, how far they go beyond measured runs, where there is none."""

from __future__ import annotations

import json

import numpy as np
import pytest

import reluctant as rl
from reluctant.errors import InvalidInput
from reluctant.estimation.cost import CostFit, fitted, measured_speeds, transcript_bytes
from reluctant.estimation.formulas import DEPTH_TWO, Answers


def test_time_and_money_follow_from_the_rows():
    found = rl.estimate("784-128-1", rate=200, price=0.5)
    assert found.seconds.expected == pytest.approx(found.queries.expected / 200)
    assert found.money.high == pytest.approx(found.queries.high / 1000 * 0.5)
    assert rl.estimate("784-128-1").seconds is None is rl.estimate("784-128-1").money


def test_a_currency_goes_with_the_price():
    found = rl.estimate("784-128-1", price=2, currency="EUR")
    assert found.currency == found.to_dict()["currency"] == "EUR"


def test_arithmetic_and_transcript():
    found = rl.estimate((784, 128, 10), flops=1e12)
    assert found.arithmetic == {"the speed given": pytest.approx(2 * 101_770 * found.queries.expected / 1e12)}
    assert found.transcript == pytest.approx(96 * found.queries.expected)
    assert set(rl.estimate("784-128-1").arithmetic) == set(measured_speeds())


def test_a_transcript_is_as_large_as_that(tmp_path):
    """A run with a transcript beside the estimate of its own rows."""
    from reluctant.testing import planted

    with rl.open_oracle(planted((20, 10, 3)), transcript=tmp_path / "kept") as oracle:
        queries = rl.extract(oracle).queries
    size = (tmp_path / "kept" / "transcript.log").stat().st_size
    assert transcript_bytes(queries, 3) <= size < 1.2 * transcript_bytes(queries, 3) + 2000


def test_a_transcript_of_labels_is_as_large_as_that(tmp_path):
    """A label is one answer, however many classes there are."""
    from reluctant.testing import planted

    network, rows = planted((12, 4, 3)), np.random.default_rng(0).standard_normal((5000, 12))
    with rl.open_oracle(lambda x: network(x).argmax(axis=1), dim=12, transcript=tmp_path / "kept") as oracle:
        for part in np.split(rows, 50):
            oracle.query(part)
        told = transcript_bytes(oracle.queries, Answers("labels").in_a_row(3))
    size = (tmp_path / "kept" / "transcript.log").stat().st_size
    assert told <= size < 1.1 * told + 2000


def test_a_label_is_one_answer():
    found = rl.estimate("784-20-20-10", precision="labels")
    rows = found.queries.expected
    assert found.per_parameter.expected == pytest.approx(rows / found.parameters)
    assert found.transcript == pytest.approx(24 * rows)
    one = rl.estimate("784-20-20-1", precision="labels").to_dict()["measured"][0]
    assert one["answers per parameter"] == pytest.approx(one["queries"] / 16_141)
    several = rl.estimate("784-128-10").to_dict()["measured"][0]
    assert several["answers per parameter"] == pytest.approx(10 * several["queries"] / 101_770)


def test_an_error_is_of_what_was_measured():
    """Positive where a run took more than a model says that has not seen its shape."""
    error = next(each for each in fitted(DEPTH_TWO).errors if each.point.name == "32-32-1")
    point = error.point
    without = CostFit(DEPTH_TWO, tuple(each for each in fitted(DEPTH_TWO).points if each.widths != point.widths))
    assert error.usual == pytest.approx(point.queries / without.rows(point.widths, point.answers) - 1)
    assert error.low <= error.usual <= error.high


def test_rounded_float32_costs_more_than_rounded_float64():
    """What a served model rounds has few digits far out too."""
    rounded, single, double = (
        rl.estimate("20-16-3", precision=name).queries.expected
        for name in ("float32,decimals=3", "float32", "decimals=3")
    )
    assert rounded > single > 2 * double
    assert rl.estimate("20-16-3", precision="float32, decimals=3").precision == "float32,decimals=3"


@pytest.mark.parametrize("link", ["softmax", "sigmoid", "log-softmax", "top-k"])
def test_probabilities_have_no_number(link):
    found = rl.estimate("20-16-3", link=link)
    assert not found.ok
    assert (found.reason.slug, found.reason.fields["link"]) == ("link-not-measured", link)


def test_labels_are_the_same_behind_a_link():
    assert rl.estimate("20-16-3", precision="labels", link="softmax").ok


@pytest.mark.parametrize(
    ("shape", "precision", "beyond"),
    [
        ("784-128-1", "float64", {}),
        ("784-100-1", "float64", {}),
        ("784-130-1", "float32", {}),
        ("3300-16384-1", "float64", {}),
        ("30-128-2", "float32", {}),
        ("307200-16384-1", "float64", {"parameters": 99.9, "inputs": 100}),
        ("784-128-1000", "float64", {"outputs": 100, "parameters with several outputs": 2.255}),
        ("784-32-1", "noise=1e-2", {"noise": 34.64}),
        ("784-32-1", "decimals=8", {"freedom from noise": 100}),
        ("10-300-1", "float64", {}),
        ("10-1500-1", "float64", {"neurons for each input": 5}),
        ("784-20-2-1", "labels", {}),
        ("784-20-20-10", "labels", {"outputs": 10}),
        ("784-20-20-20-1", "labels", {"hidden layers": 1.5}),
    ],
)
def test_how_far_it_is_from_what_was_measured(shape, precision, beyond):
    assert rl.estimate(shape, precision=precision).beyond == pytest.approx(beyond, rel=0.01)


@pytest.mark.parametrize(
    ("shape", "precision", "why"),
    [
        ("64-32-16-1", "float32", "deep-few-digits-not-measured"),
        ("64-32-16-1", "decimals=3", "deep-few-digits-not-measured"),
        ("20-20-20-20-20-1", "float64", "depth-not-measured"),
        ("784-128-1", "float16", "float16-refused"),
        ("20-16-3", "float32,decimals=5", "decimals-not-measured"),
        ("64-32-16-1", "float32,decimals=3", "deep-few-digits-not-measured"),
        ("64-40-1", "decimals=9", "decimals-not-measured"),
        ("64-40-1", "decimals=15", "decimals-not-measured"),
        ("64-32-16-1", "decimals=12", "decimals-not-measured"),
    ],
)
def test_no_number_where_nothing_was_measured(shape, precision, why):
    found = rl.estimate(shape, precision=precision, rate=1, price=1)
    assert not found.ok
    assert found.reason.slug == why
    assert found.queries is found.per_parameter is found.seconds is found.money is found.error is None
    assert found.to_dict()["queries"] is None


def test_of_labels_of_two_layers_a_span_is_estimated_and_a_copy_may_be_found():
    found = rl.estimate("784-20-20-1", precision="labels")
    assert "the directions" in found.gives
    assert "extract may find a copy" in found.gives
    assert "no copy" not in found.gives
    assert found.queries.expected > 10 * rl.estimate("784-20-20-1").queries.expected


def test_neighbours_are_measured_and_near():
    found = rl.estimate("784-120-1")
    assert found.nearest[0].name == "784-128-1"
    assert len({point.widths for point in found.nearest}) == 3


def test_success_counts_those_that_failed():
    found = rl.estimate("784-16-16-16-1")
    assert found.recovered[0] < found.recovered[1]


def test_it_is_plain_data():
    data = rl.estimate("784-128-1", rate=10, price=2).to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["measured"][0]["shape"] == "784-128-1"


@pytest.mark.parametrize(
    "shape", ["784", "784-1", "784-0-1", "784-x-1", "", "784--1", "7.5-3-1", (5, 3), (5, -1, 1), 5, None]
)
def test_a_shape_that_is_none(shape):
    with pytest.raises(InvalidInput, match="shape"):
        rl.estimate(shape)


@pytest.mark.parametrize(
    "precision",
    [
        "float8",
        "decimals",
        "decimals=0",
        "decimals=99",
        "decimals=³",
        "noise=0",
        "noise=x",
        "float16,decimals=3",
        "float32,decimals",
        3,
        "",
    ],
)
def test_an_unknown_precision(precision):
    with pytest.raises(InvalidInput, match="precision"):
        rl.estimate("784-128-1", precision=precision)


@pytest.mark.parametrize(
    "setting", [{"rate": 0}, {"rate": float("nan")}, {"price": -1}, {"flops": float("inf")}, {"link": "softsign"}]
)
def test_numbers_that_make_no_sense(setting):
    with pytest.raises(InvalidInput, match=next(iter(setting))):
        rl.estimate("784-128-1", **setting)
