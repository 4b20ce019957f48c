"""An audit's record as a page: one HTML file that holds everything it shows and loads nothing.

The page is made from the record alone. Templates escape everything but pictures made here; style and script stand
inside the page. A page extends `base.html` and draws tables and figures with the macros of `parts.html`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from reluctant._optional import require
from reluctant.audit import schema
from reluctant.audit.audit_value import SCHEMA, Audit
from reluctant.errors import InvalidInput, ReluctantError
from reluctant.geometry import LineSearch
from reluctant.report import numbers
from reluctant.report.drawings import (
    draw_errors,
    draw_first_layer,
    draw_flip,
    draw_line,
    draw_linearity,
    draw_plane,
    draw_stages,
)
from reluctant.report.figures import Drawing
from reluctant.report.film import search_svg
from reluctant.report.leak_curve import draw_leak, draw_leak_queries
from reluctant.report.overview import three_figures
from reluctant.report.tables import (
    defense_table,
    interface_facts,
    is_trained,
    label_alone,
    name_table,
    one_label,
    query_table,
    recovered_facts,
    stand_in,
    step_table,
    truth_facts,
)
from reluctant.report.text import (
    absences,
    also_found,
    answers_labels,
    flip_sentence,
    is_opened,
    leaks,
    level_of,
    line_sentence,
    shown_classes,
    target_name,
    versions_sentence,
)

__all__ = [
    "CONTENTS",
    "audit_page",
    "check_audit",
    "inconsistencies",
    "is_page_of_a_failure",
    "read_audit",
    "render",
    "report",
    "told_as_a_wrong_record",
    "write_audit_page",
]

FILTERS = ("count", "size", "percent", "duration", "money")  # of `numbers`
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
    environment.filters.update({name: getattr(numbers, name) for name in FILTERS})
    environment.filters["prose"] = _prose
    environment.globals["asset"] = _asset
    return environment


def _asset(name: str) -> Any:
    """A style or script of `templates/`, to stand inside the page as it is."""
    markupsafe = require("markupsafe", extra="report", purpose="A report")
    return markupsafe.Markup(resources.files("reluctant.report").joinpath("templates", name).read_text("utf-8"))


def _prose(text: str) -> Any:
    """A sentence as it is read: 2.0e-13 becomes a power of ten, 64-32-10 and [-2, 2] are not broken into two lines."""
    markupsafe = require("markupsafe", extra="report", purpose="A report")
    escaped = str(markupsafe.escape(numbers.powers(text)))
    return markupsafe.Markup(UNBROKEN.sub(r'<span class="nowrap">\g<0></span>', escaped))


Data = Mapping[str, Any]


def inconsistencies(record: Data) -> Iterator[str]:
    """Each place of a record whose numbers do not fit together, in words."""
    pictures = record["pictures"]
    for name, check in (
        ("line", _line_mistakes),
        ("slice", _slice_mistakes),
        ("first layer", _layer_mistakes),
        ("search", _search_mistakes),
    ):
        if pictures[name] is not None:
            yield from (f"pictures/{name}: {what}" for what in check(pictures[name]))
    for number, group in enumerate(pictures["errors"] or ()):
        if len(group["edges"]) != len(group["counts"]) + 1:
            yield f"pictures/errors/{number}: one edge more than counts is wanted"
    if record["linearity"] is not None:
        yield from (f"linearity: {what}" for what in _linearity_mistakes(record["linearity"]))
    if record["flip"] is not None and not _same_length(record["flip"]["start"], record["flip"]["x"]):
        yield "flip: start and x differ in length"


def _line_mistakes(line: Data) -> Iterator[str]:
    if not _same_length(line["positions"], line["answers"]):
        yield "positions and answers differ in length"
    if not _same_length(*line["answers"]):
        yield "answers differ in length"


def _slice_mistakes(part: Data) -> Iterator[str]:
    if not _same_length(*part["values"]):
        yield "rows of values differ in length"
    if not _same_length(part["creases"], part["layers"]):
        yield "creases and layers differ in length"
    if not all(low < high for low, high in zip(part["low"], part["high"], strict=True)):
        yield "low is not below high"


def _layer_mistakes(layer: Data) -> Iterator[str]:
    if any(len(image) != layer["height"] * layer["width"] for image in layer["images"]):
        yield "an image is not of height times width numbers"


def _search_mistakes(search: Data) -> Iterator[str]:
    if not _same_length(search["t"], search["answers"], search["round"], [None, *search["known"]]):
        yield "t, answers, round and known are not of one length (known: one less)"
    if not _same_length(*search["answers"]):
        yield "answers differ in length"
    for name in ("t", "creases"):
        if any(one > other for one, other in zip(search[name], search[name][1:], strict=False)):
            yield f"{name} is not in order"
    if not search["t"][0] < search["t"][-1]:
        yield "t has no length"


def _linearity_mistakes(linearity: Data) -> Iterator[str]:
    curves = (linearity[name] for name in ("random", "along", "random networks"))
    if not _same_length(linearity["radii"], *curves):
        yield "the curves and radii differ in length"


def _same_length(*lists: Any) -> bool:
    """Whether all that are there are of one length."""
    return len({len(each) for each in lists if each is not None}) <= 1


EXPECTED = "a record that `reluctant audit --json` wrote"
LONGEST = 160  # characters of what the schema says


def read_audit(path: Path) -> dict[str, Any]:
    """The record in a file, or an error that says what is wrong with the file."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise InvalidInput.about("RECORD", got=f"'{path}' ({error.strerror})", expected=EXPECTED) from error
    except ValueError as error:  # not JSON, or not text
        raise InvalidInput.about("RECORD", got=f"'{path}', which is no JSON ({error})", expected=EXPECTED) from error
    return check_audit(data, f"'{path}'")


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def check_audit(data: Any, name: str = "the record") -> dict[str, Any]:
    """The record if it follows the schema, or an error that names the first place where it does not."""
    version = data.get("schema") if isinstance(data, dict) else None
    if version != SCHEMA:
        raise InvalidInput.about("RECORD", got=f"{name} with schema {version!r}", expected=f"schema {SCHEMA!r}")
    jsonschema = require("jsonschema", extra="report", purpose="Checking a record")
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema()).iter_errors(data))
    if error is not None:
        place = "/".join(str(part) for part in error.absolute_path) or "its top"
        said = error.message if len(error.message) <= LONGEST else error.message[: LONGEST - 1] + "…"
        raise InvalidInput.about("RECORD", got=f"{name}, wrong at {place}: {said}", expected=EXPECTED)
    for wrong in inconsistencies(data):
        raise InvalidInput.about("RECORD", got=f"{name}, wrong at {wrong}", expected=EXPECTED)
    return dict(data)


