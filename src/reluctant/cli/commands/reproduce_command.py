"""`reluctant reproduce`: the experiments of the papers, measured, drawn and checked on one page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from reluctant.cli.console import note
from reluctant.cli.files import make_folder
from reluctant.errors import InvalidInput
from reluctant.numerics import as_generator
from reluctant.papers.experiments.experiment import Paper
from reluctant.papers.experiments.image_classifiers import check_mnist
from reluctant.papers.experiments.reproduction import EXPERIMENTS, GALLERY_PAGE, ReproductionPlan, run_experiments

EVERYTHING, LIST = "all", "list"


class SizeName(StrEnum):
    """How much is measured."""

    quick = "quick"
    full = "full"


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME ... | all | list]", help="Which ones; none lists them.", show_default=False),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Folder for the page (index.html), pictures (.svg), data (.json) and tables (.txt)."
        ),
    ] = Path("reluctant-experiments"),
    size: Annotated[
        SizeName,
        typer.Option(help="quick: a first look, minutes for all of them; full: the figures of the documentation."),
    ] = SizeName.quick,
    mnist: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with MNIST's four files, for those that can use it.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Experiments that run at the same time.")] = 1,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="dask://HOST:PORT",
            help="Run them on the workers of a dask cluster instead; files are written here, MNIST is read there.",
        ),
    ] = None,
    bibtex: Annotated[
        bool, typer.Option("--bibtex", help="Print the papers as BibTeX, to cite those that you used.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Results alone: nothing on standard error.")] = False,
) -> int:
    """Run the papers' experiments again and check their claims.

    Each has the claim, the measurement, a table, a picture and checks. One page, index.html, shows all of them, with
    those of earlier runs into the same folder. Exit status 1 if a number is out of its bounds, or an experiment did not
    run.

    Example: reluctant reproduce all --out figures --jobs 2

    Example: reluctant reproduce list --bibtex

    Example: reluctant reproduce all --size full --engine dask://scheduler:8786
    """
    if bibtex:
        print("\n\n".join(paper.bibtex for paper in _papers(names)))
        return 0
    if not names or names == [LIST]:
        print(_listing())
        return 0
    chosen = _chosen(names, seed, mnist)
    make_folder(out)
    say = _nothing if quiet else note
    say(f"{_counted(len(chosen))}, {size.value} size, into {out.resolve()}")
    records = []
    commands = {name: _command(name, size.value, seed, mnist) for name in chosen}
    plan = ReproductionPlan(out, size.value, seed, mnist, commands)
    for number, record in enumerate(run_experiments(chosen, plan, jobs, engine), 1):
        records.append(record)
        say(f"[{number}/{len(chosen)}] {_line(record)}")
        print(_text(out, record), flush=True)
    print(_ending(records, out / GALLERY_PAGE))
    return 0 if all(record["ok"] for record in records) else 1


def _command(name: str, size: str, seed: int, mnist: Path | None) -> str:
    """What repeats one experiment."""
    images = f" --mnist {shlex.quote(str(mnist))}" if mnist and EXPERIMENTS[name].takes_images else ""
    return f"reluctant reproduce {name} --size {size} --seed {seed}{images}"


def _chosen(names: Sequence[str], seed: int, mnist: Path | None) -> list[str]:
    """The experiments asked for; what cannot be run is refused before anything is."""
    as_generator(seed)
    if mnist is not None:
        check_mnist(mnist)
    chosen = list(EXPERIMENTS) if EVERYTHING in names else list(dict.fromkeys(names))
    unknown = [name for name in chosen if name not in EXPERIMENTS]
    if unknown:
        raise InvalidInput.about(
            "NAME", got=", ".join(unknown), expected="all, or names that `reluctant reproduce list` prints"
        )
    return chosen


def _papers(names: Sequence[str] | None) -> list[Paper]:
    """The papers of these experiments, all without a name."""
    chosen = EXPERIMENTS if not names or names == [LIST] else _chosen(names, seed=0, mnist=None)
    return list(dict.fromkeys(EXPERIMENTS[name].paper for name in chosen))


def _listing() -> str:
    lines = []
    for paper, some in groupby(EXPERIMENTS.values(), key=lambda experiment: experiment.paper):
        lines += ["", paper.short, f"  {paper.title}"]
        lines += [f"    {each.name:<24}{each.where}: {each.about}" for each in some]
    return "\n".join(lines[1:])


def _line(record: dict[str, Any]) -> str:
    """One experiment in one line."""
    holding, checks = sum(check["ok"] for check in record["checks"]), len(record["checks"])
    ended = "did not run" if record["error"] else f"{holding} of {checks} checks hold"
    return f"{record['name']} ({record['where']}): {ended}, {record['seconds']:.1f} s of CPU time"


def _text(folder: Path, record: dict[str, Any]) -> str:
    if record["error"]:
        return f"{record['name']} did not run\n{record['error']}"
    return (folder / f"{record['name']}.txt").read_text(encoding="utf-8")


def _ending(records: Sequence[dict[str, Any]], page: Path) -> str:
    checks = [check["ok"] for record in records for check in record["checks"]]
    failed = [record["name"] for record in records if record["error"]]
    not_run = f", {', '.join(failed)} did not run" if failed else ""
    seconds = sum(record["seconds"] for record in records)
    return (
        f"{_counted(len(records))}, {sum(checks)} of {len(checks)} checks hold{not_run}, {seconds:.0f} s of CPU "
        f"time.\nOpen: {page.resolve()}"
    )


def _counted(number: int) -> str:
    return "1 experiment" if number == 1 else f"{number} experiments"


def _nothing(text: str) -> None:
    """For quiet ones."""
