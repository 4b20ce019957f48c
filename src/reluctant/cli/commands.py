"""The commands: each opens a target, calls one function of the library and prints what it gives."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from reluctant.bundled import digits_card, digits_model
from reluctant.cli.console import note, progress
from reluctant.cli.targets import Session, TargetArgument, opened_session, with_target_options
from reluctant.errors import InvalidInput
from reluctant.extraction import extract as extract_network
from reluctant.health import check_health
from reluctant.networks import ReLUNetwork
from reluctant.oracles import open_oracle
from reluctant.report import ask_profile, write_page
from reluctant.results import Result
from reluctant.runs import Record
from reluctant.verification import verify as verify_network

__all__ = ["demo", "extract", "health", "verify"]

DEMO_SEED = 0


@with_target_options
def health(target: TargetArgument, session: Session) -> int:
    """Say what a target's query interface gives: noise, rounding, shape, faults.

    Example: reluctant health model.onnx
    """
    with opened_session(session, target) as oracle:
        found = check_health(oracle, rng=session.seed)
        record = Record.of(oracle, "health", session.seed, found.refusal is None, health=found)
    _write_record(record, session.json)
    if session.json != "-":
        print("\n".join([*found.sentences(), f"{record.queries} queries."]))
    return 0 if record.ok else 1


@with_target_options
def extract(
    target: TargetArgument,
    session: Session,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the network: .onnx or .npz.", show_default=False)
    ] = None,
    attempts: Annotated[int, typer.Option(help="How often to start again on another line.")] = 4,
) -> int:
    """Recover the network behind a target exactly, and verify it.

    One hidden layer of any width, one or several outputs. Costs about one query per parameter and output;
    verification is included. Exit status 1 if it was not recovered: the outcome is printed, and what was
    found is written beside the name given, as NAME.partial.onnx.

    Example: reluctant extract model.onnx -o copy.onnx --precision float64 --transcript answers
    """
    _check_suffix(out)
    with opened_session(session, target) as oracle:
        found = extract_network(oracle, rng=session.seed, attempts=attempts)
        record = Record.of(oracle, "extract", session.seed, found.ok, extraction=found)
    _write_record(record, session.json)
    written = _write_network(found, out)
    if session.json != "-":
        print(found.outcome)
        if found.network is not None:
            print(f"{found.network!r}")
        for part in ("verification", "certificate"):
            if found.evidence.get(part) is not None:
                print(found.evidence[part])
        print(f"{record.queries} queries." + (f" Written: {written}" if written else ""))
    for failure in found.evidence.get("failures", []):
        session.say(f"attempt failed: {failure}")
    return 0 if found.ok else 1


@with_target_options
def verify(
    target: TargetArgument,
    network: Annotated[Path, typer.Argument(help="The network to compare it with: .onnx or .npz.")],
    session: Session,
    tol: Annotated[
        float | None, typer.Option(help="Largest error accepted, relative to the output's deviation.")
    ] = None,
) -> int:
    """Ask a target where a network could be wrong, and compare.

    Looks at three scales, on the network's creases and beside them. Exit status 1 if they disagree.

    Example: reluctant verify model.onnx recovered.onnx --precision float64
    """
    candidate = ReLUNetwork.load(network)
    with opened_session(session, target) as oracle:
        found = verify_network(oracle, candidate, rng=session.seed, tol=tol)
        record = Record.of(oracle, "verify", session.seed, found.ok, verification=found)
    _write_record(record, session.json)
    if session.json != "-":
        print(found)
        print(f"{record.queries} queries.")
    return 0 if found.ok else 1


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("reluctant-demo"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no words.")] = False,
) -> int:
    """Try everything on a bundled digits classifier and write a report that can be opened.

    The model has 64 inputs, 32 hidden neurons and ten outputs; it is asked in float64, recovered, verified
    and drawn.
    """
    _make_folder(out)
    with open_oracle(digits_model(), precision="float64") as oracle:
        if not quiet:
            card = json.loads(digits_card().read_text("utf-8"))
            note(f"Target: a digits classifier, {card['accuracy']['held out']:.1%} right on held-out images.")
        with progress(oracle, quiet):
            found = extract_network(oracle, rng=DEMO_SEED)
            profile = ask_profile(oracle, rng=DEMO_SEED)
        record = Record.of(oracle, "demo", DEMO_SEED, found.ok, extraction=found)
    record.write(out / "record.json")
    _write_network(found, out / "recovered.onnx")
    write_page(out / "report.html", record, found.evidence["health"], profile, "reluctant demo", found)
    print(found.outcome)
    print(f"{found.network!r} in {found.queries} queries.")
    print(found.evidence.get("verification", ""))
    print(f"Report: {(out / 'report.html').resolve()}")
    return 0 if found.ok else 1


def _check_suffix(out: Path | None) -> None:
    if out is not None and out.suffix not in {".onnx", ".npz"}:
        raise InvalidInput.about("--out", got=f"'{out}'", expected="a name ending in .onnx or .npz")


def _write_network(found: Result, out: Path | None) -> Path | None:
    """Write the network if there is one; one that is not verified gets a name that says so."""
    if out is None or found.network is None:
        return None
    path = out if found.ok else out.with_suffix(f".partial{out.suffix}")
    try:
        found.network.save(path)
    except OSError as error:
        raise InvalidInput.about("--out", got=f"'{path}' ({error})", expected="a file to write") from error
    return path


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput.about("--out", got=f"'{folder}' ({error})", expected="a folder to write to") from error


def _write_record(record: Record, where: str | None) -> None:
    if where == "-":
        sys.stdout.write(record.to_json() + "\n")
    elif where is not None:
        try:
            record.write(Path(where))
        except OSError as error:
            raise InvalidInput.about("--json", got=f"'{where}' ({error})", expected="a file to write") from error
