"""`report`: an audit as an HTML page, JSON, SARIF or JUnit XML, each a function of its record alone.

Templates escape everything but pictures made here; style and script stand inside the page. A page extends `base.html`
and draws tables and figures with the macros of `parts.html`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from reluctant._files import write_text
from reluctant.audit.facts import CopyMethod
from reluctant.audit.record import EXPECTED, AuditRecord, SearchPicture
from reluctant.errors import InvalidInput, ReluctantError, require
from reluctant.geometry import LineSearch
from reluctant.report.drawings import (
    Drawing,
    draw_errors,
    draw_first_layer,
    draw_flip,
    draw_leak,
    draw_leak_queries,
    draw_line,
    draw_linearity,
    draw_plane,
    draw_stages,
)
from reluctant.report.film import search_svg
from reluctant.report.junit import junit_text
from reluctant.report.overview import (
    Figure,
    LeakFound,
    confidence_sentence,
    found_leaks,
    level_words,
    three_figures,
    verdict_parts,
    when_sentence,
)
from reluctant.report.sarif import sarif_text
from reluctant.report.sweep_text import (
    COLUMNS,
    defense_table,
    failure_words,
    one_label,
    owner_actions,
    sweep_sentence,
)
from reluctant.report.tables import (
    interface_facts,
    name_table,
    query_table,
    recovered_facts,
    step_table,
    truth_facts,
)
from reluctant.report.text import (
    absences,
    also_found,
    answers_labels,
    count,
    duration,
    flip_sentence,
    is_opened,
    limit_sentences,
    line_sentence,
    money,
    percent,
    powers,
    shown_classes,
    size,
    stop_sentence,
    target_name,
)

LONGEST_FILM = 800_000  # characters: of a page of 1.5 MB

OF_A_FAILURE = '<meta name="reluctant-target" content="not opened">'  # marks the page of a target that did not open
NOT_OPENED = ("steps", "repeat")  # its sections, both open
CONTENTS = (
    ("recovered", "What was recovered"),
    ("defenses", "What would help"),
    ("function", "What the target computes"),
    ("search", "How it was found"),
    ("flip", "One small step"),
    ("queries", "Queries"),
    ("truth", "Compared with the truth"),
    ("limits", "Limits and assumptions"),
    ("names", "In MITRE, NIST and OWASP"),
    ("interface", "The interface"),
    ("steps", "Steps of the audit"),
    ("repeat", "How to repeat it"),
    ("meanings", "What the numbers mean"),
)
OPENED = ("recovered", "defenses")  # sections that are open at first
MORE = "How sure this is, and what to try"
MOST_WORDS = 120  # of the first screen

READ_THROUGH = {
    **dict.fromkeys(("softmax", "log-softmax", "top-k"), " (as log-ratios of its probabilities to the first)"),
    "sigmoid": " (before its sigmoid)",
}

FILTERS = {each.__name__: each for each in (count, duration, money, percent, size)}
UNBROKEN = re.compile(r"\b\d+(?:-\d+)+\b|\[-?[\d.]+, -?[\d.]+\]")  # 64-32-10, [-2, 2]


def render(template: str, **values: Any) -> str:
    """Fill a template of `templates/`.

    Arguments:
        template: its file name.
        values: what it needs; strings are escaped.
    """
    return str(_environment().get_template(template).render(**values))


@cache
def _environment() -> Any:
    jinja2 = require("jinja2", extra="report", purpose="A report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reluctant.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(FILTERS)
    environment.filters["prose"] = _prose
    environment.globals |= {"asset": _asset, "MEANINGS": MEANINGS}
    return environment


def _asset(name: str) -> Any:
    """A style or script of `templates/`, to stand inside the page as it is."""
    markupsafe = require("markupsafe", extra="report", purpose="A report")
    return markupsafe.Markup(resources.files("reluctant.report").joinpath("templates", name).read_text("utf-8"))


def _prose(words: str) -> Any:
    """A sentence as it is read: 2.0e-13 becomes a power of ten, 64-32-10 and [-2, 2] are not broken into two lines."""
    markupsafe = require("markupsafe", extra="report", purpose="A report")
    escaped = str(markupsafe.escape(powers(words)))
    return markupsafe.Markup(UNBROKEN.sub(r'<span class="nowrap">\g<0></span>', escaped))


def audit_page(record: AuditRecord) -> str:
    """The page of an audit's record."""
    sweep, opened = record.defenses, is_opened(record)
    contents = CONTENTS if opened else tuple(part for part in CONTENTS if part[0] in NOT_OPENED)
    figures, leaks = (three_figures(record), found_leaks(record)) if opened else ([], [])
    verdict = verdict_parts(record)
    level = level_words(record)
    room = MOST_WORDS - _words(target_name(record), level.words, verdict[0], figures, leaks)
    is_shown = (not opened or record.recovered is None) and len(verdict[1].split()) <= room
    recovered, interface = recovered_facts(record), interface_facts(record)
    truth = [] if record.truth is None else truth_facts(record.truth)
    queries, steps = query_table(record), step_table(record)
    columns = [*queries.columns, *steps.columns, *(() if sweep is None else COLUMNS)]
    names = [name for name, _ in (*recovered, *truth, *interface)]
    numbered = [*(figure.name for figure in figures), *names, *(each.name for each in columns)]
    return render(
        "audit.html",
        record=record,
        contents=contents,
        titles=dict(contents),
        name=target_name(record),
        of_a_failure="" if opened else OF_A_FAILURE,
        level=level,
        more=MORE,
        verdict=verdict,
        shown=verdict[1] if is_shown else "",
        folded="" if is_shown else verdict[1],
        opened=OPENED if opened else NOT_OPENED,
        when=when_sentence(record),
        confidence=confidence_sentence(record),
        stopped=stop_sentence(record),
        figures=figures,
        leaks=leaks,
        meanings=explained(numbered),
        absent=absences(record),
        also=also_found(record),
        flip=flip_sentence(record),
        labels=answers_labels(record),
        on_the_line=line_sentence(record),
        read_through=READ_THROUGH.get(record.target.link, ""),
        versions=", ".join(f"{name} {version}" for name, version in asdict(record.versions).items()),
        limits=limit_sentences(record),
        film=_film(record.pictures.search),
        sweep="" if sweep is None else sweep_sentence(sweep),
        actions=owner_actions(record),
        failed=[] if sweep is None else [failure_words(each) for each in sweep.failed],
        one_label=one_label(record),
        trained=record.recovered is not None and record.recovered.method is CopyMethod.TRAINING,
        drawings=_drawings(record),
        recovered=recovered,
        defenses=None if sweep is None else defense_table(sweep),
        queries=queries,
        truth=truth,
        names=name_table(record),
        interface=interface,
        steps=steps,
    )


