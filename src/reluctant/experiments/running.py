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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from reluctant._version import __version__
from reluctant.engines import Engine, as_they_end, in_order
from reluctant.experiments.experiment import Experiment, Size
from reluctant.experiments.finding import write_files
from reluctant.experiments.gallery import EXPERIMENTS
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


def run_experiments(names: Sequence[str], plan: Plan, jobs: int = 1, engine: Engine | None = None) -> Iterator[Record]:
    """Run experiments and give their records, in the order of the names.

    Files and page are written as soon as an experiment ends, always here: `jobs` processes, or the workers of an
    engine ("dask://host:port", or a Client), only measure.
    """
    ended = as_they_end(partial(_measured, plan), [EXPERIMENTS[name] for name in names], jobs=jobs, engine=engine)
    return in_order((number, _kept(plan.folder, record, files)) for number, (record, files) in ended)


def _kept(folder: Path, record: Record, files: Mapping[str, str]) -> Record:
    write_files(folder, record["name"], files)
    write_gallery(folder)
    return record


def _measured(plan: Plan, experiment: Experiment) -> tuple[Record, Mapping[str, str]]:
    """One experiment: its record, and its files by suffix; an error of its own stands in their place."""
    start = time.process_time()
    try:
        finding = experiment(size=plan.size, mnist_folder=plan.mnist, rng=plan.seed)
    except Exception:  # the others go on; the whole error is kept
        about = _about(experiment, plan, traceback.format_exc(), time.process_time() - start)
        record = {**experiment.unknown(), **about}
        return record, {".json": json.dumps(record, indent=2, allow_nan=False)}
    about = _about(experiment, plan, None, time.process_time() - start)
    return {**finding.to_dict(), **about}, finding.files(**about)


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
