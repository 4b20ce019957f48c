"""Results that stay: a JSON file for each benchmark in benchmarks/results, written when asked for with --save.

A row is known by its name; running some rows again replaces those and leaves the others, each with its own date and
versions. The tables of docs/figures.md are made from these files: `python scripts/figures_page.py`.
"""

from __future__ import annotations

import datetime
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np

import reluctant

__all__ = ["FOLDER", "Results", "read_results"]

FOLDER = Path(__file__).parent / "results"


class Results:
    """Rows of one benchmark; `saved` is turned on by the command line."""

    saved = False

    def __init__(self, benchmark: str) -> None:
        self.benchmark = benchmark

    def keep(self, name: str, **values: Any) -> None:
        """Write a row, in place of an older one of this name."""
        if not Results.saved:
            return
        rows = read_results(self.benchmark)
        rows[name] = _stamped({key: _plain(value) for key, value in values.items()})
        FOLDER.mkdir(exist_ok=True)
        text = json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False)
        (FOLDER / f"{self.benchmark}.json").write_text(text + "\n", encoding="utf-8")


def read_results(benchmark: str) -> dict[str, dict[str, Any]]:
    """The rows of a benchmark by name, none if it was never saved."""
    path = FOLDER / f"{benchmark}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _stamped(row: dict[str, Any]) -> dict[str, Any]:
    """With date and versions at its end, unless it brings its own: it may have been measured elsewhere."""
    return row | {key: value for key, value in _made().items() if key not in row}


def _made() -> dict[str, str]:
    versions = {"reluctant": reluctant.__version__, "numpy": np.__version__, "python": platform.python_version()}
    return {"date": datetime.date.today().isoformat(), **versions}


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value
