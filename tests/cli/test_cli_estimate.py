"""`reluctant estimate`: what it prints, writes and returns."""

from __future__ import annotations

import json
import re

import pytest


def test_what_it_prints(command):
    ended = command("estimate", "784-128-1", "--rate", "200", "--price", "0.5", "--currency", "EUR")
    assert ended.status == 0
    lines = [line.split() for line in ended.out.splitlines()]
    assert lines[0][:2] == ["784-128-1:", "100,609"]
    assert re.search(r" 200 .* 8\.7 min", ended.out)
    assert re.search(r" 0\.5 EUR .* 52\.3", ended.out)
    assert ["784-128-1", "20", "of", "20", "104,613"] in [line[:5] for line in lines]
    assert "extrapolated" not in ended.out
    assert ended.err == ""


def test_large_numbers_have_commas(command):
    ended = command("estimate", "784-128-64-10", "--precision", "labels", "--price", "1e6", "--currency", "EUR")
    assert re.search(r" 1,000,000 EUR .* \d+,\d{3}", ended.out)


def test_what_was_extrapolated(command):
    assert "extrapolated" in command("estimate", "784-128-100").out


def test_probabilities_are_refused_by_name(command):
    ended = command("estimate", "20-16-3", "--link", "softmax")
    assert ended.status == 1
    assert "softmax" in ended.out


def test_several_shapes(command):
    ended = command("estimate", "784-128-10", "784-32-1")
    assert ended.status == 0
    assert ended.out.count("measured nearby") == 2


def test_no_number_is_status_one(command):
    ended = command("estimate", "784-128-1", "64-32-16-1", "--precision", "float32")
    assert ended.status == 1
    assert [line.split(":")[0] for line in ended.out.splitlines() if "parameters" in line] == [
        "784-128-1",
        "64-32-16-1",
    ]


def test_json_to_standard_output(command):
    ended = command("estimate", "784-128-1", "20-20-20-20-20-1", "--json", "-")
    data = json.loads(ended.out)
    assert data["schema"] == "reluctant-estimate/2"
    assert [each["ok"] for each in data["estimates"]] == [True, False]
    assert data["estimates"][0]["queries"]["low"] < 104_613 < data["estimates"][0]["queries"]["high"]


def test_json_to_a_file(command, folder):
    assert command("estimate", "784-128-1", "--json", "cost.json").status == 0
    assert json.loads((folder / "cost.json").read_text())["estimates"][0]["parameters"] == 100_609


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["784"], "such as 784-128-1"),
        (["784x128x1"], "'784x128x1'"),
        (["784-0-1"], "at least 1 neuron in every layer"),
        (["784-128-1", "--precision", "double"], "float16, labels, decimals=K, float32,decimals=K, noise=S"),
        (["784-128-1", "--rate", "0"], "rate"),
        (["784-128-1", "--price", "-1"], "price"),
        (["784-128-1", "--json", "nowhere/cost.json"], "an existing folder"),
        (["-5-3-1"], "No such option: -5"),
        (["784-128-1", "--prise", "3"], "No such option: --prise"),
        ([], "SHAPE"),
    ],
)
def test_bad_input_is_status_two(command, arguments, said):
    ended = command("estimate", *arguments)
    assert ended.status == 2
    assert said in ended.err
    assert ended.out == ""


def test_help_teaches(command):
    said = " ".join(command("estimate", "--help").out.split())
    for word in ("SHAPE", "--rate", "--price", "--precision", "reluctant estimate 784-128-1", "exit status 1"):
        assert word in said
