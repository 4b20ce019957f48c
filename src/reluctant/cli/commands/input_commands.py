"""`reluctant health`, `span` and `flip`: the commands about the inputs of a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

import reluctant as rl
from reluctant._files import replacement
from reluctant.adversarial.flip_search import Flip
from reluctant.cli.advice import advise, advise_next, answered_range, as_command, ending, measured, spent
from reluctant.cli.files import (
    check_out,
    check_record_path,
    partial_name,
    print_and_write,
    print_result,
    read_array,
    writing,
)
from reluctant.cli.options import Seconds, TargetArgument, TargetOptions, opened_target, with_target_options
from reluctant.run_record import Record

if TYPE_CHECKING:
    from reluctant.span import Span


@with_target_options
def health(target: TargetArgument, options: TargetOptions) -> int:
    """Measure an interface: noise, rounding, shape, faults.

    It asks some hundred rows. Exit status 1 if the answers are no plain values of a ReLU network: labels,
    probabilities, smooth or constant answers. The last line then says what to run next.

    Example: reluctant health model.onnx
    """

    check_record_path(options.json)
    with opened_target(options, target) as oracle:
        found = rl.check_health(oracle, rng=options.seed)
        record = Record.of(oracle, "health", options.seed, found.refusal is None, health=found)
    lines = [each.text(as_command) for each in (*found.findings(), *found.prospects)]
    print_result(record, options.json, [*lines, *answered_range(record), f"{record.queries} queries."])
    advise_next(found.diagnosis, record, target, options)
    return 0 if record.ok else 1


@with_target_options
def span(
    target: TargetArgument,
    options: TargetOptions,
    labels: Annotated[
        bool, typer.Option("--labels", help="Use labels alone: the largest output, or one output at the threshold.")
    ] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the span: .npz.", show_default=False)] = None,
    threshold: Annotated[
        float | None, typer.Option(help="For --labels and one output: its label is the side of this number (0.5).")
    ] = None,
    fine: Annotated[
        bool, typer.Option("--fine/--coarse", help="From values: spend as many queries again on the last digits.")
    ] = True,
    reach: Annotated[
        float | None,
        typer.Option(help="How far directions left out are followed, in typical inputs; 15, or 3 from labels."),
    ] = None,
    seconds: Seconds = None,
) -> int:
    """Find the input directions that a target depends on.

    The target is blind to all other directions: a change along them changes no answer, however large it is. Works for
    ReLU networks of any depth from values, and for smooth ones too from labels alone. With k directions of n inputs it
    costs about k·n queries, twice that for all digits, 15·k·n in float32 and 60 to 250·k·n from labels; several outputs
    make it cheaper. With --domain it asks nothing outside. It asks random inputs: a direction that matters on
    photographs alone is missed unless --inputs has some. The margin says how clear the number of directions is; far
    below 1 is clear. Exit status 1 if directions are missing or nothing changes: what was found is written as
    NAME.partial.npz.

    Example: reluctant span model.onnx -o span.npz --precision float64

    Example: reluctant span package.module:classify --dim 784 --labels --transcript answers
    """
    check_out(out, ".npz")
    check_record_path(options.json)
    with opened_target(options, target) as oracle:
        found = rl.recover_span(
            oracle, labels=labels, rng=options.seed, fine=fine, threshold=threshold, reach=reach, seconds=seconds,
        )  # fmt: skip
        record = Record.of(oracle, "span", options.seed, found.ok, span=found)
    lines = ending(found, record)
    if found.rank and found.ok:
        lines.append(
            f"{found.rank} of {found.subspace.dim} directions: {found.subspace.invisible_share:.1%} invisible."
        )
    elif found.rank:
        lines.append(f"{found.rank} of {found.subspace.dim} directions so far, not verified: there may be more.")
    if found.ok and found.subspace.invisible_share:
        lines.append(f"Margin of the rank {found.margin:.1e}, angle to the true span at most about {found.angle:.1e}.")
    lines += map(str, filter(None, [measured(found).limits]))
    print_and_write(
        record, options.json, lambda: _write_span(found, out), lambda written: [*lines, spent(record, written)]
    )
    advise(found, record, target, options, out, {"labels": labels, "threshold": threshold, "seconds": seconds})
    return 0 if found.ok else 1


def _write_span(found: Span, out: Path | None) -> Path | None:
    """Write the span if there is one; a partial span is named NAME.partial.npz."""
    if out is None or not found.rank:
        return None
    path = partial_name(out, found.ok)
    with writing("--out", path):
        found.save(path)
    return path


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
    """Find a small change of one input that flips the answer.

    The answer is the sign of one output, or the class with the largest of several. It measures one gradient (a query
    for each input, and 42 to 67 more), then takes the first flip along it. Sizes are in units of 1/√d of the input's
    norm; a random network flips at about 0.7. With --domain the change stays inside. Exit status 1 if nothing flipped.

    Example: reluctant flip model.onnx --input x.npy -o flipped.npy --domain 0,1
    """
    check_record_path(options.json)
    check_out(out, ".npy")
    x, known = read_array("--input", start), None if network is None else rl.ReLUNetwork.load(network)
    seen = None if span is None else rl.Subspace.load(span)
    if span is not None and ".partial" in span.suffixes:
        options.say(f"{span.name} is not a whole span: what it lacks is not followed, and the flip may be farther.")
    with opened_target(options, target) as oracle:
        found = rl.flip_sign(oracle, x, span=seen, network=known, steps=steps, threshold=threshold, rng=options.seed)
        record = Record.of(oracle, "flip", options.seed, found.ok, flip=found)
    lines = [str(found)] if found.ok else ending(found, record)
    print_and_write(
        record, options.json, lambda: _write_flip(found, out), lambda written: [*lines, spent(record, written)]
    )
    advise(found, record, target, options)
    return 0 if found.ok else 1


def _write_flip(found: Flip, out: Path | None) -> Path | None:
    """Write the flipped input, if there is one."""
    if out is None or found.x is None:
        return None
    with writing("--out", out), replacement(out) as fresh:
        np.save(fresh, found.x)
    return out
