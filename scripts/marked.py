"""Tables in Markdown pages between marks: written by scripts, never by hand."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["markdown_table", "write_marked"]

END = "<!-- end -->"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """One table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_marked(page: Path, parts: Mapping[str, str], command: str) -> None:
    """Replace the text between <!-- results: NAME --> and the end; with --check exit with status 1 if it differs."""
    old = new = page.read_text(encoding="utf-8")
    for name, part in parts.items():
        start = f"<!-- results: {name} -->\n"
        if new.count(start) != 1:
            sys.exit(f"{page.name}: the mark {start.strip()} was found {new.count(start)} times, expected once")
        before, _, rest = new.partition(start)
        new = before + start + part + "\n" + END + rest.partition(END)[2]
    if "--check" in sys.argv:
        sys.exit(0 if new == old else f"{page.name} is not what benchmarks/results says: {command}")
    page.write_text(new, encoding="utf-8")