def _words(name: str, level: str, headline: str, figures: Sequence[Figure], leaks: Sequence[LeakFound]) -> int:
    """Words of the first screen, without its details."""
    shown = [name, level, headline, MORE]
    shown += [part for figure in figures for part in (figure.name, figure.value, figure.note)]
    shown += [part for leak in leaks for part in (leak.what, leak.state)]
    return sum(len(part.split()) for part in shown)


def is_page_of_a_failure(path: Path) -> bool:
    """True of a page that says no more than that a target could not be opened."""
    return path.is_file() and OF_A_FAILURE in path.read_text(encoding="utf-8", errors="replace")


def _drawings(record: AuditRecord) -> dict[str, Drawing | None]:
    pictures, labels = record.pictures, answers_labels(record)
    rows = () if record.defenses is None else record.defenses.rows
    flip, layer = record.flip, pictures.first_layer
    shape = None if layer is None else (layer.height, layer.width)
    return {
        "line": draw_line(pictures.line, labels),
        "plane": draw_plane(pictures.plane, labels),
        "first_layer": draw_first_layer(layer),
        "errors": draw_errors(pictures.errors),
        "leak": draw_leak(rows),
        "leak_queries": draw_leak_queries(rows),
        "linearity": draw_linearity(record.linearity),
        "stages": draw_stages(record.queries.by_stage),
        "flip": None if flip is None else draw_flip(flip.start, flip.x, shape, shown_classes(record)),
    }


