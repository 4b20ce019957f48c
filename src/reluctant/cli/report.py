"""`reluctant report`: the page of an audit again, from its record alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reluctant.cli.files import check_page_path, write_page
from reluctant.report import read_audit
from reluctant.report.page import told_as_a_wrong_record

__all__ = ["report"]


def report(
    record: Annotated[Path, typer.Argument(metavar="RECORD", help="What `reluctant audit --json` wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("report.html"),
) -> int:
    """Make the report of an audit again from its record; nothing is asked.

    Example: reluctant report audit.json -o report.html
    """
    check_page_path(out)
    data = read_audit(record)
    with told_as_a_wrong_record(record):
        write_page(data, out)
    print(data["verdict"]["sentence"])
    print(f"Report: {out.resolve()}")
    return 0
