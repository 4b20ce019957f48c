"""Exit status: 0 done, 1 a check failed or the target did, 2 bad usage or bad input; always one message."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reluctant.testing import planted

TANH = "import numpy as np\ndef target(x): return np.tanh(x).sum(axis=1)\n"
NAN = "import numpy as np\ndef target(x): return np.full(len(x), np.nan)\n"
RAISING = "def target(x): raise RuntimeError('no answer today')\n"
WITH_KEYWORDS = "def target(x): raise ValueError('bad batch=7')\n"
WRONG_SHAPE = "def target(x): return x[:1]\n"
BROKEN = "import a_module_that_does_not_exist\n"
FAILING_ON_IMPORT = "raise ValueError('not configured')\n"
MISSPELT = "def target(x) return x\n"


def one_message(err: str) -> bool:
    return err.count("error: ") == 1 and err.count("\n") == 1 and "Traceback" not in err


# ---- 1: the target does not pass


@pytest.mark.parametrize(("source", "slug"), [(TANH, "not-piecewise-linear"), (NAN, "non-finite")], ids=["tanh", "NaN"])
def test_a_refused_target_is_status_1(source, slug, command, module):
    ended = command("health", f"{module(source)}:target", "--dim", 5, "--json", "-")
    assert ended.status == 1
    assert json.loads(ended.out)["health"]["refusal"] == slug


@pytest.mark.parametrize(
    ("source", "slug"),
    [(RAISING, "target-unavailable"), (WRONG_SHAPE, "invalid-answer")],
    ids=["raises", "wrong shape"],
)
def test_a_failing_target_is_status_1(source, slug, command, module):
    ended = command("health", f"{module(source)}:target", "--dim", 5)
    assert ended.status == 1
    assert ended.out == ""
    assert f"[{slug}]" in ended.err
    assert one_message(ended.err)


def test_verify_of_a_target_that_answers_nan_is_status_1(command, module, npz):
    ended = command("verify", f"{module(NAN)}:target", npz, "--dim", 5)
    assert ended.status == 1
    assert "[non-finite-answer]" in ended.err


def test_a_budget_that_is_too_small_is_status_1(command, npz):
    ended = command("health", npz, "--budget", 50)
    assert ended.status == 1
    assert "with 6 of 50 spent" in ended.err
    assert "[budget-exhausted]" in ended.err
    assert one_message(ended.err)


def test_a_budget_that_suffices_is_status_0(command, npz):
    assert command("health", npz, "--budget", 102).status == 0


# ---- 2: bad usage


@pytest.mark.parametrize(
    "arguments",
    [("health",), ("verify", "network.npz"), ("health", "network.npz", "--bogus"), ("steal", "network.npz")],
    ids=" ".join,
)
def test_bad_usage_is_status_2(arguments, command, npz):
    ended = command(*arguments)
    assert ended.status == 2
    assert ended.out == ""
    assert one_message(ended.err)
    path = "reluctant" if arguments[0] == "steal" else f"reluctant {arguments[0]}"
    assert f" {path} --help lists" in ended.err


def test_no_command_at_all_shows_the_help(command):
    ended = command()
    assert ended.status == 2
    assert "Usage: reluctant" in ended.err


BAD_OPTIONS = {
    "--dim": ["0", "-3", "7", "five"],
    "--budget": ["0", "-1", "many"],
    "--seed": ["-1", "x"],
    "--output": ["1", "-1", "last"],
    "--link": ["softsign"],
    "--domain": ["1,0", "0", "a,b", "0,1,2", "0,nan"],
    "--precision": ["float16"],
    "--timeout": ["0", "-1"],
    "--retries": ["-1"],
    "--json": ["missing/record.json"],
    "--transcript": ["network.npz"],
}


@pytest.mark.parametrize(
    ("option", "value"), [(option, value) for option, values in BAD_OPTIONS.items() for value in values]
)
def test_a_bad_option_is_status_2(option, value, command, npz):
    ended = command("health", npz, f"{option}={value}")
    assert ended.status == 2
    assert one_message(ended.err)


# ---- 2: bad input


BAD_TARGETS = {
    "a missing file": "missing.onnx",
    "a folder": "folder",
    "another suffix": "notes.txt",
    "a module that is not there": "no_such_module_here:target",
    "an attribute that is not there": "math:no_such_attribute",
    "something that cannot be asked": "math:pi",
    "a server that is not there": "http://localhost:1/v2/models/x",
    "junk": "junk.onnx",
}


@pytest.mark.parametrize("name", BAD_TARGETS)
def test_a_bad_target_is_status_2(name, command, folder):
    (folder / "folder").mkdir()
    (folder / "notes.txt").write_text("notes")
    (folder / "junk.onnx").write_bytes(b"junk")
    ended = command("health", BAD_TARGETS[name], "--dim", 5)
    assert ended.status == 2
    assert ended.out == ""
    assert "error: " in ended.err
    assert "expected" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "source", [BROKEN, FAILING_ON_IMPORT, MISSPELT], ids=["missing import", "raises on import", "syntax error"]
)
def test_a_module_that_cannot_be_imported_is_status_2(source, command, module):
    ended = command("health", f"{module(source)}:target", "--dim", 5)
    assert ended.status == 2
    assert "[unknown-target]" in ended.err


def test_a_callable_without_dim_is_status_2(command, module):
    ended = command("health", f"{module(TANH)}:target")
    assert ended.status == 2
    assert ended.err.startswith("error: --dim: got None")
    assert "784" not in ended.err


@pytest.mark.parametrize("name", ["missing.npz", "other.npz", "network.txt"])
def test_a_bad_network_is_status_2(name, command, npz, folder):
    np.savez(folder / "other.npz", a=np.ones(2))
    ended = command("verify", npz, folder / name)
    assert ended.status == 2
    assert one_message(ended.err)


def test_a_network_of_another_shape_is_status_2(command, npz, folder):
    planted((6, 8, 1)).save(folder / "wider.npz")
    ended = command("verify", npz, folder / "wider.npz")
    assert ended.status == 2
    assert "expected 5 inputs and 1 outputs" in ended.err


def test_a_demo_that_cannot_write_is_status_2(command, npz):
    ended = command("demo", "--out", npz)
    assert ended.status == 2
    assert one_message(ended.err)


def test_another_seed_on_a_transcript_is_status_2(command, npz, folder):
    assert command("health", npz, "--transcript", folder / "kept", "--seed", 0).status == 0
    ended = command("health", npz, "--transcript", folder / "kept", "--seed", 1)
    assert ended.status == 2
    assert "[transcript-mismatch]" in ended.err


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        pytest.param(("health", "network.npz"), 0, marks=pytest.mark.slow),
        (("health", "network.npz", "--budget", "50"), 1),
        pytest.param(("health", "missing.onnx"), 2, marks=pytest.mark.slow),
        (("--version",), 0),
    ],
    ids=["done", "failed", "bad input", "version"],
)
def test_the_process_has_the_same_status(arguments, status, process, npz):
    ended = process(*arguments)
    assert ended.status == status
    assert "Traceback" not in ended.err


def test_what_to_do_names_flags_and_the_target_s_own_words_stay(command, module):
    said = command("health", f"{module(WITH_KEYWORDS)}:target", "--dim", 5).err
    assert "ValueError: bad batch=7." in said
    assert all(flag in said for flag in ("(--dim)", "--domain LOW,HIGH;", "--batch N;", "--retries 3."))
    assert "Give it: --dim N." in command("health", f"{module(RAISING)}:target").err


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (("flip", "network.npz", "--input", "x.npy"), "--input"),
        (("learn", "network.npz", "--eps", "-1"), "--eps"),
        (("verify", "network.npz", "network.npz", "--tol", "-1"), "--tol"),
        (("extract", "network.npz", "--attempts", "0"), "--attempts"),
        (("extract", "network.npz", "--link", "none such"), "--link"),
    ],
)
def test_an_error_is_one_line_that_begins_with_the_flag(arguments, flag, command, npz, folder):
    np.save(folder / "x.npy", np.ones(3))
    ended = command(*arguments)
    assert ended.status == 2
    assert one_message(ended.err)
    assert ended.err.startswith(f"error: {flag}: got ")
    assert len(ended.err) < 300
