"""An audit's record as a page: one HTML file that holds everything it shows and loads nothing.

The page is made from the record alone, so it can be made again from a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reluctant._optional import require
from reluctant.audit.record import Audit
from reluctant.errors import InvalidInput
from reluctant.geometry import LineSearch
from reluctant.report import drawings as draw
from reluctant.report.absent import absences
from reluctant.report.defenses import defense_table, label_alone, one_label, stand_in
from reluctant.report.findings import (
    is_trained,
    name_table,
    query_table,
    recovered_facts,
    step_table,
    truth_facts,
)
from reluctant.report.interface import interface_facts
from reluctant.report.levels import is_opened, leaks, level_of
from reluctant.report.reading import check_audit, read_audit
from reluctant.report.rendering import render
from reluctant.report.search import search_svg
from reluctant.report.sentences import (
    also_found,
    answers_labels,
    flip_sentence,
    line_sentence,
    shown_classes,
    target_name,
    versions_sentence,
)
from reluctant.report.summary import three_figures

__all__ = ["CONTENTS", "audit_page", "is_page_of_a_failure", "report", "write_audit_page"]

Data = Mapping[str, Any]

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


def _drawings(record: Data) -> dict[str, draw.Drawing | None]:
    pictures, defenses = record.get("pictures") or {}, record.get("defenses") or {}
    return {
        "line": draw.draw_line(pictures.get("line"), answers_labels(record)),
        "plane": draw.draw_plane(pictures.get("slice"), answers_labels(record)),
        "first_layer": draw.draw_first_layer(pictures.get("first layer")),
        "errors": draw.draw_errors(pictures.get("errors")),
        "leak": draw.draw_leak(defenses.get("rows")),
        "leak_queries": draw.draw_leak_queries(defenses.get("rows")),
        "linearity": draw.draw_linearity(record.get("linearity")),
        "stages": draw.draw_stages(record["queries"]["by stage"]),
        "flip": _flip(record),
    }


def _flip(record: Data) -> draw.Drawing | None:
    flip, layer = record.get("flip") or {}, (record.get("pictures") or {}).get("first layer")
    shape = (layer["height"], layer["width"]) if layer else None
    return draw.draw_flip(flip.get("start"), flip.get("x"), shape, shown_classes(record))


def _film(record: Data) -> Any:
    """The search for creases as it went, if there was one and it fits into a page."""
    search = (record.get("pictures") or {}).get("search")
    if not search:
        return None
    svg = search_svg(LineSearch.from_dict(search))
    markup = require("markupsafe", extra="report", purpose="A report").Markup
    return markup(svg) if len(svg) <= LONGEST_FILM else None
