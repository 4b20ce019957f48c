"""Write the tables of docs/figures.md from the kept results of the benchmarks.

python scripts/figures_page.py          writes them
python scripts/figures_page.py --check  exit status 1 if they are not what the results say
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.results import read_results  # noqa: E402
from marked import markdown_table, write_marked  # noqa: E402

PAGE = ROOT / "docs" / "figures.md"
Row = tuple[str, ...]


def depth_two(name: str, row: dict[str, Any]) -> Row:
    return name, _of(row), f"{row['cost']:.3f}", f"{row['out_max']:.1e}", f"{row['cpu']:.2f}"


def depth_three(name: str, row: dict[str, Any]) -> Row:
    return name, _of(row), str(row["wrong"]), f"{row['queries']:,.0f}", f"{row['cost']:.2f}", f"{row['out_max']:.1e}"


def _of(row: dict[str, Any]) -> str:
    return f"{row['ok']} of {row['networks']}"


TABLES: dict[str, tuple[Row, Callable[[str, dict[str, Any]], Row]]] = {
    "depth-two": (("network", "recovered", "q·m/P", "largest error", "CPU ÷ target's"), depth_two),
    "depth-three": (("network", "recovered", "wrong", "queries", "q·m/P", "largest error"), depth_three),
}


def table(benchmark: str) -> str:
    """One table in Markdown."""
    head, cells = TABLES[benchmark]
    return markdown_table(head, [cells(name, row) for name, row in read_results(benchmark).items()])


if __name__ == "__main__":
    write_marked(PAGE, {name: table(name) for name in TABLES}, "python scripts/figures_page.py")
