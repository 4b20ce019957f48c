"""The gallery: one page of experiments, each with claim, picture, table and checks.

A picture from a file goes into the page as it is, so one that could run or load anything is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

from reluctant.errors import require
from reluctant.report.page import render
from reluctant.report.tables import Cell, Column, Table
from reluctant.report.text import UNKNOWN, count, duration, size

DIGITS = 3  # of a number in a table
CHECK_COLUMNS = (
    Column("what was asked"), Column("value", True), Column("from", True), Column("to", True), Column("result"),
)  # fmt: skip
SUMMARY_COLUMNS = (
    Column("experiment"), Column("checks that hold"), Column("where"), Column("paper"), Column("size"),
    Column("seed", True), Column("CPU time", True),
)  # fmt: skip

Record = Mapping[str, Any]


@dataclass(frozen=True)
class _ShownFinding:
    """One finding as the page shows it."""

    record: Record
    picture: Any

    @property
    def holding(self) -> int:
        return sum(check["ok"] for check in self.record["checks"])

    @property
    def state(self) -> Cell:
        """How it ended, in a few words and a tone."""
        checks = len(self.record["checks"])
        if self.record["error"]:
            return Cell("did not run", -1, "bad")
        share = self.holding / checks if checks else 1.0
        return Cell(f"{self.holding} of {_checks(checks)}", share, "good" if share == 1 else "bad")

    @property
    def measured(self) -> str:
        """What was found; a power of ten is not broken."""
        return str(self.record["measured"]).replace(" × ", "\u00a0×\u00a0")

    @property
    def table(self) -> Table:
        names, rows = self.record["columns"], self.record["rows"]
        numeric = [j > 0 and all(_is_number(row[j]) for row in rows) for j in range(len(names))]
        columns = [Column(name, is_number) for name, is_number in zip(names, numeric, strict=True)]
        return Table(f"{self.record['where']} in numbers", columns, [[_cell(value) for value in row] for row in rows])

    @property
    def checks(self) -> Table:
        rows = [
            (check["name"], _cell(check["value"]), _cell(check["low"]), _cell(check["high"]), _holds(check["ok"]))
            for check in self.record["checks"]
        ]
        return Table(f"Checks of {self.record['name']}", CHECK_COLUMNS, rows)

    def summary(self) -> list[Cell | str]:
        """Its row in the table at the head."""
        record = self.record
        link = _markup('<a href="#{}">{}</a>').format(record["name"], record["name"])
        state = replace(self.state, text=self.state.text.removesuffix(" checks").removesuffix(" check"))
        return [
            Cell(link, record["name"]), state, record["where"],
            _short_name(record["paper"]), record["size"], str(record["seed"]),
            Cell(duration(record["seconds"]), record["seconds"]),
        ]  # fmt: skip


@dataclass(frozen=True)
class _PaperSection:
    """A paper and its findings."""

    anchor: str
    about: Mapping[str, str]
    shown: Sequence[_ShownFinding]


def gallery_page(records: Sequence[Record], pictures: Mapping[str, str]) -> str:
    """Records of experiments and their pictures (SVG, by name) as one self-contained HTML page.

    Arguments:
        records: what `reluctant reproduce` wrote, in the order of the page.
        pictures: SVG by the name of the experiment; left out if it could run or load anything.
    """
    drawn = {name: _markup(svg) for name, svg in pictures.items() if is_only_drawn(svg)}
    shown = [_ShownFinding(record, drawn.get(record["name"])) for record in records]
    titles = list(dict.fromkeys(each.record["paper"]["title"] for each in shown))
    groups = [[each for each in shown if each.record["paper"]["title"] == title] for title in titles]
    return render(
        "gallery.html",
        summary=Table("All experiments", SUMMARY_COLUMNS, [each.summary() for each in shown]),
        papers=[
            _PaperSection(f"paper-{number}", group[0].record["paper"], group) for number, group in enumerate(groups, 1)
        ],
        contents=[(record["name"], record["name"]) for record in records],
        verdict=_verdict(shown),
        versions=sorted({record["version"] for record in records}),
    )


def _verdict(shown: Sequence[_ShownFinding]) -> Mapping[str, Any]:
    checks = sum(len(each.record["checks"]) for each in shown)
    holding = sum(each.holding for each in shown)
    failed = [each.record["name"] for each in shown if each.record["error"]]
    bad = [each.record["name"] for each in shown if not each.record["ok"] and not each.record["error"]]
    parts = [_holding(holding, checks)] if checks else []
    parts += [f"{', '.join(failed)} did not run"] if failed else []
    return {
        "tone": "bad" if bad or failed else "good",
        "sentence": ", ".join(parts or ["Nothing has been run"]) + ".",
        "level": "Not as asked" if bad or failed else "As asked",
        "detail": f"Not as asked: {', '.join(bad)}." if bad else "",
        "figures": [
            ("experiments", count(len(shown)), "run again from the papers"),
            ("checks that hold", f"{holding} of {checks}", "numbers within the bounds asked of them"),
            ("CPU time", duration(sum(each.record["seconds"] for each in shown)), "over all experiments"),
        ],
    }


def _short_name(paper: Mapping[str, str]) -> str:
    """The first author, or both if there are two, and the year."""
    authors = paper["authors"].replace(" and ", ", ").split(", ")
    names = f"{authors[0]} et al." if len(authors) > 2 else " and ".join(authors)
    return f"{names} {paper['venue'].split()[-1]}"


def _checks(number: int) -> str:
    return "1 check" if number == 1 else f"{count(number)} checks"


def _holding(holding: int, checks: int) -> str:
    if holding < checks:
        return f"{holding} of {_checks(checks)} hold"
    return "The check holds" if checks == 1 else f"All {_checks(checks)} hold"


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: Any) -> Cell:
    if value is None:
        return Cell(UNKNOWN, "")
    if isinstance(value, float):
        return Cell(_short(value), value)
    return Cell(count(value), value) if _is_number(value) else Cell(str(value))


def _short(value: float) -> str:
    """A few digits, without zeros that say nothing: 0.003, not 0.00300."""
    text = size(value, DIGITS)
    return text.rstrip("0").rstrip(".") if "." in text and "×" not in text else text


def _holds(ok: bool) -> Cell:
    return Cell("holds", 1, "good") if ok else Cell("does not hold", 0, "bad")


def _markup(text: str) -> Any:
    return require("markupsafe", extra="report", purpose="A gallery").Markup(text)


SVG = "{http://www.w3.org/2000/svg}"
# What our pictures are made of; neither scripts nor foreign documents are among it.
TAGS = {"svg", "g", "path", "text", "tspan", "defs", "use", "clipPath", "rect", "image", "style", "title", "metadata"}
INSIDE = ("#", "data:image/png;base64,")
LOADS = re.compile(r"@import|url\(\s*['\"]?(?!#)", re.IGNORECASE)


def is_only_drawn(svg: str) -> bool:
    """True if it has nothing that could run or load."""
    if "<!" in svg:  # a document type, whose entities stand for anything
        return False
    try:
        elements = list(ElementTree.fromstring(svg).iter())
    except ElementTree.ParseError:
        return False
    return all(_is_drawing(element) for element in elements)


def _is_drawing(element: ElementTree.Element) -> bool:
    attributes = {name.rpartition("}")[2].lower(): value for name, value in element.attrib.items()}
    return (
        element.tag.removeprefix(SVG) in TAGS
        and not any(name.startswith("on") for name in attributes)
        and attributes.get("href", "#").startswith(INSIDE)
        and not any(LOADS.search(text) for text in (element.text or "", *attributes.values()))
    )
