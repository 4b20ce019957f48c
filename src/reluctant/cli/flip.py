"""The command `flip`: the small change of an input that flips a target."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from reluctant.adversarial import Flip, flip_sign
from reluctant.cli.files import check_record_path, tell
from reluctant.cli.inputs import read_array
from reluctant.cli.targets import TargetArgument, TargetOptions, opened_target, with_target_options
from reluctant.cli.words import advise, ending, spent
from reluctant.errors import InvalidInput
from reluctant.networks import ReLUNetwork
from reluctant.run_record import Record
from reluctant.span import Subspace

__all__ = ["flip"]


@with_target_options
def flip(
    target: TargetArgument,
    options: TargetOptions,
    start: Annotated[Path, typer.Option("--input", "-i", help="The input to start from: a .npy file of (d,) numbers.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the flipped input: .npy.", show_default=False)
    ] = None,
    network: Annotated[
        Path | None,
        typer.Option(
            help="A recovered or trained network (.onnx, .npz): the step is found on it, a few rows confirm it."
        ),
    ] = None,
    span: Annotated[
        Path | None,
        typer.Option(help="A recovered span (.npz of `reluctant span`): a gradient then costs its rank, not d."),
    ] = None,
    steps: Annotated[int, typer.Option(help="Gradients to take; more than one looks for a nearer flip.")] = 1,
    threshold: Annotated[
        float | None,
        typer.Option(help="Where one output changes side: at 0, or at 0.5 if it is known to be a probability."),
    ] = None,
) -> int:
    """Find a small change of one input that flips the target's sign, or the class it chooses.

    One gradient by questions (as many as there are inputs, and 42 to 67 more), then the first flip along it. The
    size is given in units of 1/√d of the input's norm, in which a random network flips at about 0.7. With --domain
    the change stays inside. Exit status 1 if nothing flipped.

    Example: reluctant flip model.onnx --input x.npy -o flipped.npy --domain 0,1
    """
    check_record_path(options.json)
    _check_out(out)
    x, known = read_array("--input", start), None if network is None else ReLUNetwork.load(network)
    seen = None if span is None else Subspace.load(span)
    if span is not None and ".partial" in span.suffixes:
        options.say(f"{span.name} is not a whole span: what it lacks is not followed, and the flip may be farther.")
    with opened_target(options, target) as oracle:
        found = flip_sign(oracle, x, span=seen, network=known, steps=steps, threshold=threshold, rng=options.seed)
        record = Record.of(oracle, "flip", options.seed, found.ok, flip=found)
    _write_input(found, out)
    tell(record, options.json, _lines(found, record, out))
    advise(found, record, target, options)
    return 0 if found.ok else 1


def _lines(found: Flip, record: Record, out: Path | None) -> list[str]:
    return [*([str(found)] if found.ok else ending(found, record)), spent(record, out if found.ok else None)]


def _write_input(found: Flip, out: Path | None) -> None:
    if out is None or found.x is None:
        return
    try:
        np.save(out, found.x)
    except OSError as error:
        raise InvalidInput.about("--out", got=f"'{out}' ({error})", expected="a file to write") from error


def _check_out(out: Path | None) -> None:
    if out is not None and (out.suffix != ".npy" or not out.parent.is_dir()):
        raise InvalidInput.about("--out", got=f"'{out}'", expected="a name ending in .npy in an existing folder")
