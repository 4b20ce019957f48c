"""`reluctant learn`: the network on disk, the exit status, the record, the words about what could be missing."""

from __future__ import annotations

import json

import pytest

import reluctant as rl
from reluctant.testing import WORST_CASE, relative_square_error

BUMP = WORST_CASE["bump 0.1"](0)


@pytest.fixture
def target(folder):
    BUMP.save(folder / "bump.npz")
    return folder / "bump.npz"


def test_a_bump_is_learned_and_written(target, folder, command):
    ended = command("learn", target, "-o", folder / "copy.onnx")
    assert ended.status == 0
    assert relative_square_error(rl.ReLUNetwork.load(folder / "copy.onnx"), BUMP) < 1e-12


def test_an_accuracy_out_of_reach_is_status_one(target, folder, command):
    ended = command("learn", target, "--eps", "1e-40", "--narrowest", "0.1", "-o", folder / "copy.npz", "--json", "-")
    assert ended.status == 1
    assert json.loads(ended.out)["learning"]["outcome"] == "not-accurate-enough"
    assert (folder / "copy.partial.npz").is_file()
    assert not (folder / "copy.npz").exists()


def test_the_record_is_one_json_object(target, command):
    ended = command("learn", target, "--narrowest", "0.05", "--json", "-", "--quiet")
    record = json.loads(ended.out)
    assert record["command"] == "learn"
    assert record["ok"] is True
    assert record["learning"]["network"]["widths"] == [12, 3, 1]
    assert record["learning"]["evidence"]["accuracy"]["high"] < 1e-6
    assert record["learning"]["evidence"]["risk"]["width"] <= 0.05
    assert record["queries"]["total"] == record["learning"]["queries"]
    assert ended.err == ""


@pytest.mark.parametrize("option", ["--eps", "--narrowest"])
def test_bad_numbers_are_status_two(option, target, command):
    ended = command("learn", target, option, "-1")
    assert ended.status == 2
    assert option.removeprefix("--") in ended.err


def test_a_domain_is_refused(target, command):
    ended = command("learn", target, "--domain", "0,1")
    assert ended.status == 2
    assert ended.err.startswith("error: --domain: got [0, 1] in every coordinate, expected all of space")


def test_the_help_teaches(command):
    ended = command("learn", "--help")
    assert ended.status == 0
    assert "Example: reluctant learn" in ended.out
    assert "--eps" in ended.out