@contextmanager
def told_as_a_wrong_record(path: Path) -> Iterator[None]:
    """Whatever a page stumbles over in a record from elsewhere is a mistake of the record."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, ReluctantError):
            raise
        got = f"'{path}', of which no page can be made ({type(error).__name__}: {error})"
        raise InvalidInput.about("RECORD", got=got, expected=EXPECTED) from error


LONGEST_FILM = 800_000  # characters: of a page of 1.5 MB

OF_A_FAILURE = '<meta name="reluctant-target" content="not opened">'  # stands in the page of one that was not opened
NOT_OPENED = ("steps", "repeat")  # sections about a target that could not be opened
CONTENTS = (
    ("recovered", "What was recovered"),
    ("defenses", "What would help"),
    ("function", "What the target computes"),
    ("search", "How it was found"),
    ("flip", "One small step"),
    ("queries", "Queries"),
    ("truth", "Compared with the truth"),
    ("limits", "Limits and assumptions"),
    ("names", "Names readers know"),
    ("interface", "The interface"),
    ("steps", "Steps of the audit"),
    ("repeat", "How to repeat it"),
)


def audit_page(record: Data) -> str:
    """The page of an audit's record (`Audit.to_dict()`)."""
    return render(
        "audit.html",
        record=record,
        contents=_contents(record),
        name=target_name(record),
        of_a_failure="" if is_opened(record) else OF_A_FAILURE,
        level=level_of(record),
        stopped=record.get("stopped"),
        figures=three_figures(record) if is_opened(record) else [],
        leaks=leaks(record) if is_opened(record) else [],
        absent=absences(record),
        also=also_found(record),
        flip=flip_sentence(record),
        labels=answers_labels(record),
        on_the_line=line_sentence(record),
        versions=versions_sentence(record),
        film=_film(record),
        alone=label_alone(record.get("defenses")),
        stand_in=stand_in(record),
        one_label=one_label(record),
        trained=is_trained(record.get("recovered") or {}),
        drawings=_drawings(record),
        **_tables(record),
    )


