"""What a command says to run next, and that this can be run: the target and its options are all there."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from reluctant.testing import planted
from reluctant.testing.server import Fault, ModelServer

SOURCE = """
import numpy as np
from reluctant.testing import planted

one, three = planted((5, 6, 1), 1), planted((5, 6, 3), 1)

def sigmoid(x): return 1 / (1 + np.exp(-np.clip(one(x), -700, 700)))
def percent(x): return 100 * sigmoid(x)
def softmax(x):
    z = three(x)
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
def rounded(x): return softmax(x).round(2)
def values(x): return 1 + np.abs(one(x))
def single(x): return sigmoid(x).astype(np.float32)
def labels(x): return (x.sum(axis=1) > 0).astype(int) + (x[:, 0] > 0.5)
def elsewhere(x):
    on = np.maximum(x[:, :3] @ [[1, -0.4], [0.3, 1], [-0.2, 0.5]] - [0.2, 0.25], 0)
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-(3000 * on @ [1, -0.8] + 0.4)))
def nan(x): return np.full(len(x), np.nan)
def near(x): return np.where(np.abs(x).max(axis=1, keepdims=True) > 5, np.nan, one(x))
"""
SAID = "To try next: "
SIGMOID, SOFTMAX = ["--link", "sigmoid"], ["--link", "softmax"]


@pytest.fixture
def said_next(module, command):
    """What a command says to run next, as words after `reluctant`; None if nothing."""
    name = module(SOURCE)

    def of(verb, attribute, *options):
        target = f"{name}:{attribute}"
        ended = command(verb, target, "--dim", 5, *options)
        assert ended.status == 1
        lines = [line.removeprefix(SAID) for line in ended.err.splitlines() if line.startswith(SAID)]
        assert len(lines) <= 1
        if not lines:
            return None
        reluctant, verb, of, *words = shlex.split(lines[0])
        assert (reluctant, of, words[:2]) == ("reluctant", target, ["--dim", "5"])
        return [verb, *words[2:]]

    return of


def test_where_inputs_are_elsewhere_they_are_asked_for_until_they_are_given(said_next, tmp_path):
    """A model of raw columns saturates near the origin: what helps are its own rows, before any other command."""
    assert said_next("extract", "elsewhere", *SIGMOID) == ["extract", *SIGMOID, "--inputs", "FILE"]
    rows = tmp_path / "rows.npy"
    np.save(rows, np.random.default_rng(0).standard_normal((50, 5)))
    assert said_next("extract", "elsewhere", *SIGMOID, "--inputs", str(rows))[0] == "audit"


@pytest.mark.parametrize(
    ("verb", "attribute", "expected"),
    [
        ("learn", "sigmoid", ["extract"]),
        ("learn", "softmax", ["extract"]),
        ("learn", "percent", ["extract"]),
        ("learn", "labels", ["audit"]),
        ("learn", "rounded", ["audit"]),
        ("learn", "near", ["audit"]),
        ("learn", "nan", ["extract", "--domain", "LOW,HIGH"]),
        pytest.param("extract", "single", ["audit"], marks=pytest.mark.slow),  # tried to its end first
        ("extract", "labels", ["audit"]),
        ("extract", "nan", ["extract", "--domain", "LOW,HIGH"]),
        ("span", "labels", ["span", "--labels"]),
        ("span", "rounded", ["span", "--labels"]),
        ("health", "percent", ["extract", *SIGMOID, "--percent"]),
        ("health", "labels", ["audit"]),
    ],
)
def test_the_next_command_is_named_whole(verb, attribute, expected, said_next):
    assert said_next(verb, attribute) == expected


@pytest.mark.parametrize("verb", ["extract", "span"])
def test_a_link_that_was_ruled_out_is_what_to_try_next(verb, said_next):
    assert said_next(verb, "softmax", "--link", "none") == [verb, *SOFTMAX]


def test_a_link_found_by_itself_is_said_and_written(module, command, folder):
    target, copy = f"{module(SOURCE)}:sigmoid", folder / "copy.onnx"
    ended = command("extract", target, "--dim", 5, "-o", copy)
    assert ended.status == 0
    assert "values were read through a sigmoid, found automatically" in ended.out
    assert command("verify", target, copy, "--dim", 5).status == 0


def test_options_that_were_given_stay(said_next):
    given = ["--budget", "5000", "--transcript", "kept", "--seed", "3"]
    assert said_next("learn", "sigmoid", *given, "--json", "r.json") == ["extract", *given]
    assert said_next("learn", "sigmoid", *SIGMOID) == ["extract", *SIGMOID]
    assert said_next("extract", "rounded", *SOFTMAX) == ["audit"]  # it is to be trained on without the link


def test_a_budget_that_ran_out_is_raised_for_the_same_command(said_next):
    assert said_next("learn", "one", "--budget", 100) == ["learn", "--budget", "BUDGET"]
    assert said_next("extract", "one", "--budget", 100) == ["extract", "--budget", "BUDGET"]


def test_a_link_behind_which_answers_are_curved_is_left_out(said_next):
    assert said_next("extract", "values", "--percent", *SIGMOID) == ["audit"]


def test_what_is_named_works(module, command):
    target = f"{module(SOURCE)}:percent"
    ended = command("learn", target, "--dim", 5, "--transcript", "kept")
    _, *words = shlex.split(ended.err.strip().removeprefix(SAID))
    again = command(*words)
    assert again.status == 0
    assert "of them from the transcript" in again.out


def test_a_range_that_a_server_answered_is_in_the_command(command, short_pauses):
    with ModelServer(planted((6, 5, 2), 1), 6, accepts=(-9, 9), out_of_range=Fault.ERROR) as server:
        ended = command("learn", server.url)
        _, *words = shlex.split(ended.err.splitlines()[-1].removeprefix(SAID))
        assert words[:3] == ["extract", server.url, "--domain"]
        assert command(*words).status == 0


def test_quiet_says_nothing_of_it(module, command):
    ended = command("learn", f"{module(SOURCE)}:sigmoid", "--dim", 5, "-q")
    assert ended.err == ""
    assert "read through a sigmoid, found automatically" in ended.out


def test_a_wrong_dim_and_a_wrong_name_say_what_to_check(module, command):
    name = module("import numpy as np\ndef f(x): return x @ np.ones(8)\n")
    assert "accepts (n, 5) float arrays (--dim)" in command("extract", f"{name}:f", "--dim", 5).err
    assert "Check both names" in command("extract", f"{name}:g", "--dim", 5).err


def test_the_file_to_write_stays_where_the_next_command_writes_one_of_its_kind(said_next):
    assert said_next("learn", "sigmoid", "-o", "copy.npz") == ["extract", "-o", "copy.npz"]
    assert said_next("extract", "rounded", *SOFTMAX, "-o", "copy.npz") == ["audit"]


def test_flags_of_the_command_stay_where_the_next_one_has_them(said_next):
    assert said_next("extract", "rounded", "--seconds", "30") == ["audit"]  # which has seconds of its own
    assert said_next("span", "labels", "--seconds", "30", "--budget", "200")[-2:] == ["--seconds", "30"]
    words = said_next("extract", "labels", "--labels", "--budget", "200")
    assert words[0] == "extract"
    assert "--labels" in words
