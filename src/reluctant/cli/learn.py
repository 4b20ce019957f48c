"""`reluctant learn`: any one-hidden-layer network to a given accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluctant.cli.files import NetworkOut, check_network_path, check_record_path, tell, write_network
from reluctant.cli.targets import TargetArgument, TargetOptions, opened_target, with_target_options
from reluctant.cli.words import advise, ending, shown_network, spent
from reluctant.learning import learn as learn_network
from reluctant.learning.learner import EPS, NARROWEST
from reluctant.results import Result
from reluctant.run_record import Record

__all__ = ["learn"]

SAID = ("accuracy", "limits", "risk", "theorem")


@with_target_options
def learn(
    target: TargetArgument,
    options: TargetOptions,
    out: NetworkOut = None,
    eps: Annotated[
        float, typer.Option(help="Square error allowed for Gaussian inputs, relative to the target's variance.")
    ] = EPS,
    narrowest: Annotated[
        float,
        typer.Option(
            help="Width of a bump that must not be missed, up to distance 1 from the origin (at distance 3 it is seen "
            "if 55 times as wide); the cost grows like 1/width."
        ),
    ] = NARROWEST,
) -> int:
    """Learn a network with one hidden layer to a given accuracy, however its neurons lie.

    For what extract does not promise: bumps that no line meets, clusters of neurons that cancel, answers in float32
    or rounded. It asks 29 / NARROWEST random points and tries exact extraction; where that is not verified or does not
    explain the points, it follows the creases it finds there and fits the rest. The error it prints was measured also
    where random points never are, close to creases; a bump narrower than the width it prints, or farther out, could
    have been missed. Exit status 1 if the error is larger than EPS: the best network is then written as
    NAME.partial.onnx.

    Example: reluctant learn model.onnx --eps 1e-8 -o copy.onnx

    Example: reluctant learn package.module:predict --dim 12 --narrowest 0.001 --transcript answers
    """
    check_network_path(out)
    check_record_path(options.json)
    with opened_target(options, target) as oracle:
        found = learn_network(oracle, eps=eps, rng=options.seed, narrowest=narrowest)
        record = Record.of(oracle, "learn", options.seed, found.ok, learning=found)
    written = write_network(found, out, options.written_link)
    tell(record, options.json, _lines(found, record, options.written_link, written))
    advise(found, record, target, options)
    return 0 if found.ok else 1


def _lines(found: Result, record: Record, link: str, written: Path | None) -> list[str]:
    """What happened, how accurate the network is, and what could have been missed."""
    lines = ending(found, record)
    lines += shown_network(found, link)
    lines += [str(found.evidence[part]) for part in SAID if found.evidence.get(part)]
    return [*lines, spent(record, written)]
