"""Where words go: results to standard output, everything else to standard error, JSON alone when asked."""

from __future__ import annotations

import codecs
import inspect
import json
import os
import subprocess
import sys

import pytest
from sweeps import sweep

import reluctant as rl
from reluctant import __version__
from reluctant.cli.app import COMMANDS, _in_plain_letters, load


@pytest.mark.parametrize("name", ["health", "verify"])
def test_json_to_standard_output_is_one_object_and_nothing_else(name, command, npz, onnx):
    ended = command(name, npz, *([onnx] if name == "verify" else []), "--json", "-", "-v")
    assert ended.status == 0
    record = json.loads(ended.out)
    assert (record["schema"], record["command"], record["ok"]) == (1, name, True)
    assert record["queries"]["total"] == sum(
        rows["sent"] + rows["replayed"] for rows in record["queries"]["by stage"].values()
    )


def test_json_of_a_refused_target(command, module):
    name = module("import numpy as np\ndef target(x): return np.full(len(x), np.nan)\n")
    ended = command("health", f"{name}:target", "--dim", 5, "--json", "-")
    assert ended.status == 1
    record = json.loads(ended.out)
    assert record["ok"] is False
    assert record["health"]["refusal"] == "non-finite"
    assert record["health"]["noise"]["absolute"] is None


def test_a_process_away_from_a_terminal_shows_no_bar(process, npz):
    ended = process("health", npz, "--json", "-")
    assert json.loads(ended.out)["command"] == "health"
    assert ended.err == ""


def test_json_to_a_file_keeps_the_words(command, npz, folder):
    ended = command("health", npz, "--json", folder / "record.json")
    assert "piecewise linear" in ended.out
    assert json.loads((folder / "record.json").read_text())["queries"]["total"] == 102


def test_a_failed_run_writes_no_json(command, npz):
    ended = command("health", npz, "--budget", 50, "--json", "-")
    assert (ended.status, ended.out) == (1, "")


@pytest.mark.parametrize("flag", ["--quiet", "-q"])
def test_quiet_is_silent_on_standard_error(flag, command, npz):
    ended = command("health", npz, flag)
    assert (ended.status, ended.err) == (0, "")


def test_quiet_wins_over_verbose(command, npz):
    assert command("health", npz, "-q", "-v").err == ""


@pytest.mark.parametrize("name", ["health", "extract", "learn", "span", "audit"])
def test_errors_are_said_even_when_quiet(name, command):
    assert "error: " in command(name, "missing.onnx", "-q").err


def test_a_server_that_is_not_there_is_named_even_when_quiet(command):
    ended = command("audit", "http://localhost:9/v2/models/digits", "--retries", 0, "-q")
    assert ended.err.startswith("error: target: got no connection to http://localhost:9/v2/models/digits")
    assert ended.err.endswith("[unknown-target]\n")


def test_verbose_lists_stages(command, module):
    name = module("import numpy as np\ndef target(x): return np.maximum(x, 0).sum(axis=1)\n")
    ended = command("health", f"{name}:target", "--dim", 5, "-v")
    assert ended.err.splitlines() == [
        "open: 0 rows asked, 1 sent, 0 replayed",
        "health: 102 rows asked, 102 sent, 0 replayed",
    ]


def test_a_resumed_run_says_what_was_replayed(command, npz, folder):
    first = command("health", npz, "--transcript", folder / "kept")
    second = command("health", npz, "--transcript", folder / "kept", "-v")
    assert second.err == "health: 102 rows asked, 0 sent, 102 replayed\n"
    assert second.out == first.out


def test_a_run_on_a_larger_budget_pays_only_the_rest(command, npz, folder):
    kept = ("--transcript", folder / "kept")
    assert command("health", npz, *kept, "--budget", 80).status == 1
    ended = command("health", npz, *kept, "--budget", 102, "-v")
    assert ended.status == 0
    assert "replayed" in ended.err
    assert ", 0 replayed" not in ended.err


# ---- help


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_has_the_first_line_of_every_command(name, command):
    line = COMMANDS[name].line
    assert f"  {name:<{max(map(len, COMMANDS))}}  {line}\n" in command("--help").out
    assert load(name).help.splitlines()[0] == line


def test_options_have_the_defaults_of_the_library():
    functions = {"learn": rl.learn, "extract": rl.extract, "span": rl.recover_span, "flip": rl.flip_sign}
    for name, function in functions.items():
        library = {each.name: each.default for each in inspect.signature(function).parameters.values()}
        options = {each.name: each.default for each in load(name).params}
        shared = library.keys() & options.keys() - {"target"}
        assert {name: options[name] for name in shared} == {name: library[name] for name in shared} != {}


def test_a_mistyped_command_is_bad_usage(command):
    ended = command("extrac", "model.onnx")
    assert ended.status == 2
    assert "extrac" in ended.err


def test_a_mistyped_option_before_the_command_is_an_error_of_one_line(command):
    ended = command("--bogus")
    assert (ended.status, ended.out) == (2, "")
    assert "--bogus" in ended.err
    assert "Usage:" not in ended.err
    assert len(ended.err.splitlines()) <= 2
    assert "Usage: reluctant" in command().out + command().err  # without arguments it is the help


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command(name, flag, command):
    ended = command(name, flag)
    assert (ended.status, ended.err) == (0, "")
    assert f"Usage: reluctant {name}" in ended.out
    assert "Example: reluctant" in ended.out or "TARGET" in ended.out or "bundled" in ended.out


@pytest.mark.parametrize("name", ["health", "verify"])
def test_help_explains_the_target(name, command):
    said = " ".join(command(name, "--help").out.split())
    assert f"Example: reluctant {name} model.onnx" in said
    assert "A .onnx, .npz, .joblib or .pt file, module:attribute of an importable callable or model" in said


def test_the_version(command):
    assert command("--version").out == f"{__version__}\n"


@pytest.mark.parametrize("encoding", sweep(["cp1252", "ascii"], fast=["ascii"]))
def test_text_that_an_encoding_lacks_is_written_in_plain_letters(encoding, patience):
    command = [sys.executable, "-m", "reluctant", "reproduce", "list"]
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True, check=False, timeout=patience
    )
    assert ended.returncode == 0, ended.stderr
    assert "→" not in ended.stdout.decode(encoding)


def test_numbers_keep_their_meaning_where_an_encoding_lacks_superscripts():
    codecs.register_error("plain-letters", _in_plain_letters)
    said = "30 → 2, 2.5 × 10⁻¹³ and 3 × 10⁸, ≤ √d, Ω".encode("ascii", "plain-letters")
    assert said == b"30 -> 2, 2.5 x 10^-13 and 3 x 10^8, <= sqrt d, ?"
    some_digits = "10⁻¹³ and 10⁻⁸".encode("cp1252", "plain-letters")  # it has ¹ and ³, and lacks ⁻ and ⁸
    assert some_digits == b"10^-13 and 10^-8"
