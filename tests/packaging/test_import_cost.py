"""Importing is cheap: no heavy library is loaded before it is used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

TRIES = 5
CPU_SECONDS = 0.3
PATIENCE_SECONDS = 180
HEAVY = ["scipy", "onnx", "onnxruntime", "torch", "sklearn", "matplotlib", "jinja2", "typer", "rich", "httpx", "ssl"]
OTHER_PARTS = ("reluctant.audit", "reluctant.learning", "reluctant.papers", "reluctant.report")

MEASURE = """
import json, sys, time
start = time.process_time()
import reluctant
print(json.dumps([time.process_time() - start, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def import_in_a_fresh_process(code: str = MEASURE) -> tuple[float, set[str]]:
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
    )
    seconds, modules = json.loads(ended.stdout)
    return seconds, set(modules)


def test_import_takes_little_time():
    assert any(import_in_a_fresh_process()[0] < CPU_SECONDS for _ in range(TRIES))


def test_import_loads_nothing_heavy():
    assert not import_in_a_fresh_process()[1] & set(HEAVY)


START = """
import contextlib, io, json, sys
from reluctant.cli.app import run
with contextlib.redirect_stdout(io.StringIO()):
    assert run([{argument!r}]) == 0
print(json.dumps([0, sorted(sys.modules)]))
"""
OF_THE_COMMAND_LINE = {
    "reluctant",
    "reluctant._version",
    "reluctant.cli",
    "reluctant.cli.app",
    "reluctant.errors",
}


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_the_command_line_starts_without_its_commands(argument):
    loaded = import_in_a_fresh_process(START.format(argument=argument))[1]
    assert not loaded & {"numpy", "rich", *HEAVY} - {"typer"}
    assert {name for name in loaded if name.partition(".")[0] == "reluctant"} == OF_THE_COMMAND_LINE


def test_a_command_loads_no_other_part():
    """None of these commands, and so not one of them."""
    code = "import json, sys; from reluctant.cli.app import load; "
    code += "; ".join(f"load({name!r})" for name in ("extract", "health", "span", "verify"))
    code += "; print(json.dumps([0, sorted(sys.modules)]))"
    loaded = import_in_a_fresh_process(code)[1]
    assert not {name for name in loaded if name.startswith(OTHER_PARTS)}


def test_asking_a_network_loads_nothing_heavy():
    code = MEASURE.replace("import reluctant\n", "import reluctant\nreluctant.open_oracle, reluctant.check_health\n")
    assert not import_in_a_fresh_process(code)[1] & set(HEAVY)
