"""`reluctant extract`: the network on disk, the exit status, the record, what is kept when it fails."""

from __future__ import annotations

import json

import pytest

import reluctant as rl
from reluctant.testing import planted

TRUE = planted((20, 10, 1), 0)

MORTAL = """
import numpy as np

seen = 0

def dying(x):
    global seen
    seen += len(x)
    if seen > 150:
        raise ConnectionError("503 service unavailable")
    return np.maximum(x, 0).sum(axis=1)
"""


@pytest.fixture
def target(folder):
    TRUE.save(folder / "target.npz")
    return folder / "target.npz"


@pytest.mark.parametrize("name", ["copy.onnx", "copy.npz"])
def test_the_network_is_written(name, target, folder, command):
    ended = command("extract", target, "-o", folder / name)
    assert ended.status == 0
    assert "recovered and passed verification" in ended.out
    assert rl.equivalent(rl.ReLUNetwork.load(folder / name), TRUE, tol=1e-8)


def test_the_copy_verifies(target, folder, command):
    assert command("extract", target, "-o", folder / "copy.onnx").status == 0
    assert command("verify", target, folder / "copy.onnx").status == 0


def test_the_record_is_one_json_object(target, command):
    ended = command("extract", target, "--json", "-", "--quiet")
    record = json.loads(ended.out)
    assert record["command"] == "extract"
    assert record["extraction"]["outcome"] == "recovered"
    assert record["extraction"]["network"]["widths"] == [20, 10, 1]
    assert record["queries"]["total"] == record["extraction"]["queries"]
    assert ended.err == ""


def test_a_deeper_target_is_refused_and_its_part_is_kept(folder, command):
    planted((10, 8, 6, 1), 1).save(folder / "deep.npz")
    ended = command("extract", folder / "deep.npz", "-o", folder / "copy.onnx", "--attempts", "1")
    assert ended.status == 1
    assert not (folder / "copy.onnx").exists()
    assert "attempt failed" in ended.err


def test_a_budget_that_ends_says_so(target, command):
    ended = command("extract", target, "--budget", "100")
    assert ended.status == 1
    assert "The query budget ran out." in ended.out


@pytest.mark.parametrize(
    ("option", "name"), [("--out", "copy.txt"), ("--out", "nowhere/copy.onnx"), ("--json", "nowhere/record.json")]
)
def test_a_name_that_cannot_be_written_costs_no_query(option, name, folder, command):
    (folder / "counted.py").write_text("calls = 0\ndef f(x):\n    open('asked', 'w')\n    return x.sum(axis=1)\n")
    ended = command("extract", "counted:f", "--dim", "3", option, folder / name)
    assert ended.status == 2
    assert option in ended.err
    assert not (folder / "asked").exists()


def test_the_cause_of_a_failure_is_printed(folder, command):
    (folder / "mortal.py").write_text(MORTAL)
    ended = command("extract", "mortal:dying", "--dim", "20", "-o", folder / "copy.npz")
    assert ended.status == 1
    assert "503 service unavailable" in ended.out
    assert "No transcript was kept" in ended.err


def test_a_part_that_was_found_is_written(folder, command):
    planted((64, 40, 1), 0).save(folder / "target.npz")
    ended = command("extract", folder / "target.npz", "--budget", "1500", "-o", folder / "copy.npz")
    assert ended.status == 1
    assert (folder / "copy.partial.npz").is_file()
    assert not (folder / "copy.npz").exists()


def test_a_transcript_is_resumed_without_paying(target, folder, command):
    arguments = ("extract", target, "--transcript", folder / "answers", "--json", "-", "-q")
    first, second = (json.loads(command(*arguments).out) for _ in range(2))
    assert first["queries"]["total"] == second["queries"]["total"]
    assert sum(rows["sent"] for rows in second["queries"]["by stage"].values()) == 0
