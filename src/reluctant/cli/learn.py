"""`reluctant learn`: any one-hidden-layer network to a given accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluctant.cli.files import check_network_path, check_record_path, write_network, write_record
from reluctant.cli.targets import TargetArgument, TargetOptions, opened_target, with_target_options
from reluctant.learning import learn as learn_network
from reluctant.results import Outcome, Result
from reluctant.runs import Record

__all__ = ["learn"]

KEPT_WITH_A_TRANSCRIPT = {Outcome.OUT_OF_BUDGET, Outcome.TARGET_FAILED}
SAID = ("accuracy", "limits", "risk", "theorem")


@with_target_options
def learn(
    target: TargetArgument,
    options: TargetOptions,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the network: .onnx or .npz.", show_default=False)
    ] = None,
    eps: Annotated[
        float, typer.Option(help="Square error allowed for Gaussian inputs, relative to the target's variance.")
    ] = 1e-6,
    narrowest: Annotated[
        float, typer.Option(help="Width of a bump that must not be missed; the cost grows like 1/width.")
    ] = 0.01,
) -> int:
    """Learn a network with one hidden layer to a given accuracy, however its neurons lie.

    For what extract does not promise: bumps that no line meets, clusters of neurons that cancel, answers in float32
    or rounded. It tries exact extraction first, then looks at 29 / NARROWEST random points for what that does not
    explain, follows the creases it finds there and fits the rest. The error it prints was measured also where random
    points never are, close to creases; a bump narrower than the width it prints could have been missed. Exit status 1
    if the error is larger than EPS: the best network is then written as NAME.partial.onnx.

    Example: reluctant learn model.onnx --eps 1e-8 -o copy.onnx

    Example: reluctant learn package.module:predict --dim 12 --narrowest 0.001 --transcript answers
    """
    check_network_path(out)
    check_record_path(options.json)
    with opened_target(options, target) as oracle:
        found = learn_network(oracle, eps=eps, rng=options.seed, narrowest=narrowest)
        record = Record.of(oracle, "learn", options.seed, found.ok, learning=found)
    written = write_network(found, out, options.written_link)
    write_record(record, options.json)
    if options.json != "-":
        print("\n".join(_lines(found, record, written)))
    if not found.ok and options.transcript is None and found.outcome in KEPT_WITH_A_TRANSCRIPT:
        options.say("No transcript was kept; next time give --transcript DIR, so that nothing is paid twice.")
    return 0 if found.ok else 1


def _lines(found: Result, record: Record, written: Path | None) -> list[str]:
    """What happened, how accurate the network is, and what could have been missed."""
    lines = [str(found.outcome)]
    if "error" in found.evidence:
        lines.append(f"Stage {found.stage}: {found.evidence['error']}")
    if found.network is not None:
        lines.append(repr(found.network))
    lines += [str(found.evidence[part]) for part in SAID if found.evidence.get(part)]
    sent = sum(rows.sent for rows in record.rows.values())
    replayed = f" {record.queries - sent} of them from the transcript." if sent < record.queries else ""
    return [*lines, f"{record.queries} queries.{replayed}" + (f" Written: {written}" if written else "")]
