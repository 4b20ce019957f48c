"""The commands: each opens a target, calls one function of the library and prints what it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluctant.cli.files import NetworkOut, check_network_path, check_record_path, tell, write_network
from reluctant.cli.targets import TargetArgument, TargetOptions, opened_target, with_target_options
from reluctant.cli.words import advise, advise_next, answered_range, ending, shown_network, spent
from reluctant.extraction import extract as extract_network
from reluctant.extraction.prospects import what_extraction_would_do
from reluctant.interface import check_health
from reluctant.networks import ReLUNetwork
from reluctant.results import Result
from reluctant.run_record import Record

__all__ = ["extract", "health"]


@with_target_options
def health(target: TargetArgument, options: TargetOptions) -> int:
    """Say what a target's query interface gives: noise, rounding, shape, faults.

    Example: reluctant health model.onnx
    """
    check_record_path(options.json)
    with opened_target(options, target) as oracle:
        found = check_health(oracle, rng=options.seed)
        record = Record.of(oracle, "health", options.seed, found.refusal is None, health=found)
        extraction = what_extraction_would_do(found, oracle)
    lines = [*found.sentences(), *([extraction] if extraction else []), *answered_range(record)]
    tell(record, options.json, [*lines, f"{record.queries} queries."])
    advise_next(" ".join(lines), found.refusal, record, target, options)
    return 0 if record.ok else 1


@with_target_options
def extract(
    target: TargetArgument,
    options: TargetOptions,
    out: NetworkOut = None,
    attempts: Annotated[int, typer.Option(help="How often to start again on another line.")] = 4,
) -> int:
    """Recover the network behind a target exactly, and verify it.

    Any number of layers and outputs, answers in float64. It finds out by itself how many layers there are. A large
    network with one hidden layer costs about as many answers as it has parameters, verification included (a query
    brings one answer for each output), a small one some times as many; two layers cost 1.3 queries per parameter with
    many inputs, 15 and more with few. With --domain nothing outside is asked, and only one hidden layer can be
    recovered. Exit status 1 if it was not recovered: the outcome is printed, and what was found is
    written beside the name given, as NAME.partial.onnx.

    Example: reluctant extract model.onnx -o copy.onnx --precision float64 --transcript answers

    Example: reluctant extract images.onnx --precision float64 --domain 0,1 --budget 200000
    """
    check_network_path(out)
    check_record_path(options.json)
    with opened_target(options, target) as oracle:
        found = extract_network(oracle, rng=options.seed, attempts=attempts)
        record = Record.of(oracle, "extract", options.seed, found.ok, extraction=found)
    written = write_network(found, out, options.written_link)
    tell(record, options.json, _extraction_lines(found, record, options.written_link, written))
    for failure in found.evidence.get("failures", []):
        options.say(f"{'tried first' if found.ok else 'attempt failed'}: {failure}")
    advise(found, record, target, options)
    return 0 if found.ok else 1


def _layers(network: ReLUNetwork) -> str:
    hidden = [str(width) for width in network.widths[1:-1]]
    layers = {0: "No hidden layer", 1: "One hidden layer"}.get(len(hidden), f"{len(hidden)} hidden layers")
    neurons = "neuron" if hidden == ["1"] else "neurons"
    return f"{layers}: {', '.join(hidden)} {neurons}." if hidden else f"{layers}."


def _extraction_lines(found: Result, record: Record, link: str, written: Path | None) -> list[str]:
    lines = ending(found, record)
    if found.network is not None:
        lines += [*shown_network(found, link), _layers(found.network)]
    parts = ("reach", "layers", "verification", "certificate", "limits")
    lines += [str(found.evidence[part]) for part in parts if found.evidence.get(part)]
    return [*lines, spent(record, written)]
