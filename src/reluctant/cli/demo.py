"""`reluctant demo`: the audit of the bundled model, from nothing to a report that can be opened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from reluctant.audit import audit
from reluctant.bundled import digits_card, digits_inputs, digits_model
from reluctant.cli.audit import figures
from reluctant.cli.console import note, progress
from reluctant.cli.files import make_folder, write_network, write_page, write_record
from reluctant.oracles import open_oracle

__all__ = ["demo"]

SEED = 0
PAUSE = 0.2  # seconds for each round of the search, so that a person sees it
SECONDS = 100.0
CLASSES = tuple("0123456789")
IMAGE = (8, 8)


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the report.")] = Path("reluctant-demo"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no words.")] = False,
) -> int:
    """Audit a bundled digits classifier and write a report that can be opened.

    The model has 64 inputs, 32 hidden neurons and ten outputs; it is asked in float64. The folder gets the report, its
    record as JSON and the recovered network.
    """
    make_folder(out)
    if not quiet:
        card = json.loads(digits_card().read_text("utf-8"))
        note(f"Target: a digits classifier, {card['accuracy']['held out']:.1%} right on held-out images.")
    with (
        open_oracle(digits_model(), precision="float64") as oracle,
        progress(oracle, quiet, pause=PAUSE) as watch,
    ):
        found = audit(
            oracle, rng=SEED, inputs=np.load(digits_inputs()), input_shape=IMAGE, classes=CLASSES, file=digits_model(),
            precision="float64", seconds=SECONDS, repeat="reluctant demo", watch=watch,
        )  # fmt: skip
    extraction = found.known.extraction
    if extraction is not None:
        write_network(extraction, out / "recovered.onnx")
    write_record(found, str(out / "audit.json"))
    write_page(found.record, out / "report.html")
    print("\n".join([*figures(found), f"Report: {(out / 'report.html').resolve()}"]))
    return 0 if extraction is not None and extraction.ok else 1
