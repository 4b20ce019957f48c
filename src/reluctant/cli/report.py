"""`reluctant report`: the page of an audit again, from its record alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluctant.audit.record import AuditRecord
from reluctant.cli.files import check_page_path, write_page
from reluctant.report import verdict_sentence

__all__ = ["report"]


def report(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="What `reluctant audit --json` wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("report.html"),
) -> int:
    """Make the report of an audit again from its record; nothing is asked.

    Example: reluctant report audit.json -o report.html
    """
    check_page_path(out)
    write_page(record, out)
    print(verdict_sentence(AuditRecord.load(record)))
    print(f"Report: {out.resolve()}")
    return 0
