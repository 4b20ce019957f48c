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
from reluctant.health import check_health
from reluctant.networks import ReLUNetwork
from reluctant.oracles import open_oracle
from reluctant.report import ask_profile, write_page
from reluctant.runs import Record
from reluctant.verification import verify as verify_network

__all__ = ["demo", "health", "verify"]

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

    The model has 64 inputs, 32 hidden neurons and ten outputs; it is asked in float64.
    """
    _make_folder(out)
    with open_oracle(digits_model(), precision="float64") as oracle:
        if not quiet:
            card = json.loads(digits_card().read_text("utf-8"))
            note(f"Target: a digits classifier, {card['accuracy']['held out']:.1%} right on held-out images.")
        with progress(oracle, quiet):
            found = check_health(oracle, rng=DEMO_SEED)
            profile = ask_profile(oracle, rng=DEMO_SEED)
        record = Record.of(oracle, "demo", DEMO_SEED, found.refusal is None, health=found)
    record.write(out / "record.json")
    write_page(out / "report.html", record, found, profile, repeat="reluctant demo")
    print("\n".join(found.sentences()))
    print(f"{record.queries} queries. Report: {(out / 'report.html').resolve()}")
    return 0 if record.ok else 1


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
