"""`reluctant audit`, `demo` and `report`: the page and the record of an audit."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from reluctant.audit import LEAKS, STEPS, Audit, not_opened
from reluctant.audit import audit as audit_target
from reluctant.audit.auditor import check_rate
from reluctant.audit.budget import BUDGET, SECONDS
from reluctant.audit.record import AuditRecord
from reluctant.audit.verdict import NEEDS
from reluctant.bundled import digits_card, digits_inputs, digits_model
from reluctant.cli.console import Stop, note, progress, say_error, show_waits, stoppable
from reluctant.cli.files import (
    check_page_path,
    check_record_path,
    make_folder,
    read_array,
    write_network,
    write_page,
    write_record,
)
from reluctant.cli.options import TargetArgument, TargetOptions, command_line, with_target_options
from reluctant.errors import InvalidInput, MissingDependency, TargetError, UnknownTarget, UnsafeFile, UnsupportedModel
from reluctant.oracles import open_oracle
from reluctant.oracles.keywords import RunPrecision, is_url
from reluctant.oracles.links import AnswerLink
from reluctant.report import is_page_of_a_failure, three_figures, verdict_sentence
from reluctant.report.text import stop_sentence

# What keeps a target from being opened: a report says so. Any other bad argument is a mistake at the keyboard.
NOT_OPENED = (TargetError, UnknownTarget, UnsafeFile, UnsupportedModel, MissingDependency)
FILES = (".onnx", ".npz")
DEFAULTS = {"budget": BUDGET}  # where the audit has its own


@dataclass(frozen=True)
class AuditOptions:
    """Options of the audit besides those of its target."""

    out: Annotated[Path, typer.Option("--out", "-o", help="Write the report: one HTML file.")] = Path("report.html")
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEAK", help=f"Exit status 1 if this leaks, or is not settled: {', '.join(LEAKS)}; may be repeated."
        ),
    ] = None
    price: Annotated[float | None, typer.Option(help="What 1000 queries cost.")] = None
    currency: Annotated[str, typer.Option(help="The currency of the price.")] = ""
    classes: Annotated[str | None, typer.Option(metavar="A,B,...", help="Names of the outputs.")] = None
    input_shape: Annotated[
        str | None, typer.Option(metavar="HEIGHT,WIDTH", help="Shape of inputs that are images.")
    ] = None
    skip: Annotated[
        list[str] | None, typer.Option(metavar="STEP", help=f"Leave out: {', '.join(STEPS)}; may be repeated.")
    ] = None
    seconds: Annotated[float, typer.Option(help="Processor time for extraction, learning and defenses.")] = SECONDS

    @property
    def gates(self) -> list[str]:
        """Leaks that must not be found."""
        return self.fail_on or []

    def check(self) -> None:
        """What cannot be written or understood is found before anything is asked."""
        check_page_path(self.out)
        unknown = [name for name in self.gates if name not in LEAKS]
        if unknown:
            raise InvalidInput.about("--fail-on", got=", ".join(unknown), expected="one of " + ", ".join(LEAKS))
        if self.price is not None and not 0 <= self.price < inf:
            raise InvalidInput.about("--price", got=self.price, expected="a finite number, at least 0")
        _check_needed(self.gates, self.skip or [])

    def settings(self) -> dict[str, Any]:
        """As `audit` takes them."""
        return {
            "input_shape": _shape(self.input_shape),
            "classes": () if self.classes is None else tuple(name.strip() for name in self.classes.split(",")),
            "price": None if self.price is None else {"per thousand": self.price, "currency": self.currency},
            "seconds": self.seconds,
            "steps": _left(self.skip or []),
        }


@with_target_options
def audit(target: TargetArgument, wanted: AuditOptions, options: TargetOptions) -> int:
    """Measure what a model's answers give away, and what would help.

    Runs health, span, extraction or learning, one-step flips and local linearity, then tries defenses on a local copy.
    The steps share one budget of queries, and a step that fails does not end the audit. The report is also written
    after Ctrl-C or SIGTERM (exit status 130 or 143), an exhausted budget, or for a target that cannot be opened (exit
    status 1). With --transcript, run a stopped audit again to resume it. --price and --rate say what an attack would
    cost; for a file, give the rate that its interface will allow. Exit status 0 if the audit ran to its end, whatever
    it found; use --fail-on in a pipeline.

    Example: reluctant audit model.onnx -o report.html --json audit.json

    Example: reluctant audit http://localhost:8000/v2/models/digits --budget 50000 --price 2 --fail-on extractable
    """
    wanted.check()
    check_rate(options.rate, "--rate")
    check_record_path(options.json)
    options = replace(options, budget=BUDGET if options.budget is None else options.budget)
    with stoppable() as stop, show_waits(options.quiet):
        repeat = command_line("audit", target, options, wanted, defaults=DEFAULTS)
        found = _run(target, options, repeat, wanted.settings())
        found = replace(found, written={"record": _record_name(options), "page": str(wanted.out)})
        stop.armed = False  # what is found is written whatever happens
        _write(found, wanted, options)
    _say_what_fails(found, wanted.gates, options)
    return _status(found, wanted.gates, stop)


def _run(target: str, options: TargetOptions, repeat: str, settings: Mapping[str, Any]) -> Audit:
    """Open the target and audit it; one that cannot be opened has a record too."""
    assert options.budget is not None
    budget = options.budget
    try:
        asked_at = options.rate if is_url(target) else None  # of a local model it is the rate of an interface to come
        oracle = replace(options, link="identity", output=None, rate=asked_at).open(target)
    except NOT_OPENED as error:
        say_error(error)
        return not_opened(target, error, seed=options.seed, budget=budget, repeat=repeat)
    with oracle, progress(oracle, options.quiet) as watch:
        return audit_target(
            oracle, budget=budget, rng=options.seed, file=_file(target), repeat=repeat, watch=watch,
            inputs=options.given_inputs(), defense=options.defense or (), percent=options.percent,
            precision=cast(RunPrecision, options.precision), link=cast(AnswerLink, options.given_link),
            output=options.output, engine=options.engine, rate=options.rate, **settings,
        )  # fmt: skip


def _write(found: Audit, wanted: AuditOptions, options: TargetOptions) -> None:
    """What matters most in words, then the record and the page; a page is not lost to a target that was mistyped."""
    if options.json != "-":
        print("\n".join(_figures(found)))
    write_record(found, options.json)
    kept = found.facts is None and wanted.out.exists() and not is_page_of_a_failure(wanted.out)
    if not kept:
        write_page(found.record, wanted.out)
    if options.json != "-":
        page = "No report was written; kept, of an earlier audit" if kept else "Report"
        print(f"{page}: {wanted.out.resolve()}")


def _record_name(options: TargetOptions) -> str | None:
    """The file of the record; one that went to standard output has no name yet."""
    return None if options.json in (None, "-") else options.json


def _figures(found: Audit) -> list[str]:
    """The verdict, and the figures that matter."""
    record = found.record
    if found.facts is None:
        return [verdict_sentence(record)]
    stopped = stop_sentence(record)
    return [verdict_sentence(record), *map(str, three_figures(record)), *([stopped] if stopped else [])]


def _status(found: Audit, fail_on: list[str], stop: Stop) -> int:
    if found.facts is None:
        return 1
    if not found.ok:
        return stop.status
    return 1 if set(fail_on) & {*found.verdict.leaks, *found.verdict.unsettled} else 0


def _say_what_fails(found: Audit, fail_on: list[str], options: TargetOptions) -> None:
    """Gates that are shut: a leak was found, or not decided. Told on standard output, unless the record is there."""
    for why, leaks in (("Found", found.verdict.leaks), ("Not settled", found.verdict.unsettled)):
        shut = [name for name in dict.fromkeys(fail_on) if name in leaks]
        if shut and found.facts is not None:
            said = f"{why}, so --fail-on does not pass: {', '.join(shut)}."
            print(said, file=sys.stderr if options.json == "-" else sys.stdout)


def _check_needed(fail_on: list[str], skipped: list[str]) -> None:
    """What is left out cannot be decided."""
    for leak in fail_on:
        missing = [step for step in NEEDS[leak] if step in skipped]
        if missing:
            raise InvalidInput.about(
                "--skip", got=", ".join(missing), expected=f"none that decides --fail-on {leak}",
                fix="Leave out one of the two options.",
            )  # fmt: skip


def _left(skipped: list[str]) -> list[str]:
    unknown = [name for name in skipped if name not in STEPS]
    if unknown:
        raise InvalidInput.about("--skip", got=", ".join(unknown), expected="one of " + ", ".join(STEPS))
    return [name for name in STEPS if name not in skipped]


def _file(target: str) -> Path | None:
    """The model's own file, if that is what the target is."""
    path = Path(target)
    return path if path.suffix in FILES and path.is_file() else None


