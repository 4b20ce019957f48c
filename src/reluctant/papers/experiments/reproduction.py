"""The list of experiments, and their run into a folder with one page (`reluctant reproduce`).

A finding is kept as a record (NAME.json) with its picture and its text beside it. An experiment that fails has a
record too, with its error, and the others go on. The page is made from the records of a folder alone, so an
interrupted run leaves a page of what it finished, and a later one adds to it.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from reluctant._files import write_text
from reluctant._version import __version__
from reluctant.engines import Engine, as_they_end, in_order
from reluctant.papers.experiments.exact_theorems import ONE_LAYER, ORTHANT, TWO_LAYERS
from reluctant.papers.experiments.experiment import Experiment, Size, write_files
from reluctant.papers.experiments.flip_sizes import FLIPS, TRAINED
from reluctant.papers.experiments.gallery import gallery_page
from reluctant.papers.experiments.layer_laws import BOTTLENECKS, DEPTH, LAW, SMALLEST
from reluctant.papers.experiments.learning_theorems import BUMP, CLUSTERS, THEOREM
from reluctant.papers.experiments.span_figures import MODERATE_FIGURE, NOISE_FIGURE, THIN_FIGURE
from reluctant.papers.experiments.span_recovery import SPAN_LABELS, SPAN_VALUES
from reluctant.papers.experiments.telling_answers import LOGIT_RANK, MILLI

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        *(THIN_FIGURE, MODERATE_FIGURE, NOISE_FIGURE, SPAN_VALUES, SPAN_LABELS),
        *(BUMP, CLUSTERS, THEOREM),
        *(ONE_LAYER, ORTHANT, TWO_LAYERS),
        *(SMALLEST, FLIPS, LAW, BOTTLENECKS, DEPTH, TRAINED),
        *(MILLI, LOGIT_RANK),
    )
}

FINDING_SCHEMA = "reluctant/finding/1"
GALLERY_PAGE = "index.html"

FindingRecord = dict[str, Any]


@dataclass(frozen=True)
class ReproductionPlan:
    """How experiments are run.

    Arguments:
        folder: where files go; it exists.
        size: quick or full.
        seed: of all random choices.
        mnist: folder with MNIST, for those that can use it.
        commands: what repeats each experiment, by its name; their records keep it.
    """

    folder: Path
    size: Size = "quick"
    seed: int = 0
    mnist: Path | None = None
    commands: Mapping[str, str] = field(default_factory=dict)


def run_experiments(
    names: Sequence[str], plan: ReproductionPlan, jobs: int = 1, engine: Engine | None = None
) -> Iterator[FindingRecord]:
    """Run experiments and give their records, in the order of the names.

    Files and page are written as soon as an experiment ends, always here: `jobs` processes, or the workers of an
    engine ("dask://host:port", or a Client), only measure.
    """
    ended = as_they_end(partial(_measure_one, plan), [EXPERIMENTS[name] for name in names], jobs=jobs, engine=engine)
    return in_order((number, _keep_files(plan.folder, record, files)) for number, (record, files) in ended)


def _keep_files(folder: Path, record: FindingRecord, files: Mapping[str, str]) -> FindingRecord:
    write_files(folder, record["name"], files)
    write_gallery(folder)
    return record


def _measure_one(plan: ReproductionPlan, experiment: Experiment) -> tuple[FindingRecord, Mapping[str, str]]:
    """One experiment: its record, and its files by suffix; an error takes their place."""
    start = time.process_time()
    try:
        finding = experiment(size=plan.size, mnist_folder=plan.mnist, rng=plan.seed)
    except Exception:  # the others go on; the whole error is kept
        about = _about_run(experiment, plan, traceback.format_exc(), time.process_time() - start)
        record = {**experiment.unknown(), **about}
        return record, {".json": json.dumps(record, indent=2, allow_nan=False)}
    about = _about_run(experiment, plan, None, time.process_time() - start)
    return {**finding.to_dict(), **about}, finding.files(**about)


def _about_run(experiment: Experiment, plan: ReproductionPlan, error: str | None, seconds: float) -> FindingRecord:
    return {
        "schema": FINDING_SCHEMA, "error": error, "size": plan.size, "seed": plan.seed, "seconds": seconds,
        "command": plan.commands.get(experiment.name, ""), "version": __version__,
    }  # fmt: skip


def write_gallery(folder: Path) -> Path:
    """Write the page over all records of a folder, those of earlier runs too."""
    records = read_records(folder)
    pictures = {
        name: (folder / f"{name}.svg").read_text(encoding="utf-8")
        for name in (record["name"] for record in records)
        if (folder / f"{name}.svg").exists()
    }
    write_text(folder / GALLERY_PAGE, gallery_page(records, pictures))
    return folder / GALLERY_PAGE


def read_records(folder: Path) -> list[FindingRecord]:
    """All records of a folder, in the order of the papers."""
    return [record for name in EXPERIMENTS if (record := _read_record(folder / f"{name}.json"))]


def _read_record(path: Path) -> FindingRecord | None:
    """A record of this format; a file that holds something else is left alone."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("schema") == FINDING_SCHEMA else None