def _contents(record: Data) -> tuple[tuple[str, str], ...]:
    """All sections; of a target that could not be opened, those that have something to say."""
    return CONTENTS if is_opened(record) else tuple(part for part in CONTENTS if part[0] in NOT_OPENED)


def is_page_of_a_failure(path: Path) -> bool:
    """True of a page that says no more than that a target could not be opened."""
    return path.is_file() and OF_A_FAILURE in path.read_text(encoding="utf-8", errors="replace")


def write_audit_page(path: Path, record: Data) -> None:
    """Write the page of an audit's record."""
    path.write_text(audit_page(record), encoding="utf-8")


def _tables(record: Data) -> dict[str, Any]:
    return {
        "recovered": recovered_facts(record) if record.get("recovered") else None,
        "defenses": defense_table(record["defenses"]) if record.get("defenses") else None,
        "queries": query_table(record),
        "truth": truth_facts(record["truth"]) if record.get("truth") else None,
        "names": name_table(record),
        "interface": interface_facts(record),
        "steps": step_table(record),
    }


def _drawings(record: Data) -> dict[str, Drawing | None]:
    pictures, defenses = record.get("pictures") or {}, record.get("defenses") or {}
    return {
        "line": draw_line(pictures.get("line"), answers_labels(record)),
        "plane": draw_plane(pictures.get("slice"), answers_labels(record)),
        "first_layer": draw_first_layer(pictures.get("first layer")),
        "errors": draw_errors(pictures.get("errors")),
        "leak": draw_leak(defenses.get("rows")),
        "leak_queries": draw_leak_queries(defenses.get("rows")),
        "linearity": draw_linearity(record.get("linearity")),
        "stages": draw_stages(record["queries"]["by stage"]),
        "flip": _flip_drawing(record),
    }


def _flip_drawing(record: Data) -> Drawing | None:
    flip, layer = record.get("flip") or {}, (record.get("pictures") or {}).get("first layer")
    shape = (layer["height"], layer["width"]) if layer else None
    return draw_flip(flip.get("start"), flip.get("x"), shape, shown_classes(record))


def _film(record: Data) -> Any:
    """The search for creases as it went, if there was one and it fits into a page."""
    search = (record.get("pictures") or {}).get("search")
    if not search:
        return None
    svg = search_svg(LineSearch.from_dict(search))
    markup = require("markupsafe", extra="report", purpose="A report").Markup
    return markup(svg) if len(svg) <= LONGEST_FILM else None


def report(audit: Audit | Data | str | Path, path: str | Path = "report.html") -> Path:
    """Write the page of an audit; nothing is asked.

    Arguments:
        audit: what `audit` found, its record as plain data, or the JSON file of it.
        path: the page to write.

    Returns the path of the page.
    """
    if isinstance(audit, Audit):
        record: Data = audit.to_dict()
    else:
        record = read_audit(Path(audit)) if isinstance(audit, str | Path) else check_audit(audit)
    page = Path(path)
    if not page.parent.is_dir():
        raise InvalidInput.about("path", got=f"'{path}'", expected="a file in an existing folder")
    write_audit_page(page, record)
    return page
