"""`report`: an audit as a page, JSON, SARIF or JUnit XML, each a function of its record alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from reluctant._files import write_text
from reluctant.audit.record import EXPECTED, AuditRecord
from reluctant.errors import InvalidInput, ReluctantError
from reluctant.report.junit import junit_text
from reluctant.report.page import audit_page
from reluctant.report.sarif import sarif_text


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
    """What an audit gives back."""

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
