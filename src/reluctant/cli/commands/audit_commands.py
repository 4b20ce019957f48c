"""`reluctant audit`, `demo`, `report` and `compare-audits`: the page and the record of an audit."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from reluctant.audit import LEAKS, STEPS, Audit, not_opened
from reluctant.audit import audit as audit_target
from reluctant.audit import compare_audits as compare_records
from reluctant.audit.auditor import check_rate, own_file
from reluctant.audit.budget import BUDGET, SECONDS
from reluctant.audit.record import AuditRecord, LeakKind
from reluctant.audit.verdict import NEEDS
from reluctant.bundled import digits_card, digits_inputs, digits_model
from reluctant.cli.advice import as_command
from reluctant.cli.config import one_of
from reluctant.cli.console import note, progress, say_error, show_waits, stoppable
from reluctant.cli.files import (
    check_network_path,
    check_record_path,
    check_report_files,
    make_folder,
    print_result,
    read_array,
    report_files,
    write_network,
    write_record,
    write_report,
    writing,
)
from reluctant.cli.options import JsonOut, TargetArgument, TargetOptions, command_line, with_target_options
from reluctant.errors import InvalidInput, MissingDependency, TargetError, UnknownTarget, UnsafeFile, UnsupportedModel
from reluctant.messages import Diagnosis
from reluctant.oracles import open_oracle
from reluctant.oracles.http.security import shown_target
from reluctant.oracles.keywords import RunPrecision, is_url
from reluctant.oracles.links import AnswerLink
from reluctant.report import ReportFormat, is_page_of_a_failure, three_figures, verdict_sentence
from reluctant.report.text import said, stop_sentence

# What keeps a target from being opened: a report says so. Any other bad argument is a mistake at the keyboard.
NOT_OPENED = (TargetError, UnknownTarget, UnsafeFile, UnsupportedModel, MissingDependency)
DEFAULTS = {"budget": BUDGET}  # where the audit has its own


ReportOut = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="The report to write; report.html if not given."),
]
ReportFormats = Annotated[
    list[ReportFormat] | None,
    typer.Option(
        metavar="FORMAT",
        help="html: a page to read. json: the record. sarif: for code scanning. junit: tests for a pipeline. May be "
        "repeated: others go beside FILE, with their own endings. If not given, the ending of FILE decides.",
    ),
]


@dataclass(frozen=True)
class AuditOptions:
    """Options of the audit besides those of its target."""

    out: ReportOut = None
    format: ReportFormats = None
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LEAK",
            autocompletion=one_of(LEAKS),
            help=f"Exit status 1 if this leaks, or is not settled: {', '.join(LEAKS)}; may be repeated.",
        ),
    ] = None
    price: Annotated[float | None, typer.Option(help="What 1000 queries cost.")] = None
    currency: Annotated[str, typer.Option(help="The currency of the price.")] = ""
    classes: Annotated[str | None, typer.Option(metavar="A,B,...", help="Names of the outputs.")] = None
    input_shape: Annotated[
        str | None, typer.Option(metavar="HEIGHT,WIDTH", help="Shape of inputs that are images.")
    ] = None
    integers: Annotated[
        str | None,
        typer.Option(
            metavar="0,3,...",
            help="Columns that take whole numbers alone: they stay at the middle of the inputs, and the audit is of "
            "the others.",
        ),
    ] = None
    skip: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STEP", autocompletion=one_of(STEPS), help=f"Leave out: {', '.join(STEPS)}; may be repeated."
        ),
    ] = None
    seconds: Annotated[float, typer.Option(help="Processor time for extraction, learning and defenses.")] = SECONDS
    copy: Annotated[
        Path | None, typer.Option("--copy", help="Write the copy, exact or close, if there is one: .onnx or .npz.")
    ] = None

    @property
    def gates(self) -> list[str]:
        """Leaks that must not be found."""
        return self.fail_on or []

    @property
    def gated(self) -> tuple[LeakKind, ...]:
        """The gates as leaks of the record."""
        return tuple(leak for leak in LEAKS if leak in self.gates)

    @property
    def files(self) -> dict[ReportFormat, Path]:
        """The reports to write."""
        return report_files(self.out, self.format)

    def check(self) -> None:
        """Options that cannot be written or understood fail before the first query."""
        check_report_files(self.files)
        check_network_path(self.copy, "--copy")
        unknown = [name for name in self.gates if name not in LEAKS]
        if unknown:
            raise InvalidInput.about("--fail-on", got=", ".join(unknown), expected="one of " + ", ".join(LEAKS))
        if self.price is not None and not 0 <= self.price < inf:
            raise InvalidInput.about("--price", got=self.price, expected="a finite number, at least 0")
        skipped = self.skip or []
        for leak in self.gates:
            missing = [step for step in NEEDS[leak] if step in skipped]
            if missing:
                raise InvalidInput.about(
                    "--skip", got=", ".join(missing), expected=f"none that decides --fail-on {leak}",
                    fix="Leave out one of the two options.",
                )  # fmt: skip

    def settings(self) -> dict[str, Any]:
        """As `audit` takes them."""
        skipped = self.skip or []
        unknown = [name for name in skipped if name not in STEPS]
        if unknown:
            raise InvalidInput.about("--skip", got=", ".join(unknown), expected="one of " + ", ".join(STEPS))
        return {
            "input_shape": _shape(self.input_shape),
            "integers": _columns(self.integers),
            "classes": () if self.classes is None else tuple(name.strip() for name in self.classes.split(",")),
            "price": None if self.price is None else {"per thousand": self.price, "currency": self.currency},
            "seconds": self.seconds,
            "steps": [name for name in STEPS if name not in skipped],
        }


@with_target_options
def audit(target: TargetArgument, wanted: AuditOptions, options: TargetOptions) -> int:
    """Measure what a model's answers leak, and what would help.

    Runs health, span, extraction or learning, one-step flips and local linearity, then tries defenses on a local copy.
    The steps share one budget of queries, and a step that fails does not end the audit. The report is also written
    after Ctrl-C or SIGTERM (exit status 130 or 143), an exhausted budget, or for a target that cannot be opened (exit
    status 1). With --transcript, run a stopped audit again to resume it. --price and --rate say what an attack would
    cost; for a file, give the rate that its interface will allow. Exit status 0 if the audit ran to its end, whatever
    it found; use --fail-on in a pipeline.

    Example: reluctant audit model.onnx -o report.html --json audit.json

    Example: reluctant audit model.onnx --format html --format sarif --format junit -o audit.html

    Example: reluctant audit http://localhost:8000/v2/models/digits --budget 50000 --price 2 --fail-on extractable
    """
    wanted.check()
    check_rate(options.rate, "--rate")
    check_record_path(options.json)
    options = replace(options, budget=BUDGET if options.budget is None else options.budget)
    with stoppable() as stop, show_waits(options.quiet):
        repeat = command_line("audit", target, options, wanted, defaults=DEFAULTS)
        found = _run(target, options, repeat, wanted.settings())
        names = {format: str(file) for format, file in wanted.files.items()}
        record = names.get(ReportFormat.JSON) if options.json in (None, "-") else options.json
        written = {"record": record, "page": names.get(ReportFormat.HTML)}
        found = replace(found, written=written, location=shown_target(target), gates=wanted.gated)
        stop.armed = False  # findings are written whatever happens
        _write(found, wanted, options)
    for why, leaks in (("Found", found.verdict.leaks), ("Not settled", found.verdict.unsettled)):
        shut = [name for name in dict.fromkeys(wanted.gates) if name in leaks]
        if shut and found.facts is not None:
            said = f"{why}, so --fail-on does not pass: {', '.join(shut)}."
            print(said, file=sys.stderr if options.json == "-" else sys.stdout)
    if found.facts is None:
        return 1
    if not found.ok:
        return stop.status
    return 1 if set(wanted.gates) & {*found.verdict.leaks, *found.verdict.unsettled} else 0


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
            oracle, budget=budget, rng=options.seed, file=own_file(target), repeat=repeat, watch=watch,
            inputs=options.given_inputs(), defense=options.defense or (), percent=options.percent,
            precision=cast(RunPrecision, options.precision), link=cast(AnswerLink, options.given_link),
            output=options.output, engine=options.engine, rate=options.rate, **settings,
        )  # fmt: skip


def _write(found: Audit, wanted: AuditOptions, options: TargetOptions) -> None:
    """Record, pages and copy, each tried though another cannot be written; then in words what matters most."""
    lines = _figures(found)
    with ExitStack() as files:  # the last one is called first
        if options.json != "-":
            files.callback(lambda: print("\n".join(lines)))
        files.callback(_write_copy, found, wanted, lines)
        files.callback(_write_pages, found, wanted, lines)
        files.callback(write_record, found, options.json)


def _write_pages(found: Audit, wanted: AuditOptions, lines: list[str]) -> None:
    """The page and other formats; a page is not lost to a target that was mistyped."""
    for format, file in wanted.files.items():
        page = format is ReportFormat.HTML
        kept = page and found.facts is None and file.exists() and not is_page_of_a_failure(file)
        if not kept:
            write_report(found.record, file, format)
        name = "No report was written; kept, of an earlier audit" if kept else "Report"
        lines.append(f"{name}: {file.resolve()}")


def _write_copy(found: Audit, wanted: AuditOptions, lines: list[str]) -> None:
    copy = None if wanted.copy is None or found.facts is None else found.copy
    if wanted.copy is not None and copy is not None:
        with writing("--copy", wanted.copy):
            copy.save(wanted.copy)
    if wanted.copy is not None:
        lines.append("There is no copy to write." if copy is None else f"Copy: {wanted.copy.resolve()}")


def _figures(found: Audit) -> list[str]:
    """The verdict, and the figures that matter."""
    record = found.record
    if found.facts is None:
        return [verdict_sentence(record, as_command)]
    stopped = stop_sentence(record)
    return [verdict_sentence(record, as_command), *map(str, three_figures(record)), *([stopped] if stopped else [])]


def _shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        height, width = (int(part) for part in text.replace("x", ",").split(","))
    except ValueError as error:
        raise InvalidInput.about("--input-shape", got=f"'{text}'", expected="height,width like 28,28") from error
    return height, width


def _columns(text: str | None) -> tuple[int, ...]:
    try:
        return () if text is None else tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise InvalidInput.about("--integers", got=f"'{text}'", expected="columns like 0,3") from error


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
    record, page = out / "audit.json", out / "report.html"
    found = replace(found, written={"record": str(record), "page": str(page)})
    write_record(found, str(record))
    write_report(found.record, page)
    print("\n".join([*_figures(found), f"Report: {page.resolve()}"]))
    return 0 if extraction is not None and extraction.ok else 1


def report(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="What `reluctant audit --json` wrote.")],
    out: ReportOut = None,
    format: ReportFormats = None,
) -> int:
    """Make the report of an audit again from its record.

    It asks nothing.

    Example: reluctant report audit.json -o report.html

    Example: reluctant report audit.json --format sarif --format junit -o audit.sarif
    """
    files = report_files(out, format)
    check_report_files(files)
    for each, file in files.items():
        write_report(record, file, each)
    print(verdict_sentence(AuditRecord.load(record), as_command))
    for file in files.values():
        print(f"Report: {file.resolve()}")
    return 0


# ---- two audits


def compare_audits(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The record of the earlier audit (--json).")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The record of the later one.")],
    json: JsonOut = None,
) -> int:
    """Say what got worse and what got better between two audits.

    It reads two records and asks nothing. A leak is worse if it is found now and was not, or if it was absent and is
    not settled now. Figures are listed if they changed by much: queries and error of a copy, the smallest flip, labels
    that a trained network gives. Exit status 1 if a leak is worse, 0 otherwise; a figure alone changes no status.

    Example: reluctant compare-audits released.json candidate.json
    """
    check_record_path(json)
    changes = compare_records(AuditRecord.load(old), AuditRecord.load(new))
    lines = [Diagnosis("other-shape").happened] if changes.other_shape else []
    for name, parts in (("Worse", changes.worse), ("Better", changes.better)):
        lines += [f"{name}. {said(each.diagnosis)}" for each in parts]
    found = [f"New leaks: {', '.join(changes.new_leaks)}."] if changes.new_leaks else []
    lines += found if changes.worse or changes.better else [Diagnosis("nothing-changed").happened]
    print_result(changes, json, lines)
    return 0 if changes.ok else 1
