"""The papers' experiments in their quick size: the table of docs/experiments.md.

python -m benchmarks experiments                  three minutes of CPU time
EXPERIMENTS_SIZE=full python -m benchmarks experiments
EXPERIMENTS=folder python -m benchmarks experiments     from what `reluctant reproduce --out folder` wrote
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reluctant.papers.experiments.experiment import Size
from reluctant.papers.experiments.reproduction import EXPERIMENTS, ReproductionPlan, read_records, run_experiments


def main() -> None:
    if folder := os.environ.get("EXPERIMENTS"):
        show(read_records(Path(folder)))
        return
    size: Size = "full" if os.environ.get("EXPERIMENTS_SIZE") == "full" else "quick"
    with TemporaryDirectory() as folder:
        show(run_experiments(list(EXPERIMENTS), ReproductionPlan(Path(folder), size)))


def show(records: Iterable[dict[str, Any]]) -> None:
    paper, seconds = None, 0.0
    for record in records:
        if record["paper"] != paper:
            paper = record["paper"]
            print(f"\n## {paper['authors']}, {paper['venue']}\n\n*{paper['title']}*\n")
            print("| experiment | the paper says | measured | CPU |\n|---|---|---|---:|")
        print(row(record), flush=True)
        seconds += record["seconds"]
    print(f"\nAll of them: {seconds:.0f} s of CPU time.")


def row(record: dict[str, Any]) -> str:
    missed = [check["name"] for check in record["checks"] if not check["ok"]]
    measured = record["measured"] if not record["error"] else "did not run"
    outside = f" Not as asked: {', '.join(missed)}." if missed else ""
    name = f"`{record['name']}`: {record['where']}"
    return f"| {name} | {record['claim']} | {measured}{outside} | {record['seconds']:.0f} s |"
