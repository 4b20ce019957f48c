"""The measured points in the package are those of the kept results, and of the stored output of the GPU."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GPU = ROOT / "benchmarks" / "gpu-h200.txt"
KEPT = ROOT / "benchmarks" / "results" / "gpu.json"


def test_they_are_what_the_results_say(script):
    assert script("measured_points.py", "--check") == 0


def test_the_gpu_points_are_those_of_the_stored_output():
    kept = json.loads(KEPT.read_text("utf-8"))
    printed = re.findall(r"^(\d+-\d+-\d+) .*?yes +([\d.]+)", GPU.read_text("utf-8"), re.MULTILINE)
    assert {shape for shape, _ in printed} == {shape for shape, row in kept.items() if row["ok"]}
    stopped = re.findall(r"^Not ended .*: (\d+-\d+-\d+),", GPU.read_text("utf-8"), re.MULTILINE)
    for shape, row in kept.items():
        costs = [float(cost) for name, cost in printed if name == shape]
        networks = len(costs) + stopped.count(shape)
        assert (row["networks"], row["ok"]) == ((networks, len(costs)) if costs else (1, 0))
        if costs:
            assert min(costs) <= row["cost"] <= row["cost_max"] == max(costs)


def test_the_tables_of_the_page_are_what_the_model_says(script):
    assert script("estimate_tables.py", "--check") == 0
