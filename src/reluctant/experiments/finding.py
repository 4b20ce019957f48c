"""What an experiment gives back: a table, a picture, and checks against what the paper says."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reluctant.experiments.axes import page_colours, plain_axes
from reluctant.experiments.papers import Paper
from reluctant.report.figures import figure_svg, new_figure
from reluctant.report.words import UNKNOWN

__all__ = ["Check", "Finding", "cell", "write_files"]

SUFFIXES = (".svg", ".txt", ".json")


@dataclass(frozen=True)
class Check:
    """A number with the bounds that were asked of it."""

    name: str
    value: float
    low: float
    high: float

    @property
    def ok(self) -> bool:
        """True if the value lies between the bounds."""
        return self.low <= self.value <= self.high

    def __str__(self) -> str:
        return f"{'ok ' if self.ok else 'NOT'} {self.name}: {self.value:.4g} (asked {self.low:g} to {self.high:g})"


@dataclass(frozen=True)
class Finding:
    """One experiment, run.

    Arguments:
        name: as the command line knows it.
        title: what was measured, in one line.
        claim: what the paper says about it.
        measured: what was found, in a sentence with its numbers.
        columns, rows: the table.
        draw: puts the picture on a matplotlib figure.
        checks: numbers that were asked of it.
        notes: what a reader has to know besides.
        paper, where: whose claim it is, and its number there.
    """

    name: str
    title: str
    claim: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    draw: Callable[[Any], None]
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()
    paper: Paper | None = None
    where: str = ""
    measured: str = ""

    @property
    def ok(self) -> bool:
        """True if every check holds."""
        return all(check.ok for check in self.checks)

    def table(self) -> str:
        """The table as text, then checks and notes."""
        cells = [self.columns, *(tuple(cell(value) for value in row) for row in self.rows)]
        widths = [max(len(row[j]) for row in cells) for j in range(len(self.columns))]
        lines = ["  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in cells]
        source = [] if self.paper is None else [f"{self.paper.short}: {self.where}"]
        measured = [f"Measured: {self.measured}"] if self.measured else []
        words = [self.title, *source, f"Claim: {self.claim}", *measured]
        return "\n".join([*words, "", *lines, "", *map(str, self.checks), *self.notes])

    def svg(self) -> str:
        """The picture as an inline SVG element."""
        with page_colours():
            figure = new_figure()
            self.draw(figure)
            plain_axes(figure)
            return figure_svg(figure)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "name": self.name,
            "paper": None if self.paper is None else asdict(self.paper),
            "where": self.where,
            "title": self.title,
            "claim": self.claim,
            "measured": self.measured,
            "ok": self.ok,
            "columns": list(self.columns),
            "rows": [[_finite(value) for value in row] for row in self.rows],
            "checks": [
                {"name": c.name, "value": _finite(c.value), "low": c.low, "high": c.high, "ok": c.ok}
                for c in self.checks
            ],
            "notes": list(self.notes),
        }

    def write(self, folder: Path, **about: Any) -> list[Path]:
        """Write NAME.svg, NAME.txt and, last, NAME.json into a folder.

        Arguments:
            folder: where; it exists.
            about: more of the run that the JSON file has to say.
        """
        return write_files(folder, self.name, self.files(**about))

    def files(self, **about: Any) -> dict[str, str]:
        """What is written, by suffix."""
        data = json.dumps({**self.to_dict(), **about}, indent=2, allow_nan=False)
        return dict(zip(SUFFIXES, (self.svg(), self.table(), data), strict=True))


def write_files(folder: Path, name: str, texts: Mapping[str, str]) -> list[Path]:
    """Write NAME.suffix for each suffix, in this order, in the place of all that was there under this name."""
    for suffix in SUFFIXES:
        (folder / f"{name}{suffix}").unlink(missing_ok=True)
    paths = [folder / f"{name}{suffix}" for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text + "\n", encoding="utf-8")
    return paths


def _finite(value: Any) -> Any:
    """JSON has no infinity: null stands for it."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cell(value: Any) -> str:
    """A value of a table as text."""
    if value is None:
        return UNKNOWN
    return f"{value:.4g}" if isinstance(value, float) else str(value)
