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
from reluctant.audit.record import AuditRecord, DefenseRow
from reluctant.bundled import digits_inputs, digits_model
from reluctant.oracles.keywords import RunPrecision
from reluctant.report import verdict_sentence

PRECISIONS: tuple[RunPrecision, ...] = ("float64", "as-served")


def main() -> None:
    images = np.load(digits_inputs())
    for precision in PRECISIONS:
        sweep_table(one(digits_model(), precision, inputs=images))
    folder = os.environ.get("PUBLIC_TARGETS")
    for path in sorted(Path(folder).glob("*.onnx")) if folder else []:
        for precision in PRECISIONS:
            one(path, precision)


def one(path: Path, precision: RunPrecision, **settings: Any) -> AuditRecord:
    start = time.process_time()
    with rl.open_oracle(path, precision=precision) as oracle:
        found = audit(oracle, file=path, precision=precision, **settings)
    record, took = found.record, time.process_time() - start
    if "AUDIT_RECORDS" in os.environ:
        found.write(Path(os.environ["AUDIT_RECORDS"]) / f"{path.stem}-{precision}.json")
    verdict, truth = record.verdict, record.truth
    print(f"{path.stem} {precision}: {verdict.level}, {', '.join(verdict.leaks) or 'no leak'}")
    print(f"  {record.queries.total} queries, {took:.0f} CPU s. {verdict_sentence(record)}")
    runs = {
        "span": record.span,
        "extraction": record.extraction,
        "learning": record.learning,
        "training": record.training,
    }
    print("  " + "; ".join(f"{name} {run.outcome} {run.queries}" for name, run in runs.items() if run is not None))
    if record.part is not None:
        print(f"  part: {record.part.confirmed} of {record.part.neurons} neurons confirmed")
    if truth is not None:
        error = "" if truth.largest_error is None else f", error {truth.largest_error:.1e}"
        which = "all hidden neurons" if truth.all_layers else "first hidden layer"
        print(f"  truth: {truth.neurons_found} of {truth.neurons} neurons ({which}){error}")
    return record


def sweep_table(record: AuditRecord) -> None:
    assert record.defenses is not None
    print("| defense | users: error | labels kept | span | copy | its error | queries |")
    print("|---|---|---|---|---|---|---|")
    for row in record.defenses.rows:
        honest, span, copy = row.honest, row.span, row.rebuilt
        seen = "" if span is None else f"{span.rank} ({span.queries})" if span.ok else span.outcome
        users = f"{number(honest.rms_error) or 'other answers'} | {honest.labels_kept:.0%}"
        cost = " | " if copy is None else f"{number(copy.error)} | {copy.queries}"
        print(f"| `{row.defense}` | {users} | {seen} | {how(row)} | {cost} |")


def how(row: DefenseRow) -> str:
    """How the attempts to rebuild ended."""
    if row.rebuilt is None:
        return "stopped: no exact method takes labels" if row.stopped else "not tried"
    ended = f"{row.rebuilt.method} {row.rebuilt.outcome}"
    return ended if row.stopped is False else f"{'stopped' if row.stopped else 'not decided'}: {ended}"


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"
