"""Write the tables of the README from the kept results of the benchmarks.

python scripts/readme_tables.py          writes them
python scripts/readme_tables.py --check  exit status 1 if they are not what the results say
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.results import read_results  # noqa: E402

README = ROOT / "README.md"
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
    rows = [cells(name, row) for name, row in read_results(benchmark).items()]
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def filled(text: str) -> str:
    """The text with every marked table replaced."""
    for benchmark in TABLES:
        start, end = f"<!-- results: {benchmark} -->\n", "<!-- end -->"
        if text.count(start) != 1:
            sys.exit(f"README.md: the mark {start.strip()} was found {text.count(start)} times, expected once")
        before, _, rest = text.partition(start)
        text = before + start + table(benchmark) + "\n" + end + rest.partition(end)[2]
    return text


def main() -> None:
    old = README.read_text(encoding="utf-8")
    new = filled(old)
    if "--check" in sys.argv:
        sys.exit(0 if new == old else "README.md is not what benchmarks/results says: python scripts/readme_tables.py")
    README.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
