"""The command `reproduce`: the papers' experiments, measured, drawn and checked."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer

from reluctant.cli.console import note
from reluctant.cli.files import make_folder
from reluctant.errors import InvalidInput
from reluctant.experiments import EXPERIMENTS, Finding
from reluctant.numerics import as_generator

__all__ = ["reproduce"]

EVERYTHING = "all"


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME ... | all]", help="Which ones; none lists them.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for pictures (.svg), data (.json) and tables (.txt).")] = Path(
        "reluctant-experiments"
    ),
    mnist: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder with MNIST's four files, for those that can use it.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random choices.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Results alone: nothing on standard error.")] = False,
) -> int:
    """Run experiments of the papers again: a table, a picture and checks for each.

    Exit status 1 if a number is not within the bounds that were asked of it.

    Example: reluctant reproduce depth linearity-law --out figures
    """
    if not names:
        print("\n".join(f"{name:<24}{_first_line(name)}" for name in EXPERIMENTS))
        return 0
    as_generator(seed)
    if mnist is not None and not mnist.is_dir():
        raise InvalidInput.about("--mnist", got=f"'{mnist}'", expected="a folder with MNIST's four files")
    chosen = list(EXPERIMENTS) if EVERYTHING in names else list(dict.fromkeys(names))
    unknown = [name for name in chosen if name not in EXPERIMENTS]
    if unknown:
        raise InvalidInput.about("NAME", got=", ".join(unknown), expected=f"{', '.join(EXPERIMENTS)} or all")
    make_folder(out)
    findings = []
    for number, name in enumerate(chosen, 1):
        if not quiet:
            note(f"[{number}/{len(chosen)}] {name}: {_first_line(name)}")
        findings.append(_run(name, seed, mnist))
        findings[-1].write(out)
        print(findings[-1].table() + "\n", flush=True)
    print(f"Written: {out.resolve()}")
    return 0 if all(finding.ok for finding in findings) else 1


def _run(name: str, seed: int, mnist: Path | None) -> Finding:
    experiment = EXPERIMENTS[name]
    takes_images = "mnist_folder" in inspect.signature(experiment).parameters
    return experiment(rng=seed, mnist_folder=mnist) if takes_images else experiment(rng=seed)


def _first_line(name: str) -> str:
    return (EXPERIMENTS[name].__doc__ or "").strip().splitlines()[0]