def _film(picture: SearchPicture | None) -> Any:
    """The search for creases as it went, if there was one and it fits into a page."""
    if picture is None:
        return None
    search = LineSearch(
        picture.scale, np.array(picture.t), np.array(picture.answers, dtype=float), np.array(picture.round, dtype=int),
        np.array(picture.known, dtype=bool), np.array(picture.creases, dtype=float),
    )  # fmt: skip
    svg = search_svg(search)
    markup = require("markupsafe", extra="report", purpose="A report").Markup
    return markup(svg) if len(svg) <= LONGEST_FILM else None


class ReportFormat(StrEnum):
    """What an audit can be written as: a page to read, its record, findings for code scanning, tests for a pipeline."""

    HTML = "html"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"

    @property
    def ending(self) -> str:
        """The ending of its files."""
        return ENDINGS[self]

    @classmethod
    def of(cls, path: Path) -> ReportFormat:
        """The format that the name of a file asks for; a page, if none."""
        return next((each for each in cls if path.suffix == each.ending), cls.HTML)


ENDINGS = {
    ReportFormat.HTML: ".html", ReportFormat.JSON: ".json", ReportFormat.SARIF: ".sarif", ReportFormat.JUNIT: ".xml",
}  # fmt: skip
WRITERS: Mapping[ReportFormat, Callable[[AuditRecord], str]] = {
    ReportFormat.HTML: audit_page,
    ReportFormat.JSON: lambda record: record.to_json() + "\n",
    ReportFormat.SARIF: sarif_text,
    ReportFormat.JUNIT: junit_text,
}


class HasRecord(Protocol):
    """The findings of an audit as an object."""

    @property
    def record(self) -> AuditRecord:
        """Its record."""


def report(
    audit: HasRecord | AuditRecord | Mapping[str, Any] | str | Path,
    path: str | Path = "report.html",
    format: str | None = None,
) -> Path:
    """Write the report of an audit; nothing is asked.

    Arguments:
        audit: what `audit` found, its record, the record as plain data, or the JSON file of it.
        path: the file to write.
        format: "html", "json", "sarif" or "junit"; if not given, by the ending of the path (.html, .json, .sarif,
            .xml), a page for any other.

    Returns the path.
    """
    file = Path(path)
    if format is not None and format not in set(ReportFormat):
        raise InvalidInput.about("format", got=f"'{format}'", expected="one of " + ", ".join(ReportFormat))
    chosen = ReportFormat.of(file) if format is None else ReportFormat(format)
    if isinstance(audit, str | Path):
        text = _from_file(audit, chosen)
    elif isinstance(audit, Mapping):
        text = WRITERS[chosen](AuditRecord.from_dict(audit))
    else:
        text = WRITERS[chosen](audit if isinstance(audit, AuditRecord) else audit.record)
    if not file.parent.is_dir():
        raise InvalidInput.about("path", got=f"'{path}'", expected="a file in an existing folder")
    write_text(file, text)
    return file


def _from_file(path: str | Path, format: ReportFormat) -> str:
    """The report of a record in a file: whatever it stumbles over there is a mistake of the file."""
    record = AuditRecord.load(path)
    try:
        return WRITERS[format](record)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, ReluctantError):
            raise
        got = f"'{path}', of which no page can be made ({type(error).__name__}: {error})"
        raise InvalidInput.about("RECORD", got=got, expected=EXPECTED) from error


# ---- meanings, shown on hover and in the last section

