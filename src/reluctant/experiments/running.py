"""Run experiments one by one into a folder: files for each as soon as it ends, one page over all that are there.

A finding is kept as a record (NAME.json) with its picture and its text beside it. An experiment that fails has a record
too, with its error, and the others go on. The page is made from the records of a folder alone, so an interrupted run
leaves a page of what it finished, and a later one adds to it.
"""

from __future__ import annotations

import json
import shlex
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reluctant._version import __version__
from reluctant.experiments.experiment import Experiment, Size
from reluctant.experiments.finding import write_files
from reluctant.experiments.gallery import EXPERIMENTS
from reluctant.optional import require
from reluctant.report.gallery import gallery_page

__all__ = ["PAGE", "SCHEMA", "Plan", "read_records", "run_experiments", "write_gallery"]

SCHEMA = "reluctant/finding/1"
PAGE = "index.html"

Record = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """How experiments are run.

    Arguments:
        folder: where files go; it exists.
        size: quick or full.
        seed: of all random choices.
        mnist: folder with MNIST, for those that can use it.
    """

    folder: Path
    size: Size = "quick"
    seed: int = 0
    mnist: Path | None = None

    def command(self, name: str) -> str:
        """What repeats one experiment."""
        images = f" --mnist {shlex.quote(str(self.mnist))}" if self.mnist and EXPERIMENTS[name].takes_images else ""
        return f"reluctant reproduce {name} --size {self.size} --seed {self.seed}{images}"


def run_experiments(names: Sequence[str], plan: Plan, jobs: int = 1) -> Iterator[Record]:
    """Run experiments, several at a time if asked; give the record of each as it ends, the page already written."""
    for record in _records(names, plan, jobs):
        write_gallery(plan.folder)
        yield record


def _records(names: Sequence[str], plan: Plan, jobs: int) -> Iterator[Record]:
    if jobs == 1 or len(names) == 1:
        yield from (_run(EXPERIMENTS[name], plan) for name in names)
        return
    joblib = require("joblib", extra="sklearn", purpose="Several experiments at a time")
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
    yield from parallel(joblib.delayed(_run)(EXPERIMENTS[name], plan) for name in names)


def _run(experiment: Experiment, plan: Plan) -> Record:
    """One experiment, measured and written; an error of its own is written in its place."""
    start = time.process_time()
    finding, error = None, None
    try:
        finding = experiment(size=plan.size, mnist_folder=plan.mnist, rng=plan.seed)
    except Exception:  # the others go on; the whole error is kept
        error = traceback.format_exc()
    about = _about(experiment, plan, error, time.process_time() - start)
    if finding is None:
        record = {**experiment.unknown(), **about}
        write_files(plan.folder, experiment.name, {".json": json.dumps(record, indent=2, allow_nan=False)})
        return record
    finding.write(plan.folder, **about)
    return {**finding.to_dict(), **about}


def _about(experiment: Experiment, plan: Plan, error: str | None, seconds: float) -> Record:
    return {
        "schema": SCHEMA, "error": error, "size": plan.size, "seed": plan.seed, "seconds": seconds,
        "command": plan.command(experiment.name), "version": __version__,
    }  # fmt: skip


def write_gallery(folder: Path) -> Path:
    """Write the page over all records of a folder, those of earlier runs too."""
    records = read_records(folder)
    pictures = {
        name: (folder / f"{name}.svg").read_text(encoding="utf-8")
        for name in (record["name"] for record in records)
        if (folder / f"{name}.svg").exists()
    }
    (folder / PAGE).write_text(gallery_page(records, pictures), encoding="utf-8")
    return folder / PAGE


def read_records(folder: Path) -> list[Record]:
    """All records of a folder, in the order of the papers."""
    return [record for name in EXPERIMENTS if (record := _read(folder / f"{name}.json"))]


def _read(path: Path) -> Record | None:
    """A record of this format; a file that holds something else is left alone."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("schema") == SCHEMA else None
