"""`reluctant span`: the directions of its input that a target looks at, and what is invisible to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluctant.cli.files import check_record_path, tell
from reluctant.cli.inputs import read_array
from reluctant.cli.targets import TargetArgument, TargetOptions, opened_target, with_target_options
from reluctant.cli.words import advise, ending, spent
from reluctant.errors import InvalidInput
from reluctant.run_record import Record
from reluctant.span import Span, recover_span

__all__ = ["span"]


@with_target_options
def span(
    target: TargetArgument,
    options: TargetOptions,
    labels: Annotated[
        bool, typer.Option("--labels", help="Use labels alone: the largest output, or one output at the threshold.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the span: .npz.", show_default=False)] = None,
    threshold: Annotated[
        float | None, typer.Option(help="For --labels and one output; whole numbers are labels as they are, else 0.5.")
    ] = None,
    fine: Annotated[
        bool, typer.Option("--fine/--coarse", help="From values: spend as many queries again on the last digits.")
    ] = True,
    reach: Annotated[
        float, typer.Option(help="How far directions left out are followed to see that nothing changes, in inputs.")
    ] = 3.0,
    inputs: Annotated[
        Path | None,
        typer.Option(help="Inputs of the target's own kind, rows of a .npy file: half of what is asked is like them."),
    ] = None,
) -> int:
    """Find every direction of its input that a target looks at.

    All other directions are invisible to it: what changes along them changes no answer, however much it is. Works for
    ReLU networks of any depth from values, and for smooth ones too from labels alone. With k directions of n inputs it
    costs about k·n queries, twice that for all digits, 15·k·n in float32 and 60 to 250·k·n from labels; several outputs
    make it cheaper. With --domain nothing outside is asked. Random inputs stand for all: a direction that matters on
    photographs alone is missed unless --inputs has some. The margin says how clear the number of directions is: far
    below 1 is clear. Exit status 1 if some were missed or nothing changes: what was found is written as
    NAME.partial.npz.

    Example: reluctant span model.onnx -o span.npz --precision float64

    Example: reluctant span package.module:classify --dim 784 --labels --transcript answers
    """
    _check_span_path(out)
    check_record_path(options.json)
    given = None if inputs is None else read_array("--inputs", inputs)
    with opened_target(options, target) as oracle:
        found = recover_span(
            oracle, labels=labels, rng=options.seed, fine=fine, threshold=threshold, reach=reach, inputs=given
        )  # fmt: skip
        record = Record.of(oracle, "span", options.seed, found.ok, span=found)
    written = _write_span(found, out)
    tell(record, options.json, _lines(found, record, written))
    advise(found, record, target, options)
    return 0 if found.ok else 1


def _lines(found: Span, record: Record, written: Path | None) -> list[str]:
    """What happened, how many directions, how clear that is, and what is invisible."""
    lines = ending(found, record)
    if found.rank and found.ok:
        lines.append(
            f"{found.rank} of {found.subspace.dim} directions: {found.subspace.invisible_share:.1%} invisible."
        )
    elif found.rank:
        lines.append(f"{found.rank} of {found.subspace.dim} directions so far, not verified: there may be more.")
    if found.ok and found.subspace.invisible_share:
        lines.append(f"Margin of the rank {found.margin:.1e}, angle to the true span at most about {found.angle:.1e}.")
    if "limits" in found.evidence:
        lines.append(str(found.evidence["limits"]))
    return [*lines, spent(record, written)]


def _check_span_path(out: Path | None) -> None:
    """A name that cannot be written is found before anything is asked."""
    if out is not None and (out.suffix != ".npz" or not out.parent.is_dir()):
        raise InvalidInput.about("--out", got=f"'{out}'", expected="a name ending in .npz, in an existing folder")


def _write_span(found: Span, out: Path | None) -> Path | None:
    """Write the span if there is one; one that is not whole gets a name that says so."""
    if out is None or not found.rank:
        return None
    path = out if found.ok else out.with_suffix(f".partial{out.suffix}")
    try:
        found.save(path)
    except OSError as error:
        raise InvalidInput.about("--out", got=f"'{path}' ({error})", expected="a file to write") from error
    return path