DEVIATION = "in units of the standard deviation of that output over typical inputs"
MEANINGS = {
    # The first screen.
    "Parameters copied": "Weights and biases of the verified copy.",
    "Parameters of a copy": "Weights and biases of a copy whose error was measured.",
    "Error of a trained copy": "Root mean square at held-out inputs, relative to the answers' deviation.",
    "The same label from a trained copy": "Share of new inputs at which the surrogate gives the model's label.",
    "The same label from a trained network": "Share of new inputs at which the surrogate gives the model's label.",
    "Neurons of the first layer copied": "Neurons at whose hyperplanes the model was seen to bend.",
    "Queries it took": "Rows sent to the model for the copy, verification included.",
    "Queries spent": "Rows sent to the model by all steps.",
    "Defense that stops every copy": "The defense with the least cost to honest users that no method passed.",
    "Input directions used": "Dimension of the input subspace that the answers depend on, of all inputs.",
    "Change that flips an answer": "Norm of the change over the norm of the input, for one gradient step.",
    "An answer gives": "What one answer shows of the function.",
    "Noise of an answer": "Standard deviation between two answers to the same row.",
    "Digits in an answer": "Number format and rounding of the answers.",
    "Steps done": "Steps of the audit that finished.",
    # The copy.
    "Method": "The method that made the copy.",
    "Verified": "Whether the copy agrees with the model at new inputs, on and beside every crease.",
    "Parameters": "Weights and biases of the copy.",
    "Answers through": "The link after the last layer of the copy.",
    "Largest error seen": f"Largest difference between copy and model, {DEVIATION}.",
    "Typical error (root mean square)": f"Root mean square of the differences, {DEVIATION}.",
    "Its own error, without the noise of the answers": "The error without the noise of the answers.",
    "Queries": "Rows sent to the model; one row brings one answer for each output.",
    "Cost": "Queries times the price that you gave.",
    "Time": "Queries over the rate that you gave; on the first screen, the time of all steps.",
    "What an attack would cost": "The estimate for this shape, with its range.",
    # The truth.
    "File": "The model's own file; no method read it.",
    "True network": "Widths and parameters in the file.",
    "Neurons found": "True neurons with a neuron of the copy beside them.",
    "Largest error of an output": f"Copy against file at new inputs, {DEVIATION}.",
    "Largest error of a weight": "After neurons have the same order and scale, relative to the neuron's weights.",
    # The interface.
    "Inputs": "Numbers in one row.",
    "Outputs": "Numbers in one answer.",
    "Answers": "Values, probabilities or labels.",
    "Number format": "The format that the target declares.",
    "Read through": "The link that was undone to get values.",
    "Domain": "The inputs that may be asked.",
    "Answers only in": "The range of inputs that the target answers.",
    "Identity": "A hash that recognises the target.",
    "The same every time": "Whether the same row gets the same answer.",
    "Space of answers": "Dimensions of the affine space that all answers lie in, of many outputs.",
    "With explanations": "Queries of a verified copy with the gradients that the target answers, and without them.",
    "Digits seen": "The narrowest format and rounding that explain the answers.",
    "Noise": "Smallest difference between answers that means anything.",
    "Spread of the answers": "Standard deviation over random inputs.",
    "No change beyond": "Inputs larger than this get constant answers.",
    "Rows without a number": "Rows answered with NaN or inf.",
    "Largest inputs answered": "Largest size of inputs that got finite answers.",
    "Shape at small scale": "How the answers change along short lines.",
    "Shape of the values read, at small scale": "How the values before the link change along short lines.",
    "Spread of the values read": "Standard deviation of the values before the link.",
    "Rows whose answers show no value": "Rows whose answers saturate the link.",
    "Largest inputs that show values": "Largest size of inputs whose answers do not saturate the link.",
    # Columns.
    "asked": "Rows that a method asked for.",
    "sent": "Rows that reached the target, repeats included.",
    "replayed": "Rows answered from the transcript, without a query.",
    "queries": "Rows that reached the target, of those allowed.",
    "time": "Wall-clock time.",
    "users' error": "Root mean square change of answers for honest users, relative to the spread of the answers.",
    "labels kept": "Share of honest inputs that keep their label.",
    "directions": "Directions of the input that an attacker still finds.",
    "copy": "The best copy behind this defense.",
    "copy's error": "Root mean square error of that copy against the undefended model.",
}


def explained(names: Iterable[str]) -> list[tuple[str, str]]:
    """The names that have a meaning, once each, in their order."""
    return [(name, MEANINGS[name]) for name in dict.fromkeys(names) if name in MEANINGS]
