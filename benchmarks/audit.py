"""Whole audits: what each step ended with, queries and processor time; the defense sweep of the bundled model.

python -m benchmarks audit                            the bundled model, in float64 and as served
PUBLIC_TARGETS=folder python -m benchmarks audit      and every .onnx file of the folder, both ways
AUDIT_RECORDS=folder                                  where the records are written, to make pages of: reluctant report
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

import reluctant as rl
from reluctant.audit import audit
from reluctant.audit.leak import NO_METHOD
from reluctant.bundled import digits_inputs, digits_model
from reluctant.oracles.open import RunPrecision

PRECISIONS: tuple[RunPrecision, ...] = ("float64", "as-served")


def main() -> None:
    images = np.load(digits_inputs())
    for precision in PRECISIONS:
        sweep_table(one(digits_model(), precision, inputs=images))
    folder = os.environ.get("PUBLIC_TARGETS")
    for path in sorted(Path(folder).glob("*.onnx")) if folder else []:
        for precision in PRECISIONS:
            one(path, precision)


def one(path: Path, precision: RunPrecision, **settings: Any) -> dict[str, Any]:
    start = time.process_time()
    with rl.open_oracle(path, precision=precision) as oracle:
        found = audit(oracle, file=path, precision=precision, **settings)
    record, took = found.to_dict(), time.process_time() - start
    if "AUDIT_RECORDS" in os.environ:
        found.write(Path(os.environ["AUDIT_RECORDS"]) / f"{path.stem}-{precision}.json")
    verdict, truth = record["verdict"], record["truth"]
    print(f"{path.stem} {precision}: {verdict['level']}, {', '.join(verdict['leaks']) or 'no leak'}")
    print(f"  {record['queries']['total']} queries, {took:.0f} CPU s. {verdict['sentence']}")
    methods = ("span", "extraction", "learning", "training")
    ended = [(name, record[name]["outcome"], record[name]["queries"]) for name in methods if record[name]]
    print("  " + "; ".join(f"{name} {outcome} {queries}" for name, outcome, queries in ended))
    if record["part"]:
        print(f"  part: {record['part']['confirmed']} of {record['part']['neurons']} neurons confirmed")
    if truth:
        error = "" if truth["largest error"] is None else f", error {truth['largest error']:.1e}"
        print(f"  truth: {truth['neurons found']} of {truth['neurons']} neurons ({truth['neurons of']}){error}")
    if record["defenses"]:
        print(f"  {record['defenses']['sentence']}", flush=True)
    return record


def sweep_table(record: dict[str, Any]) -> None:
    print("| defense | users: error | labels kept | span | copy | its error | queries | trained copy | its labels |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in record["defenses"]["rows"]:
        honest, span, copy = row["honest"], row["span"], row["rebuilt"] or {}
        seen = "" if not span else f"{span['rank']} ({span['queries']})" if span["ok"] else span["outcome"]
        users = f"{number(honest['error rms']) or 'other answers'} | {honest['labels kept']:.0%}"
        cost = f"{number(copy.get('error'))} | {copy.get('queries', '')}"
        trained = row["trained"]
        student = f"{number(trained['error'])} | {trained['labels kept']:.0%}" if trained else " | "
        print(f"| `{row['defense']}` | {users} | {seen} | {how(row['stopped'], copy)} | {cost} | {student} |")


def how(stopped: bool | None, copy: dict[str, Any]) -> str:
    """How the attempts to rebuild ended."""
    if not copy:
        return f"stopped: {NO_METHOD}" if stopped else "not tried"
    ended = f"{copy['method']} {copy['outcome']}"
    return ended if stopped is False else f"{'stopped' if stopped else 'not decided'}: {ended}"


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"
