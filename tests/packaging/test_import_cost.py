"""Importing is cheap: no heavy library is loaded before it is used."""

from __future__ import annotations

import json
import subprocess
import sys

TRIES = 5
CPU_SECONDS = 0.3
HEAVY = ["scipy", "onnx", "onnxruntime", "torch", "sklearn", "matplotlib", "jinja2", "typer", "rich", "httpx", "ssl"]

MEASURE = """
import json, sys, time
start = time.process_time()
import reluctant
print(json.dumps([time.process_time() - start, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def import_in_a_fresh_process(code: str = MEASURE) -> tuple[float, set[str]]:
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    seconds, modules = json.loads(ended.stdout)
    return seconds, set(modules)


def test_import_takes_little_time():
    assert min(import_in_a_fresh_process()[0] for _ in range(TRIES)) < CPU_SECONDS


def test_import_loads_nothing_heavy():
    assert not import_in_a_fresh_process()[1] & set(HEAVY)


def test_asking_a_network_loads_nothing_heavy():
    code = MEASURE.replace("import reluctant\n", "import reluctant\nreluctant.open_oracle, reluctant.check_health\n")
    assert not import_in_a_fresh_process(code)[1] & set(HEAVY)