def _shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        height, width = (int(part) for part in text.replace("x", ",").split(","))
    except ValueError as error:
        raise InvalidInput.about("--input-shape", got=f"'{text}'", expected="height,width like 28,28") from error
    return height, width


# ---- demo and report

# Settings of the demo's audit; seconds are processor time for its longer steps.
DEMO: dict[str, Any] = {
    "rng": 0, "input_shape": (8, 8), "classes": tuple("0123456789"), "precision": "float64", "seconds": 100.0,
}  # fmt: skip


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the report.")] = Path("reluctant-demo"),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no words.")] = False,
) -> int:
    """Audit a bundled digits classifier and write a report.

    The model has 64 inputs, 32 hidden neurons and ten outputs, and answers in float64. The folder gets the report, its
    record as JSON and the recovered network.
    """
    make_folder(out)
    if not quiet:
        card = json.loads(digits_card().read_text("utf-8"))
        note(f"Target: a digits classifier, {card['accuracy']['held out']:.1%} right on held-out images.")
    with (
        open_oracle(digits_model(), precision="float64") as oracle,
        progress(oracle, quiet) as watch,
    ):
        inputs = read_array("inputs", digits_inputs())
        found = audit_target(oracle, inputs=inputs, file=digits_model(), repeat="reluctant demo", watch=watch, **DEMO)
    extraction = found.known.extraction
    if extraction is not None:
        write_network(extraction, out / "recovered.onnx")
    write_record(found, str(out / "audit.json"))
    write_page(found.record, out / "report.html")
    print("\n".join([*_figures(found), f"Report: {(out / 'report.html').resolve()}"]))
    return 0 if extraction is not None and extraction.ok else 1


def report(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="What `reluctant audit --json` wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("report.html"),
) -> int:
    """Make the report of an audit again from its record.

    It asks nothing.

    Example: reluctant report audit.json -o report.html
    """
    check_page_path(out)
    write_page(record, out)
    print(verdict_sentence(AuditRecord.load(record)))
    print(f"Report: {out.resolve()}")
    return 0
